// Evaluation over one tree of own particles and ghosts (GravityOptions::ghost_level).
#include "src/gravity/tree_gravity.hpp"

namespace maki {

void TreeGravity::evaluate_with_ghosts(const Stream& stream, const Particles& particles, bool fresh,
                                       const ForceOutput& out) {
  send_ghosts(stream, particles, fresh);
  if (fresh)
    evaluate_new_tree(stream, particles, out.potential != nullptr);
  else
    evaluate_kept_tree(stream, particles, out.potential != nullptr);
  if (batched_ && options_.fixed_reuse > 1) ++unkept_ghost_lists_;
  if (groups_.empty()) return;
  ghosts_->give_back(stream, out);
  statistics_.members = particles.size();  // ghosts in these groups are others' members
}

void TreeGravity::evaluate_new_tree(const Stream& stream, const Particles& particles, bool want_potential) {
  const GhostTree::Ghosts ghosts = take_ghosts(stream);
  groups_.resize(0);
  if (particles.size() == 0) return ghosts_->clear();
  {
    const PhaseTimers::Scope scope(timers_, "build", stream);
    ghosts_->join(stream, particles.source.data(), particles.size(), ghosts);
    ghosts_->build(stream, groups_);
  }
  serve(stream, local(particles), true, ghosts_->output(want_potential));
  split_groups(stream);
}

// Where there are new lists that are kept.
void TreeGravity::split_groups(const Stream& stream) {
  if (!batched_ && ghosts_->has_ghosts()) ghosts_->split(stream, lists_.view(groups_));
}

// Inner groups while ghosts are on their way, then the others.
void TreeGravity::evaluate_kept_tree(const Stream& stream, const Particles& particles, bool want_potential) {
  const Sources sources = local(particles);
  const ForceOutput joined = groups_.empty() ? ForceOutput{} : ghosts_->output(want_potential);
  const auto refit = [&](const auto& what) {
    if (groups_.empty()) return;
    const PhaseTimers::Scope scope(timers_, "sweep", stream);
    what();
  };
  const bool in_parts = !groups_.empty() && ghosts_->has_ghosts() && !lists_gone_;
  refit([&] { ghosts_->refit_own(stream, particles.source.data(), groups_); });
  if (in_parts) evaluate_groups(stream, sources, ghosts_->inner(), joined);
  const GhostTree::Ghosts ghosts = take_ghosts(stream);
  refit([&] { ghosts_->refit_ghosts(stream, ghosts, groups_); });
  if (!in_parts) {
    serve(stream, sources, false, joined);
    if (lists_gone_ && !groups_.empty()) split_groups(stream);
    return;
  }
  evaluate_groups(stream, sources, ghosts_->outer(), joined);
  count_later(stream, sources);
}

void TreeGravity::evaluate_groups(const Stream& stream, const Sources& sources,
                                  const DeviceBuffer<std::uint32_t>& which, const ForceOutput& out) {
  const PhaseTimers::Scope scope(timers_, "evaluate", stream);
  begin_force(stream);
  work_.begin(stream);
  ListView lists = sources.lists.view(groups_);
  lists.selected = which.data();
  lists.count = static_cast<std::uint32_t>(which.size());
  evaluate_in_slices(stream, sources, lists, true, out);
  work_.end(stream);
  end_force(stream);
}

// Selected with a tree of own particles that serves for nothing else. On a reuse step its cells stay as they were:
// particles alone are sent.
void TreeGravity::send_ghosts(const Stream& stream, const Particles& particles, bool fresh) {
  if (ranks_.size() == 1 && !sites_) return sorter_.release_keys();
  if (fresh) rebuild_tree(stream, particles);
  if (sites_) {
    const PhaseTimers::Scope scope(timers_, "export to sites");
    sites_->send_trees(stream, tree_, particles.source.data(), walk_options(options_.theta), fresh);
  }
  if (ranks_.size() > 1) exchange_trees(stream, particles, fresh);
}

GhostTree::Ghosts TreeGravity::take_ghosts(const Stream& stream) {
  GhostTree::Ghosts ghosts;
  if (ranks_.size() > 1) {
    const PhaseTimers::Scope scope(timers_, "wait for trees");
    let_.finish(stream);
    ghosts.of_ranks = let_.particles();
    ghosts.from_ranks = let_.particle_count();
  }
  if (sites_) {
    const PhaseTimers::Scope scope(timers_, "wait for sites");
    sites_->take_trees(stream);
    ghosts.of_sites = sites_->trees().particles();
    ghosts.from_sites = sites_->trees().particle_count();
  }
  return ghosts;
}

}  // namespace maki
