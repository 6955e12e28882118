// The octree over particles in Morton order.
//
// Format, as invariants that hold after build_octree (and that tests check):
//  - cell 0 is the root and holds all particles; cells are stored level by level, level l in
//    [level_begin[l], level_begin[l+1]);
//  - the particles of a cell are [first, first + count), count > 0, and share the first 3 l bits of their keys;
//  - the children of a cell are contiguous, in Morton order, at [first_child, first_child + child_count), and their
//    ranges join without gap to that of the cell; child_count = 0 marks a leaf, whose first_child is where its children
//    would be (so first_child never decreases, and may be `cells`);
//  - a cell is divided exactly when l < 21 and (count > leaf_size or l < min_level); so a leaf has at most leaf_size
//    particles, or is of level 21 (many particles at one point are a large leaf, not an error).
// Periodic boxes take min_level = kPeriodicMinLevel, so that no group spans more than a quarter of the box and the
// nearest image of every source within r_cut < 1/4 is the same for all members of a group.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/device/buffer.hpp"
#include "kernels/particles/particles.hpp"
#include "kernels/tree/opening.hpp"
#include "kernels/tree/types.hpp"

namespace maki {

inline constexpr int kPeriodicMinLevel = 3;

// Levels in a walk: those of a tree, and those of a small tree above the trees of up to 8^6 ranks.
inline constexpr int kWalkLevels = kMortonLevels + 6;

// Computes size, offset and error length (sides) of a cell from its box, its centre of mass and its mass.
MAKI_HD void store_size(const CellGeometryView& g, std::size_t cell, float mass) {
  float h = g.hx[cell] > g.hy[cell] ? g.hx[cell] : g.hy[cell];
  h = h > g.hz[cell] ? h : g.hz[cell];
  g.size[cell] = 2 * h;
  const float dx = separation(g.comx[cell], g.x[cell]);
  const float dy = separation(g.comy[cell], g.y[cell]);
  const float dz = separation(g.comz[cell], g.z[cell]);
  g.offset[cell] = std::sqrt(dx * dx + dy * dy + dz * dz);
  if (g.error_length) g.error_length[cell] = std::pow(mass, 0.2f) * std::pow(2 * h, 0.6f);
}

// On one axis, the centre of the cube of a level that holds x.
MAKI_HD std::uint32_t cube_centre(std::uint32_t x, int level) {
  const std::uint32_t mask = level == 0 ? 0u : ~0u << (32 - level);
  return (x & mask) + (0x80000000u >> level);
}

struct CellGeometry {
  DeviceBuffer<std::uint32_t> comx{"tree.com"}, comy{"tree.com"}, comz{"tree.com"};
  DeviceBuffer<std::uint32_t> x{"tree.box"}, y{"tree.box"}, z{"tree.box"};
  DeviceBuffer<float> hx{"tree.box"}, hy{"tree.box"}, hz{"tree.box"};
  DeviceBuffer<float> size{"tree.size"}, offset{"tree.size"}, error_length{"tree.size"};
  bool has_error_lengths = false;  // for walks that open cells by estimated error
  void resize(std::size_t cells);
  CellGeometryView view();
};

struct Octree {
  std::uint32_t cells = 0;
  std::uint32_t particles = 0;             // from which it was built
  std::vector<std::uint32_t> level_begin;  // on the host; levels + 1 entries
  DeviceBuffer<std::uint32_t> first{"tree.first"}, count{"tree.count"}, first_child{"tree.first_child"};
  DeviceBuffer<std::uint8_t> child_count{"tree.child_count"};
  DeviceBuffer<CellMoments> moments{"tree.moments"};
  CellGeometry geometry;

