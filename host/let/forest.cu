#include "host/let/forest.hpp"

#include "host/let/blocks.hpp"
#include "kernels/device/launch.cuh"
#include "kernels/error.hpp"
#include "kernels/tree/octree.hpp"

namespace maki {

DomainTree make_domain_tree(std::uint32_t roots) {
  DomainTree tree;
  tree.roots = roots;
  tree.level_begin.push_back(0);
  if (roots == 0) return tree;
  std::vector<std::uint32_t> sizes{roots};  // of the levels, from the roots up
  do sizes.push_back((sizes.back() + 7) / 8);
  while (sizes.back() > 1);
  for (std::size_t level = sizes.size() - 1; level > 0; --level) {
    const std::uint64_t nodes = sizes[level], below = sizes[level - 1];
    const auto next = static_cast<std::uint32_t>(tree.level_begin.back() + nodes);
    for (std::uint64_t i = 0; i < nodes; ++i) {
      const auto begin = static_cast<std::uint32_t>(i * below / nodes);
      const auto end = static_cast<std::uint32_t>((i + 1) * below / nodes);
      tree.first_child.push_back(next + begin);
      tree.child_count.push_back(static_cast<std::uint8_t>(end - begin));
    }
    tree.level_begin.push_back(next);
  }
  return tree;
}

namespace {

constexpr double kHeadroom = 0.1;

MAKI_HD PackingBox packing_box_of(const CellGeometryView& g, std::uint32_t c) {
  return {{g.x[c], g.y[c], g.z[c]},
          {unpack_extent(pack_extent(g.hx[c])), unpack_extent(pack_extent(g.hy[c])),
           unpack_extent(pack_extent(g.hz[c]))}};
}

// Packs particles, then multipoles, then shapes, then masses: one item each.
struct Pack {
  const SourceParticle* particles;
  const CellMoments* moments;
  CellGeometryView g;
  const std::uint32_t *particle_list, *multipole_list, *shapes, *parents;
  std::uint64_t particle_count, multipole_count, shape_count;
  BlocksView blocks;
  std::byte* packed;

  template <class T>
  MAKI_HD void write(std::uint64_t at, const T& value) const {
    *reinterpret_cast<T*>(packed + at) = value;
  }
  MAKI_HD void particle(std::size_t i) const {
    const std::uint32_t b = blocks.block_of_particle(i);
    const SourceParticle p = particles[particle_list[i]];
    if (!blocks.sections(b).compressed) return write(blocks.particle_byte(b, i), p);
    const PackingBox box = packing_box_of(g, multipole_list[parents[i]]);
    write(blocks.particle_byte(b, i),
          PackedParticle{pack_position(box, 0, p.x), pack_position(box, 1, p.y), pack_position(box, 2, p.z)});
  }
  MAKI_HD void multipole(std::size_t i) const {
    const std::uint32_t b = blocks.block_of_multipole(i), c = multipole_list[i];
    const Multipole m{moments[c], g.x[c], g.y[c], g.z[c], g.hx[c], g.hy[c], g.hz[c]};
    if (blocks.compress)
      write(blocks.multipole_byte(b, i), pack_multipole(m));
    else
      write(blocks.multipole_byte(b, i), m);
  }
  MAKI_HD void mass(std::size_t i) const {
    const std::uint32_t b = blocks.block_of_particle(i);
    if (blocks.sections(b).compressed) write(blocks.mass_byte(b, i), particles[particle_list[i]].mass);
  }
  MAKI_HD void operator()(std::size_t i) const {
    if (i < particle_count) return particle(i);
    i -= particle_count;
    if (i < multipole_count) return multipole(i);
    i -= multipole_count;
    if (i < shape_count) return write(blocks.shape_byte(blocks.block_of_cell(i), i), shapes[i]);
    mass(i - shape_count);
  }
};

// Reads one item of the blocks, decompressed if necessary.
struct Reader {
  const std::byte* packed;
  BlocksView blocks;

