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

void ListProbes::choose(const Stream& stream, const DeviceBuffer<Group>& groups) {
  const std::size_t n = groups.size();
  const std::size_t wanted = std::min(n, std::max<std::size_t>(48, n / 1000));
  std::vector<std::uint32_t> indices(wanted), offsets(wanted);
  const std::vector<Group> host = groups.download(stream);
  std::uint32_t members = 0;
  for (std::size_t i = 0; i < wanted; ++i) {
    // One from each stretch of the curve, at a place that does not repeat a pattern of the tree.
    const std::size_t begin = i * n / wanted, length = (i + 1) * n / wanted - begin;
    indices[i] = static_cast<std::uint32_t>(begin + (i * 2654435761u >> 7) % length);
    offsets[i] = members;
    members += host[indices[i]].count;
  }
  indices_.upload(stream, indices);
  offsets_.upload(stream, offsets);
  strict_.resize(members);
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
