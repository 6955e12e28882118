// The mass counts of one rank of a site as a message to the other sites.
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

// The largest number of planes in a chunk of `rows` rows of `length` cells: bounds the memory of the thread that codes
// it.
int chunk_planes(int rows, int length);

// Planes of a rank's part of the mesh, coded.
struct MeshChunk {
  int first_plane = 0, first_row = 0;  // in the whole mesh
  MeshBlock block;                     // rows are whole: block.length is the mesh's
  std::vector<std::byte> bytes;
  std::span<const std::byte> coded;  // of a received chunk: its bytes within the message
};

// Values that are equal in all parts of a step.
struct MeshHeader {
  int cells = 0, meshes = 1;
  MassUnit unit;
};

// One of the `pieces` in which a rank sends its part, a number that is equal on all ranks of a site.
Message pack(const MeshHeader& header, std::uint32_t pieces, std::span<const MeshChunk> chunks);
struct MeshPart {
  std::uint32_t pieces = 0;
  std::vector<MeshChunk> chunks;
};
// Throws Error where the bytes are no such part, or their unit of mass or mesh differs from `header`. The chunks refer
// to memory of `message`.
MeshPart unpack(const MeshHeader& header, std::span<const std::byte> message);

}  // namespace maki::sites
