// Counts of masses on both meshes, in few bytes and without loss.
//
// A cell is predicted from cells that are known before it, and one of the shifted mesh from those of the first mesh
// around it, with fixed weights; what is left is a byte of magnitude, by zstd, and the bits below it as they are.
// Integers only: the same at both ends everywhere, on whatever machines.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace maki::sites {

enum class Plane : std::uint8_t {
  kEmpty,    // not sent
  kRounded,  // to multiples of 2^dropped_bits
  kExact,
};

// A block of cells [x][y][z], last axis contiguous and periodic.
struct MeshBlock {
  int planes = 0, rows = 0, length = 0;
  int meshes = 1;                          // 2: the second is shifted by half a cell
  int dropped_bits = 0;                    // of rounded planes
  int shed_bits = 0;                       // of exact ones: multiples of 2^shed_bits in any case
  std::array<std::vector<Plane>, 2> kind;  // of the planes of both meshes

  std::size_t cells() const {
    return static_cast<std::size_t>(planes) * static_cast<std::size_t>(rows) * static_cast<std::size_t>(length);
  }
};

// counts[mesh]: the cells. Those of rounded planes are rounded as MassUnit does, those of exact ones are multiples as
// said, and what empty planes hold is not looked at.
std::vector<std::byte> encode(const MeshBlock& block, const std::array<const std::uint64_t*, 2>& counts);

// Where the counts of a row are to be added; null: nowhere.
using RowOf = std::function<std::uint64_t*(int mesh, int x, int y)>;
// Throws Error where the bytes are none of encode()'s for this block; whatever they are, nothing beyond them is read,
// nothing is written but to rows, and memory is taken for the cells of the block alone, 10 bytes each.
void decode(const MeshBlock& block, std::span<const std::byte> bytes, const RowOf& row_of);

}  // namespace maki::sites
