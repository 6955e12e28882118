// Each thread takes a contiguous stretch of particles and finds the cells that begin in it (leaf_walk.hpp): first to
// count them by level, then, after one scan over (level, stretch), to write them. The host waits once, for 23 numbers.
#include "kernels/device/algorithms.hpp"
#include "kernels/device/launch.cuh"
#include "kernels/error.hpp"
#include "kernels/tree/leaf_walk.hpp"
#include "kernels/tree/octree.hpp"

namespace maki {
namespace {

constexpr int kLevels = kMortonLevels + 1;  // 0 to 21
// Particles a thread. A GPU needs many threads; on the CPU the search for a stretch's first leaf would cost noticeably.
#if defined(__CUDACC__)
constexpr std::uint32_t kStretch = 64;
#else
constexpr std::uint32_t kStretch = 128;
#endif

struct CountLevels {
  std::uint32_t cells[kLevels] = {};
  MAKI_HD void operator()(std::uint32_t, std::uint32_t, int top, int level) {
    for (int l = top; l <= level; ++l) ++cells[l];
  }
};

struct CountCells {
  LeafWalk leaves;
  std::uint32_t stretches;
  std::uint32_t* cells;  // by level, then stretch
  MAKI_HD void operator()(std::size_t s) const {
    const auto begin = static_cast<std::uint32_t>(s) * kStretch;
    CountLevels count;
    leaves(begin, leaves.n - begin < kStretch ? leaves.n : begin + kStretch, count);
    for (int l = 0; l < kLevels; ++l) cells[static_cast<std::size_t>(l) * stretches + s] = count.cells[l];
  }
};

struct LevelBegins {
  const std::uint32_t* offset;
  std::uint32_t stretches;
  std::uint32_t* begins;
  MAKI_HD void operator()(std::size_t l) const { begins[l] = offset[l * stretches]; }
};

// first_child is the next free place of the level below: the first child if the cell is divided. The difference to the
// next cell's first_child is the number of children, 0 for a leaf.
struct WriteCells {
  std::uint32_t place[kLevels + 1];  // of the next cell of a level
  std::uint32_t* first;
  std::uint32_t* count;
  std::uint32_t* first_child;
  MAKI_HD void operator()(std::uint32_t begin, std::uint32_t end, int top, int level) {
    for (int l = top; l <= level; ++l) {
      const std::uint32_t cell = place[l]++;
      first[cell] = begin;
      first_child[cell] = place[l + 1];
      if (l == level) count[cell] = end - begin;
    }
  }
};

struct EmitCells {
  LeafWalk leaves;
  std::uint32_t stretches;
  const std::uint32_t* offset;
  std::uint32_t* first;
  std::uint32_t* count;
  std::uint32_t* first_child;
  MAKI_HD void operator()(std::size_t s) const {
    const auto begin = static_cast<std::uint32_t>(s) * kStretch;
    WriteCells write;
    write.first = first;
    write.count = count;
    write.first_child = first_child;
    for (int l = 0; l < kLevels; ++l) write.place[l] = offset[static_cast<std::size_t>(l) * stretches + s];
    write.place[kLevels] = offset[static_cast<std::size_t>(kLevels) * stretches];
    leaves(begin, leaves.n - begin < kStretch ? leaves.n : begin + kStretch, write);
  }
};

// The number of children, the particles of divided cells, and the centre of the cell's cube, which is the reference
// point of the first sweep.
struct FinishCells {
  const std::uint64_t* keys;
  std::uint32_t n, cells;
  std::uint32_t level_begin[kLevels + 1];
  const std::uint32_t* first;
  const std::uint32_t* first_child;
  std::uint32_t* count;
  std::uint8_t* child_count;
  CellGeometryView g;

  MAKI_HD int level_of(std::uint32_t cell) const {
    int level = 0;
    for (int l = 1; l < kLevels; ++l) level += cell >= level_begin[l] ? 1 : 0;
    return level;
  }

