#include "kernels/mesh/mesh.hpp"

#include <array>
#include <string>
#include <utility>

#include "kernels/device/blocked_fft.hpp"
#include "kernels/device/device.hpp"
#include "kernels/device/fft.hpp"
#include "kernels/error.hpp"
#include "kernels/mesh/assign.hpp"
#include "kernels/mesh/mesh_solver.cuh"
#include "kernels/mesh/modes.cuh"

namespace maki {

MeshSolver::MeshSolver(const MeshOptions& options, const ForceLaw& law, std::unique_ptr<MeshStorage> storage)
    : options_(options), law_(law), storage_(std::move(storage)), lone_(options, law), self_force_(options, law) {
  const Stream stream;
  mesh_.resize(storage_->size());
  if (options.gradient != Gradient::kAnalytic || options.interlacing != Interlacing::kNone)
    scratch_.resize(storage_->size());
  influence_.upload(stream, storage_->influence(options_, law_, Influence::kForce));
  gradient_.upload(stream, gradient_wave_numbers(options_.cells, options_.gradient));
  phases_.upload(stream, half_cell_phases(options_.cells));
  stream.synchronize();
}

// Masses in cells are density / m^3, which normalises the forward and backward transforms.
void MeshSolver::density(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit) {
  separate_ = options_.interlacing != Interlacing::kNone;
  clock_.begin(stream);
  storage_->assign(stream, particles, n, unit, mesh_.data(), separate_ ? scratch_.data() : nullptr);
  clock_.end(stream, &MeshPhases::assign);
  in_cells_ = true;
}

void MeshSolver::forward(const Stream& stream) {
  if (!std::exchange(in_cells_, false)) return;
  storage_->forward(stream, mesh_.data());
  if (separate_) storage_->forward(stream, scratch_.data());
  clock_.end(stream, &MeshPhases::forward);
}

// The pass over the modes of one or both outputs. The first pass combines both meshes; all but the last leave their
// spectrum in `mesh_`.
InfluencePass MeshSolver::pass_of(const float* table, int axis, float* out, float* out_shifted, bool last) {
  const auto modes = [](float* values) { return reinterpret_cast<Complex*>(values); };
  const int place = axis == kPotentialAxis ? kPotentialAxis : storage_->mode_axis(axis);
  return {modes(mesh_.data()),
          separate_ ? modes(scratch_.data()) : nullptr,
          separate_ && !last ? modes(mesh_.data()) : nullptr,
          modes(out),
          modes(out_shifted),
          table,
          gradient_.data(),
          phases_.data(),
          options_.cells,
          place,
          full() ? 2.0f : 1.0f};
}

void MeshSolver::pass(const Stream& stream, const float* table, int axis, float* out, float* out_shifted, bool last) {
  forward(stream);
  launch_influence(stream, pass_of(table, axis, out, out_shifted, last), storage_->modes());
  separate_ = false;
  clock_.end(stream, &MeshPhases::influence);
}

void MeshSolver::backward(const Stream& stream, float* values) {
  storage_->backward(stream, values);
  clock_.end(stream, &MeshPhases::backward);
}

// One pass turns the masses' modes into those of all potentials; the gradient is taken later.
void MeshSolver::potentials_in_place(const Stream& stream) {
  float* const shifted = full() ? scratch_.data() : nullptr;
  const auto whole = pass_of(influence_.data(), kPotentialAxis, mesh_.data(), shifted, true);
  if (in_cells_ && !has_lone_ && storage_->solve(stream, whole, clock_)) {
    in_cells_ = separate_ = false;
    return;
  }
  pass(stream, influence_.data(), kPotentialAxis, mesh_.data(), shifted, true);
  for (int output = 0; output < outputs(); ++output) {
    float* const modes = potential_of(output);
    if (has_lone_) lone_.sum_modes(stream, reinterpret_cast<const Complex*>(modes), output, *storage_);
    backward(stream, modes);
  }
}

// The potential, or one component of the acceleration, transformed back by itself: a gradient is a factor of the modes.
// `last`: no field follows.
void MeshSolver::field(const Stream& stream, const float* table, int axis, bool last, float* out) {
  float* const scratch = scratch_.data();
  for (int output = 0; output < outputs(); ++output) {
    pass(stream, table, axis, output ? nullptr : scratch, output ? scratch : nullptr, last && output == outputs() - 1);
    backward(stream, scratch);
    storage_->interpolate(stream, scratch, target(output), {{}, 0, out, share(), output == 1});
    clock_.end(stream, &MeshPhases::interpolate);
  }
}

// The same interpolation gives the potential, and the acceleration is exactly minus its gradient.
void MeshSolver::analytic(const Stream& stream, VectorView acceleration, float* potential) {
  potentials_in_place(stream);
  for (int output = 0; output < outputs(); ++output)
    storage_->interpolate(stream, potential_of(output), target(output),
                          {acceleration, -share(), potential, share(), output == 1});
  if (has_lone_) lone_.replace(stream, particles_, n_, outputs(), *storage_, acceleration);
  clock_.end(stream, &MeshPhases::interpolate);
}

void MeshSolver::long_range(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit,
                            VectorView acceleration, float* potential_out) {
  particles_ = particles;
  n_ = n;
  has_lone_ = lone_.is_in(unit);
  if (has_lone_) lone_.find(stream, particles, n, unit, *storage_);
  density(stream, particles, n, unit);
  forces(stream, acceleration, potential_out);
  self_force_.subtract(stream, particles, n, unit, acceleration);
}

void MeshSolver::long_range_at(const Stream& stream, const MeshParticles& sources, const MeshParticles& points,
                               VectorView acceleration, float* potential_out) {
  const MassUnit unit =
      choose_mass_unit(stream, options_.assignment, options_.cells, sources.particles, sources.n, options_.mass_bits);
  particles_ = points.particles;
  n_ = points.n;
  has_lone_ = false;
  density(stream, sources.particles, sources.n, unit);
  forces(stream, acceleration, potential_out);
}

void MeshSolver::forces(const Stream& stream, VectorView acceleration, float* potential_out) {
  if (options_.gradient == Gradient::kAnalytic) return analytic(stream, acceleration, potential_out);
  if (storage_->any(potential_out != nullptr)) {
    if (!has_potential_)
      influence_potential_.upload(stream, storage_->influence(options_, law_, Influence::kPotential));
    has_potential_ = true;
    field(stream, influence_potential_.data(), kPotentialAxis, false, potential_out);
  }
  float* const out[3] = {acceleration.x, acceleration.y, acceleration.z};
  for (int axis = 0; axis < 3; ++axis) field(stream, influence_.data(), axis, axis == 2, out[axis]);
}

void solve_in_blocks(const Stream& stream, BlockedFft& fft, const InfluencePass& pass, const ModeBlock& block,
                     const std::vector<std::uint8_t>& planes, PhaseClock& clock) {
  const auto reals = [](const Complex* modes) { return const_cast<float*>(reinterpret_cast<const float*>(modes)); };
  const auto modes = [](float* values) { return reinterpret_cast<Complex*>(values); };
  const std::array<float*, 2> meshes = {reals(pass.mesh), reals(pass.shifted)};
  const std::size_t count = pass.shifted ? 2 : 1, back = pass.out_shifted ? 2 : 1;
  for (std::size_t i = 0; i < count; ++i) fft.forward_planes(stream, meshes[i]);
  clock.end(stream, &MeshPhases::forward);
  fft.along_x(stream, {meshes.data(), count}, back, planes, [&](const ModeLines& lines) {
    InfluencePass some = pass;
    some.mesh = some.out = modes(lines.values[0]);
    if (pass.shifted) some.shifted = modes(lines.values[1]);
    if (pass.out_shifted) some.out_shifted = modes(lines.values[1]);
    ModeBlock of_lines = block;
    of_lines.rows = {lines.first_y, lines.z, lines.count_y, 1};
    launch_influence(stream, some, of_lines);
  });
  clock.end(stream, &MeshPhases::influence);
  for (std::size_t i = 0; i < back; ++i) fft.backward_planes(stream, meshes[i], planes);
  clock.end(stream, &MeshPhases::backward);
}

namespace {

class WholeMesh : public MeshStorage {
 public:
  explicit WholeMesh(const MeshOptions& o) : cloud_(o.assignment), fft_(o.cells), assigner_(o.assignment, fft_) {}

