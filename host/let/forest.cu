#include "host/let/forest.hpp"

#include "kernels/device/algorithms.hpp"
#include "kernels/device/error.hpp"
#include "kernels/device/launch.cuh"
#include "kernels/tree/cell_box.hpp"

namespace maki {
namespace {

constexpr double kHeadroom = 0.1;

// Particles, then multipoles, then shapes: one item each.
struct Pack {
  const SourceParticle* particles;
  const CellMoments* moments;
  CellGeometryView g;
  const std::uint32_t* particle_list;
  const std::uint32_t* multipole_list;
  const std::uint32_t* shapes;
  std::uint64_t particle_count, multipole_count;
  BlockView blocks;
  std::byte* packed;

  MAKI_HD void operator()(std::size_t i) const {
    if (i < particle_count) {
      *reinterpret_cast<SourceParticle*>(packed + blocks.particle_byte(i)) = particles[particle_list[i]];
      return;
    }
    i -= particle_count;
    if (i < multipole_count) {
      const std::uint32_t c = multipole_list[i];
      *reinterpret_cast<Multipole*>(packed + blocks.multipole_byte(i)) =
          Multipole{moments[c], g.x[c], g.y[c], g.z[c], g.hx[c], g.hy[c], g.hz[c]};
      return;
    }
    i -= multipole_count;
    *reinterpret_cast<std::uint32_t*>(packed + blocks.shape_byte(i)) = shapes[i];
  }
};

struct ReadShapes {
  const std::byte* packed;
  BlockView blocks;
  std::uint32_t* shapes;
  std::uint32_t* children;
  std::uint32_t* particles;
  std::uint32_t* multipoles;
  MAKI_HD void operator()(std::size_t i) const {
    const std::uint32_t shape = *reinterpret_cast<const std::uint32_t*>(packed + blocks.shape_byte(i));
    shapes[i] = shape;
    children[i] = is_divided(shape) ? shape - kDividedCell : 0;
    particles[i] = is_leaf(shape) ? shape : 0;
    multipoles[i] = is_leaf(shape) ? 0 : 1;
  }
};

struct PlaceCells {
  const std::byte* packed;
  BlockView blocks;
  std::uint32_t roots_at, below_at;  // where the blocks' roots stand in the forest, and what is below them
  const std::uint32_t *shapes, *child_place, *particle_place, *multipole_place;
  std::uint32_t *first, *count, *first_child;
  std::uint8_t* child_count;
  CellGeometryView g;
  std::uint32_t* multipoles;

  // Every block before that of cell i has one root, which stands elsewhere.
  MAKI_HD std::uint32_t place_of(std::uint32_t block, std::size_t i) const {
    if (i == blocks.cell[block]) return roots_at + block;
    return below_at + static_cast<std::uint32_t>(i - block - 1);
  }
  MAKI_HD void operator()(std::size_t i) const {
    const std::uint32_t block = blocks.block_of_cell(i), cell = place_of(block, i), shape = shapes[i];
    first[cell] = particle_place[i];
    count[cell] = shape;
    first_child[cell] = below_at + child_place[i];
    child_count[cell] = static_cast<std::uint8_t>(is_divided(shape) ? shape - kDividedCell : 0);
    if (!is_leaf(shape)) {
      multipoles[multipole_place[i]] = cell;
      return;
    }
    const std::uint64_t at = blocks.particle_byte(block, particle_place[i]);
    const auto& reference = *reinterpret_cast<const SourceParticle*>(packed + at);
    g.x[cell] = reference.x;
    g.y[cell] = reference.y;
    g.z[cell] = reference.z;
  }
};

// The middle of the box, from which no domain reaches beyond half a side.
struct ReferToMiddle {
  CellGeometryView g;
  MAKI_HD void operator()(std::size_t cell) const { g.x[cell] = g.y[cell] = g.z[cell] = 0x80000000u; }
};

struct Unpack {
  const std::byte* packed;
  BlockView blocks;
  std::uint64_t particle_count;
  SourceParticle* particles;
  const std::uint32_t* multipoles;
  CellMoments* moments;
  CellGeometryView g;

