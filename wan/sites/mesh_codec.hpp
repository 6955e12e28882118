// Counts of masses on both meshes, in few bytes and without loss.
//
// A cell is predicted from cells that came before it, and one of the shifted mesh from the eight of the first mesh that
// it lies between as well, with weights that are fitted to the block; what is left goes in Golomb-Rice codes whose
// parameter follows from what was left of the cells around. All in integers: the same at both ends everywhere.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
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
  int meshes = 1;        // 2: the second is shifted by half a cell
  int dropped_bits = 0;  // of rounded planes
  int shed_bits = 0;     // of exact ones: multiples of 2^shed_bits in any case
  std::array<std::vector<Plane>, 2> kind;  // of the planes of both meshes

  std::size_t cells() const {
    return static_cast<std::size_t>(planes) * static_cast<std::size_t>(rows) * static_cast<std::size_t>(length);
  }
};

// counts[mesh]: the cells, multiples as said; what empty planes hold is not looked at.
std::vector<std::byte> encode(const MeshBlock& block, const std::array<const std::uint64_t*, 2>& counts);
// Overwrites `counts`; empty planes become 0. Throws Error where the bytes are none of encode()'s for this block;
// whatever they are, nothing beyond them is read and nothing beyond the cells is written.
void decode(const MeshBlock& block, std::span<const std::byte> bytes, const std::array<std::uint64_t*, 2>& counts);

}  // namespace maki::sites
