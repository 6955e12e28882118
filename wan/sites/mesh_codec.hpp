// Mass counts of the mesh and, with interlacing, of the shifted mesh as messages to other sites; lossless compression.
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

#include "kernels/mesh/mass_unit.hpp"
#include "kernels/mesh/mesh.hpp"
#include "wan/sites/ring.hpp"

namespace maki::sites {

// How the counts of a plane in x are sent.
enum class Plane : std::uint8_t {
  kEmpty,    // no masses: not at all
  kRounded,  // rounded to multiples of 2^dropped_bits
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

// The largest number of planes in a chunk of `rows` rows of `length` cells: bounds the memory of the thread that codes
// it.
int chunk_planes(int rows, int length);

// A block of a rank's part of the mesh, encoded.
struct MeshChunk {
  int first_plane = 0, first_row = 0;  // in the whole mesh
  MeshBlock block;                     // rows are whole: block.length is the mesh's
  std::vector<std::byte> bytes;
  std::span<const std::byte> coded;  // of a received chunk: its bytes within the message
};

// Values that all parts of one sum have in common.
struct MeshHeader {
  int cells = 0, meshes = 1;
  MassUnit unit;
};

// The message of one piece of a rank's part. `pieces`: their number, equal on all ranks of a site.
Message pack(const MeshHeader& header, std::uint32_t pieces, std::span<const MeshChunk> chunks);
struct MeshPart {
  std::uint32_t pieces = 0;
  std::vector<MeshChunk> chunks;
};
// Throws Error where the bytes are no such part, or their unit of mass or mesh differs from `header`. The chunks refer
// to memory of `message`.
MeshPart unpack(const MeshHeader& header, std::span<const std::byte> message);

}  // namespace maki::sites
