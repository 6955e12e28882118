#include "src/run/forces.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "kernels/error.hpp"
#include "kernels/measure/reductions.hpp"
#include "kernels/mesh/mass_unit.hpp"
#include "src/config/resolve.hpp"
#include "src/gravity/list_forces.hpp"
#include "src/gravity/source_trees.hpp"
#include "src/run/initial_sets.hpp"
#include "src/run/run_options.hpp"
#include "src/simulation/frame.hpp"
#include "src/simulation/gravity_field.hpp"

namespace maki {

void open_as_a_run(const Stream& stream, const Prepared& run, Gravity& gravity, Particles& particles) {
  const bool periodic = run.config.run.kind == RunKind::kCosmology;
  if (!periodic && outweighs(mass_range(stream, particles.source.data(), particles.size()).largest,
                             total_mass(stream, particles.source.data(), particles.size())))
    gravity.refine_roots(true);
  if (!periodic && run.config.gravity.opening == Opening::kAngle) return;
  if (periodic) gravity.set_theta(*run.config.gravity.theta_early), gravity.refine_roots(true);
  gravity.evaluate(stream, particles, Ranges::kBoth, false);
  const StepMeasures found =
      step_measures(stream, particles, gravity.short_acceleration(), &gravity.long_acceleration());
  const double typical = reference_acceleration(found, particles.size());
  if (!periodic) return gravity.reference_acceleration_is(typical);
  const double density = Cosmology(cosmology_parameters(run.config), run.units).mean_density();
  const double mass = density * run.side * run.side * run.side;  // as in GravityField
  if (forces_cancel(typical, mass / std::cbrt(static_cast<double>(particles.size()))) ||
      gravity.has_lone_particle(stream, particles))
    return;
  gravity.set_theta(*run.config.gravity.theta);
  gravity.refine_roots(numbers_of(run.config).refine_root);
}

namespace {

SetForces no_forces(std::size_t targets) {
  return {std::vector<std::array<double, 3>>(targets), std::vector<double>(targets)};
}

// Adds a range's accelerations and potentials, in the device's order, to the particles of their ids.
void add_range(const Stream& stream, const VectorArray& acceleration, const DeviceBuffer<float>& potential,
               const std::vector<std::uint64_t>& index, SetForces& sum) {
  const auto a = acceleration.download(stream);
  const auto phi = potential.download(stream);
  for (std::size_t i = 0; i < index.size(); ++i) {
    for (std::size_t axis = 0; axis < 3; ++axis) sum.acceleration[index[i]][axis] += a[i][axis];
    sum.potential[index[i]] += phi[i];
  }
}

// Forces in the order of the set's particles, with G = 1 and lengths in sides.
SetForces run_forces(const Prepared& run, const Frame& frame) {
  const Stream stream;
  PhaseTimers timers;
  Particles particles;
  Snapshot numbered = run.initial;  // ids that are indices after the sort
  std::iota(numbered.ids.begin(), numbered.ids.end(), std::uint64_t{0});
  load_particles(stream, numbered, frame, particles);
  Gravity gravity(gravity_options(run), timers);
  open_as_a_run(stream, run, gravity, particles);
  gravity.evaluate(stream, particles, Ranges::kShort, true);
  gravity.evaluate(stream, particles, Ranges::kLong, true);
  stream.synchronize();
  const std::vector<std::uint64_t> index = particles.id.download(stream);
  SetForces forces = no_forces(index.size());
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

// Positions as fractions of the side, not wrapped.
std::vector<Vector3> in_sides(const Frame& frame, const std::vector<std::array<double, 3>>& places) {
  std::vector<Vector3> fractions(places.size());
  for (std::size_t i = 0; i < places.size(); ++i) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      fractions[i][axis] = (places[i][axis] - frame.corner[axis]) / frame.side;
    }
  }
  return fractions;
}

// Exact forces of the same kind, only at the targets (in sides). Positions keep double precision.
SetForces reference_forces(const Prepared& run, const Frame& frame, const std::vector<Vector3>& targets) {
  const std::vector<Vector3> positions = in_sides(frame, run.initial.positions);
  const std::vector<double> masses(run.initial.masses.begin(), run.initial.masses.end());
  const ReferenceOptions options{run.config.gravity.softening_kind, start_softening(run) / run.side};
  return frame.periodic ? ewald_reference(positions, masses, targets, options)
                        : direct_reference(positions, masses, targets, options);
}

void to_run_units(const Frame& frame, SetForces& forces) {
  for (auto& a : forces.acceleration) {
    for (double& component : a) component *= frame.acceleration_unit();
  }
  for (double& potential : forces.potential) potential *= frame.potential_unit();
}

void check_method(ForceMethod method, bool periodic) {
  if (method == ForceMethod::kDirect && periodic) {
    throw Error("direct sums are for isolated sets", "this one is a periodic box", "use Ewald's, over all images");
  }
  if (method == ForceMethod::kEwald && !periodic) {
    throw Error("Ewald's sum is for periodic boxes", "this set is isolated", "use the direct sum");
  }
}

}  // namespace

