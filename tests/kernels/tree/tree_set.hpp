// A set of particles with its tree and groups, made by the library; forces by lists over its own tree, or another.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/force/force.hpp"
#include "kernels/particles/particles.hpp"
#include "kernels/tree/octree.hpp"
#include "kernels/tree/walk.hpp"
#include "kernels/tree/walk_cpu.hpp"
#include "tests/kernels/particles/at_rest.hpp"
#include "tests/kernels/particles/sets.hpp"
#include "tests/test_stream.hpp"

namespace maki::testing {

struct TreeSet {
  const Stream& stream = test::test_stream();
  std::uint32_t group_size, leaf_size;
  int min_level;
  Particles particles;
  MortonSorter sorter;
  Octree tree;  // of no cells where the set is empty
  DeviceBuffer<Group> groups{"groups"};

  TreeSet(const std::vector<SourceParticle>& set, std::uint32_t group_size_, int min_level_,
          std::uint32_t leaf_size_ = 8)
      : group_size(group_size_), leaf_size(leaf_size_), min_level(min_level_) {
    if (set.empty()) return;
    upload_at_rest(stream, set, particles);
    build();
  }
  void build() {
    sorter.sort(stream, particles, nullptr);
    build_octree(stream, sorter.keys(), leaf_size, min_level, tree);
    sweep_octree(stream, particles.source.data(), tree);
    make_groups(stream, tree, particles.source.data(), group_size, min_level, groups);
  }
  // `set` in the order on the device: the tree is swept and the groups refitted.
  void move_to(const std::vector<SourceParticle>& set) {
    if (set.empty()) return;
    particles.source.upload(stream, set);
    sweep_octree(stream, particles.source.data(), tree);
    refit_groups(stream, particles.source.data(), groups);
  }
  // For walks by estimated error (WalkOptions::reference_acceleration): error lengths, and an error scale for each
  // group.
  void know_errors() {
    tree.geometry.has_error_lengths = true;
    tree.geometry.resize(tree.cells);
    sweep_octree(stream, particles.source.data(), tree);
    auto scaled = groups.download(stream);
    for (std::size_t i = 0; i < scaled.size(); ++i)
      scaled[i].error_scale = kLeastErrorScale + (kMostErrorScale - kLeastErrorScale) * static_cast<float>(i % 8) / 7;
    groups.upload(stream, scaled);
  }
  std::uint32_t group_count() const { return static_cast<std::uint32_t>(groups.size()); }
  WalkRequest all_groups() const { return {groups.data(), group_count(), nullptr, 0, group_count(), false}; }
  ListView view(const InteractionLists& lists) const {
    return {groups.data(), lists.ranges.data(), lists.words.data(), nullptr, group_count()};
  }
};

// A group's words, in the order in which they stand.
struct ListWords {
  std::vector<std::uint32_t> cells, leaves;
  bool operator==(const ListWords&) const = default;
};

inline std::vector<ListWords> words_of(const Stream& stream, const InteractionLists& lists) {
  const auto ranges = lists.ranges.download(stream);
  const auto words = lists.words.download(stream);
  std::vector<ListWords> out;
  for (const ListRange& r : ranges) {
    const auto begin = words.begin() + static_cast<std::ptrdiff_t>(r.begin);
    out.push_back({{begin, begin + r.cells}, {begin + r.cells, begin + r.cells + r.leaves}});
  }
  return out;
}

// Those of a walk of one group on the CPU.
using WalkGroup = bool (*)(const WalkTree&, const Group&, WalkOutput&);
inline ListWords list_of(WalkGroup walk, const WalkTree& tree, const Group& group, std::uint32_t room) {
  ListWords words{std::vector<std::uint32_t>(room), std::vector<std::uint32_t>(room)};
  WalkOutput out{words.cells.data(), words.leaves.data(), room, 0, 0};
  EXPECT_TRUE(walk(tree, group, out));
  words.cells.resize(out.cell_words);
  words.leaves.resize(out.leaf_words);
  return words;
}

using Vectors = std::vector<std::array<double, 3>>;

inline Vectors download(const Stream& stream, const VectorArray& array) {
  Vectors vectors;
  for (const auto& [x, y, z] : array.download(stream)) vectors.push_back({x, y, z});
  return vectors;
}

// On the particles of `set`, by `sources`, a tree over `particles`.
inline void add_forces(const ForceLaw& law, const WalkOptions& walk, TreeSet& set, Octree& sources,
                       const SourceParticle* particles, bool add, VectorArray& acceleration) {
  if (sources.cells == 0) return;
  InteractionLists lists;
  walk_tree(set.stream, sources, walk, set.all_groups(), lists);
  SourceView view{particles, sources.moments.data(), sources.first.data(), sources.count.data()};
  if (particles != set.particles.source.data()) view.targets = set.particles.source.data();
  evaluate_lists(set.stream, law, true, view, set.view(lists), {acceleration.view(), nullptr, add});
}

}  // namespace maki::testing
