#include "src/gravity/tree_gravity.hpp"

#include <memory>

namespace maki {
namespace {

GravityOptions with_ghosts(GravityOptions options) {
  if (options.ghost_level == 0) return options;
  if (options.fixed_reuse == 0) options.fixed_reuse = kGhostReuse;
  options.let_compression = false;  // ghosts are where they are
  return options;
}

}  // namespace

TreeGravity::TreeGravity(const GravityOptions& options, PhaseTimers& timers, const Communicator& ranks,
                         SiteSteps* steps)
    : options_(with_ghosts(options)),
      timers_(timers),
      ranks_(ranks),
      domains_(ranks),
      ghosts_(options.ghost_level > 0 ? std::make_unique<GhostTree>(options) : nullptr),
      let_(ranks, LetOptions{.compress = options_.let_compression}),
      judge_(options.reuse_tolerance),
      sites_(steps ? std::make_unique<OtherSites>(*steps, options_) : nullptr) {
  if (ghosts_) let_.send_whole_cells(options.ghost_level);
}

void TreeGravity::agree_with_sites() {
  if (!sites_) return;
  if (sites_->rebuild_is_wanted()) rebuild_due_ = true;
  sites_->steps().decided(std::uint64_t{rebuild_is_due()});
}

void TreeGravity::set_theta(double theta) {
  if (theta == options_.theta) return;
  options_.theta = theta;
  rebuild_due_ = true;
}

void TreeGravity::set_law(const ForceLaw& law) {
  if (law.r_cut != options_.law.r_cut) rebuild_due_ = true;
  options_.law = law;
}

WalkOptions TreeGravity::walk_options(double theta) const {
  WalkOptions walk;
  walk.theta = static_cast<float>(theta);
  walk.r_cut = options_.law.r_cut;
  walk.one_by_one = ghosts_ != nullptr;  // sums are rounded in the order of the words
  return walk;
}

TreeGravity::Sources TreeGravity::local(const Particles& particles) {
  if (ghosts_) return {ghosts_->tree(), lists_, ghosts_->view(), From::kHere};
  return {tree_, lists_,
          {particles.source.data(), tree_.moments.data(), tree_.first.data(), tree_.count.data()}, From::kHere};
}

TreeGravity::Sources TreeGravity::imported(const Particles& particles) {
  Octree& forest = let_.forest();
  return {forest, imported_lists_,
          {let_.particles(), forest.moments.data(), forest.first.data(), forest.count.data(), particles.source.data()},
          From::kRanks};
}

TreeGravity::Sources TreeGravity::from_sites(const Particles& particles) {
  sites::SiteTrees& trees = sites_->trees();
  Octree& forest = trees.forest();
  return {forest, sites_->lists(),
          {trees.particles(), forest.moments.data(), forest.first.data(), forest.count.data(), particles.source.data()},
          From::kSites};
}

void TreeGravity::prepare(const Stream& stream, Particles& particles, VectorArray* carried) {
  rebuild_due_ = rebuild_is_due();
  if (!rebuild_due_) return;
  if (ranks_.size() > 1 || sites_) {
    const PhaseTimers::Scope scope(timers_, "domains");
    distribute(stream, particles, carried);
  }
  lists_.release();  // their place serves as scratch of the sort
  imported_lists_.release();
  if (sites_) sites_->lists().release();
  const PhaseTimers::Scope scope(timers_, "sort", stream);
  sorter_.sort(stream, particles, carried);
}

void TreeGravity::begin_evaluation() {
  counts_ = {};
  statistics_ = {};
  lists_gone_ = batched_;
  batched_ = false;
  outgrown_ = outgrown_sites_ = 0;
  force_seconds_ = 0;
  asks_rebuild_ = false;
  if (!rebuild_due_) return;
  counts_.rebuilt = true;
  uses_since_rebuild_ = 0;
  rebuild_due_ = false;
}

void TreeGravity::evaluate(const Stream& stream, const Particles& particles, const ForceOutput& out) {
  const bool fresh = rebuild_due_;
  begin_evaluation();
  if (ghosts_)
    evaluate_with_ghosts(stream, particles, fresh, out);
  else
    evaluate_forests(stream, particles, fresh, out);
  if (fresh && !batched_ && options_.fixed_reuse == 0) probes_.choose(stream, groups_, options_.group_size);
  StepSums sums = over_ranks(settle(stream, particles, out));
  take_force_seconds();
  if (sums.outgrown > 0) {
    renew_imports(stream, particles, out);
    sums = over_ranks(settle(stream, particles, out));
  }
  judge(sums, fresh);
  if (must_replace()) replace_lists(stream, particles, out);
  if (sites_) tell_sites(stream, particles, sums);
  counts_.redone_groups = lists_.take_redone() + imported_lists_.take_redone();
  ++uses_since_rebuild_;
}

// The local tree and the forests of what has come from others, one after another.
void TreeGravity::evaluate_forests(const Stream& stream, const Particles& particles, bool fresh,
                                   const ForceOutput& out) {
  if (fresh) {
    rebuild_tree(stream, particles);
    rebuild_groups(stream, particles);
  } else {
    refit_tree(stream, particles);
  }
  if (sites_) {
    const PhaseTimers::Scope scope(timers_, "export to sites");
    sites_->send_trees(stream, tree_, particles.source.data(), walk_options(options_.theta), fresh);
  }
  if (ranks_.size() > 1) exchange_trees(stream, particles, fresh);
  serve(stream, local(particles), fresh, out);
  if (ranks_.size() > 1) {
    finish_exchange(stream);
    if (has_imported()) serve(stream, imported(particles), fresh, out);
  }
  if (sites_) {
    {
      const PhaseTimers::Scope scope(timers_, "wait for sites");
      sites_->take_trees(stream);
    }
    if (has_sites()) serve(stream, from_sites(particles), fresh, out);
  }
}

// The tree alone, of the particles as they have been sorted.
void TreeGravity::rebuild_tree(const Stream& stream, const Particles& particles) {
  if (particles.size() == 0) {
    tree_.cells = 0;
    groups_.resize(0);
    sorter_.release_keys();
    return;
  }
  {
    const PhaseTimers::Scope scope(timers_, "build", stream);
    build_octree(stream, sorter_.keys(), options_.leaf_size, min_level(), tree_);
    sorter_.release_keys();
  }
  const PhaseTimers::Scope scope(timers_, "sweep", stream);
  sweep_octree(stream, particles.source.data(), tree_);
}

void TreeGravity::rebuild_groups(const Stream& stream, const Particles& particles) {
  if (particles.size() == 0) return;
  const PhaseTimers::Scope scope(timers_, "sweep", stream);
  make_groups(stream, tree_, particles.source.data(), options_.group_size, min_level(),
              static_cast<std::uint32_t>(particles.size()), groups_);
}

void TreeGravity::refit_tree(const Stream& stream, const Particles& particles) {
  if (groups_.empty()) return;
  const PhaseTimers::Scope scope(timers_, "sweep", stream);
  sweep_octree(stream, particles.source.data(), tree_);
  refit_groups(stream, particles.source.data(), groups_);
}

// Leaves the messages on their way.
void TreeGravity::exchange_trees(const Stream& stream, const Particles& particles, bool fresh) {
  const PhaseTimers::Scope scope(timers_, "export trees");
  if (fresh)
    let_.rebuild(stream, tree_, particles.source.data(), walk_options(options_.theta),
                 static_cast<float>(drift_.use()));
  else
    let_.update(stream, tree_, particles.source.data());
}

void TreeGravity::finish_exchange(const Stream& stream) {
  const PhaseTimers::Scope scope(timers_, "wait for trees");
  let_.finish(stream);
  imported_cells_ = let_.forest().cells;
}

}  // namespace maki
