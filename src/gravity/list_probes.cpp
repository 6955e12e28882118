#include "src/gravity/list_probes.hpp"

#include <algorithm>

namespace maki {
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
