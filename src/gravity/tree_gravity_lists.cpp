// Lists over one tree of sources: made, repaired, evaluated, and what is known of them.
#include <algorithm>
#include <string>
#include <thread>

#include "kernels/device/async_copy.hpp"
#include "kernels/device/device.hpp"
#include "src/gravity/tree_gravity.hpp"

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

}  // namespace

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
  while (!let_.progress() && let_.needs_host() && !evaluated.reached()) std::this_thread::yield();
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
