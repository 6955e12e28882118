// Particles sorted into blocks of about 16^3 cells of a box of the mesh, for assignment without atomics: a block is
// summed in a private tile, which is then added to the box's planes. Blocks of one colour never touch the same cells:
// they are a block apart along each axis.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/device/buffer.hpp"
#include "kernels/mesh/cpu_loops.hpp"
#include "kernels/mesh/mass_unit.hpp"
#include "kernels/mesh/mesh.hpp"

namespace maki {

inline CountScale count_scale(const MassUnit& unit) {
  return {MassUnit::half_of(unit.dropped_bits), MassUnit::kept_of(unit.dropped_bits), unit.mean,
          static_cast<float>(unit.quantum)};
}

// Nearly equal blocks along one axis, of at least 4 cells where there are two or more. Where the axis is held whole,
// their number is even, so that the last and the first differ in colour.
struct BlockAxis {
  BlockAxis(const MeshBox& box, int axis);
  int cells(int block) const { return begin[block + 1] - begin[block]; }

  int count, longest = 0;
  std::vector<int> begin;              // first cells, relative to the box's origin; then the end
  std::vector<std::uint32_t> of_cell;  // by cell of the whole mesh; 0 beyond the box
};

class ParticleBlocks {
 public:
  using Block = std::array<int, 3>;
  static constexpr int kTileMargin = 4;  // a tile begins one cell below its block and ends at most three above it

  ParticleBlocks(const MeshBox& box, Assignment cloud);

  const MeshBox& box() const { return box_; }
  const BlockAxis& axis(int a) const { return axes_[a]; }
  std::size_t bytes() const;

  // Sorts indices of the particles, which lie within the box, by block; gather() reads the particles again.
  void sort(const SourceParticle* particles, std::size_t n, const MassUnit& unit);

  // Whether slab bx of blocks has no particles; the place of a block's tile in the box (without tile and planes).
  bool is_empty(int bx) const { return block_begin_[id({bx, 0, 0})] == block_begin_[id({bx + 1, 0, 0})]; }
  TileFlush flush_of(const Block& block) const;

  // Adds one block to the planes of the box: plane_at(x) gives plane x, which may lie beyond either end of a whole axis
  // by less than a period. May be called by any thread.
  template <class PlaneAt>
  void gather(const Block& block, std::uint32_t half_cells, const PlaneAt& plane_at) {
    TileFlush flush = flush_of(block);
    std::uint64_t* planes[kMostPlanes];
    for (int x = flush.begin[0]; x < flush.end[0]; ++x) planes[x] = plane_at(flush.origin[0] - 1 + x);
    flush.planes = planes;
    gather_into(block, half_cells, flush);
  }

 private:
  static constexpr int kBlockCells = 16;
  static constexpr int kMostPlanes = 2 * kBlockCells + kTileMargin;  // no block is twice kBlockCells long
  friend struct BlockAxis;

  std::size_t total() const { return static_cast<std::size_t>(axes_[0].count) * axes_[1].count * axes_[2].count; }
  std::size_t id(const Block& b) const {
    return (static_cast<std::size_t>(b[0]) * axes_[1].count + b[1]) * axes_[2].count + b[2];
  }
  std::size_t tile_size() const { return static_cast<std::size_t>(tile_side_) * tile_side_ * tile_side_; }
  void gather_into(const Block& block, std::uint32_t half_cells, const TileFlush& flush);

  MeshBox box_;
  Assignment cloud_;
  std::array<BlockAxis, 3> axes_;
  int tile_side_;
  TileJob job_{};                                          // the part common to all blocks
  DeviceBuffer<std::uint64_t> tiles_{"mesh.tiles"};        // one a thread, all zero between blocks
  DeviceBuffer<std::uint32_t> selected_{"mesh.selected"};  // particle indices by block
  DeviceBuffer<std::uint32_t> places_{"mesh.places"};      // by thread and block: where the next index goes
  std::vector<std::size_t> block_begin_;                   // into `selected_`
};

}  // namespace maki
