#include "kernels/groups/friends.hpp"

#include <cstdint>
#include <iomanip>
#include <sstream>

#include "kernels/device/algorithms.hpp"
#include "kernels/device/launch.cuh"
#include "kernels/device/macros.hpp"
#include "kernels/error.hpp"

namespace maki {

namespace {

struct BoxOfCell : TreeTopology {
  const SourceParticle* particles;
  std::uint32_t begin;  // of the level
  CellBox* boxes;

  MAKI_HD void operator()(std::size_t i) const {
    const std::uint32_t cell = begin + static_cast<std::uint32_t>(i);
    const std::uint32_t children = child_count[cell];
    CellBox box = children > 0 ? boxes[first_child[cell]] : box_of(particles[first[cell]]);
    for (std::uint32_t k = 1; k < children; ++k) grow(box, boxes[first_child[cell] + k]);
    for (std::uint32_t k = 1; children == 0 && k < count[cell]; ++k) grow(box, box_of(particles[first[cell] + k]));
    boxes[cell] = box;
  }
};

}  // namespace

void make_cell_boxes(const Stream& stream, const SourceParticle* particles, const Octree& tree,
                     DeviceBuffer<CellBox>& boxes) {
  boxes.resize(tree.cells);
  for (std::size_t level = tree.level_begin.size() - 1; level-- > 0;) {
    const std::uint32_t begin = tree.level_begin[level];
    launch(stream, "cell_boxes", tree.level_begin[level + 1] - begin,
           BoxOfCell{tree.topology(), particles, begin, boxes.data()});
  }
}

// Disjoint sets that many threads join at a time without locks.
//
// parent[i] <= i; the root of a set is its own parent, and its least member. Only a root ever gets another set's member
// as parent, by compare-and-swap and only downwards, so the result does not depend on the order of threads. Finding a
// root splits paths: it replaces the parent of a node that is no root, and never becomes one again, by one of its
// ancestors. So concurrent stores do no harm (Jayanti & Tarjan 2016, PODC, for the general case).
struct DisjointSets {
  std::uint32_t* parent;

  MAKI_HD std::uint32_t load(std::uint32_t i) const {
#if defined(__CUDA_ARCH__)
    return *static_cast<volatile std::uint32_t*>(parent + i);
#else
    return __atomic_load_n(parent + i, __ATOMIC_RELAXED);
#endif
  }

  MAKI_HD void store(std::uint32_t i, std::uint32_t ancestor) const {
#if defined(__CUDA_ARCH__)
    *static_cast<volatile std::uint32_t*>(parent + i) = ancestor;
#else
    __atomic_store_n(parent + i, ancestor, __ATOMIC_RELAXED);
#endif
  }

  // Makes `below` the parent of the root `root`; false where `root` is no root any more.
  MAKI_HD bool hook(std::uint32_t root, std::uint32_t below) const {
#if defined(__CUDA_ARCH__)
    return atomicCAS(parent + root, root, below) == root;
#else
    std::uint32_t expected = root;
    return __atomic_compare_exchange_n(parent + root, &expected, below, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
#endif
  }

  // The present root of i's set.
  MAKI_HD std::uint32_t find(std::uint32_t i) const {
    std::uint32_t above = load(i);
    while (above != i) {
      const std::uint32_t next = load(above);
      if (next != above) store(i, next);
      i = above;
      above = next;
    }
    return i;
  }

  MAKI_HD bool joined(std::uint32_t a, std::uint32_t b) const { return find(a) == find(b); }

  MAKI_HD void join(std::uint32_t a, std::uint32_t b) const {
    for (;;) {
      a = find(a);
      b = find(b);
      if (a == b) return;
      const std::uint32_t high = a > b ? a : b, low = a > b ? b : a;
      if (hook(high, low)) return;
    }
  }
};

namespace {

struct FriendTree : TreeTopology {
  const SourceParticle* particles;
  const CellBox* boxes;
  std::uint64_t reach;  // square of the linking length, in units of the last bit

