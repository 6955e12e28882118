// The steps of a mesh force for any storage of its meshes: assignment, forward transforms, the influence function,
// backward transforms, interpolation; and what corrects it for heavy particles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/device/blocked_fft.hpp"
#include "kernels/device/buffer.hpp"
#include "kernels/device/stream.hpp"
#include "kernels/mesh/interpolate.hpp"
#include "kernels/mesh/mesh.hpp"
#include "kernels/mesh/modes.cuh"

namespace maki {

// InfluencePass::axis for the potential.
inline constexpr int kPotentialAxis = -1;

// The pass over the modes between the transforms: combines both interlaced meshes into one spectrum, and multiplies it
// by influence function and gradient. x, y, z are the axes from the slowest to the one along the lines of modes, in any
// order of the box's axes: influence function and phases are the same for all axes.
//
// `out` = i D G rho along one axis, or -G rho for the potential; `out_shifted` the same for the shifted mesh of
// interlacing. Outputs may alias inputs: an item reads its own element, then writes it.
struct InfluencePass {
  Complex* mesh;           // modes of the first mesh, or rho
  const Complex* shifted;  // where not null: modes of the second; rho = (mesh + phase shifted) / 2 (modes.cuh)
  Complex* rho;            // where not null: receives rho
  Complex* out;            // may be null
  Complex* out_shifted;    // may be null
  const float* influence;  // the part of the octant for these modes, lines [x][y][z]
  const float* gradient;   // D, one axis
  const Complex* phases;
  int m, axis;           // 0 x, 1 y, 2 z
  float nyquist_factor;  // 2 with full interlacing, where only the first mesh has the Nyquist planes; else 1
};

// The modes of a pass: `rows`, `stride` numbers apart within a plane. A row has the modes z = 0 ... m/2, or if `whole`
// the modes z = 0 ... m - 1, where z above m/2 means z - m.
struct ModeBlock {
  RowBlock rows;
  int stride;
  bool whole;
  int octant_x, octant_y, octant_rows;  // the first x and y of the influence function, and rows in a plane of it
};

namespace detail {

// The kind of pass is a template parameter: the loop over a row has no branches.
template <bool kCombine, bool kOut, bool kShifted, bool kWhole>
struct InfluenceRows {
  InfluencePass pass;
  int octant_x, octant_y, octant_rows;  // ModeBlock

