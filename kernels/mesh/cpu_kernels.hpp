// The inner loops of assignment and interpolation on the CPU: plain arrays in and out, one translation unit for each
// instruction set (DESIGN section 4). No std types cross this line.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/particles/types.hpp"

namespace maki {

// A small private piece of the mesh, `side` x `side` rows of `side` counts; index 0 is mesh cell `origin` - 1 on each
// axis.
struct MassTile {
  std::uint64_t* cells;
  int side;
};

struct TileJob {
  const SourceParticle* particles;
  const std::uint32_t* selected;  // indices of `count` particles, all of one block of cells
  std::size_t count;
  std::uint32_t mesh_cells;       // along one side
  int origin[3];                  // the block's first cell
  int bits;                       // MassUnit
  std::uint32_t equal_units;
  double units_per_mass;
  std::uint32_t half_cells;       // 1: particles are moved by half a cell
  MassTile tile;
};

struct TileFlush {
  MassTile tile;              // added to the mesh, and set to zero
  int origin[3];              // as in TileJob
  int extent[3];              // how much of the tile to add, <= side
  std::uint64_t* const* planes;  // by tile x: the mesh plane, mesh_cells^2 counts
  int mesh_cells;
};

struct InterpolationJob {
  const float* mesh;  // rows of 2 (m/2 + 1) floats
  std::uint32_t mesh_cells;
  const SourceParticle* particles;
  std::size_t first, last;
  bool shifted;  // the mesh is the one on which particles stand half a cell further
  float factor;
  bool add;      // to what `out` holds
  float* out;    // by particle; interpolate_gradient: nullptr, or where the values go, times factor
  float* gradient[3];     // interpolate_gradient: derivatives times gradient_factor
  float gradient_factor;
};

struct MeshKernels {
  const char* instruction_set;
  // by cloud: index 0 CIC, 1 TSC, 2 PCS
  void (*add_to_tile[3])(const TileJob&);
  void (*interpolate[3])(const InterpolationJob&);
  void (*interpolate_gradient[3])(const InterpolationJob&);
  void (*flush_tile)(const TileFlush&);
  // out[i] = (counts[i] - mean) * quantum, and counts[i] = 0
  void (*convert_row)(std::uint64_t* counts, int n, std::int64_t mean, float quantum, float* out);
};

namespace mesh_scalar {
extern const MeshKernels kKernels;
}
namespace mesh_avx2 {
extern const MeshKernels kKernels;
}
namespace mesh_avx512 {
extern const MeshKernels kKernels;
}

// The best of this processor; `instruction_set` ("avx512", "avx2", "scalar") sets another one for tests, and
// nullptr the best again. False where the processor lacks it.
const MeshKernels& mesh_kernels();
bool use_mesh_kernels(const char* instruction_set);

}  // namespace maki