  MAKI_HD bool leaf(std::uint32_t cell) const { return child_count[cell] == 0; }
  // All its particles are friends.
  MAKI_HD bool dense(std::uint32_t cell) const { return all_within(boxes[cell], boxes[cell], reach); }
  MAKI_HD std::uint32_t end(std::uint32_t cell) const { return first[cell] + count[cell]; }
};

enum class Next { kSkip, kDescend, kStop };

// Visits `root` and its descendants in Morton order, as visit(cell) decides; true where that stopped the walk.
template <class Visit>
MAKI_HD bool walk_cells(const FriendTree& tree, std::uint32_t root, Visit& visit) {
  std::uint32_t next[kMortonLevels + 1], end[kMortonLevels + 1];  // siblings still to be visited, by level
  int level = 0;
  next[0] = root;
  end[0] = root + 1;
  while (level >= 0) {
    if (next[level] == end[level]) {
      --level;
      continue;
    }
    const std::uint32_t cell = next[level]++;
    const Next what = visit(cell);
    if (what == Next::kStop) return true;
    if (what == Next::kSkip) continue;
    ++level;
    next[level] = tree.first_child[cell];
    end[level] = next[level] + tree.child_count[cell];
  }
  return false;
}

// Looks for a friend of one particle.
struct SeekFriend {
  FriendTree tree;
  SourceParticle particle;
  CellBox place;

  MAKI_HD Next operator()(std::uint32_t cell) const {
    const CellBox& box = tree.boxes[cell];
    if (gap_squared(place, box) > tree.reach) return Next::kSkip;
    if (all_within(place, box, tree.reach)) return Next::kStop;
    if (!tree.leaf(cell)) return Next::kDescend;
    for (std::uint32_t i = tree.first[cell]; i < tree.end(cell); ++i)
      if (distance_squared(particle, tree.particles[i]) <= tree.reach) return Next::kStop;
    return Next::kSkip;
  }
};

// Joins one unit with the units after it.
struct MeetUnits {
  FriendTree tree;
  DisjointSets sets;
  std::uint32_t unit;
  bool unit_dense;

  MAKI_HD Next operator()(std::uint32_t cell) const {
    if (tree.end(cell) <= tree.end(unit) || gap_squared(tree.boxes[unit], tree.boxes[cell]) > tree.reach)
      return Next::kSkip;
    const bool cell_dense = tree.dense(cell);
    if (!cell_dense && !tree.leaf(cell)) return Next::kDescend;
    if (unit_dense) {
      join_dense(cell, cell_dense, unit);
    } else if (cell_dense) {
      join_dense(unit, false, cell);
    } else {
      join_leaves(cell);
    }
    return Next::kSkip;
  }

  // Joins the particles in `some` with a friend in the dense cell; one_for_all: `some` is dense, and one joins all.
  MAKI_HD void join_dense(std::uint32_t some, bool one_for_all, std::uint32_t dense) const {
    const std::uint32_t whole = tree.first[dense];
    if (one_for_all && sets.joined(tree.first[some], whole)) return;
    if (all_within(tree.boxes[some], tree.boxes[dense], tree.reach)) {
      for (std::uint32_t i = tree.first[some]; i < (one_for_all ? tree.first[some] + 1 : tree.end(some)); ++i)
        sets.join(i, whole);
      return;
    }
    for (std::uint32_t i = tree.first[some]; i < tree.end(some); ++i) {
      if (!one_for_all && sets.joined(i, whole)) continue;
      SeekFriend seek{tree, tree.particles[i], box_of(tree.particles[i])};
      if (!walk_cells(tree, dense, seek)) continue;
      sets.join(i, whole);
      if (one_for_all) return;
    }
  }