  std::size_t size() const override { return fft_.size(); }
  ModeBlock modes() const override {
    const int m = fft_.cells(), half = m / 2 + 1;
    const BlockedFft* blocks = fft_.blocks();
    if (!blocks) return {{0, 0, m, m}, half, false, 0, 0, half};
    return {{0, 0, m, half, blocks->plane() / 2}, static_cast<int>(blocks->mode_row() / 2), true, 0, 0, half};
  }
  int mode_axis(int axis) const override { return fft_.blocks() ? (axis + 2) % 3 : axis; }
  std::vector<float> influence(const MeshOptions& options, const ForceLaw& law, Influence kind) const override {
    return influence_function(options, law, kind);
  }
  void assign(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit, float* mesh,
              float* shifted) override {
    assigner_.assign(stream, particles, n, unit, mesh, shifted);
  }
  void forward(const Stream& stream, float* mesh) override { fft_.forward(stream, mesh); }
  void backward(const Stream& stream, float* mesh) override { fft_.backward(stream, mesh); }
  bool solve(const Stream& stream, const InfluencePass& pass, PhaseClock& clock) override {
    if (!fft_.blocks()) return false;
    const std::vector<std::uint8_t> planes(static_cast<std::size_t>(fft_.cells()), 1);
    solve_in_blocks(stream, *fft_.blocks(), pass, modes(), planes, clock);
    return true;
  }
  void interpolate(const Stream& stream, const float* mesh, const Target& target,
                   const InterpolationOutput& out) override {
    MeshView view(mesh, MeshBox::whole(fft_.cells()), target.shifted);
    view.row = fft_.row();
    view.lines = fft_.lines();
    maki::interpolate(stream, cloud_, view, target.particles, target.n, out);
  }