  // A divided cell ends where the next of its level begins, unless leaves of coarser levels lie between.
  MAKI_HD std::uint32_t end_of(std::uint32_t cell, int level) const {
    const std::uint32_t begin = first[cell], next = cell + 1 < level_begin[level + 1] ? first[cell + 1] : n;
    const int shift = 3 * (kMortonLevels - level);
    if (keys[next - 1] >> shift == keys[begin] >> shift) return next;
    return cell_end(keys, next, begin, level, 64);
  }

  MAKI_HD static std::uint32_t centre(std::uint64_t bits, int level) {
    return cube_centre(gather_bits(bits) << 11, level);
  }

  MAKI_HD void operator()(std::size_t i) const {
    const auto cell = static_cast<std::uint32_t>(i);
    const int level = level_of(cell);
    const std::uint32_t children = (cell + 1 < cells ? first_child[cell + 1] : cells) - first_child[cell];
    child_count[cell] = static_cast<std::uint8_t>(children);
    if (children > 0) count[cell] = end_of(cell, level) - first[cell];
    const std::uint64_t key = keys[first[cell]];
    g.x[cell] = centre(key >> 2, level);
    g.y[cell] = centre(key >> 1, level);
    g.z[cell] = centre(key, level);
  }
};

// Sizes grow slowly with clustering; a large enough array is kept.
constexpr double kHeadroom = 0.1;

}  // namespace

void CellGeometry::resize(std::size_t cells) {
  for (auto* a : {&comx, &comy, &comz, &x, &y, &z}) a->resize(cells + 8, kHeadroom);
  for (auto* a : {&hx, &hy, &hz, &size, &offset}) a->resize(cells + 8, kHeadroom);
  if (has_error_lengths) error_length.resize(cells + 8, kHeadroom);
}

CellGeometryView CellGeometry::view() {
  return {comx.data(), comy.data(), comz.data(), x.data(),    y.data(),      z.data(),
          hx.data(),   hy.data(),   hz.data(),   size.data(), offset.data(), error_length.data()};
}

void Octree::resize(std::uint32_t wanted, double headroom) {
  cells = wanted;
  first.resize(wanted, headroom);
  count.resize(wanted, headroom);
  first_child.resize(wanted, headroom);
  child_count.resize(wanted, headroom);
  moments.resize(wanted, headroom);
  geometry.resize(wanted);
}

void build_octree(const Stream& stream, const DeviceBuffer<std::uint64_t>& keys, std::uint32_t leaf_size, int min_level,
                  Octree& tree) {
  if (keys.empty()) throw Error("a tree needs at least one particle");
  const auto n = static_cast<std::uint32_t>(keys.size());
  const LeafWalk leaves{keys.data(), n, leaf_size, min_level};
  const std::uint32_t stretches = (n - 1) / kStretch + 1;
  const std::size_t counters = static_cast<std::size_t>(kLevels) * stretches;
  DeviceBuffer<std::uint32_t> counted("tree.scratch", counters), offset("tree.scratch", counters + 1);
  DeviceBuffer<std::uint32_t> begins("tree.scratch", kLevels + 1);
  launch(stream, "octree_count", stretches, CountCells{leaves, stretches, counted.data()});
  exclusive_scan(stream, counted.data(), offset.data(), counters);
  launch(stream, "octree_levels", kLevels + 1, LevelBegins{offset.data(), stretches, begins.data()});
  FinishCells finish{keys.data(), n, 0, {}, nullptr, nullptr, nullptr, nullptr, {}};
  copy_to_host(stream, finish.level_begin, begins.data(), sizeof finish.level_begin);
  finish.cells = finish.level_begin[kLevels];
  tree.resize(finish.cells, kHeadroom);
  tree.particles = n;
  tree.level_begin.assign(1, 0);
  for (int l = 0; l < kLevels && finish.level_begin[l] < finish.cells; ++l)
    tree.level_begin.push_back(finish.level_begin[l + 1]);

  launch(stream, "octree_emit", stretches,
         EmitCells{leaves, stretches, offset.data(), tree.first.data(), tree.count.data(), tree.first_child.data()});
  finish.first = tree.first.data();
  finish.first_child = tree.first_child.data();
  finish.count = tree.count.data();
  finish.child_count = tree.child_count.data();
  finish.g = tree.geometry.view();
  launch(stream, "octree_finish", finish.cells, finish);
}

}  // namespace maki
