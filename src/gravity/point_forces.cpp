#include "src/gravity/point_forces.hpp"

#include "kernels/measure/gravity_sums.hpp"
#include "src/gravity/list_forces.hpp"
#include "src/gravity/source_trees.hpp"

namespace maki {
namespace {

GravityOptions opened_by_angle(GravityOptions options) {
  if (options.open_by_error) options.theta *= kAngleAsGood;
  options.open_by_error = false;
  return options;
}

void make_room(PointForces& forces, std::size_t points, bool mesh) {
  forces.short_range.resize(points);
  forces.short_potential.resize(points);
  if (!mesh) return;
  forces.long_range.resize(points);
  forces.long_potential.resize(points);
}

void build(const Stream& stream, OwnTree& tree, Particles& particles) {
  tree.sort(stream, particles, nullptr);
  tree.build(stream, particles);
}

// Adds the forces of the sources' tree on groups of points.
void add_tree(const Stream& stream, const GravityOptions& options, Particles& sources, Particles& points,
              PointForces& out) {
  PhaseTimers timers;
  OwnTree acting(options, timers), acted_on(options, timers);
  build(stream, acting, sources);
  build(stream, acted_on, points);
  const std::vector<TreeImports*> none;
  ListForces lists(options, timers, none);
  acted_on.make_groups_of(stream, points, lists.groups());
  SourceView view = acting.view(sources);
  view.targets = points.source.data();
  lists.begin();
  lists.serve(stream, {acting.octree(), view, lists.own_lists()}, true,
              {out.short_range.view(), out.short_potential.data()});
  stream.synchronize();
}

void add_mesh(const Stream& stream, const GravityOptions& options, const Particles& sources, const Particles& points,
              PointForces& out) {
  const double mass = mass_sum(stream, sources.source.data(), sources.size()).value();
  add_constant(stream, out.short_potential, static_cast<float>(mass * potential_integral(options.law)));
  ParticleMesh mesh(options.mesh, options.law);
  mesh.long_range_at(stream, {sources.source.data(), sources.size()}, {points.source.data(), points.size()},
                     out.long_range.view(), out.long_potential.data());
  stream.synchronize();
}

}  // namespace

PointForces forces_at_points(const Stream& stream, const GravityOptions& given, Particles& sources, Particles& points) {
  const GravityOptions options = opened_by_angle(given);
  const bool mesh = options.periodic && options.law.split != Split::kNone;
  PointForces forces;
  make_room(forces, points.size(), mesh);
  if (points.size() == 0) return forces;
  add_tree(stream, options, sources, points, forces);
  if (mesh) add_mesh(stream, options, sources, points, forces);
  return forces;
}

}  // namespace maki
