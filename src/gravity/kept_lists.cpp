#include "src/gravity/kept_lists.hpp"

#include <algorithm>
#include <utility>

#include "kernels/error.hpp"

namespace maki {

namespace {

// A kept list is repaired when one of its cells is nearer than the opening distance by more than this fraction of it.
constexpr float kStaleMargin = 0.1f;
// Lists that are walked again are in dense regions and longer than the mean: by kLongerLists at first, then by the
// ratio of the last such lists times kLittleMore.
constexpr double kLongerLists = 3, kLittleMore = 1.3;

std::uint32_t count_of(const DeviceBuffer<Group>& groups) { return static_cast<std::uint32_t>(groups.size()); }

}  // namespace

void KeptLists::make(const Stream& stream, Octree& tree, const WalkOptions& walk, const DeviceBuffer<Group>& groups,
                     std::size_t budget) {
  const auto room = static_cast<std::size_t>(kRoom * static_cast<double>(fresh_words_));
  const std::size_t most = budget / sizeof(std::uint32_t);
  lists_.words.resize(most > 0 ? std::min(room, most) : room);
  walk_tree(stream, tree, walk, {groups.data(), count_of(groups), nullptr, 0, count_of(groups), false}, lists_);
  fresh_words_ = std::max<std::uint64_t>(lists_.used, 1);
  longer_ = kLongerLists;
}

std::uint32_t KeptLists::repair(const Stream& stream, Octree& tree, const WalkOptions& walk,
                                const DeviceBuffer<Group>& groups, Results& results) {
  const std::uint32_t all = count_of(groups);
  Repair repair;
  const std::uint32_t n = find_stale_groups(stream, tree, {walk.rule(), kStaleMargin, StaleCells::kDivisible},
                                            view(groups, 0, all), repair.stale);
  if (n == 0) return 0;
  repair.before = lists_.used;
  repair.mean = static_cast<double>(fresh_words_) / all;
  WalkRequest request{groups.data(), all, repair.stale.data(), 0, n, true};
  // Where memory runs out all lists are walked, instead of holding old and new lists side by side while they grow.
  const double foreseen = static_cast<double>(repair.before) + longer_ * repair.mean * n;
  if (foreseen > static_cast<double>(lists_.words.capacity())) request = {groups.data(), all, nullptr, 0, all, false};
  repair.walk = queue_walk(stream, tree, walk, request, lists_, results);
  repair_ = std::move(repair);
  return request.count;
}

bool KeptLists::finish_repair(const Stream& stream, Octree& tree, const WalkOptions& walk, Results& results) {
  if (!repair_) return true;
  std::optional<Repair> repair = std::exchange(repair_, {});
  const WalkRequest& request = repair->walk.request;
  try {
    const bool good = finish_walk(stream, tree, walk, repair->walk, lists_, results);
    if (request.append)
      longer_ = kLittleMore * static_cast<double>(lists_.used - repair->before) / request.count / repair->mean;
    return good;
  } catch (const DeviceError&) {  // they were longer than foreseen
    if (!request.append) throw;
    lists_.words.release();
    walk_tree(stream, tree, walk, {request.groups, request.group_count, nullptr, 0, request.group_count, false},
              lists_);
    return false;
  }
}

void KeptLists::reopen(const Stream& stream, Octree& tree, const WalkOptions& walk, const DeviceBuffer<Group>& groups,
                       const DeviceBuffer<std::uint32_t>* which, Results& results) {
  ListView lists = view(groups);
  if (which) lists.selected = which->data(), lists.count = static_cast<std::uint32_t>(which->size());
  if (lists.count == 0) return;
  const ReopenRecord* const before = reopened_.empty() ? nullptr : reopened_.back().place;
  reopened_.push_back(results.make<ReopenRecord>(stream));
  queue_reopen(stream, tree, {walk, kStaleMargin, lists}, lists_, before, reopened_.back().place);
}

bool KeptLists::finish_reopened(const Stream& stream, Octree& tree, const WalkOptions& walk,
                                const DeviceBuffer<Group>& groups, Results& results) {
  bool good = true;
  for (const auto& record : std::exchange(reopened_, {})) good = finish_reopen(results[record], lists_) && good;
  if (!good) reopen_lists(stream, tree, {walk, kStaleMargin, view(groups)}, lists_);
  return good;
}

std::uint32_t KeptLists::outgrown(const Stream& stream, Octree& tree, const WalkOptions& walk,
                                  const DeviceBuffer<Group>& groups) const {
  DeviceBuffer<std::uint32_t> near("lists.stale");
  return find_stale_groups(stream, tree, {walk.rule(), kStaleMargin, StaleCells::kClosed},
                           view(groups, 0, count_of(groups)), near);
}

std::uint32_t KeptLists::batch_within(const Stream& stream, Octree& tree, const WalkOptions& walk,
                                      const DeviceBuffer<Group>& groups, std::size_t budget) {
  const std::uint32_t all = count_of(groups);
  if (budget == 0) return all;
  const std::uint32_t sample = std::min<std::uint32_t>(all, 256);
  DeviceBuffer<std::uint32_t> indices("lists.scratch"), offsets("lists.scratch");
  choose_sample(stream, groups, sample, indices, offsets);  // over the whole set: lists in voids are short
  walk_tree(stream, tree, walk, {groups.data(), all, indices.data(), 0, sample, false}, lists_);
  const double bytes_a_group = 1.25 * static_cast<double>(bytes()) / sample + 1;
  const double batch = static_cast<double>(budget) / bytes_a_group;
  return batch >= all ? all : std::max<std::uint32_t>(32, static_cast<std::uint32_t>(batch));
}

ListView KeptLists::make_batch(const Stream& stream, Octree& tree, const WalkOptions& walk,
                               const DeviceBuffer<Group>& groups, std::uint32_t begin, std::uint32_t count) {
  walk_tree(stream, tree, walk, {groups.data(), count_of(groups), nullptr, begin, count, false}, lists_);
  return view(groups, begin, count);
}

ListView KeptLists::view(const DeviceBuffer<Group>& groups, std::uint32_t begin, std::uint32_t count) const {
  return {groups.data() + begin, lists_.ranges.data() + begin, lists_.words.data(), nullptr, count};
}

std::uint64_t KeptLists::take_redone() { return std::exchange(lists_.redone, 0); }

namespace {

GroupSample sample_of(const DeviceBuffer<Group>& groups, const DeviceBuffer<std::uint32_t>& indices,
                      const DeviceBuffer<std::uint32_t>& offsets) {
  return {groups.data(), indices.data(), offsets.data(), static_cast<std::uint32_t>(indices.size())};
}

}  // namespace

void ListProbes::choose(const Stream& stream, const DeviceBuffer<Group>& groups, std::uint32_t group_size) {
  const std::size_t n = groups.size();
  const std::size_t wanted = std::min(n, std::max<std::size_t>(48, n / 1000));
  choose_sample(stream, groups, static_cast<std::uint32_t>(wanted), indices_, offsets_);
  groups_.resize(wanted, 0.2);
  particles_.resize(wanted * group_size, 0.2);  // enough for any members
  for (Forces* const forces : {&fresh_, &strict_}) forces->acceleration.resize(wanted * group_size);
}

void ListProbes::gather(const Stream& stream, const DeviceBuffer<Group>& groups, const SourceParticle* particles) {
  fresh_.queued = strict_.queued = 0;
  gather_sample(stream, sample_of(groups, indices_, offsets_), particles, particles_.data(), groups_.data());
}

void ListProbes::evaluate(const Stream& stream, const Sources& sources, const Walks& walks, const ForceLaw& law,
                          bool quadrupoles, Results& results) {
  queue(stream, sources, walks.fresh, results, fresh_);
  queue(stream, sources, walks.strict, results, strict_);
  SourceView view = sources.view;
  view.targets = particles_.data();
  for (Forces* const forces : {&fresh_, &strict_})
    evaluate_lists(stream, law, quadrupoles, view, lists_of(forces->walks[forces->queued - 1]),
                   {forces->acceleration.view(), nullptr, sources.imported()});
}

void ListProbes::queue(const Stream& stream, const Sources& sources, const WalkOptions& options, Results& results,
                       Forces& forces) {
  const auto probes = static_cast<std::uint32_t>(indices_.size());
  if (forces.queued == forces.walks.size()) forces.walks.emplace_back();
  Walk& walk = forces.walks[forces.queued++];
  walk.tree = &sources.tree;
  walk.options = options;
  walk.queued = queue_walk(stream, sources.tree, options, {groups_.data(), probes, nullptr, 0, probes, false},
                           walk.lists, results);
}

ListView ListProbes::lists_of(const Walk& walk) const {
  return {groups_.data(), walk.lists.ranges.data(), walk.lists.words.data(), nullptr,
          static_cast<std::uint32_t>(indices_.size())};
}

void ListProbes::compare(const Stream& stream, const DeviceBuffer<Group>& groups, ConstVectorView acceleration,
                         SampleError* error) const {
  sample_error(stream, sample_of(groups, indices_, offsets_), acceleration, fresh_.acceleration.view(),
               strict_.acceleration.view(), error);
}

bool ListProbes::finish(const Stream& stream, Results& results) {
  const bool fresh = finish(stream, results, fresh_);
  return finish(stream, results, strict_) && fresh;
}

bool ListProbes::finish(const Stream& stream, Results& results, Forces& forces) {
  bool good = true;
  for (std::size_t i = 0; i < forces.queued; ++i) {
    Walk& walk = forces.walks[i];
    good = finish_walk(stream, *walk.tree, walk.options, walk.queued, walk.lists, results) && good;
  }
  forces.queued = 0;
  return good;
}

}  // namespace maki