  template <class T>
  MAKI_HD const T& at(std::uint64_t byte) const {
    return *reinterpret_cast<const T*>(packed + byte);
  }
  MAKI_HD Multipole multipole(std::size_t i) const {
    const std::uint64_t byte = blocks.multipole_byte(blocks.block_of_multipole(i), i);
    return blocks.compress ? unpack_multipole(at<PackedMultipole>(byte)) : at<Multipole>(byte);
  }
  // Particle i; its mass is `mass` where read_mass is false.
  MAKI_HD SourceParticle particle(std::size_t i, const std::uint32_t* parents, bool read_mass, float mass) const {
    const std::uint32_t b = blocks.block_of_particle(i);
    const std::uint64_t byte = blocks.particle_byte(b, i);
    if (!blocks.sections(b).compressed) return at<SourceParticle>(byte);
    const PackingBox box = packing_box(at<PackedMultipole>(blocks.multipole_byte(b, parents[i])));
    const PackedParticle p = at<PackedParticle>(byte);
    return {unpack_position(box, 0, p.x), unpack_position(box, 1, p.y), unpack_position(box, 2, p.z),
            read_mass ? at<float>(blocks.mass_byte(b, i)) : mass};
  }
};

struct ReadShapes {
  Reader in;
  std::uint32_t* shapes;
  MAKI_HD void operator()(std::size_t i) const {
    shapes[i] = in.at<std::uint32_t>(in.blocks.shape_byte(in.blocks.block_of_cell(i), i));
  }
};

struct PlaceCells {
  Reader in;
  std::uint32_t roots_at, below_at;  // places of the blocks' roots in the forest, and of the cells below them
  const std::uint32_t *shapes, *child_place, *multipole_place, *parents;
  const std::uint64_t* particle_place;
  std::uint32_t *first, *count, *first_child;
  std::uint8_t* child_count;
  CellGeometryView g;
  std::uint32_t* multipoles;

  // Roots are stored apart: of the cells before cell i, which is below one, block + 1 are roots.
  MAKI_HD std::uint32_t place_of(std::uint32_t block, std::size_t i) const {
    if (i == in.blocks.cell[block]) return roots_at + block;
    return below_at + static_cast<std::uint32_t>(i - block - 1);
  }
  MAKI_HD void operator()(std::size_t i) const {
    const std::uint32_t block = in.blocks.block_of_cell(i), cell = place_of(block, i), shape = shapes[i];
    first[cell] = static_cast<std::uint32_t>(particle_place[i]);
    count[cell] = shape;
    first_child[cell] = below_at + child_place[i];
    child_count[cell] = static_cast<std::uint8_t>(is_divided(shape) ? shape - kDividedCell : 0);
    if (!is_leaf(shape)) {
      multipoles[multipole_place[i]] = cell;
      return;
    }
    const SourceParticle reference = in.particle(particle_place[i], parents, false, 0);
    g.x[cell] = reference.x;
    g.y[cell] = reference.y;
    g.z[cell] = reference.z;
  }
};

// Reference points of the domain tree's nodes for the first sweep: the middle of the box, at most half a side from all.
struct ReferToMiddle {
  CellGeometryView g;
  MAKI_HD void operator()(std::size_t cell) const { g.x[cell] = g.y[cell] = g.z[cell] = 0x80000000u; }
};

struct Unpack {
  Reader in;
  std::uint64_t particle_count;
  bool with_masses;
  const std::uint32_t* parents;
  SourceParticle* particles;
  const std::uint32_t* multipoles;
  CellMoments* moments;
  CellGeometryView g;

