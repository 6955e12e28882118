#include "src/run/forces.hpp"

#include <cmath>
#include <numeric>

#include "kernels/error.hpp"
#include "kernels/measure/step_reductions.hpp"
#include "src/config/presets.hpp"
#include "src/config/resolve.hpp"
#include "src/gravity/reference/direct.hpp"
#include "src/gravity/reference/ewald.hpp"
#include "src/simulation/frame.hpp"
#include "src/simulation/gravity_field.hpp"

namespace maki {

void open_as_a_run(const Stream& stream, const Prepared& run, Gravity& gravity, Particles& particles) {
  const bool periodic = run.config.run.kind == RunKind::kCosmology;
  if (!periodic && run.config.gravity.opening == Opening::kAngle) return;
  if (periodic) gravity.set_theta(*run.config.gravity.theta_early), gravity.refine_roots(true);
  gravity.both_ranges(stream, particles, false);
  const StepMeasures found =
      step_measures(stream, particles, gravity.short_acceleration(), &gravity.long_acceleration());
  const double rms = std::sqrt(mean_square(found.squares.acceleration, found.maxima.acceleration, particles.size()));
  if (!periodic) return gravity.rms_acceleration_is(rms);
  const double density = Cosmology(cosmology_parameters(run.config), run.units).mean_density();
  const double mass = density * run.side * run.side * run.side;  // as GravityField takes it
  if (forces_cancel(rms, mass / std::cbrt(static_cast<double>(particles.size()))) ||
      gravity.has_lone_particle(stream, particles))
    return;
  gravity.set_theta(*run.config.gravity.theta);
  gravity.refine_roots(numbers_of(run.config).refine_root);
}

namespace {

// Adds a range's accelerations and potentials, which are in the device's order, to the particles that the ids name.
void add_range(const Stream& stream, const VectorArray& acceleration, const DeviceBuffer<float>& potential,
               const std::vector<std::uint64_t>& index, SetForces& sum) {
  const auto x = acceleration.x.download(stream), y = acceleration.y.download(stream);
  const auto z = acceleration.z.download(stream), phi = potential.download(stream);
  for (std::size_t i = 0; i < index.size(); ++i) {
    auto& a = sum.acceleration[index[i]];
    a[0] += x[i], a[1] += y[i], a[2] += z[i];
    sum.potential[index[i]] += phi[i];
  }
}

// Forces in the order of the set's particles, with G = 1 and lengths in sides.
SetForces run_forces(const Prepared& run, const Frame& frame) {
  const Stream stream;
  PhaseTimers timers;
  Particles particles;
  Snapshot numbered = run.initial;  // ids that survive the sort as indices
  std::iota(numbered.ids.begin(), numbered.ids.end(), std::uint64_t{0});
  load_particles(stream, numbered, frame, particles);
  Gravity gravity(gravity_options(run.config, run.units), timers);
  open_as_a_run(stream, run, gravity, particles);
  gravity.short_range(stream, particles, true);
  gravity.long_range(stream, particles, true);
  stream.synchronize();
  const std::vector<std::uint64_t> index = particles.id.download(stream);
  SetForces forces{std::vector<std::array<double, 3>>(index.size()), std::vector<double>(index.size())};
  add_range(stream, gravity.short_acceleration(), gravity.short_potential(), index, forces);
  if (gravity.has_mesh()) add_range(stream, gravity.long_acceleration(), gravity.long_potential(), index, forces);
  return forces;
}

SetForces select(const SetForces& all, const std::vector<std::size_t>& targets) {
  SetForces some;
  for (const std::size_t i : targets) {
    some.acceleration.push_back(all.acceleration[i]);
    some.potential.push_back(all.potential[i]);
  }
  return some;
}

// Exact forces of the same kind, on the targets alone. Positions keep their double precision.
SetForces reference_forces(const Prepared& run, const Frame& frame, bool periodic,
                           const std::vector<std::size_t>& targets) {
  const Snapshot& set = run.initial;
  std::vector<Vector3> positions(set.size());
  for (std::size_t i = 0; i < set.size(); ++i) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      positions[i][axis] = (set.positions[i][axis] - frame.corner[axis]) / frame.side;
    }
  }
  const std::vector<double> masses(set.masses.begin(), set.masses.end());
  const Softening kind = run.config.gravity.softening_kind;
  const double softening = force_law(run.config, run.units).softening;
  ReferenceForces sums = periodic ? ewald_reference(positions, masses, targets, {.kind = kind, .softening = softening})
                                  : direct_reference(positions, masses, targets, {kind, softening});
  return {std::move(sums.acceleration), std::move(sums.potential)};
}

void check_method(ForceMethod method, bool periodic) {
  if (method == ForceMethod::kDirect && periodic) {
    throw Error("--direct is for isolated sets", "this one is a periodic box",
                "use --ewald, which sums over all images");
  }
  if (method == ForceMethod::kEwald && !periodic) {
    throw Error("--ewald is for periodic boxes", "this set is isolated", "use --direct");
  }
}

}  // namespace

SetForces forces_of(const Prepared& run, ForceMethod method, const std::vector<std::size_t>& targets) {
  const Frame frame = make_frame(run.initial.header, run.side, run.centre);
  check_method(method, frame.periodic);
  SetForces forces = method == ForceMethod::kRun ? select(run_forces(run, frame), targets)
                                                 : reference_forces(run, frame, frame.periodic, targets);
  for (auto& a : forces.acceleration) {
    for (double& component : a) component *= frame.acceleration_unit();
  }
  for (double& potential : forces.potential) potential *= frame.potential_unit();
  return forces;
}

std::vector<std::size_t> spread_targets(std::size_t particles, std::size_t wanted) {
  if (wanted == 0 || wanted > particles) wanted = particles;
  std::vector<std::size_t> targets(wanted);
  for (std::size_t i = 0; i < wanted; ++i) {
    targets[i] = static_cast<std::size_t>(static_cast<double>(i) *
                                          (static_cast<double>(particles) / static_cast<double>(wanted)));
  }
  return targets;
}

}  // namespace maki