  MAKI_HD void join_leaves(std::uint32_t leaf) const {
    for (std::uint32_t i = tree.first[unit]; i < tree.end(unit); ++i) {
      const SourceParticle particle = tree.particles[i];
      if (gap_squared(box_of(particle), tree.boxes[leaf]) > tree.reach) continue;
      for (std::uint32_t j = tree.first[leaf]; j < tree.end(leaf); ++j)
        if (distance_squared(particle, tree.particles[j]) <= tree.reach) sets.join(i, j);
    }
  }
};

// 1 for units, else 0: the topmost dense cells, and leaves in no dense cell. A cell within a dense one is dense.
struct MarkUnits {
  FriendTree tree;
  std::uint32_t* marks;

  MAKI_HD void operator()(std::size_t i) const {
    const auto cell = static_cast<std::uint32_t>(i);
    const bool unit = tree.leaf(cell) || tree.dense(cell);
    if (cell == 0) marks[0] = unit ? 1 : 0;
    const bool divided = !unit;
    for (std::uint32_t k = 0; k < tree.child_count[cell]; ++k) {
      const std::uint32_t child = tree.first_child[cell] + k;
      marks[child] = divided && (tree.leaf(child) || tree.dense(child)) ? 1 : 0;
    }
  }
};

// The particles of a dense unit form one set; those of a leaf begin alone, and friends among them are joined.
struct BeginSets {
  FriendTree tree;
  const std::uint32_t* units;
  DisjointSets sets;

  MAKI_HD void operator()(std::size_t k) const {
    const std::uint32_t unit = units[k], begin = tree.first[unit], end = tree.end(unit);
    const bool dense = tree.dense(unit);
    for (std::uint32_t i = begin; i < end; ++i) sets.parent[i] = dense ? begin : i;
    for (std::uint32_t i = begin; !dense && i < end; ++i)
      for (std::uint32_t j = i + 1; j < end; ++j)
        if (distance_squared(tree.particles[i], tree.particles[j]) <= tree.reach) sets.join(i, j);
  }
};

struct JoinUnit {
  FriendTree tree;
  const std::uint32_t* units;
  DisjointSets sets;

  MAKI_HD void operator()(std::size_t k) const {
    MeetUnits meet{tree, sets, units[k], tree.dense(units[k])};
    walk_cells(tree, 0, meet);
  }
};

struct StoreLabel {
  DisjointSets sets;
  std::uint32_t* labels;
  MAKI_HD void operator()(std::size_t i) const { labels[i] = sets.find(static_cast<std::uint32_t>(i)); }
};

}  // namespace

void require_linking_length(double length) {
  if (length > 0 && length < 0.5) return;
  std::ostringstream is;
  is << "it is " << std::setprecision(4) << length << " of the box";
  throw Error("friends cannot be found with this linking length", is.str(),
              "choose one above 0 and below half the box");
}

void find_friends(const Stream& stream, const SourceParticle* particles, const Octree& tree,
                  const DeviceBuffer<CellBox>& boxes, double length, DeviceBuffer<std::uint32_t>& labels) {
  require_linking_length(length);
  const FriendTree friends{tree.topology(), particles, boxes.data(), squared_units(length)};
  DeviceBuffer<std::uint32_t> marks("friends.units", tree.cells), units("friends.units");
  launch(stream, "friends_units", tree.cells, MarkUnits{friends, marks.data()});
  const std::uint32_t count = select_flagged(stream, marks.data(), tree.cells, units);
  DeviceBuffer<std::uint32_t> parent("friends.sets", tree.particles);
  labels.resize(tree.particles);
  const DisjointSets sets{parent.data()};
  launch(stream, "friends_begin", count, BeginSets{friends, units.data(), sets});
  launch(stream, "friends_join", count, JoinUnit{friends, units.data(), sets});
  launch(stream, "friends_label", tree.particles, StoreLabel{sets, labels.data()});
  stream.synchronize();  // the scratch arrays are freed here
}

}  // namespace maki
