#include "src/groups/sorted_particles.hpp"

#include <string>

#include "kernels/error.hpp"
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

}  // namespace

HostTree download_tree(const Stream& stream, const Octree& tree, const DeviceBuffer<CellBox>& boxes) {
  return {tree.first.download(stream), tree.count.download(stream), tree.first_child.download(stream),
          tree.child_count.download(stream), boxes.download(stream)};
}

SortedParticles sort_particles(const Stream& stream, Particles& particles) {
  const std::size_t n = particles.size();
  if (n >> 32 != 0) {
    throw Error("one rank cannot find the groups of so many particles", std::to_string(n) + ", 2^32 or more",
                "use more ranks");
  }
  if (n == 0) return {};
  MortonSorter sorter;
  Octree tree;
  DeviceBuffer<CellBox> boxes("groups.boxes");
  sorter.sort(stream, particles, nullptr);
  build_octree(stream, sorter.keys(), kLeafSize, 0, tree);
  make_cell_boxes(stream, particles.source.data(), tree, boxes);
  return {particles.source.download(stream), download_momenta(stream, particles.momentum),
          particles.id.download(stream), download_tree(stream, tree, boxes)};
}

std::vector<std::uint32_t> particles_near(const SortedParticles& particles, const CellBox& place, std::uint64_t reach) {
  const HostTree& tree = particles.tree;
  std::vector<std::uint32_t> found, stack;
  if (particles.size() > 0) stack.push_back(0);
  while (!stack.empty()) {
    const std::uint32_t cell = stack.back();
    stack.pop_back();
    if (gap_squared(place, tree.boxes[cell]) > reach) continue;
    for (std::uint32_t k = 0; k < tree.child_count[cell]; ++k) stack.push_back(tree.first_child[cell] + k);
    if (tree.child_count[cell] > 0) continue;
    for (std::uint32_t i = tree.first[cell]; i < tree.first[cell] + tree.count[cell]; ++i)
      if (gap_squared(place, box_of(particles.source[i])) <= reach) found.push_back(i);
  }
  return found;
}

}  // namespace maki
