#include "kernels/device/algorithms.hpp"
#include "kernels/device/error.hpp"
#include "kernels/device/launch.cuh"
#include "kernels/tree/octree.hpp"

namespace maki {
namespace {

// First index in [begin, end) whose key's octant at `level + 1` is at least `octant`.
MAKI_HD std::uint32_t octant_begin(const std::uint64_t* keys, std::uint32_t begin, std::uint32_t end, int shift,
                                   unsigned octant) {
  while (begin < end) {
    const std::uint32_t middle = begin + (end - begin) / 2;
    if ((keys[middle] >> shift & 7u) < octant)
      begin = middle + 1;
    else
      end = middle;
  }
  return begin;
}

// Children that each cell of a level will have: 0 for leaves.
struct CountChildren {
  const std::uint64_t* keys;
  const std::uint32_t* first;
  const std::uint32_t* count;
  std::uint32_t* children;
  std::uint32_t leaf_size;
  int shift;  // of the next level's octant in the key
  MAKI_HD void operator()(std::size_t i) const {
    std::uint32_t n = 0;
    if (count[i] > leaf_size) {
      std::uint32_t begin = first[i];
      const std::uint32_t end = begin + count[i];
      while (begin < end) {
        begin = octant_begin(keys, begin, end, shift, static_cast<unsigned>(keys[begin] >> shift & 7u) + 1);
        ++n;
      }
    }
    children[i] = n;
  }
};

struct EmitChildren {
  const std::uint64_t* keys;
  const std::uint32_t* children;  // of this level's cells
  const std::uint32_t* offset;    // scan of children
  std::uint32_t level_begin, next_begin;
  int shift;
  std::uint32_t* first;
  std::uint32_t* count;
  std::uint32_t* first_child;
  std::uint8_t* child_count;
  MAKI_HD void operator()(std::size_t i) const {
    const std::size_t cell = level_begin + i;
    first_child[cell] = next_begin + offset[i];
    child_count[cell] = static_cast<std::uint8_t>(children[i]);
    std::uint32_t begin = first[cell];
    const std::uint32_t end = begin + count[cell];
    for (std::uint32_t c = 0; c < children[i]; ++c) {
      const std::uint32_t next =
          octant_begin(keys, begin, end, shift, static_cast<unsigned>(keys[begin] >> shift & 7u) + 1);
      const std::size_t child = next_begin + offset[i] + c;
      first[child] = begin;
      count[child] = next - begin;
      begin = next;
    }
  }
};

// The centre of the cell's cube, as the reference point of the first sweep.
struct SetCubes {
  const std::uint64_t* keys;
  const std::uint32_t* first;
  CellGeometryView g;
  std::uint32_t level_begin;
  int level;
  MAKI_HD static std::uint32_t centre(std::uint64_t bits, int level) {
    const std::uint32_t corner = gather_bits(bits) << 11;
    const std::uint32_t mask = level == 0 ? 0u : ~0u << (32 - level);
    return (corner & mask) + (0x80000000u >> level);
  }
  MAKI_HD void operator()(std::size_t i) const {
    const std::size_t cell = level_begin + i;
    const std::uint64_t key = keys[first[cell]];
    g.x[cell] = centre(key >> 2, level);
    g.y[cell] = centre(key >> 1, level);
    g.z[cell] = centre(key, level);
  }
};

struct SetRoot {
  std::uint32_t n;
  std::uint32_t* first;
  std::uint32_t* count;
  MAKI_HD void operator()(std::size_t) const {
    first[0] = 0;
    count[0] = n;
  }
};

// Room for `cells` more, contents kept: growth happens a few times in a run, not in a steady rebuild.
template <class T>
void grow(const Stream& stream, DeviceBuffer<T>& array, std::size_t wanted, std::size_t used) {
  if (array.size() >= wanted) return;
  if (array.capacity() >= wanted) return array.resize(array.capacity());
  DeviceBuffer<T> larger(array.name(), wanted + wanted / 2);
  copy_on_device(stream, larger.data(), array.data(), used * sizeof(T));
  stream.synchronize();
  array.swap(larger);
}

void reserve_cells(const Stream& stream, Octree& tree, std::size_t wanted, std::size_t used) {
  grow(stream, tree.first, wanted, used);
  grow(stream, tree.count, wanted, used);
  grow(stream, tree.first_child, wanted, used);
  grow(stream, tree.child_count, wanted, used);
}

}  // namespace

void CellGeometry::resize(std::size_t cells) {
  for (auto* a : {&comx, &comy, &comz, &x, &y, &z}) a->resize(cells + 8, 0.2);
  for (auto* a : {&hx, &hy, &hz, &size, &offset}) a->resize(cells + 8, 0.2);
}

CellGeometryView CellGeometry::view() {
  return {comx.data(), comy.data(), comz.data(), x.data(),    y.data(),     z.data(),
          hx.data(),   hy.data(),   hz.data(),   size.data(), offset.data()};
}

void build_octree(const Stream& stream, const DeviceBuffer<std::uint64_t>& keys, std::uint32_t leaf_size, int min_level,
                  Octree& tree) {
  if (keys.empty()) throw Error("a tree needs at least one particle");
  const auto n = static_cast<std::uint32_t>(keys.size());
  reserve_cells(stream, tree, 1 + n / leaf_size, 0);
  launch(stream, "octree_root", 1, SetRoot{n, tree.first.data(), tree.count.data()});
  tree.level_begin = {0, 1};
  DeviceBuffer<std::uint32_t> children("tree.scratch"), offset("tree.scratch");
  for (int level = 0;; ++level) {
    const std::uint32_t begin = tree.level_begin[static_cast<std::size_t>(level)];
    const std::uint32_t end = tree.level_begin[static_cast<std::size_t>(level) + 1];
    const bool deepest = level == kMortonLevels;
    const int shift = deepest ? 0 : 3 * (kMortonLevels - 1 - level);
    children.resize(end - begin, 0.5);
    offset.resize(end - begin + 1, 0.5);
    launch(stream, "octree_count", end - begin,
           CountChildren{keys.data(), tree.first.data() + begin, tree.count.data() + begin, children.data(),
                         deepest ? ~0u : level < min_level ? 0u : leaf_size, shift});
    exclusive_scan(stream, children.data(), offset.data(), end - begin);
    std::uint32_t total = 0;
    copy_to_host(stream, &total, offset.data() + (end - begin), sizeof total);
    reserve_cells(stream, tree, end + total, end);
    launch(stream, "octree_emit", end - begin,
           EmitChildren{keys.data(), children.data(), offset.data(), begin, end, shift, tree.first.data(),
                        tree.count.data(), tree.first_child.data(), tree.child_count.data()});
    if (total == 0) break;
    tree.level_begin.push_back(end + total);
  }
  tree.cells = tree.level_begin.back();
  tree.moments.resize(tree.cells, 0.2);
  tree.geometry.resize(tree.cells);
  for (std::size_t level = 0; level + 1 < tree.level_begin.size(); ++level)
    launch(stream, "octree_cubes", tree.level_begin[level + 1] - tree.level_begin[level],
           SetCubes{keys.data(), tree.first.data(), tree.geometry.view(), tree.level_begin[level],
                    static_cast<int>(level)});
}

}  // namespace maki
