// What one rank of a site tells the other sites of its masses, in bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/mesh/mass_unit.hpp"
#include "kernels/mesh/mesh_box.hpp"
#include "wan/sites/mesh_codec.hpp"
#include "wan/sites/ring.hpp"

namespace maki::sites {

// The most planes of one chunk, for rows of `length` cells: what one thread codes at once stays small.
int chunk_planes(int rows, int length);

// Some planes of a rank's lines, coded.
struct MeshChunk {
  int first_plane = 0, first_row = 0;  // in the whole mesh
  MeshBlock block;                     // rows are whole: block.length is the mesh's
  std::vector<std::byte> bytes;
  std::span<const std::byte> coded;  // of one that came: within the message
};

// What all parts of a step have to agree in.
struct MeshHeader {
  int cells = 0, meshes = 1;
  MassUnit unit;
};

// A part of the whole: `pieces` follow each other, alike on all ranks of a site.
Message pack(const MeshHeader& header, std::uint32_t pieces, std::span<const MeshChunk> chunks);
struct MeshPart {
  std::uint32_t pieces = 0;
  std::vector<MeshChunk> chunks;
};
// Throws Error where the bytes are no such part, or one of other masses or another mesh than `header` says. The chunks
// point into `message`.
MeshPart unpack(const MeshHeader& header, std::span<const std::byte> message);

}  // namespace maki::sites
