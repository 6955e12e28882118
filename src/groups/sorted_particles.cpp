#include "src/groups/sorted_particles.hpp"

#include <algorithm>
#include <string>

#include "kernels/error.hpp"
#include "kernels/groups/friends.hpp"
#include "kernels/particles/morton.hpp"

namespace maki {
namespace {

constexpr std::uint32_t kLeafSize = 8;

std::vector<std::array<float, 3>> download_momenta(const Stream& stream, const VectorArray& momentum) {
  std::vector<std::array<float, 3>> momenta(momentum.size());
  const DeviceBuffer<float>* const axes[3] = {&momentum.x, &momentum.y, &momentum.z};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::vector<float> component = axes[axis]->download(stream);
    for (std::size_t i = 0; i < momenta.size(); ++i) momenta[i][axis] = component[i];
  }
  return momenta;
}

// A group of which only its root is known yet.
struct Root {
  std::uint32_t label;
  std::uint32_t length;
  std::uint64_t least_id;
};

bool comes_first(const Root& a, const Root& b) {
  return a.length != b.length ? a.length > b.length : a.least_id < b.least_id;
}

std::vector<Root> long_groups(const SortedParticles& particles, std::uint64_t minimum) {
  std::vector<std::uint32_t> lengths(particles.size());
  for (const std::uint32_t label : particles.labels) ++lengths[label];
  std::vector<std::uint64_t> least = particles.ids;  // right for roots alone
  for (std::size_t i = 0; i < particles.size(); ++i) {
    std::uint64_t& id = least[particles.labels[i]];
    id = std::min(id, particles.ids[i]);
  }
  std::vector<Root> roots;
  for (std::uint32_t i = 0; i < particles.size(); ++i)
    if (particles.labels[i] == i && lengths[i] >= minimum) roots.push_back({i, lengths[i], least[i]});
  std::sort(roots.begin(), roots.end(), comes_first);
  return roots;
}

}  // namespace

HostTree download_tree(const Stream& stream, const Octree& tree, const DeviceBuffer<CellBox>& boxes) {
  return {tree.first.download(stream), tree.count.download(stream), tree.first_child.download(stream),
          tree.child_count.download(stream), boxes.download(stream)};
}

SortedParticles link_particles(const Stream& stream, Particles& particles, double length) {
  const std::size_t n = particles.size();
  if (n >> 32 != 0) {
    throw Error("one rank cannot find the groups of this set", std::to_string(n) + " particles, 2^32 or more");
  }
  if (n == 0) return {};
  MortonSorter sorter;
  Octree tree;
  DeviceBuffer<CellBox> boxes("friends.boxes");
  DeviceBuffer<std::uint32_t> labels("friends.labels");
  sorter.sort(stream, particles, nullptr);
  build_octree(stream, sorter.keys(), kLeafSize, 0, tree);
  sorter.release_keys();
  make_cell_boxes(stream, particles.source.data(), tree, boxes);
  find_friends(stream, particles.source.data(), tree, boxes, length, labels);
  return {particles.source.download(stream), download_momenta(stream, particles.momentum),
          particles.id.download(stream), labels.download(stream), download_tree(stream, tree, boxes)};
}

GroupMembers list_members(const SortedParticles& particles, std::uint64_t minimum) {
  const std::vector<Root> roots = long_groups(particles, minimum);
  constexpr std::uint64_t kNone = ~std::uint64_t{0};
  std::vector<std::uint64_t> place(particles.size(), kNone);  // by label: where its next member goes
  GroupMembers members;
  for (const Root& root : roots) {
    place[root.label] = members.begins.back();
    members.begins.push_back(members.begins.back() + root.length);
  }
  members.particles.resize(members.begins.back());
  for (std::uint32_t i = 0; i < particles.size(); ++i) {
    std::uint64_t& next = place[particles.labels[i]];
    if (next != kNone) members.particles[next++] = i;
  }
#pragma omp parallel for schedule(dynamic)
  for (std::size_t group = 0; group < members.groups(); ++group) {
    const auto begin = members.particles.begin();
    std::stable_sort(begin + static_cast<std::ptrdiff_t>(members.begins[group]),
                     begin + static_cast<std::ptrdiff_t>(members.begins[group + 1]),
                     [&](std::uint32_t a, std::uint32_t b) { return particles.ids[a] < particles.ids[b]; });
  }
  return members;
}

}  // namespace maki