  struct Row {
    const float* influence;
    float gradient, factor;
    Complex phase;
    bool nyquist;
  };
  MAKI_HD Row begin(int x, int y) const {
    const int m = pass.m, side = m / 2 + 1, a = x < side ? x : m - x, b = y < side ? y : m - y;
    const float d = pass.axis == 0 ? pass.gradient[x] : pass.axis == 1 ? pass.gradient[y] : -1.0f;
    const bool nyquist = 2 * x == m || 2 * y == m;
    const std::size_t line = static_cast<std::size_t>(a - octant_x) * octant_rows + (b - octant_y);
    return {pass.influence + line * side, d, nyquist ? pass.nyquist_factor : 1.0f,
            kCombine || kShifted ? product(pass.phases[x], pass.phases[y]) : Complex{1, 0}, nyquist};
  }
  MAKI_HD void at(const Row& row, int z, std::size_t i) const {
    const bool nyquist = row.nyquist || 2 * z == pass.m;
    Complex rho = pass.mesh[i], phase{1, 0};
    if (kCombine || kShifted) phase = product(row.phase, pass.phases[z]);
    if (kCombine) {
      const Complex moved = product(phase, pass.shifted[i]);
      const Complex both{0.5f * (rho.re + moved.re), 0.5f * (rho.im + moved.im)};
      rho = nyquist ? rho : both;
      if (pass.rho) pass.rho[i] = rho;
    }
    float g =
        row.influence[kWhole && 2 * z > pass.m ? pass.m - z : z] * (pass.axis == 2 ? pass.gradient[z] : row.gradient);
    g *= 2 * z == pass.m ? pass.nyquist_factor : row.factor;
    const Complex value = pass.axis < 0 ? Complex{g * rho.re, g * rho.im} : Complex{-g * rho.im, g * rho.re};
    if (kShifted) pass.out_shifted[i] = product(value, {phase.re, -phase.im});
    if (kOut) pass.out[i] = value;
  }

#if !defined(__CUDACC__)
  // The same bits as at() item by item. For the potential, per-item decisions of at() are taken once a row, so that the
  // compiler can vectorise the loop.
  void row(const Row& row, std::size_t first, int length) const {
    const int half = pass.m / 2;
    int z = 0;
    if (pass.axis < 0 && !pass.rho && !row.nyquist) {
      potential<false>(row, first, 0, half);
      at(row, half, first + static_cast<std::size_t>(half));
      if (kWhole) potential<true>(row, first, half + 1, length);
      z = length;
    }
    for (; z < length; ++z) at(row, z, first + static_cast<std::size_t>(z));
  }
  template <bool kUpper>
  void potential(const Row& all, std::size_t first, int begin, int end) const {
    const InfluencePass p = pass;
    const Row row = all;
    const Complex *const mesh = p.mesh + first, *const shifted = p.shifted + (kCombine ? first : 0);
    Complex *const out = p.out + (kOut ? first : 0), *const out_shifted = p.out_shifted + (kShifted ? first : 0);
#pragma GCC ivdep
    for (int z = begin; z < end; ++z) {
      Complex rho = mesh[z], phase{1, 0};
      if (kCombine || kShifted) phase = product(row.phase, p.phases[z]);
      if (kCombine) {
        const Complex moved = product(phase, shifted[z]);
        rho = {0.5f * (rho.re + moved.re), 0.5f * (rho.im + moved.im)};
      }
      const float g = row.influence[kUpper ? p.m - z : z] * row.gradient * row.factor;
      const Complex value{g * rho.re, g * rho.im};
      if (kShifted) out_shifted[z] = product(value, {phase.re, -phase.im});
      if (kOut) out[z] = value;
    }
  }
#endif
};

template <bool kCombine, bool kWhole>
void launch_influence(const Stream& stream, const InfluencePass& pass, const ModeBlock& modes) {
  const auto run = [&]<bool kOut, bool kShifted>() {
    launch_rows(stream, "mesh.influence", modes.rows, kWhole ? pass.m : pass.m / 2 + 1, modes.stride,
                InfluenceRows<kCombine, kOut, kShifted, kWhole>{pass, modes.octant_x, modes.octant_y,
                                                                modes.octant_rows});
  };
  if (pass.out && pass.out_shifted)
    run.template operator()<true, true>();
  else if (pass.out)
    run.template operator()<true, false>();
  else
    run.template operator()<false, true>();
}

}  // namespace detail

inline void launch_influence(const Stream& stream, const InfluencePass& pass, const ModeBlock& modes) {
  if (pass.shifted)
    modes.whole ? detail::launch_influence<true, true>(stream, pass, modes)
                : detail::launch_influence<true, false>(stream, pass, modes);
  else
    modes.whole ? detail::launch_influence<false, true>(stream, pass, modes)
                : detail::launch_influence<false, false>(stream, pass, modes);
}

// The times of one call's phases, by marks between them; does nothing until switched on.
class PhaseClock {
 public:
  using Phase = double MeshPhases::*;

  void switch_on() { clock_.emplace(); }
  void begin(const Stream& stream) {
    if (!clock_) return;
    clock_->clear();
    ends_.clear();
    begin_ = clock_->mark(stream);
  }
  void end(const Stream& stream, Phase phase) {
    if (clock_) ends_.emplace_back(phase, clock_->mark(stream));
  }
  MeshPhases seconds() const {
    MeshPhases sum;
    std::size_t from = begin_;
    for (const auto& [phase, mark] : ends_) {
      sum.*phase += clock_->seconds(from, mark);
      from = mark;
    }
    return sum;
  }

 private:
  std::optional<StreamClock> clock_;
  std::size_t begin_ = 0;
  std::vector<std::pair<Phase, std::size_t>> ends_;
};

// The layout of a force's meshes, whole on one rank or distributed, and the operations that depend on it. A mesh is an
// array of size() floats (over many ranks this rank's part), which transforms turn into modes and back, in place.
class MeshStorage {
 public:
  virtual ~MeshStorage() = default;
  virtual std::size_t size() const = 0;

