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
  strict_.resize(wanted * group_size);
}

void ListProbes::gather(const Stream& stream, const DeviceBuffer<Group>& groups, const SourceParticle* particles) {
  queued_ = 0;
  gather_sample(stream, sample_of(groups, indices_, offsets_), particles, particles_.data(), groups_.data());
}

void ListProbes::evaluate_strict(const Stream& stream, const Sources& sources, const WalkOptions& strict,
                                 const ForceLaw& law, bool quadrupoles, Results& results) {
  const auto probes = static_cast<std::uint32_t>(indices_.size());
  const WalkRequest request{groups_.data(), probes, nullptr, 0, probes, false};
  if (queued_ == walks_.size()) walks_.emplace_back();
  StrictWalk& walk = walks_[queued_++];
  walk.tree = &sources.tree;
  walk.queued = queue_walk(stream, sources.tree, strict, request, walk.lists, results);
  SourceView view = sources.view;
  view.targets = particles_.data();
  const ListView lists{groups_.data(), walk.lists.ranges.data(), walk.lists.words.data(), nullptr, probes};
  evaluate_lists(stream, law, quadrupoles, view, lists, {strict_.view(), nullptr, sources.imported()});
}

void ListProbes::compare(const Stream& stream, const DeviceBuffer<Group>& groups, ConstVectorView acceleration,
                         SampleError* error) const {
  sample_error(stream, sample_of(groups, indices_, offsets_), acceleration, strict_.view(), error);
}

bool ListProbes::finish(const Stream& stream, const WalkOptions& strict, Results& results) {
  bool good = true;
  for (std::size_t i = 0; i < queued_; ++i) {
    StrictWalk& walk = walks_[i];
    good = finish_walk(stream, *walk.tree, strict, walk.queued, walk.lists, results) && good;
  }
  queued_ = 0;
  return good;
}

}  // namespace maki
