// The plain records that tree, lists and force evaluation share.
#pragma once

#include <cstdint>

#include "kernels/particles/types.hpp"

namespace maki {

// The count of a closed cell: a cell of an imported tree whose children and particles stayed with their owner. It has
// no children here and serves as a multipole at any distance.
inline constexpr std::uint32_t kClosedCell = 0xffffffffu;

// A cell as a source: monopole and raw second moments about its centre of mass,
// q_ij = sum m d_i d_j with d = x - centre of mass, in mass * side^2. (The trace is kept: softened and split
// forces need it.)
struct alignas(8) CellMoments {
  std::uint32_t x, y, z;  // centre of mass, fixed point
  float mass;
  float qxx, qyy, qzz, qxy, qxz, qyz;
};

// The format of an octree (octree.hpp), for kernels.
struct TreeTopology {
  const std::uint32_t *first, *count, *first_child;
  const std::uint8_t* child_count;
};

// Targets that share one interaction list: particles [first, first + count), and their bounding box.
struct Group {
  std::uint32_t first;
  std::uint32_t count;
  std::uint32_t x, y, z;  // centre of the bounding box, fixed point
  float hx, hy, hz;       // half extents, in sides, rounded up
  float error_scale = 1;  // factor on cells' error lengths (opening.hpp), where cells are opened by estimated error
};

// A group's list in the array of words: first `cells` words that name cells taken as multipoles, then `leaves` words
// that name leaves taken particle by particle. A word is the cell's index.
struct ListRange {
  std::uint64_t begin;
  std::uint32_t cells;
  std::uint32_t leaves;
};

// Views of an evaluation's inputs (device pointers; counts in elements).
struct SourceView {
  const SourceParticle* particles;          // in Morton order; leaves name ranges of it
  const CellMoments* cells;                 // by cell index
  const std::uint32_t* cell_first;          // by cell index: first particle
  const std::uint32_t* cell_count;          // by cell index: number of particles
  const SourceParticle* targets = nullptr;  // the array that groups index; null: `particles`
  bool at_points = false;  // `targets` are points: a source at a point's very position counts as the target itself

  MAKI_HD const SourceParticle* group_particles() const { return targets ? targets : particles; }
};

struct ListView {
  const Group* groups;
  const ListRange* ranges;  // by group
  const std::uint32_t* words;
  const std::uint32_t* selected;  // indices of the groups to evaluate, or nullptr for all of [0, count)
  std::uint32_t count;            // how many groups to evaluate
};

}  // namespace maki