 private:
  Assignment cloud_;
  RealFft3d fft_;
  MassAssigner assigner_;
};

}  // namespace

MeshBytes mesh_bytes(const MeshOptions& options) {
  const bool analytic = options.gradient == Gradient::kAnalytic;
  const int meshes = analytic && options.interlacing == Interlacing::kNone ? 1 : 2;
  const double octant = options.cells / 2 + 1;
  return {sizeof(float) * meshes * RealFft3d::floats(options.cells),
          sizeof(float) * (analytic ? 1 : 2) * octant * octant * octant};
}

double particle_mesh_bytes(const MeshOptions& options, double particles) {
  const MeshBytes bytes = mesh_bytes(options);
  return bytes.meshes + bytes.tables + assigner_bytes(options.cells, particles) + RealFft3d::work_bytes(options.cells);
}

void check_mesh_cells(int cells) {
  if (cells >= 8 && cells % 2 == 0) return;
  throw Error("a mesh of " + std::to_string(cells) + " cells a side", "it has to be even and at least 8",
              "choose an even number from 8 up");
}

void check_mesh_options(const MeshOptions& o, const ForceLaw& law) {
  check_mesh_cells(o.cells);
  if (law.split == Split::kNone)
    throw Error("a mesh force without a split", "the force law leaves nothing to the mesh", "choose a split and r_cut");
  if (law.r_cut * o.cells < 1 - 1e-6)  // a float, in sides: 1 / cells may be rounded
    throw Error("r_cut is " + std::to_string(law.r_cut * o.cells) + " mesh cells", "the mesh cannot resolve it",
                "use a finer mesh or a larger r_cut");
}

ParticleMesh::ParticleMesh(const MeshOptions& options, const ForceLaw& law)
    : ParticleMesh(options, law, (check_mesh_options(options, law), std::make_unique<WholeMesh>(options))) {}
ParticleMesh::ParticleMesh(const MeshOptions& options, const ForceLaw& law, std::unique_ptr<MeshStorage> storage)
    : solver_(std::make_unique<MeshSolver>(options, law, std::move(storage))) {}
ParticleMesh::~ParticleMesh() = default;

bool ParticleMesh::has_bits_of_pencils() { return std::string(backend_name()) == "cpu"; }

void ParticleMesh::long_range(const Stream& stream, const SourceParticle* particles, std::size_t n,
                              const MassUnit& unit, VectorView acceleration, float* potential) {
  solver_->long_range(stream, particles, n, unit, acceleration, potential);
}

void ParticleMesh::long_range_at(const Stream& stream, const MeshParticles& sources, const MeshParticles& points,
                                 VectorView acceleration, float* potential) {
  solver_->long_range_at(stream, sources, points, acceleration, potential);
}

void ParticleMesh::measure_phases() { solver_->clock().switch_on(); }
MeshPhases ParticleMesh::phases() const { return solver_->clock().seconds(); }
const MeshOptions& ParticleMesh::options() const { return solver_->options(); }

}  // namespace maki
