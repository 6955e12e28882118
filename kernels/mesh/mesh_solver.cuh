// The steps of a mesh force, wherever its meshes lie: assignment, transforms with the influence function between,
// interpolation.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/device/buffer.hpp"
#include "kernels/device/timer.hpp"
#include "kernels/mesh/influence.hpp"
#include "kernels/mesh/influence_pass.cuh"
#include "kernels/mesh/interpolate.hpp"
#include "kernels/mesh/mesh.hpp"
#include "kernels/mesh/self_force.hpp"

namespace maki {

// Marks between the phases of one call; does nothing until it is switched on.
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

// The layout of a force's meshes, whole on one rank or divided over many, and the operations that depend on it. A mesh
// is an array of size() floats (over many ranks this rank's part), which transforms turn into modes in place and back.
class MeshStorage {
 public:
  virtual ~MeshStorage() = default;
  virtual std::size_t size() const = 0;
  virtual std::size_t bytes() const = 0;  // work space, without meshes

  // Whether `asks` is true on any rank. Collective.
  virtual bool any(bool asks) const { return asks; }

  // The modes of this rank, and the place of an axis (0 x, 1 y, 2 z) in their order: 0 the slowest, 2 along the lines.
  virtual ModeBlock modes() const = 0;
  virtual int mode_axis(int axis) const = 0;
  // The part of the influence function that these modes need.
  virtual std::vector<float> influence(const MeshOptions& options, const ForceLaw& law, Influence kind) const = 0;

  // The part of assign() that can be done early, for the same arguments.
  virtual void begin_assign(const Stream&, const SourceParticle*, std::size_t, const MassUnit&) {}
  // Overwrites `mesh` with the mass in each cell less the mean, and where interlaced `shifted` with the same for
  // particles at +1/2 cell along each axis.
  virtual void assign(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit,
                      float* mesh, float* shifted) = 0;
  virtual void forward(const Stream& stream, float* mesh) = 0;
  virtual void backward(const Stream& stream, float* mesh) = 0;
  // forward(), the influence function and backward() at once, where `pass` is the only work on the modes: its input
  // arrays hold cells, and its outputs are transformed back to cells. Cells that no particle last assigned needs are
  // undefined. Returns false, with nothing done, where the three steps one after another are as good.
  virtual bool solve(const Stream&, const InfluencePass&, PhaseClock&) { return false; }

  // The particles at which a mesh is interpolated (interpolate.hpp); `shifted`: the mesh is the shifted one of
  // interlacing.
  struct Target {
    bool shifted;
    const SourceParticle* particles;
    std::size_t n;
  };
  virtual void interpolate(const Stream& stream, const float* mesh, const Target& target, const ValueOutput& out) = 0;
  virtual void interpolate_gradient(const Stream& stream, const float* mesh, const Target& target,
                                    const GradientOutput& out) = 0;
  // The gradient of a potential by 4-point differences, interpolated; there is no out.value. `spare` is a mesh that may
  // be written, or null. The differences count as influence in `clock`.
  virtual void interpolate_difference(const Stream& stream, const float* potential, float* spare, const Target& target,
                                      const GradientOutput& out, PhaseClock& clock) = 0;
};

class MeshSolver {
 public:
  MeshSolver(const MeshOptions& options, const ForceLaw& law, std::unique_ptr<MeshStorage> storage);

  // As in ParticleMesh.
  void begin(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit) {
    storage_->begin_assign(stream, particles, n, unit);
  }
  void long_range(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit,
                  VectorView acceleration, float* potential);

  const MeshOptions& options() const { return options_; }
  PhaseClock& clock() { return clock_; }
  std::size_t bytes() const;  // of meshes, tables and work space

 private:
  using Target = MeshStorage::Target;
  bool full() const { return options_.interlacing == Interlacing::kFull; }
  int outputs() const { return full() ? 2 : 1; }
  float share() const { return 1.0f / static_cast<float>(outputs()); }
  float* potential_of(int output) { return output ? scratch_.data() : mesh_.data(); }
  void density(const Stream& stream, const MassUnit& unit);
  void forward(const Stream& stream);
  InfluencePass pass_of(const float* table, int axis, float* out, float* out_shifted, bool last);
  void pass(const Stream& stream, const float* table, int axis, float* out, float* out_shifted, bool last);
  void backward(const Stream& stream, float* values);
  void to_scratch(const Stream& stream, const float* table, int axis, int output, bool last);
  void potentials_in_place(const Stream& stream);
  Target target(int output) const { return {output == 1, particles_, n_}; }
  void add_output(const Stream& stream, const float* values, int output, float* out);
  void forces(const Stream& stream, VectorView acceleration, float* potential);
  void potential(const Stream& stream, float* out);
  void spectral(const Stream& stream, VectorView acceleration);
  void analytic(const Stream& stream, VectorView acceleration, float* potential);
  void four_point(const Stream& stream, VectorView acceleration);

  MeshOptions options_;
  ForceLaw law_;
  std::unique_ptr<MeshStorage> storage_;
  const SourceParticle* particles_ = nullptr;  // of this call
  std::size_t n_ = 0;
  DeviceBuffer<float> mesh_{"mesh.density"};     // masses, then their modes, then potentials
  DeviceBuffer<float> scratch_{"mesh.scratch"};  // the shifted mesh, then what is transformed back
  bool separate_ = false;                        // mesh_ and scratch_ are not combined into one spectrum yet
  bool in_cells_ = false;                        // mesh_ and scratch_ hold cells, not modes yet
  DeviceBuffer<float> influence_{"mesh.influence"};
  DeviceBuffer<float> influence_potential_{"mesh.influence_potential"};
  bool has_potential_ = false;  // influence_potential_ is made when a potential is first asked for
  DeviceBuffer<float> gradient_{"mesh.gradient"};
  DeviceBuffer<Complex> phases_{"mesh.phases"};
  SelfForce self_force_;
  PhaseClock clock_;
};

}  // namespace maki