  // Whether `asks` is true on any rank. Collective.
  virtual bool any(bool asks) const { return asks; }
  // The values' sums over ranks, on every rank. Collective.
  virtual void add_over_ranks(const Stream&, DeviceBuffer<std::uint64_t>&) const {}

  // This rank's modes, and the place of the box's axis (0 x, 1 y, 2 z) in their order: 0 the slowest, 2 along the
  // lines.
  virtual ModeBlock modes() const = 0;
  virtual int mode_axis(int axis) const = 0;
  // The part of the influence function for these modes.
  virtual std::vector<float> influence(const MeshOptions& options, const ForceLaw& law, Influence kind) const = 0;

  // Overwrites `mesh` with the mass in each cell less the mean, and where interlaced `shifted` with the same for
  // particles at +1/2 cell along each axis.
  virtual void assign(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit,
                      float* mesh, float* shifted) = 0;
  virtual void forward(const Stream& stream, float* mesh) = 0;
  virtual void backward(const Stream& stream, float* mesh) = 0;
  // forward(), the influence function and backward() at once, where `pass` is the only work on the modes: its inputs
  // hold cells, and its outputs are transformed back to cells. Cells that no particle of the last assign() needs are
  // undefined. Returns false, with nothing done, where three separate steps are as good.
  virtual bool solve(const Stream&, const InfluencePass&, PhaseClock&) { return false; }

  // The particles at which a mesh is interpolated (interpolate.hpp); `shifted`: the mesh is the shifted one of
  // interlacing.
  struct Target {
    bool shifted;
    const SourceParticle* particles;
    std::size_t n;
  };
  virtual void interpolate(const Stream& stream, const float* mesh, const Target& target,
                           const InterpolationOutput& out) = 0;
};

// MeshStorage::solve() in blocks: `block` has all modes, `planes` are those that particles need. The transforms along x
// count as influence.
void solve_in_blocks(const Stream& stream, BlockedFft& fft, const InfluencePass& pass, const ModeBlock& block,
                     const std::vector<std::uint8_t>& planes, PhaseClock& clock);

// A mesh does not know a particle's position within its cell, and so a particle accelerates itself: with the analytic
// gradient by some 7e-3 G m / r_cut^2, odd and periodic in its position in the cell. Between particles of one mass the
// errors of all pairs, the self-force among them, nearly cancel where matter is smooth. The self-force of a particle
// much heavier than its surroundings does not cancel: it is subtracted.
//
// It is computed as the mesh computes it, with the particle's own integer weights, from the influence function's
// transform to the few cells that two clouds share (Hockney & Eastwood 1988, section 5-4-3, on self-forces).
class SelfForce {
 public:
  SelfForce(const MeshOptions& options, const ForceLaw& law) : options_(options), law_(law) {}

  // Subtracts it from the long-range acceleration of particles heavier than kHeavy mean ones or, in sparse sets, than
  // the matter in kSparse mean cells. `unit` as in ParticleMesh::long_range().
  void subtract(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit,
                VectorView acceleration);

 private:
  static constexpr double kHeavy = 4, kSparse = 128;

  MeshOptions options_;
  ForceLaw law_;
  std::optional<DeviceBuffer<double>> tables_;  // made once a heavy particle is possible
};

// Transforms in single precision round a potential to some 1e-7 of its peak, which is at the heaviest particle. If that
// weighs MassUnit::kLone mean particles or more, the rounding can be per cents of the force of all others on it. So the
// modes are summed again at its place, in double: this gives the potential in the cells of its cloud, and from these
// its acceleration as in interpolate(). The pull of its own cloud stays included (SelfForce). The sums are the
// same bits for any number of ranks.
//
// With the analytic gradient alone: where each component is transformed back, the peak is not part of the mesh. A
// second particle as heavy would pull the first so hard that the rounding would not matter.
class LoneParticle {
 public:
  LoneParticle(const MeshOptions& options, const ForceLaw& law) : options_(options), law_(law) {}

