#include "kernels/mesh/mesh_solver.cuh"

#include <utility>

namespace maki {

MeshSolver::MeshSolver(const MeshOptions& options, const ForceLaw& law, std::unique_ptr<MeshStorage> storage)
    : options_(options), law_(law), storage_(std::move(storage)), self_force_(options, law) {
  const Stream stream;
  mesh_.resize(storage_->size());
  if (options.gradient != Gradient::kAnalytic || options.interlacing != Interlacing::kNone)
    scratch_.resize(storage_->size());
  influence_.upload(stream, storage_->influence(options_, law_, Influence::kForce));
  gradient_.upload(stream, gradient_wave_numbers(options_.cells, options_.gradient));
  phases_.upload(stream, half_cell_phases(options_.cells));
  stream.synchronize();
}

std::size_t MeshSolver::bytes() const {
  const std::size_t floats = mesh_.capacity() + scratch_.capacity() + influence_.capacity() +
                             influence_potential_.capacity() + gradient_.capacity();
  return floats * sizeof(float) + phases_.capacity() * sizeof(Complex) + storage_->bytes();
}

// Masses in cells are density / m^3, which normalises the transforms there and back.
void MeshSolver::density(const Stream& stream, const MassUnit& unit) {
  separate_ = options_.interlacing != Interlacing::kNone;
  clock_.begin(stream);
  storage_->assign(stream, particles_, n_, unit, mesh_.data(), separate_ ? scratch_.data() : nullptr);
  clock_.end(stream, &MeshPhases::assign);
  in_cells_ = true;
}

void MeshSolver::forward(const Stream& stream) {
  if (!std::exchange(in_cells_, false)) return;
  storage_->forward(stream, mesh_.data());
  if (separate_) storage_->forward(stream, scratch_.data());
  clock_.end(stream, &MeshPhases::forward);
}

// Modes of one or both outputs. The first pass combines both meshes; all but the last leave their spectrum in `mesh_`.
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

void MeshSolver::to_scratch(const Stream& stream, const float* table, int axis, int output, bool last) {
  pass(stream, table, axis, output ? nullptr : scratch_.data(), output ? scratch_.data() : nullptr, last);
  backward(stream, scratch_.data());
}

// The gradient is taken later: one pass turns the masses' modes into those of all potentials.
void MeshSolver::potentials_in_place(const Stream& stream) {
  float* const shifted = full() ? scratch_.data() : nullptr;
  const auto whole = pass_of(influence_.data(), kPotentialAxis, mesh_.data(), shifted, true);
  if (in_cells_ && storage_->solve(stream, whole, clock_)) {
    in_cells_ = separate_ = false;
    return;
  }
  pass(stream, influence_.data(), kPotentialAxis, mesh_.data(), shifted, true);
  for (int output = 0; output < outputs(); ++output) backward(stream, potential_of(output));
}

void MeshSolver::add_output(const Stream& stream, const float* values, int output, float* out) {
  storage_->interpolate(stream, values, target(output), {out, share(), output == 1});
  clock_.end(stream, &MeshPhases::interpolate);
}

void MeshSolver::potential(const Stream& stream, float* out) {
  if (!has_potential_) influence_potential_.upload(stream, storage_->influence(options_, law_, Influence::kPotential));
  has_potential_ = true;
  for (int output = 0; output < outputs(); ++output) {
    to_scratch(stream, influence_potential_.data(), kPotentialAxis, output, false);
    add_output(stream, scratch_.data(), output, out);
  }
}

void MeshSolver::spectral(const Stream& stream, VectorView acceleration) {
  float* const out[3] = {acceleration.x, acceleration.y, acceleration.z};
  for (int axis = 0; axis < 3; ++axis) {
    for (int output = 0; output < outputs(); ++output) {
      to_scratch(stream, influence_.data(), axis, output, axis == 2 && output == outputs() - 1);
      add_output(stream, scratch_.data(), output, out[axis]);
    }
  }
}

void MeshSolver::four_point(const Stream& stream, VectorView acceleration) {
  potentials_in_place(stream);
  for (int output = 0; output < outputs(); ++output)
    storage_->interpolate_difference(stream, potential_of(output), full() ? nullptr : scratch_.data(), target(output),
                                     {acceleration, -share(), nullptr, 0, output == 1}, clock_);
}

// The same interpolation gives the potential, and the acceleration is exactly minus its gradient.
void MeshSolver::analytic(const Stream& stream, VectorView acceleration, float* potential) {
  potentials_in_place(stream);
  for (int output = 0; output < outputs(); ++output)
    storage_->interpolate_gradient(stream, potential_of(output), target(output),
                                   {acceleration, -share(), potential, share(), output == 1});
  clock_.end(stream, &MeshPhases::interpolate);
}

void MeshSolver::long_range(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit,
                            VectorView acceleration, float* potential_out) {
  particles_ = particles;
  n_ = n;
  density(stream, unit);
  forces(stream, acceleration, potential_out);
  self_force_.subtract(stream, particles, n, unit, acceleration);
}

void MeshSolver::forces(const Stream& stream, VectorView acceleration, float* potential_out) {
  if (options_.gradient == Gradient::kAnalytic) return analytic(stream, acceleration, potential_out);
  if (storage_->any(potential_out != nullptr)) potential(stream, potential_out);
  if (options_.gradient == Gradient::kSpectral)
    spectral(stream, acceleration);
  else
    four_point(stream, acceleration);
}

}  // namespace maki