  MAKI_HD void operator()(std::size_t i) const {
    if (i < particle_count) {
      particles[i] = *reinterpret_cast<const SourceParticle*>(packed + blocks.particle_byte(i));
      return;
    }
    i -= particle_count;
    const Multipole m = *reinterpret_cast<const Multipole*>(packed + blocks.multipole_byte(i));
    const std::uint32_t c = multipoles[i];
    moments[c] = m.moments;
    g.comx[c] = m.moments.x;
    g.comy[c] = m.moments.y;
    g.comz[c] = m.moments.z;
    g.x[c] = m.x;
    g.y[c] = m.y;
    g.z[c] = m.z;
    g.hx[c] = m.hx;
    g.hy[c] = m.hy;
    g.hz[c] = m.hz;
    store_size(g, c);
  }
};

template <class T>
void rename(DeviceBuffer<T>& array, const char* name) {
  array = DeviceBuffer<T>(name);
}

// f(array) for all arrays of cells.
template <class Tree, class F>
void for_each_array(Tree& tree, F f) {
  f(tree.first);
  f(tree.count);
  f(tree.first_child);
  f(tree.child_count);
  f(tree.moments);
  auto& g = tree.geometry;
  for (auto* a : {&g.comx, &g.comy, &g.comz, &g.x, &g.y, &g.z}) f(*a);
  for (auto* a : {&g.hx, &g.hy, &g.hz, &g.size, &g.offset}) f(*a);
}

void resize_cells(Octree& tree, std::uint32_t cells) {
  tree.cells = cells;
  tree.first.resize(cells, kHeadroom);
  tree.count.resize(cells, kHeadroom);
  tree.first_child.resize(cells, kHeadroom);
  tree.child_count.resize(cells, kHeadroom);
  tree.moments.resize(cells, kHeadroom);
  tree.geometry.resize(cells);
}

void write_domain_tree(const Stream& stream, const DomainTree& domains, Octree& tree) {
  const std::uint32_t n = domains.nodes();
  std::vector<std::uint32_t> count(n);
  for (std::uint32_t i = 0; i < n; ++i) count[i] = kDividedCell + domains.child_count[i];
  copy_to_device(stream, tree.count.data(), count.data(), n * sizeof count[0]);
  copy_to_device(stream, tree.first_child.data(), domains.first_child.data(), n * sizeof domains.first_child[0]);
  copy_to_device(stream, tree.child_count.data(), domains.child_count.data(), n * sizeof domains.child_count[0]);
  launch(stream, "let_domain_references", n, ReferToMiddle{tree.geometry.view()});
}

}  // namespace

Forest::Forest() {
  for_each_array(tree, [](auto& array) { rename(array, "let.forest"); });
  tree.level_begin.assign(1, 0);
}

std::size_t Forest::bytes() const {
  std::size_t sum = particles.capacity() * sizeof(SourceParticle) + multipoles.capacity() * sizeof(std::uint32_t);
  for_each_array(tree, [&](const auto& array) { sum += array.capacity() * sizeof *array.data(); });
  return sum;
}

void pack_blocks(const Stream& stream, Octree& tree, const SourceParticle* particles, const LetSelection& selection,
                 const Blocks& blocks, bool with_shapes, DeviceBuffer<std::byte>& packed) {
  if (blocks.size() == 0) return;
  packed.resize(blocks.bytes(), kHeadroom);
  const BlockCounts& total = blocks.total();
  launch(stream, "let_pack", total.particles + total.multipoles + (with_shapes ? total.cells : 0),
         Pack{particles, tree.moments.data(), tree.geometry.view(), selection.particles.data(),
              selection.multipoles.data(), selection.shapes.data(), total.particles, total.multipoles, blocks.view(),
              packed.data()});
}

void build_forest(const Stream& stream, const Blocks& blocks, const DeviceBuffer<std::byte>& packed,
                  const DomainTree& domains, Forest& forest) {
  const BlockCounts& total = blocks.total();
  if (total.cells + domains.nodes() > UINT32_MAX || total.particles > UINT32_MAX)
    throw Error("the local essential trees from all ranks have 2^32 cells or particles, or more");
  const auto n = static_cast<std::uint32_t>(total.cells);
  Octree& tree = forest.tree;
  resize_cells(tree, n + domains.nodes());
  tree.level_begin = domains.level_begin;
  forest.particles.resize(total.particles, kHeadroom);
  forest.multipoles.resize(total.multipoles, kHeadroom);
  if (n == 0) return;
  write_domain_tree(stream, domains, tree);

  DeviceBuffer<std::uint32_t> shapes("let.scratch", n), counted("let.scratch", 3 * std::size_t{n});
  DeviceBuffer<std::uint32_t> place("let.scratch", 3 * (std::size_t{n} + 1));
  const auto counts = [&](std::size_t k) { return counted.data() + k * n; };
  const auto places = [&](std::size_t k) { return place.data() + k * (std::size_t{n} + 1); };
  launch(stream, "let_shapes", n,
         ReadShapes{packed.data(), blocks.view(), shapes.data(), counts(0), counts(1), counts(2)});
  for (std::size_t k = 0; k < 3; ++k) exclusive_scan(stream, counts(k), places(k), n);
  launch(stream, "let_place", n,
         PlaceCells{packed.data(), blocks.view(), domains.nodes(), domains.cells(), shapes.data(), places(0), places(1),
                    places(2), tree.first.data(), tree.count.data(), tree.first_child.data(), tree.child_count.data(),
                    tree.geometry.view(), forest.multipoles.data()});
}

void fill_forest(const Stream& stream, const Blocks& blocks, const DeviceBuffer<std::byte>& packed, Forest& forest) {
  if (blocks.size() == 0) return;
  const BlockCounts& total = blocks.total();
  Octree& tree = forest.tree;
  launch(stream, "let_unpack", total.particles + total.multipoles,
         Unpack{packed.data(), blocks.view(), total.particles, forest.particles.data(), forest.multipoles.data(),
                tree.moments.data(), tree.geometry.view()});
  // Of divided cells, only the nodes have a level that it sweeps.
  sweep_octree(stream, forest.particles.data(), tree, SweepOrder::kLeavesFirst);
}

}  // namespace maki