SetForces forces_of(const Prepared& run, ForceMethod method, const std::vector<std::size_t>& targets) {
  const Frame frame = make_frame(run.initial.header, run.side, run.centre);
  check_method(method, frame.periodic);
  const std::vector<Vector3> all = in_sides(frame, run.initial.positions);
  std::vector<Vector3> places;
  for (const std::size_t target : targets) places.push_back(all[target]);
  SetForces forces = method == ForceMethod::kRun && run.aside == 0 ? select(run_forces(run, frame), targets)
                                                                   : reference_forces(run, frame, places);
  to_run_units(frame, forces);
  return forces;
}

// ---- forces at points -----------------------------------------------------------------------------------------------

namespace {

// A set of points as particles whose ids are their indices, in the box.
Snapshot as_particles(const SnapshotHeader& header, const std::vector<std::array<double, 3>>& points) {
  Snapshot set;
  set.header = header;
  set.positions = points;
  set.velocities.resize(points.size());
  set.masses.assign(points.size(), 1.0f);
  set.ids.resize(points.size());
  std::iota(set.ids.begin(), set.ids.end(), std::uint64_t{0});
  for (auto& point : set.positions) {
    for (double& x : point) {
      if (!std::isfinite(x)) throw Error("a point has a coordinate that is not a finite number");
      if (!header.comoving) continue;
      x -= header.box_size * std::floor(x / header.box_size);
      if (x >= header.box_size) x = 0;
    }
  }
  return set;
}

constexpr double kSidesPerReach = 8.02;  // of isolated_box(), at most

void check_distance(double softening, double side) {
  const double largest = softening * kSideToUnits / kLeastSofteningUnits;
  if (side <= largest) return;
  throw Error("a point is too far from the particles",
              fmt::format("the box around both has a side of {:.6g}; coordinates are 2^-32 of it, and the softening, "
                          "{:.6g}, has to be {:g} of them",
                          side, softening, kLeastSofteningUnits),
              fmt::format("give points not farther than {:.3g}, or the method 'direct', which has no limit",
                          largest / kSidesPerReach));
}

// Enlarges the box of an isolated set to hold the points too.
void hold_points(Prepared& run, const Snapshot& points) {
  if (run.initial.header.comoving) return;
  Snapshot all;
  all.positions = run.initial.positions;
  all.positions.insert(all.positions.end(), points.positions.begin(), points.positions.end());
  const IsolatedBox box = isolated_box(all);
  run.side = box.side;
  run.centre = box.centre;
  check_distance(number_of(*run.config.gravity.softening, "gravity.softening", run.config, run.units), box.side);
}

// Opens cells of a box as open_as_a_run() does where forces nearly cancel, which is never coarser; those of an isolated
// set by angle, where a run opens them by estimated error by an angle of the same accuracy.
GravityOptions point_options(const Prepared& run) {
  GravityOptions options = gravity_options(run);
  if (options.periodic) {
    options.theta = std::min(options.theta, *run.config.gravity.theta_early);
    options.law.refine_root = true;
  } else if (std::exchange(options.open_by_error, false)) {
    options.theta *= kAngleAsGood;
  }
  return options;
}

// G = 1, lengths in sides (kernels/particles/types.hpp); by point. The total is the sum of both ranges, and its
// potential has the mean 0 over a periodic box; isolated sets have no long range.
struct PointForces {
  VectorArray short_range{"points.short"}, long_range{"points.long"};
  DeviceBuffer<float> short_potential{"points.short_potential"}, long_potential{"points.long_potential"};
};

void build(const Stream& stream, OwnTree& tree, Particles& particles) {
  tree.sort(stream, particles, nullptr);
  tree.build(stream, particles);
}

// Adds the forces of the sources' tree on groups of points.
void add_tree(const Stream& stream, const GravityOptions& options, Particles& sources, Particles& points,
              PointForces& out) {
  out.short_range.resize(points.size());
  out.short_potential.resize(points.size());
  PhaseTimers timers;
  OwnTree acting(options, timers), acted_on(options, timers);
  build(stream, acting, sources);
  build(stream, acted_on, points);
  const std::vector<TreeImports*> none;
  ListForces lists(options, timers, none);
  acted_on.make_groups_of(stream, points, lists.groups());
  SourceView view = acting.view(sources);
  view.targets = points.source.data();
  view.at_points = true;
  lists.begin();
  lists.serve(stream, {acting.octree(), view, lists.own_lists()}, true,
              {out.short_range.view(), out.short_potential.data()});
  stream.synchronize();
}

void add_mesh(const Stream& stream, const GravityOptions& options, const Particles& sources, const Particles& points,
              PointForces& out) {
  out.long_range.resize(points.size());
  out.long_potential.resize(points.size());
  const double mass = mass_sum(stream, sources.source.data(), sources.size()).value();
  add_constant(stream, out.short_potential, static_cast<float>(mass * potential_integral(options.law)));
  ParticleMesh mesh(options.mesh, options.law);
  mesh.long_range_at(stream, {sources.source.data(), sources.size()}, {points.source.data(), points.size()},
                     out.long_range.view(), out.long_potential.data());
  stream.synchronize();
}

// Forces as Gravity's with new lists. For a particle at a point its own term is left out, except its small self-force
// by the mesh. One rank. Throws Error as Gravity does.
SetForces run_forces_at(const Prepared& run, const Frame& frame, const Snapshot& points) {
  const Stream stream;
  Particles sources, places;
  load_particles(stream, run.initial, frame, sources);
  load_particles(stream, points, frame, places);
  SetForces forces = no_forces(places.size());
  if (places.size() == 0) return forces;
  const GravityOptions options = point_options(run);
  PointForces found;
  add_tree(stream, options, sources, places, found);
  if (options.periodic) add_mesh(stream, options, sources, places, found);
  const std::vector<std::uint64_t> index = places.id.download(stream);
  add_range(stream, found.short_range, found.short_potential, index, forces);
  if (options.periodic) add_range(stream, found.long_range, found.long_potential, index, forces);
  return forces;
}

}  // namespace

SetForces forces_at(Prepared run, ForceMethod method, const std::vector<std::array<double, 3>>& points) {
  const Snapshot places = as_particles(run.initial.header, points);
  const bool exact = method != ForceMethod::kRun || run.config.gravity.method == Method::kDirect || run.aside > 0;
  if (!exact) hold_points(run, places);
  const Frame frame = make_frame(run.initial.header, run.side, run.centre);
  check_method(method, frame.periodic);
  SetForces forces = exact ? reference_forces(run, frame, in_sides(frame, points)) : run_forces_at(run, frame, places);
  to_run_units(frame, forces);
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
