#include <cmath>

#include "kernels/device/algorithms.hpp"
#include "kernels/tree/walk.hpp"

namespace maki {

double cutoff_list_bytes(double reach, double group_size) {
  constexpr double filled = 0.7, clustered = 3;  // part of a group; words over those of a uniform set
  const double members = filled * group_size, side = std::cbrt(members) + 2 * reach;
  return clustered * 4 * side * side * side / kParticlesALeaf / members;
}

double isolated_list_bytes(double theta, double group_size) {
  return 125 * std::pow(0.5 / theta, 1.35) * std::pow(group_size / 64, -0.75);
}

void InteractionLists::reserve(const Stream& stream, std::uint64_t wanted) {
  if (wanted <= words.capacity()) return;
  constexpr double headroom = 0.15;
  if (used == 0) return words.resize(wanted, headroom);  // old and new need not stand side by side
  DeviceBuffer<std::uint32_t> larger(words.name());
  larger.resize(wanted, headroom);
  copy_on_device(stream, larger.data(), words.data(), used * sizeof(std::uint32_t));
  stream.synchronize();  // the old words end here
  words.swap(larger);
}

void InteractionLists::begin_walk(const Stream& stream, const WalkRequest& request) {
  if (ranges.size() != request.group_count) ranges.resize(request.group_count, 0.2);
  if (request.append) return;
  used = 0;
  reserve(stream, static_cast<std::uint64_t>(words_a_group * request.count));
}

std::uint32_t find_stale_groups(const Stream& stream, Octree& tree, const StaleCriterion& criterion,
                                const ListView& lists, DeviceBuffer<std::uint32_t>& stale) {
  DeviceBuffer<std::uint32_t> flags("lists.scratch", lists.count);
  flag_stale_groups(stream, tree, criterion, lists, flags.data());
  return select_flagged(stream, flags.data(), lists.count, stale);
}

void InteractionLists::end_walk(const WalkRequest& request, std::uint64_t total) {
  used = total;
  words.resize(total);
  if (!request.append && request.count > 0) words_a_group = static_cast<double>(total) / request.count;
}

}  // namespace maki