  MAKI_HD void operator()(std::size_t i) const {
    if (i < particle_count) {
      particles[i] = in.particle(i, parents, with_masses, with_masses ? 0 : particles[i].mass);
      return;
    }
    i -= particle_count;
    const Multipole m = in.multipole(i);
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
    store_size(g, c, m.moments.mass);
  }
};

template <class... Arrays>
void rename(const char* name, Arrays&... arrays) {
  ((arrays = Arrays(name)), ...);
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
  CellGeometry& g = tree.geometry;
  rename("let.forest", tree.first, tree.count, tree.first_child, tree.child_count, tree.moments, g.comx, g.comy, g.comz,
         g.x, g.y, g.z, g.hx, g.hy, g.hz, g.size, g.offset, g.error_length);
  tree.level_begin.assign(1, 0);
}

void LetSending::pack(const Stream& stream, Octree& tree, const SourceParticle* particles, bool with_shapes) {
  if (with_shapes && blocks.compressed())
    find_parents(stream, blocks, selection.shapes, sum_shapes(stream, selection.shapes), selection.parents);
  if (blocks.size() == 0) return;
  packed.resize(blocks.bytes(), kHeadroom);
  const BlockCounts& total = blocks.total();
  const std::uint64_t masses = blocks.compressed() ? total.particles : 0;
  launch(stream, "let_pack", total.particles + total.multipoles + (with_shapes ? total.cells + masses : 0),
         Pack{particles, tree.moments.data(), tree.geometry.view(), selection.particles.data(),
              selection.multipoles.data(), selection.shapes.data(), selection.parents.data(), total.particles,
              total.multipoles, total.cells, blocks.view(), packed.data()});
}

void build_forest(const Stream& stream, const Blocks& blocks, const DeviceBuffer<std::byte>& packed,
                  const DomainTree& domains, Forest& forest) {
  const BlockCounts& total = blocks.total();
  if (total.cells + domains.nodes() > UINT32_MAX || total.particles > UINT32_MAX)
    throw Error("the local essential trees from all ranks have 2^32 cells or particles, or more",
                "indices have 32 bits", "start more ranks, or choose a larger gravity.theta");
  const auto n = static_cast<std::uint32_t>(total.cells);
  Octree& tree = forest.tree;
  tree.resize(n + domains.nodes(), kHeadroom);
  tree.level_begin = domains.level_begin;
  forest.particles.resize(total.particles, kHeadroom);
  forest.multipoles.resize(total.multipoles, kHeadroom);
  if (n == 0) return;
  write_domain_tree(stream, domains, tree);

  const Reader in{packed.data(), blocks.view()};
  DeviceBuffer<std::uint32_t> shapes("let.scratch", n);
  launch(stream, "let_shapes", n, ReadShapes{in, shapes.data()});
  const ShapeSums sums = sum_shapes(stream, shapes);
  if (blocks.compressed()) find_parents(stream, blocks, shapes, sums, forest.parents);
  launch(stream, "let_place", n,
         PlaceCells{in, domains.nodes(), domains.cells(), shapes.data(), sums.children.data(), sums.multipoles.data(),
                    forest.parents.data(), sums.particles.data(), tree.first.data(), tree.count.data(),
                    tree.first_child.data(), tree.child_count.data(), tree.geometry.view(), forest.multipoles.data()});
}

void fill_forest(const Stream& stream, const Blocks& blocks, const DeviceBuffer<std::byte>& packed, bool with_masses,
                 Forest& forest, bool particles_alone) {
  if (blocks.size() == 0) return;
  const BlockCounts& total = blocks.total();
  Octree& tree = forest.tree;
  launch(stream, "let_unpack", total.particles + total.multipoles,
         Unpack{Reader{packed.data(), blocks.view()}, total.particles, with_masses, forest.parents.data(),
                forest.particles.data(), forest.multipoles.data(), tree.moments.data(), tree.geometry.view()});
  // Of the divided cells, the sweep covers only the domain tree's nodes: only they have levels.
  if (!particles_alone) sweep_octree(stream, forest.particles.data(), tree, SweepOrder::kLeavesFirst);
}

void LetReceiving::expect(const Stream& stream, const std::vector<BlockCounts>& counts, bool compress) {
  blocks = Blocks(stream, counts, compress);
  packed.resize(blocks.bytes(), 0.1);
}

void LetReceiving::unpack(const Stream& stream, bool with_shapes, bool particles_alone) {
  if (with_shapes)
    build_forest(stream, blocks, packed, make_domain_tree(static_cast<std::uint32_t>(blocks.size())), forest);
  fill_forest(stream, blocks, packed, with_shapes, forest, particles_alone);
}

}  // namespace maki
