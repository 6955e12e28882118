#include "src/groups/links.hpp"

#include <algorithm>
#include <numeric>
#include <string>

#include "kernels/error.hpp"
#include "kernels/groups/friends.hpp"
#include "kernels/particles/particles.hpp"

namespace maki {

namespace {

constexpr std::uint32_t kSearchLeafSize = 8;  // of the tree that particles_near() walks

}  // namespace

HostTree download_tree(const Stream& stream, const Octree& tree, const DeviceBuffer<CellBox>& boxes) {
  return {tree.first.download(stream), tree.count.download(stream), tree.first_child.download(stream),
          tree.child_count.download(stream), boxes.download(stream)};
}

SortedParticles sort_particles(const Stream& stream, Particles& particles) {
  const std::size_t n = particles.size();
  if (n == 0) return {};
  MortonSorter sorter;
  Octree tree;
  DeviceBuffer<CellBox> boxes("groups.boxes");
  sorter.sort(stream, particles, nullptr);
  build_octree(stream, sorter.keys(), kSearchLeafSize, 0, tree);
  make_cell_boxes(stream, particles.source.data(), tree, boxes);
  return {particles.source.download(stream), particles.momentum.download(stream), particles.id.download(stream),
          download_tree(stream, tree, boxes)};
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

namespace {

// The fastest of 4, 8, 16 and 32 on two cores (bench/NOTES.md, "Groups of friends").
constexpr std::uint32_t kLeafSize = 32;

struct Ghost {
  SourceParticle source;
  std::uint64_t id;
};

// Own particles, then ghosts, rank after rank.
struct JoinedSet {
  std::vector<std::vector<std::uint32_t>> given;  // by rank: own particles that are ghosts there
  std::vector<std::uint32_t> taken;               // by rank: number of its particles that are ghosts here
  std::vector<SourceParticle> source;
  std::vector<std::uint64_t> names;  // at first the particles' own IDs
};

JoinedSet join_ghosts(const SortedParticles& own, const RankBoxes& boxes, double length, const Communicator& ranks) {
  JoinedSet set{std::vector<std::vector<std::uint32_t>>(boxes.places.size()), {}, own.source, own.ids};
  std::vector<std::vector<Ghost>> out(boxes.places.size());
  for (std::size_t r = 0; r < out.size(); ++r) {
    if (static_cast<int>(r) == ranks.rank() || !boxes.places[r].any) continue;
    set.given[r] = particles_near(own, boxes.places[r].box, squared_units(length));
    for (const std::uint32_t i : set.given[r]) out[r].push_back({own.source[i], own.ids[i]});
  }
  for (const std::vector<Ghost>& ghosts : exchange_all(ranks, std::move(out))) {
    set.taken.push_back(static_cast<std::uint32_t>(ghosts.size()));
    for (const Ghost& ghost : ghosts) {
      set.source.push_back(ghost.source);
      set.names.push_back(ghost.id);
    }
  }
  return set;
}

// The friend_labels() of a set from labels of its particles after sorting: sorted particle i is number index[i] of it.
std::vector<std::uint32_t> least_of_given(const std::vector<std::uint64_t>& index,
                                          const std::vector<std::uint32_t>& labels) {
  std::vector<std::uint32_t> least(labels.size(), ~0u), given(labels.size());
  for (std::size_t i = 0; i < labels.size(); ++i)
    least[labels[i]] = std::min(least[labels[i]], static_cast<std::uint32_t>(index[i]));
  for (std::size_t i = 0; i < labels.size(); ++i) given[index[i]] = least[labels[i]];
  return given;
}

// For each particle of a set in any order, the least index of a particle in its group (find_friends).
std::vector<std::uint32_t> friend_labels(const Stream& stream, const std::vector<SourceParticle>& set, double length) {
  const std::size_t n = set.size();
  if (n == 0) return {};
  Particles particles;
  particles.resize(n);
  particles.source.upload(stream, set);
  particles.remainder.fill_zero(stream);
  particles.momentum.fill_zero(stream);
  std::vector<std::uint64_t> index(n);
  std::iota(index.begin(), index.end(), std::uint64_t{0});
  particles.id.upload(stream, index);
  MortonSorter sorter;
  Octree tree;
  DeviceBuffer<CellBox> boxes("friends.boxes");
  DeviceBuffer<std::uint32_t> labels("friends.labels");
  sorter.sort(stream, particles, nullptr);
  build_octree(stream, sorter.keys(), kLeafSize, 0, tree);
  sorter.release_keys();
  make_cell_boxes(stream, particles.source.data(), tree, boxes);
  find_friends(stream, particles.source.data(), tree, boxes, length, labels);
  return least_of_given(particles.id.download(stream), labels.download(stream));
}

// All members of a local group take its least name.
void spread_names(const std::vector<std::uint32_t>& labels, std::vector<std::uint64_t>& names) {
  for (std::size_t i = 0; i < labels.size(); ++i) {
    std::uint64_t& least = names[labels[i]];
    least = std::min(least, names[i]);
  }
  for (std::size_t i = 0; i < labels.size(); ++i) names[i] = names[labels[i]];
}

// Exchanges the names of shared particles with other ranks; returns whether any name here became less.
bool compare_names(JoinedSet& set, std::size_t own, const Communicator& ranks) {
  std::vector<std::vector<std::uint64_t>> out(set.given.size());
  std::size_t ghost = own;
  for (std::size_t r = 0; r < out.size(); ++r) {
    for (const std::uint32_t i : set.given[r]) out[r].push_back(set.names[i]);
    for (std::uint32_t k = 0; k < set.taken[r]; ++k) out[r].push_back(set.names[ghost++]);
  }
  const auto in = exchange_all(ranks, std::move(out));
  bool changed = false;
  const auto lower = [&](std::uint64_t& name, std::uint64_t other) {
    changed = changed || other < name;
    name = std::min(name, other);
  };
  ghost = own;
  for (std::size_t r = 0; r < in.size(); ++r) {
    std::size_t next = 0;
    for (std::uint32_t k = 0; k < set.taken[r]; ++k) lower(set.names[ghost++], in[r][next++]);
    for (const std::uint32_t i : set.given[r]) lower(set.names[i], in[r][next++]);
  }
  return changed;
}

struct Member {
  ParticleRecord particle;
  std::uint64_t name;
};

// Own particles whose groups are long enough or may continue on other ranks, for the ranks that measure.
std::vector<std::vector<Member>> choose_members(const SortedParticles& own, const JoinedSet& set,
                                                const std::vector<std::uint32_t>& labels, std::uint64_t minimum) {
  std::vector<std::uint64_t> lengths(labels.size());
  for (std::size_t i = 0; i < own.size(); ++i) ++lengths[labels[i]];
  for (const auto& given : set.given)
    for (const std::uint32_t i : given) lengths[labels[i]] = minimum;
  for (std::size_t i = own.size(); i < labels.size(); ++i) lengths[labels[i]] = minimum;
  std::vector<std::vector<Member>> out(set.given.size());
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (lengths[labels[i]] < minimum) continue;
    std::uint64_t hash = set.names[i] * 0x9e3779b97f4a7c15u;  // Fibonacci hashing
    hash ^= hash >> 32;
    out[hash % out.size()].push_back({own.record(i), set.names[i]});
  }
  return out;
}

GroupMembers arrange(std::vector<Member> members, std::uint64_t minimum) {
  std::sort(members.begin(), members.end(), [](const Member& a, const Member& b) {
    return a.name != b.name ? a.name < b.name : a.particle.id < b.particle.id;
  });
  struct Run {
    std::size_t begin, length;
  };
  std::vector<Run> runs;
  for (std::size_t begin = 0, end = 0; begin < members.size(); begin = end) {
    while (end < members.size() && members[end].name == members[begin].name) ++end;
    if (end - begin >= minimum) runs.push_back({begin, end - begin});
  }
  std::stable_sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) { return a.length > b.length; });
  GroupMembers groups;
  for (const Run& run : runs) {
    for (std::size_t i = run.begin; i < run.begin + run.length; ++i) groups.particles.push_back(members[i].particle);
    groups.begins.push_back(groups.particles.size());
  }
  return groups;
}

}  // namespace

RankBoxes::RankBoxes(const SortedParticles& own, const Communicator& ranks) {
  Place mine{};
  if (own.size() > 0) mine = {own.tree.boxes[0], true};
  places = gathered(ranks, mine);
}

GroupMembers collect_groups(const Stream& stream, const SortedParticles& own, const RankBoxes& boxes, double length,
                            std::uint64_t minimum, const Communicator& ranks) {
  require_linking_length(length);
  JoinedSet set = join_ghosts(own, boxes, length, ranks);
  const std::vector<std::uint32_t> labels = friend_labels(stream, set.source, length);
  do spread_names(labels, set.names);
  while (largest_of(ranks, std::uint64_t{compare_names(set, own.size(), ranks) ? 1u : 0u}) > 0);
  return arrange(joined(exchange_all(ranks, choose_members(own, set, labels, minimum))), minimum);
}

}  // namespace maki
