#include "src/gravity/source_trees.hpp"

#include <ranges>

#include "src/gravity/ghost_sources.hpp"

namespace maki {

void OwnTree::sort(const Stream& stream, Particles& particles, VectorArray* carried) {
  const PhaseTimers::Scope scope(timers_, "sort", stream);
  sorter_.sort(stream, particles, carried);
}

void OwnTree::build(const Stream& stream, const Particles& particles) {
  if (particles.size() == 0) {
    tree_.cells = 0;
    return sorter_.release_keys();
  }
  {
    const PhaseTimers::Scope scope(timers_, "build", stream);
    build_octree(stream, sorter_.keys(), options_.leaf_size, min_level(), tree_);
    sorter_.release_keys();
  }
  const PhaseTimers::Scope scope(timers_, "sweep", stream);
  sweep_octree(stream, particles.source.data(), tree_);
}

void OwnTree::make_groups_of(const Stream& stream, const Particles& particles, DeviceBuffer<Group>& groups) {
  if (particles.size() == 0) return groups.resize(0);
  const PhaseTimers::Scope scope(timers_, "sweep", stream);
  make_groups(stream, tree_, particles.source.data(), options_.group_size, min_level(), groups);
}

void OwnTree::refit(const Stream& stream, const Particles& particles, DeviceBuffer<Group>& groups) {
  if (groups.empty()) return;
  const PhaseTimers::Scope scope(timers_, "sweep", stream);
  sweep_octree(stream, particles.source.data(), tree_);
  refit_groups(stream, particles.source.data(), groups);
}

void send_to_all(const std::vector<TreeImports*>& imports, const Stream& stream, OwnTree& own,
                 const Particles& particles, const WalkOptions& walk, bool fresh) {
  for (TreeImports* const to : std::views::reverse(imports))
    to->send(stream, own.octree(), particles.source.data(), walk, fresh);
}

namespace {

// Sources as separate trees: the rank's own tree, then the forests of imported trees, evaluated one after another.
class Forests final : public SourceTrees {
 public:
  Forests(OwnTree& own, const std::vector<TreeImports*>& imports, ListForces& forces)
      : own_(own), imports_(imports), forces_(forces) {}

  void evaluate(const Stream& stream, const Particles& particles, bool fresh, const ForceOutput& out) override;
  void evaluate_again(const Stream& stream, const Particles& particles, const ForceOutput& out) override;
  std::vector<Sources> all(const Particles& particles) override;
  const DeviceBuffer<Group>& own_groups() const override { return forces_.groups(); }

 private:
  Sources own(const Particles& particles) { return {own_.octree(), own_.view(particles), forces_.own_lists()}; }

  OwnTree& own_;
  const std::vector<TreeImports*>& imports_;
  ListForces& forces_;
};

void Forests::evaluate(const Stream& stream, const Particles& particles, bool fresh, const ForceOutput& out) {
  if (fresh) {
    own_.build(stream, particles);
    own_.make_groups_of(stream, particles, forces_.groups());
    if (forces_.opens_by_error())  // `out` holds the last accelerations
      set_error_scales(stream, {out.acceleration.x, out.acceleration.y, out.acceleration.z},
                       forces_.walk().rms_acceleration, forces_.groups());
  } else {
    own_.refit(stream, particles, forces_.groups());
  }
  send_to_all(imports_, stream, own_, particles, forces_.walk(), fresh);
  forces_.serve(stream, own(particles), fresh, out);
  for (TreeImports* const imports : imports_) {
    imports->take(stream);
    if (!imports->empty()) forces_.serve(stream, imports->sources(particles), fresh, out);
  }
}

void Forests::evaluate_again(const Stream& stream, const Particles& particles, const ForceOutput& out) {
  for (const Sources& sources : all(particles)) {
    forces_.evaluate_kept(stream, sources, out);
    forces_.count_later(stream, sources);
  }
}

std::vector<Sources> Forests::all(const Particles& particles) {
  std::vector<Sources> sources{own(particles)};
  for (TreeImports* const imports : imports_)
    if (!imports->empty()) sources.push_back(imports->sources(particles));
  return sources;
}

}  // namespace

std::unique_ptr<SourceTrees> make_source_trees(const GravityOptions& options, PhaseTimers& timers, OwnTree& own,
                                               const std::vector<TreeImports*>& imports, ListForces& forces) {
  if (options.ghost_level > 0) return std::make_unique<GhostSources>(options, timers, own, imports, forces);
  return std::make_unique<Forests>(own, imports, forces);
}

}  // namespace maki
