// Evaluation over one tree of own particles and ghosts (GravityOptions::ghost_level).
#include "src/gravity/tree_gravity.hpp"

namespace maki {

void TreeGravity::evaluate_with_ghosts(const Stream& stream, const Particles& particles, bool fresh,
                                       const ForceOutput& out) {
  const GhostTree::Ghosts ghosts = fetch_ghosts(stream, particles, fresh);
  const SourceParticle* const own = particles.source.data();
  if (fresh) {
    groups_.resize(0);
    const PhaseTimers::Scope scope(timers_, "build", stream);
    ghosts_->join(stream, own, particles.size(), ghosts);
    if (particles.size() > 0) ghosts_->build(stream, groups_);
  } else if (!groups_.empty()) {
    const PhaseTimers::Scope scope(timers_, "sweep", stream);
    ghosts_->refit(stream, own, ghosts, groups_);
  }
  if (groups_.empty()) return;
  serve(stream, local(particles), fresh, ghosts_->output(out.potential != nullptr));
  ghosts_->give_back(stream, out);
  statistics_.members = particles.size();  // ghosts in these groups are others' members
}

// From other ranks and sites, selected with a tree of own particles that serves for nothing else. On a reuse step its
// cells stay as they were: particles alone are sent.
GhostTree::Ghosts TreeGravity::fetch_ghosts(const Stream& stream, const Particles& particles, bool fresh) {
  GhostTree::Ghosts ghosts;
  if (ranks_.size() == 1 && !sites_) {
    sorter_.release_keys();
    return ghosts;
  }
  if (fresh) rebuild_tree(stream, particles);
  if (sites_) {
    const PhaseTimers::Scope scope(timers_, "export to sites");
    sites_->send_trees(stream, tree_, particles.source.data(), walk_options(options_.theta), fresh);
  }
  if (ranks_.size() > 1) {
    exchange_trees(stream, particles, fresh);
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
