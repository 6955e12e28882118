// Lossless compression of mass counts on both meshes.
//
// Each cell is predicted with fixed weights: on the first mesh from preceding cells, on the shifted mesh from the
// surrounding cells of the first mesh. The residual is coded as a byte of magnitude, compressed by zstd, and raw low
// bits. All arithmetic is in integers, so that encoder and decoder agree on all machines.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace maki::sites {

enum class Plane : std::uint8_t {
  kEmpty,    // no masses: not sent
  kRounded,  // to multiples of 2^dropped_bits
  kExact,
};

// A block of cells [x][y][z], last axis contiguous and periodic.
struct MeshBlock {
  int planes = 0, rows = 0, length = 0;
  int meshes = 1;                          // 2: the second is shifted by half a cell
  int dropped_bits = 0;                    // rounded planes hold multiples of 2^dropped_bits
  int shed_bits = 0;                       // exact planes hold multiples of 2^shed_bits
  std::array<std::vector<Plane>, 2> kind;  // by mesh and plane

  std::size_t cells() const {
    return static_cast<std::size_t>(planes) * static_cast<std::size_t>(rows) * static_cast<std::size_t>(length);
  }
};

// `counts[mesh]`: all cells of the block. Counts of rounded planes are rounded as by MassUnit; counts of empty planes
// are ignored.
std::vector<std::byte> encode(const MeshBlock& block, const std::array<const std::uint64_t*, 2>& counts);

// Returns the row to which decoded counts are added; null: they are dropped.
using RowOf = std::function<std::uint64_t*(int mesh, int x, int y)>;
// Throws Error where encode() cannot have made the bytes for this block. Hostile bytes are safe: reads stay within
// them, writes within the rows, and memory is bounded by 10 bytes for each cell of the block.
void decode(const MeshBlock& block, std::span<const std::byte> bytes, const RowOf& row_of);

}  // namespace maki::sites
