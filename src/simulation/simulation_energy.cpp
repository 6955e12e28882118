// Energies and momenta of a run.
#include <algorithm>
#include <array>
#include <cmath>

#include "src/simulation/simulation.hpp"

namespace maki {
namespace {

// Comoving runs sample the kinetic energy this often in ln a for the Layzer-Irvine integral (trapezoids: 1e-4; where steps
// are 0.08 long, 3e-4).
constexpr double kKineticInterval = 0.04;

double norm(const std::array<double, 3>& v) { return std::sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]); }

}  // namespace

bool Simulation::kinetic_is_due(const StepReport& report) const {
  return timeline_.is_comoving() && options_.energy_interval > 0 && report.long_boundary &&
         report.t - last_kinetic_t_ >= kKineticInterval;
}

void Simulation::sample_energy(StepMetrics& metrics, bool with_potential, bool at_output) {
  const PhaseTimers::Scope scope(timers_, "energy", stream_);
  integrator_->synchronise();
  last_kinetic_t_ = integrator_->time();
  EnergySample sample{timeline_.scale_factor(integrator_->time()),
                      with_potential,
                      result_.steps,
                      frame_.potential_unit(),
                      field_->escapers().energy,
                      {}};
  EnergyTotals& energy = sample.sums.energy;
  if (with_potential) {
    const VectorArray* far = gravity_->has_mesh() ? &gravity_->long_acceleration() : nullptr;
    energy = over_ranks(ranks_, energy_sums(stream_, particles_, gravity_->short_potential(),
                                            far ? &gravity_->long_potential() : nullptr));
    sample.sums.momentum = over_ranks(ranks_, momentum_sums(stream_, particles_, gravity_->short_acceleration(), far));
    gravity_->release_potentials();
    last_energy_step_ = result_.steps;
  } else {
    energy.kinetic = over_ranks(ranks_, kinetic_sum(stream_, particles_));
  }
  sample_ = sample;
  publish_totals(*sites_, result_.steps, sample.sums);
  if (agreement_.delay() == 0 || at_output) finish_energy(metrics);
}

// Over several sites called a step later, when the sums of the others have come, or where an output is due anyway.
void Simulation::finish_energy(StepMetrics& metrics) {
  if (!sample_) return;
  const EnergySample sample = *sample_;
  sample_.reset();
  const SiteTotals sums = collect_totals(*sites_, sample.step);
  const double a = sample.a;
  if (!sample.with_potential) {
    energy_.add_kinetic(a, sums.energy.kinetic / (a * a));
    return;
  }
  energy_.remove(sample.escaped - removed_energy_);
  removed_energy_ = sample.escaped;
  metrics.energy = energy_.add(a, sums.energy.kinetic / (a * a), sums.energy.potential * sample.potential_unit / a);

  const MomentumTotals& momentum = sums.momentum;
  std::array<double, 3> change;
  for (std::size_t axis = 0; axis < 3; ++axis) change[axis] = momentum.momentum[axis] - first_momentum_.momentum[axis];
  if (momentum.momentum_scale > 0) metrics.momentum_drift = norm(change) / momentum.momentum_scale;
  if (momentum.force_scale > 0) metrics.force_residual = norm(momentum.force) / momentum.force_scale;
  result_.energy = metrics.energy;
  result_.worst_energy_error = std::max(result_.worst_energy_error, std::fabs(metrics.energy->error));
  result_.momentum_drift = metrics.momentum_drift;
  result_.worst_force_residual = std::max(result_.worst_force_residual, metrics.force_residual);
}

}  // namespace maki
