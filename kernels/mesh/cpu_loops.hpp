// The inner loops of assignment and interpolation on the CPU: plain arrays in and out, compiled for each
// instruction set (docs/design.md, "One source, two backends"). No std types cross this line.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/device/instruction_set.hpp"
#include "kernels/particles/types.hpp"

namespace maki {

// A small private part of the mesh, `side` x `side` rows of `side` counts; index 0 is mesh cell `origin` - 1 on each
// axis, periodic.
struct MassTile {
  std::uint64_t* cells;
  int side;
};

struct TileJob {
  const SourceParticle* particles;
  const std::uint32_t* selected;  // indices of `count` particles, all of one block of cells
  std::size_t count;
  std::uint32_t mesh_cells;  // along one side
  int origin[3];             // the block's first cell
  int bits;                  // MassUnit
  std::uint32_t equal_units;
  double units_per_mass;
  std::uint64_t half, kept;  // MassUnit::shed_bits
  std::uint32_t half_cells;  // 1: particles are moved by half a cell
  MassTile tile;
};

// Adds cells [begin, end) of the tile to a box of the mesh and sets them to zero; all other cells are zero.
struct TileFlush {
  MassTile tile;
  int origin[3];                 // as in TileJob, but counted from the box's origin
  int begin[3], end[3];          // of the tile's cells, 0 <= begin, end <= side
  std::uint64_t* const* planes;  // by tile x: the plane of the box
  int row;                       // counts from one line along z to the next
  int mesh_cells;                // for periodic wrapping: only in a box that is whole along that axis
};

struct InterpolationJob {
  const float* mesh;  // a box of it (MeshBox): box_lines rows a plane, box_row floats apart
  std::uint32_t mesh_cells;
  int box_origin[3];
  int box_end;  // cells of the box along z
  std::size_t box_row, box_lines;
  const SourceParticle* particles;
  std::size_t first, last;
  bool shifted;  // the shifted mesh of interlacing (particles at +1/2 cell)
  float factor;
  bool add;            // to what `out` holds
  float* out;          // by particle; interpolate_gradient: nullptr, or the values, times factor
  float* gradient[3];  // interpolate_gradient: derivatives times gradient_factor
  float gradient_factor;
};

// How counts become masses (MassUnit): ((count + half) & kept - mean) quantum.
struct CountScale {
  std::uint64_t half, kept;
  std::int64_t mean;
  float quantum;
};

struct MeshKernels {
  // by cloud: index 0 CIC, 1 TSC, 2 PCS
  void (*add_to_tile[3])(const TileJob&);
  void (*add_rounded_to_tile[3])(const TileJob&);  // each particle's share of a cell is rounded
  void (*interpolate[3])(const InterpolationJob&);
  void (*interpolate_gradient[3])(const InterpolationJob&);
  void (*flush_tile)(const TileFlush&);
  // out[i] = the mass of counts[i] less the mean, and counts[i] = 0
  void (*convert_row)(std::uint64_t* counts, int n, const CountScale& scale, float* out);
};

namespace scalar {
extern const MeshKernels kMeshKernels;
}
namespace avx2 {
extern const MeshKernels kMeshKernels;
}
namespace avx512 {
extern const MeshKernels kMeshKernels;
}
inline const MeshKernels& mesh_kernels() {
  return of_instruction_set(scalar::kMeshKernels, avx2::kMeshKernels, avx512::kMeshKernels);
}

}  // namespace maki
