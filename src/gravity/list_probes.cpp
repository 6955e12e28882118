#include "src/gravity/list_probes.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/measure/probe_error.hpp"

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
  strict_.resize(wanted * group_size);  // enough for any members
}

void ListProbes::evaluate_strict(const Stream& stream, Octree& tree, const DeviceBuffer<Group>& groups,
                                 const WalkOptions& strict, const ForceLaw& law, bool quadrupoles,
                                 const SourceView& sources, const ForceOutput& out) {
  const auto probes = static_cast<std::uint32_t>(indices_.size());
  const auto all = static_cast<std::uint32_t>(groups.size());
  walk_tree(stream, tree, strict, {groups.data(), all, indices_.data(), 0, probes, false}, lists_);
  const ListView view{groups.data(), lists_.ranges.data(), lists_.words.data(), indices_.data(), probes};
  evaluate_lists(stream, law, quadrupoles, sources, view, out);
  pack_sample(stream, sample_of(groups, indices_, offsets_),
              {out.acceleration.x, out.acceleration.y, out.acceleration.z}, strict_.view());
}

double ListProbes::error(const Stream& stream, const DeviceBuffer<Group>& groups, ConstVectorView acceleration) const {
  const SampleError e = sample_error(stream, sample_of(groups, indices_, offsets_), acceleration, strict_.view());
  return e.reference > 0 ? std::sqrt(e.difference / e.reference) : 0.0;
}

}  // namespace maki
