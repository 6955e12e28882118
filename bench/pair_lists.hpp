// Interaction lists as a tree makes them, for bench_pair.
#pragma once

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "tests/kernels/force/device_lists.hpp"

namespace maki::bench {

// Particles in leaves on a grid, leaves and particles in Morton order; groups are runs of leaves. A group's list holds
// the leaves around it, and as many cells as a walk with theta = 0.5 finds.
struct Lists : force_test::HostLists {
  int grid = 32;  // leaves a side, a power of two
  double leaf_side() const { return 1.0 / grid; }
  double pairs_with_particles = 0, pairs_with_cells = 0;
};

inline std::uint32_t fixed(double x) { return static_cast<std::uint32_t>(static_cast<std::int64_t>(x * kSideToUnits)); }

// The position of leaf `key` on the grid: its bits are those of z, y, x in turn.
inline std::array<int, 3> grid_place(int key) {
  std::array<int, 3> at{};
  for (int bit = 0; bit < 30; ++bit) at[2 - bit % 3] |= (key >> bit & 1) << (bit / 3);
  return at;
}

inline void add_leaves(Lists& lists, std::mt19937_64& random) {
  const double side = lists.leaf_side();
  std::uniform_real_distribution<double> inside(0, side);
  for (int key = 0; key < lists.grid * lists.grid * lists.grid; ++key) {
    const auto at = grid_place(key);
    const unsigned count = 6 + static_cast<unsigned>(random() % 11);  // a leaf size of 16 fills like this
    lists.cell_first.push_back(static_cast<std::uint32_t>(lists.particles.size()));
    lists.cell_count.push_back(count);
    for (unsigned i = 0; i < count; ++i)
      lists.particles.push_back({fixed(at[0] * side + inside(random)), fixed(at[1] * side + inside(random)),
                                 fixed(at[2] * side + inside(random)), 1.0f});
    const float q = static_cast<float>(count * side * side / 12);
    lists.cells.push_back({fixed((at[0] + 0.5) * side), fixed((at[1] + 0.5) * side), fixed((at[2] + 0.5) * side),
                           static_cast<float>(count), q, q, q, 0, 0, 0});
  }
}

// A group of particles [first, first + count) about `first_leaf`, with its list.
inline void add_group(Lists& lists, std::uint32_t first_leaf, std::uint32_t first, std::uint32_t count,
                      unsigned near_leaves, unsigned cells, std::mt19937_64& random) {
  const auto n_leaves = static_cast<std::uint32_t>(lists.cell_first.size());
  const CellMoments& c = lists.cells[first_leaf];
  const float half = static_cast<float>(lists.leaf_side());
  lists.groups.push_back({first, count, c.x, c.y, c.z, half, half, half});
  ListRange range{lists.words.size(), cells, near_leaves};
  std::vector<std::uint32_t> far, near;
  for (unsigned i = 0; i < cells; ++i) far.push_back(static_cast<std::uint32_t>(random() % n_leaves));
  // Neighbours in space are runs along the curve with gaps.
  std::uint32_t leaf = first_leaf + n_leaves - near_leaves;
  for (unsigned i = 0; i < near_leaves; ++i, leaf += (random() % 8 == 0) ? 5 : 1) near.push_back(leaf % n_leaves);
  std::sort(far.begin(), far.end());
  lists.words.insert(lists.words.end(), far.begin(), far.end());
  lists.words.insert(lists.words.end(), near.begin(), near.end());
  lists.ranges.push_back(range);
  lists.pairs_with_cells += static_cast<double>(count) * cells;
  for (const std::uint32_t l : near) lists.pairs_with_particles += static_cast<double>(count) * lists.cell_count[l];
}

// `near_leaves` and `cells` to a list; groups of 4 to 11 leaves, up to 128 particles, as a tree makes them.
inline Lists make_lists(unsigned near_leaves, unsigned cells) {
  std::mt19937_64 random(3);
  Lists lists;
  add_leaves(lists, random);
  for (std::uint32_t leaf = 0; leaf + 16 < lists.cell_first.size();) {
    std::uint32_t leaves = 0, particles = 0;
    const std::uint32_t most = 4 + static_cast<std::uint32_t>(random() % 8);
    while (leaves < most && particles + lists.cell_count[leaf + leaves] <= 128)
      particles += lists.cell_count[leaf + leaves++];
    add_group(lists, leaf + leaves / 2, lists.cell_first[leaf], particles, near_leaves, cells, random);
    leaf += leaves;
  }
  return lists;
}

// Groups of exactly `group_size` particles, whatever leaves they are in, on `grid` leaves a side.
inline Lists make_full_lists(int grid, unsigned group_size, unsigned near_leaves, unsigned cells) {
  std::mt19937_64 random(3);
  Lists lists;
  lists.grid = grid;
  add_leaves(lists, random);
  std::uint32_t leaf = 0;
  for (std::uint32_t first = 0; first + group_size <= lists.particles.size(); first += group_size) {
    while (lists.cell_first[leaf] + lists.cell_count[leaf] <= first + group_size / 2) ++leaf;
    add_group(lists, leaf, first, group_size, near_leaves, cells, random);
  }
  return lists;
}

// The lists on the device, and room for the result.
struct Uploaded : force_test::DeviceLists {
  Uploaded(const Stream& stream, const Lists& lists) : DeviceLists(stream, lists), acceleration("bench.acceleration") {
    acceleration.resize(lists.particles.size());
    potential.resize(lists.particles.size());
  }
  void evaluate(const Stream& stream, const ForceLaw& law, bool with_potential) {  // does not wait for it
    evaluate_lists(stream, law, true, sources(), all(),
                   {acceleration.view(), with_potential ? potential.data() : nullptr});
  }
  VectorArray acceleration;
  DeviceBuffer<float> potential{"bench.potential"};
};

}  // namespace maki::bench