  // Whether the set of this unit has such a particle. The functions below are for such sets, and collective over the
  // ranks of the storage.
  bool is_in(const MassUnit& unit) const { return options_.gradient == Gradient::kAnalytic && unit.lone_mass > 0; }
  // Its place, sent by the rank that has it.
  void find(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit,
            MeshStorage& storage);
  // The potential around it, from the modes of one output: 0, or 1 for the shifted mesh of interlacing.
  void sum_modes(const Stream& stream, const Complex* potential, int output, MeshStorage& storage);
  // Replaces its interpolated acceleration by the mean over `outputs` outputs.
  void replace(const Stream& stream, const SourceParticle* particles, std::size_t n, int outputs, MeshStorage& storage,
               VectorView acceleration);

 private:
  MeshOptions options_;
  ForceLaw law_;
  float mass_ = 0;
  double quantum_ = 0;                                      // of the sums, which are integers; mass / side
  DeviceBuffer<double> waves_{"mesh.lone_waves"};           // cosines of 2 pi i / cells, then sines
  DeviceBuffer<std::uint64_t> place_{"mesh.lone_place"};    // x, y, z
  DeviceBuffer<double> lines_{"mesh.lone_lines"};           // [row of modes][cell along it], complex
  DeviceBuffer<std::uint64_t> planes_{"mesh.lone_planes"};  // [plane of modes][cell]
  DeviceBuffer<std::uint64_t> cells_{"mesh.lone_cells"};    // [output][cell], of the cloud's S^3, x slowest
};

class MeshSolver {
 public:
  MeshSolver(const MeshOptions& options, const ForceLaw& law, std::unique_ptr<MeshStorage> storage);

  // As in ParticleMesh.
  void long_range(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit,
                  VectorView acceleration, float* potential);
  void long_range_at(const Stream& stream, const MeshParticles& sources, const MeshParticles& points,
                     VectorView acceleration, float* potential);

  const MeshOptions& options() const { return options_; }
  PhaseClock& clock() { return clock_; }

 private:
  using Target = MeshStorage::Target;
  bool full() const { return options_.interlacing == Interlacing::kFull; }
  int outputs() const { return full() ? 2 : 1; }
  float share() const { return 1.0f / static_cast<float>(outputs()); }
  float* potential_of(int output) { return output ? scratch_.data() : mesh_.data(); }
  void density(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit);
  void forward(const Stream& stream);
  InfluencePass pass_of(const float* table, int axis, float* out, float* out_shifted, bool last);
  void pass(const Stream& stream, const float* table, int axis, float* out, float* out_shifted, bool last);
  void backward(const Stream& stream, float* values);
  void potentials_in_place(const Stream& stream);
  Target target(int output) const { return {output == 1, particles_, n_}; }
  void field(const Stream& stream, const float* table, int axis, bool last, float* out);
  void forces(const Stream& stream, VectorView acceleration, float* potential);
  void analytic(const Stream& stream, VectorView acceleration, float* potential);

  MeshOptions options_;
  ForceLaw law_;
  std::unique_ptr<MeshStorage> storage_;
  const SourceParticle* particles_ = nullptr;  // where this call interpolates
  std::size_t n_ = 0;
  DeviceBuffer<float> mesh_{"mesh.density"};     // masses, then their modes, then potentials
  DeviceBuffer<float> scratch_{"mesh.scratch"};  // the shifted mesh, then the mesh to transform back
  bool separate_ = false;                        // mesh_ and scratch_ are not combined into one spectrum yet
  bool in_cells_ = false;                        // mesh_ and scratch_ hold cells, not modes yet
  DeviceBuffer<float> influence_{"mesh.influence"};
  DeviceBuffer<float> influence_potential_{"mesh.influence_potential"};
  bool has_potential_ = false;  // influence_potential_ is made at the first request for a potential
  DeviceBuffer<float> gradient_{"mesh.gradient"};
  DeviceBuffer<Complex> phases_{"mesh.phases"};
  LoneParticle lone_;
  bool has_lone_ = false;  // of this call
  SelfForce self_force_;
  PhaseClock clock_;
};

}  // namespace maki
