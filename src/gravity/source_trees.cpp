#include "src/gravity/source_trees.hpp"

#include <ranges>

#include "kernels/tree/octree.hpp"

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

namespace {

// Sends parts of this rank's tree to other sites and ranks, to the furthest first.
void send_to_all(const std::vector<TreeImports*>& imports, const Stream& stream, OwnTree& own,
                 const Particles& particles, const WalkOptions& walk, bool fresh) {
  for (TreeImports* const to : std::views::reverse(imports))
    to->send(stream, own.octree(), particles.source.data(), walk, fresh);
}

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
                       forces_.walk().reference_acceleration, forces_.groups());
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

// ---- ghosts ---------------------------------------------------------------------------------------------------------

// The ghosts of all sources in one array.
std::span<const SourceParticle> GhostTree::gathered(const Stream& stream, const Ghosts& ghosts) {
  std::size_t all = 0;
  for (const auto& part : ghosts) all += part.size();
  for (const auto& part : ghosts)
    if (part.size() == all) return part;
  ghosts_.resize(all, 0.1);
  std::size_t at = 0;
  for (const auto& part : ghosts) {
    copy_on_device(stream, ghosts_.data() + at, part.data(), part.size_bytes());
    at += part.size();
  }
  return {ghosts_.data(), all};
}

void GhostTree::join(const Stream& stream, const SourceParticle* own, std::size_t count, const Ghosts& ghosts) {
  const auto others = gathered(stream, ghosts);
  sources_.join(stream, own, count, others.data(), others.size());
}

void GhostTree::build(const Stream& stream, DeviceBuffer<Group>& groups) {
  build_octree(stream, sources_.keys(), options_.leaf_size, options_.ghost_level, tree_);
  sources_.release_keys();
  sweep_octree(stream, sources_.data(), tree_);
  open_coarse_cells(stream, options_.ghost_level, tree_);
  make_groups(stream, tree_, sources_.data(), options_.group_size, options_.ghost_level, groups);
  DeviceBuffer<std::uint32_t> own_before("ghosts.scratch");
  sources_.count_own(stream, own_before);
  keep_own_groups(stream, own_before, groups, own_groups_);
  mark_ghost_cells(stream, own_before, tree_, cells_with_ghosts_);
}

void GhostTree::split(const Stream& stream, const ListView& lists) {
  split_groups(stream, lists, own_groups_, cells_with_ghosts_, inner_, outer_);
}

// Every cell is swept once a step, as on a rank with all of its particles, because a sweep's reference points are those
// of the previous sweep.
void GhostTree::refit_own(const Stream& stream, const SourceParticle* own, DeviceBuffer<Group>& groups) {
  sources_.refresh_own(stream, own);
  sweep_octree(stream, sources_.data(), tree_, kSweepOrder, cells_with_ghosts_.data(), 0);
  refit_groups(stream, sources_.data(), groups);
}

void GhostTree::refit_ghosts(const Stream& stream, const Ghosts& ghosts, DeviceBuffer<Group>& groups) {
  if (!sources_.has_others()) return;
  sources_.refresh_others(stream, gathered(stream, ghosts).data());
  sweep_octree(stream, sources_.data(), tree_, kSweepOrder, cells_with_ghosts_.data(), 1);
  refit_groups(stream, sources_.data(), groups);
}

ForceOutput GhostTree::output(bool want_potential) {
  acceleration_.resize(sources_.size());
  if (!want_potential) potential_.release();
  if (want_potential) potential_.resize(sources_.size());
  return {acceleration_.view(), want_potential ? potential_.data() : nullptr};
}

void GhostTree::give_back(const Stream& stream, const ForceOutput& own) const {
  sources_.own_values(stream, acceleration_.view(), own.acceleration);
  if (own.potential) sources_.own_values(stream, potential_.data(), own.potential);
}

void GhostSources::evaluate(const Stream& stream, const Particles& particles, bool fresh, const ForceOutput& out) {
  send(stream, particles, fresh);
  if (fresh)
    evaluate_new_tree(stream, particles, out.potential != nullptr);
  else
    evaluate_kept_tree(stream, particles, out.potential != nullptr);
  if (forces_.batched() && options_.fixed_reuse > 1) ++unkept_lists_;
  if (forces_.groups().empty()) return;
  ghosts_.give_back(stream, out);
  forces_.set_members(particles.size());  // ghosts in these groups count on other ranks
}

void GhostSources::evaluate_again(const Stream& stream, const Particles&, const ForceOutput& out) {
  forces_.evaluate_kept(stream, joined(), ghosts_.output(out.potential != nullptr));
  forces_.count_later(stream, joined());
  ghosts_.give_back(stream, out);
}

void GhostSources::evaluate_new_tree(const Stream& stream, const Particles& particles, bool want_potential) {
  const GhostTree::Ghosts ghosts = take(stream);
  forces_.groups().resize(0);
  if (particles.size() == 0) return ghosts_.clear();
  {
    const PhaseTimers::Scope scope(timers_, "build", stream);
    ghosts_.join(stream, particles.source.data(), particles.size(), ghosts);
    ghosts_.build(stream, forces_.groups());
  }
  forces_.serve(stream, joined(), true, ghosts_.output(want_potential));
  split_groups(stream);
}

// Sorts groups into inner and outer ones where new lists are kept.
void GhostSources::split_groups(const Stream& stream) {
  if (!forces_.batched()) ghosts_.split(stream, forces_.own_lists().view(forces_.groups()));
}

// Evaluates inner groups while ghosts are in transit, then the outer ones.
void GhostSources::evaluate_kept_tree(const Stream& stream, const Particles& particles, bool want_potential) {
  DeviceBuffer<Group>& groups = forces_.groups();
  const ForceOutput out = groups.empty() ? ForceOutput{} : ghosts_.output(want_potential);
  const auto refit = [&](const auto& what) {
    if (groups.empty()) return;
    const PhaseTimers::Scope scope(timers_, "sweep", stream);
    what();
  };
  const bool in_parts = !groups.empty() && !forces_.lists_are_gone();
  refit([&] { ghosts_.refit_own(stream, particles.source.data(), groups); });
  if (in_parts) forces_.evaluate_part(stream, joined(), ghosts_.inner(), out);
  const GhostTree::Ghosts ghosts = take(stream);
  refit([&] { ghosts_.refit_ghosts(stream, ghosts, groups); });
  if (!in_parts) {
    forces_.serve(stream, joined(), false, out);
    if (forces_.lists_are_gone() && !groups.empty()) split_groups(stream);
    return;
  }
  forces_.evaluate_part(stream, joined(), ghosts_.outer(), out);
  forces_.count_later(stream, joined());
}

// Ghosts for others are selected with a separate tree of own particles. While lists are kept its cells do not change,
// and only particles are sent.
void GhostSources::send(const Stream& stream, const Particles& particles, bool fresh) {
  if (imports_.empty()) return own_.forget_order();
  if (fresh) own_.build(stream, particles);
  send_to_all(imports_, stream, own_, particles, forces_.walk(), fresh);
}

GhostTree::Ghosts GhostSources::take(const Stream& stream) {
  GhostTree::Ghosts ghosts;
  for (TreeImports* const imports : imports_) {
    imports->take(stream);
    ghosts.emplace_back(imports->particles().data(), imports->particles().size());
  }
  return ghosts;
}

}  // namespace maki