  // Allocates for `wanted` cells. Sizes grow slowly with clustering: `headroom` as in DeviceBuffer::resize().
  void resize(std::uint32_t wanted, double headroom);
  TreeTopology topology() const { return {first.data(), count.data(), first_child.data(), child_count.data()}; }
};

// For estimates: mean particles of a leaf, with leaves of 16; and bytes a particle of cells and groups of 64, which
// scale as 1 / leaf_size. Measured with leaves of 16: 17 in an early universe, 24 in a clustered one, 29 in a sphere.
inline constexpr double kParticlesALeaf = 7;
constexpr double tree_bytes(bool periodic, double leaf_size) { return (periodic ? 24 : 30) * 16 / leaf_size; }

// Topology from sorted keys of 1 <= n < 2^32 particles; leaf_size >= 1. Boxes are set to the cells' cubes (centres: the
// reference points of the first sweep). Four launches and a scan; 92 bytes come to the host.
void build_octree(const Stream& stream, const DeviceBuffer<std::uint64_t>& keys, std::uint32_t leaf_size, int min_level,
                  Octree& tree);

// Moments (CellMoments) and bounding boxes of all cells from the particles' present positions, children before their
// parents. Moments are float sums about a cell's first point, in the order of particles and children; boxes are found
// relative to the centre of the cell's last box. Both orders give the same bits. `kind`: only cells with kind[cell] =
// wanted are swept. So a tree can be swept in two parts, if all children of the first part's cells belong to it.
enum class SweepOrder {
  kLeavesFirst,  // all leaves in one launch, then the divided cells of each level
  kByLevel,      // all cells of each level
};
#if defined(MAKI_BACKEND_CUDA)
inline constexpr SweepOrder kSweepOrder = SweepOrder::kLeavesFirst;
#else
inline constexpr SweepOrder kSweepOrder = SweepOrder::kByLevel;
#endif
void sweep_octree(const Stream& stream, const SourceParticle* particles, Octree& tree, SweepOrder order = kSweepOrder,
                  const std::uint8_t* kind = nullptr, std::uint8_t wanted = 0);

// Gives cells above `level` (coarser ones) their cubes as boxes, and a size at which no walk accepts them as
// multipoles. So a walk does not depend on those of their particles that are beyond its reach. Only after a sweep of
// particles that have not moved since the tree was built; holds until the next sweep.
void open_coarse_cells(const Stream& stream, int level, Octree& tree);

// Groups of the tree's particles: a cell (of level >= min_level) of at most `group_size` particles whose parent has
// more, or neighbouring siblings merged while they stay within group_size; larger leaves are cut into pieces. They
// cover all particles, in Morton order. `groups` is resized; boxes are set, error scales are 1. Five launches and a
// scan; 4 bytes come to the host.
void make_groups(const Stream& stream, const Octree& tree, const SourceParticle* particles, std::uint32_t group_size,
                 int min_level, DeviceBuffer<Group>& groups);

// Bounding boxes of all groups from the particles' present positions.
void refit_groups(const Stream& stream, const SourceParticle* particles, DeviceBuffer<Group>& groups);

// Sets the error scale of each group (opening.hpp) from its members' accelerations and the `reference` for all groups.
void set_error_scales(const Stream& stream, ConstVectorView acceleration, float reference, DeviceBuffer<Group>& groups);

// For a tree over a rank's own particles and ghosts: the groups with own particles, and among them those that can be
// evaluated before new positions of the ghosts arrive.

// Drops groups without own particles from `groups`; the others keep their order. own_before:
// JoinedSources::count_own(). `own`: the remaining groups with their own members only, as ranges of the own particles
// in the order of the joined sources (boxes are not set).
void keep_own_groups(const Stream& stream, const DeviceBuffer<std::uint32_t>& own_before, DeviceBuffer<Group>& groups,
                     DeviceBuffer<Group>& own);

// By cell: 1 where it holds ghosts, else 0.
void mark_ghost_cells(const Stream& stream, const DeviceBuffer<std::uint32_t>& own_before, const Octree& tree,
                      DeviceBuffer<std::uint8_t>& has_ghosts);

// Splits groups into inner and outer ones. Inner groups hold no ghosts, and their lists name no cell that does.
// `lists`: of all groups. `inner` and `outer`: indices, ascending.
void split_groups(const Stream& stream, const ListView& lists, const DeviceBuffer<Group>& own,
                  const DeviceBuffer<std::uint8_t>& has_ghosts, DeviceBuffer<std::uint32_t>& inner,
                  DeviceBuffer<std::uint32_t>& outer);

}  // namespace maki
