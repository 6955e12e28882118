#include "src/gravity/list_forces.hpp"

#include <algorithm>
#include <string>
#include <thread>
#include <utility>

#include "kernels/device/device.hpp"
#include "kernels/device/stream.hpp"

namespace maki {
namespace {

// Number of slices in which lists are evaluated on the CPU while messages are in transit.
constexpr std::uint32_t kSlices = 16;

// The lists of groups [begin, end).
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

WalkOptions ListForces::walk(double theta) const {
  WalkOptions walk;
  if (options_.open_by_error && !opens_by_error()) theta *= kAngleAsGood;  // accelerations are not known yet
  walk.theta = static_cast<float>(theta);
  walk.reference_acceleration = reference_acceleration_;
  walk.r_cut = options_.law.r_cut;
  walk.one_by_one = options_.ghost_level > 0;  // sums are rounded in the order of the words
  return walk;
}

void ListForces::open_by_error(double reference_acceleration) {
  const bool changed = opens_by_error() != (reference_acceleration > 0);
  reference_acceleration_ = static_cast<float>(reference_acceleration);
  if (!changed) return;  // lists opened by error are half as long as by angle
  own_lists_.forget_length();
  for (TreeImports* const imports : imports_) imports->lists().forget_length();
}

void ListForces::release_lists() {
  own_lists_.release();
  for (TreeImports* const imports : imports_) imports->lists().release();
}

void ListForces::begin() {
  statistics_ = {};
  rewalked_ = 0;
  lists_gone_ = std::exchange(batched_, false);
  seconds_ = 0;
  for (TreeImports* const imports : imports_) imports->outgrown = 0;
}

std::uint64_t ListForces::take_redone() {
  std::uint64_t redone = own_lists_.take_redone();
  for (TreeImports* const imports : imports_) redone += imports->lists().take_redone();
  return redone;
}

// Each tree's lists leave memory for the last lists of the other trees; the last tree gets the rest.
std::size_t ListForces::budget_of(const Sources& sources) const {
  const std::size_t all = options_.list_budget;
  if (all == 0) return 0;
  std::size_t taken = own_lists_.bytes();
  for (TreeImports* const imports : imports_) taken += imports->lists().bytes();
  taken -= sources.lists.bytes();
  return std::max(all > taken ? all - taken : 0, all / 8);
}

void ListForces::serve(const Stream& stream, const Sources& sources, bool fresh, const ForceOutput& out) {
  if (groups_.empty()) return;
  begin_span(stream);
  const std::uint32_t batch = bring_up_to_date(stream, sources, fresh || lists_gone_);
  if (batch < groups_.size()) {
    serve_in_batches(stream, sources, batch, out);
  } else {
    evaluate(stream, sources, sources.lists.view(groups_), out);
    count_later(stream, sources);
  }
  end_span(stream);
}

void ListForces::begin_span(const Stream& stream) {
  clock_.mark(stream);
  work_.begin(stream);
}

void ListForces::end_span(const Stream& stream) {
  work_.end(stream);
  clock_.mark(stream);
  ++spans_;
}

void ListForces::take_seconds() {
  for (std::size_t k = 0; k < spans_; ++k) seconds_ += clock_.seconds(2 * k, 2 * k + 1);
  clock_.clear();
  spans_ = 0;
}

// Makes or repairs the lists over one tree. Returns the number of groups whose lists fit the memory; unless all fit, no
// lists were made.
std::uint32_t ListForces::bring_up_to_date(const Stream& stream, const Sources& sources, bool fresh) {
  const auto all = static_cast<std::uint32_t>(groups_.size());
  if (fresh) {
    const std::size_t budget = budget_of(sources);
    const std::uint32_t batch = sources.lists.batch_within(stream, sources.tree, walk(), groups_, budget);
    if (batch < all) return batch;
    const PhaseTimers::Scope scope(timers_, "walk", stream);
    sources.lists.make(stream, sources.tree, walk(), groups_, budget);
  } else if (options_.fixed_reuse == 0) {
    const PhaseTimers::Scope scope(timers_, "walk", stream);
    const std::uint64_t rewalked = sources.lists.repair(stream, sources.tree, walk(), groups_, results_);
    // Mostly the same groups are walked again over each tree.
    rewalked_ = std::max(rewalked_, rewalked);
  } else if (options_.ghost_level > 0) {
    reopen(stream, sources, nullptr);
  }
  if (!fresh && sources.imported()) {
    const PhaseTimers::Scope scope(timers_, "walk", stream);
    sources.imports->outgrown = sources.lists.outgrown(stream, sources.tree, walk(), groups_);
  }
  return all;
}

// Lists that do not fit the budget are made and used a batch at a time, and not kept.
void ListForces::serve_in_batches(const Stream& stream, const Sources& sources, std::uint32_t batch,
                                  const ForceOutput& out) {
  const auto all = static_cast<std::uint32_t>(groups_.size());
  ListStatistics total;
  for (std::uint32_t begin = 0; begin < all; begin += batch) {
    ListView view{};
    {
      const PhaseTimers::Scope scope(timers_, "walk", stream);
      view = sources.lists.make_batch(stream, sources.tree, walk(), groups_, begin, std::min(batch, all - begin));
    }
    evaluate(stream, sources, view, out);
    total.add(list_statistics(stream, sources.tree, view));
  }
  sources.lists.release();
  count(total);
  batched_ = true;
}

void ListForces::evaluate_kept(const Stream& stream, const Sources& sources, const ForceOutput& out) {
  evaluate(stream, sources, sources.lists.view(groups_), out);
}

void ListForces::evaluate_part(const Stream& stream, const Sources& sources, const DeviceBuffer<std::uint32_t>& which,
                               const ForceOutput& out) {
  begin_span(stream);
  reopen(stream, sources, &which);
  ListView lists = sources.lists.view(groups_);
  lists.selected = which.data();
  lists.count = static_cast<std::uint32_t>(which.size());
  evaluate(stream, sources, lists, out);
  end_span(stream);
}

void ListForces::reopen(const Stream& stream, const Sources& sources, const DeviceBuffer<std::uint32_t>* which) {
  const PhaseTimers::Scope scope(timers_, "walk", stream);
  sources.lists.reopen(stream, sources.tree, walk(), groups_, which, results_);
}

void ListForces::evaluate_anew(const Stream& stream, const Sources& sources, const ForceOutput& out) {
  const std::uint32_t batch = bring_up_to_date(stream, sources, true);
  if (batch < groups_.size()) return serve_in_batches(stream, sources, batch, out);
  evaluate_kept(stream, sources, out);
  count_now(stream, sources);
}

// On the CPU lists are evaluated in slices while messages are in transit, and messages progress in between.
void ListForces::evaluate(const Stream& stream, const Sources& sources, const ListView& lists, const ForceOutput& out) {
  const PhaseTimers::Scope scope(timers_, "evaluate", stream);
  const std::uint32_t slices = host_computes() && move_messages() ? std::min(kSlices, lists.count) : 1;
  for (std::uint32_t slice = 0; slice < slices; ++slice) {
    const auto begin = static_cast<std::uint32_t>(std::uint64_t{lists.count} * slice / slices);
    const auto end = static_cast<std::uint32_t>(std::uint64_t{lists.count} * (slice + 1) / slices);
    evaluate_lists(stream, options_.law, options_.quadrupoles, sources.view, part_of(lists, begin, end),
                   {out.acceleration, out.potential, sources.imported()});
    move_messages_beside(stream);
  }
}

// Makes progress with messages; returns whether some remain that progress only in such calls.
bool ListForces::move_messages() const {
  bool left = false;
  for (TreeImports* const imports : imports_) left = imports->move() || left;
  return left;
}

// Called while work on `stream` runs: staged messages progress only in calls, and the host would otherwise wait idly
// for the GPU. On the CPU the work is already done here.
void ListForces::move_messages_beside(const Stream& stream) const {
  if (!move_messages() || host_computes()) return;
  StreamMark evaluated;
  evaluated.set(stream);
  while (move_messages() && !evaluated.reached()) std::this_thread::yield();
}

void ListForces::count_later(const Stream& stream, const Sources& sources) {
  counted_.push_back(results_.make<ListStatistics>(stream));
  add_list_statistics(stream, sources.tree, sources.lists.view(groups_), counted_.back().place);
}

void ListForces::count_now(const Stream& stream, const Sources& sources) {
  count(list_statistics(stream, sources.tree, sources.lists.view(groups_)));
}

void ListForces::take_counted(bool good) {
  const auto counted = std::exchange(counted_, {});
  if (!good) return;
  for (const auto& statistics : counted) count(results_[statistics]);
}

void ListForces::count(const ListStatistics& s) {
  const std::uint64_t members = statistics_.members > 0 ? statistics_.members : s.members;  // the same for every tree
  statistics_.add(s);
  statistics_.members = members;
}

}  // namespace maki
