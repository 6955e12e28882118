#include "src/gravity/tree_gravity.hpp"

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "kernels/device/async_copy.hpp"
#include "kernels/device/device.hpp"

namespace maki {
namespace {

// Pieces in which the local lists are evaluated on the CPU while messages are on their way.
constexpr std::uint32_t kSlices = 16;

// Those of [begin, end).
ListView part_of(ListView lists, std::uint32_t begin, std::uint32_t end) {
  if (lists.selected) {
    lists.selected += begin;
  } else {
    lists.groups += begin;
    lists.ranges += begin;
  }
  lists.count = end - begin;
  return lists;
}

bool host_computes() { return std::string(backend_name()) == "cpu"; }

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

// The local lists leave room for the imported ones as they last were; these get what is left.
std::size_t TreeGravity::budget_of(const Sources& sources) const {
  const std::size_t all = options_.list_budget;
  if (all == 0) return 0;
  std::size_t taken = lists_.bytes() + imported_lists_.bytes() + (sites_ ? sites_->lists().bytes() : 0);
  taken -= sources.lists.bytes();
  return std::max(all > taken ? all - taken : 0, all / 8);
}

// New lists, or kept ones repaired, and their evaluation.
void TreeGravity::serve(const Stream& stream, const Sources& sources, bool fresh, const ForceOutput& out) {
  if (groups_.empty()) return;
  begin_force(stream);
  walk_and_evaluate(stream, sources, fresh || lists_gone_, out);
  end_force(stream);
}

void TreeGravity::begin_force(const Stream& stream) { force_clock_.mark(stream); }

void TreeGravity::end_force(const Stream& stream) {
  force_clock_.mark(stream);
  ++force_spans_;
}

// The host has waited for this step's work.
void TreeGravity::take_force_seconds() {
  for (std::size_t k = 0; k < force_spans_; ++k) force_seconds_ += force_clock_.seconds(2 * k, 2 * k + 1);
  force_clock_.clear();
  force_spans_ = 0;
}

void TreeGravity::walk_and_evaluate(const Stream& stream, const Sources& sources, bool fresh, const ForceOutput& out) {
  const WalkOptions walk = walk_options(options_.theta);
  work_.begin(stream);
  if (fresh) {
    const std::size_t budget = budget_of(sources);
    const std::uint32_t batch = sources.lists.batch_within(stream, sources.tree, walk, groups_, budget);
    if (batch < groups_.size()) {
      serve_in_batches(stream, sources, batch, out);
      work_.end(stream);
      return;
    }
    const PhaseTimers::Scope scope(timers_, "walk", stream);
    sources.lists.make(stream, sources.tree, walk, groups_, budget);
  } else if (options_.fixed_reuse == 0) {
    const PhaseTimers::Scope scope(timers_, "walk", stream);
    const std::uint64_t rewalked = sources.lists.repair(stream, sources.tree, walk, groups_, results_);
    // Most groups that are walked again over the one tree are so over the other.
    counts_.rewalked_groups = std::max(counts_.rewalked_groups, rewalked);
  }
  if (!fresh && sources.imported()) {
    const PhaseTimers::Scope scope(timers_, "walk", stream);
    (sources.from == From::kSites ? outgrown_sites_ : outgrown_) =
        sources.lists.outgrown(stream, sources.tree, walk, groups_);
  }
  evaluate_kept(stream, sources, out);
  work_.end(stream);
  count_later(stream, sources);
}

// Lists that do not fit the budget are made and used a batch at a time, and not kept.
void TreeGravity::serve_in_batches(const Stream& stream, const Sources& sources, std::uint32_t batch,
                                   const ForceOutput& out) {
  const auto all = static_cast<std::uint32_t>(groups_.size());
  ListStatistics total;
  for (std::uint32_t begin = 0; begin < all; begin += batch) {
    ListView view{};
    {
      const PhaseTimers::Scope scope(timers_, "walk", stream);
      view = sources.lists.make_batch(stream, sources.tree, walk_options(options_.theta), groups_, begin,
                                      std::min(batch, all - begin));
    }
    {
      const PhaseTimers::Scope scope(timers_, "evaluate", stream);
      evaluate_lists(stream, options_.law, options_.quadrupoles, sources.view, view,
                     {out.acceleration, out.potential, sources.imported()});
    }
    total.add(list_statistics(stream, sources.tree, view));
    if (!sources.imported()) move_messages(stream);
  }
  sources.lists.release();
  count(total);
  batched_ = true;
}

void TreeGravity::evaluate_kept(const Stream& stream, const Sources& sources, const ForceOutput& out) {
  const PhaseTimers::Scope scope(timers_, "evaluate", stream);
  evaluate_in_slices(stream, sources, sources.lists.view(groups_), !sources.imported(), out);
}

// While messages may be on their way they are moved on in between.
void TreeGravity::evaluate_in_slices(const Stream& stream, const Sources& sources, const ListView& lists, bool waiting,
                                     const ForceOutput& out) {
  waiting = waiting && ranks_.size() > 1;
  const std::uint32_t slices = waiting && host_computes() ? std::min(kSlices, lists.count) : 1;
  for (std::uint32_t slice = 0; slice < slices; ++slice) {
    const auto begin = static_cast<std::uint32_t>(std::uint64_t{lists.count} * slice / slices);
    const auto end = static_cast<std::uint32_t>(std::uint64_t{lists.count} * (slice + 1) / slices);
    evaluate_lists(stream, options_.law, options_.quadrupoles, sources.view, part_of(lists, begin, end),
                   {out.acceleration, out.potential, sources.imported()});
    if (waiting) move_messages(stream);
  }
}

// While what is queued on `stream` is evaluated: staged messages move in calls only, and the host would only wait for
// the GPU. On the CPU it is done when we come here.
void TreeGravity::move_messages(const Stream& stream) {
  if (let_.progress() || host_computes()) return;
  StreamMark evaluated;
  evaluated.set(stream);
  while (!let_.progress() && !evaluated.reached()) std::this_thread::yield();
}

// Of kept lists, when the host comes to settle().
void TreeGravity::count_later(const Stream& stream, const Sources& sources) {
  counted_.push_back(results_.make<ListStatistics>(stream));
  add_list_statistics(stream, sources.tree, sources.lists.view(groups_), counted_.back().place);
}

void TreeGravity::count_now(const Stream& stream, const Sources& sources) {
  count(list_statistics(stream, sources.tree, sources.lists.view(groups_)));
}

void TreeGravity::count(const ListStatistics& s) {
  const std::uint64_t members = statistics_.members > 0 ? statistics_.members : s.members;  // of either tree the same
  statistics_.add(s);
  statistics_.members = members;
}

}  // namespace maki
