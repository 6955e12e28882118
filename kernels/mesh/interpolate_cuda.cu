// Interpolation on the GPU: a tile of the mesh is copied to shared memory (chunk_tiles.cuh), and the particles in the
// tile read their clouds there, one particle a thread. Read from the mesh itself, the 32 clouds of a warp would take
// some 20 cache lines with every load.
#include <type_traits>

#include "kernels/mesh/chunk_tiles.cuh"
#include "kernels/mesh/interpolate.hpp"

namespace maki::cuda {

// The values under one cloud: value (i, j, k) is plane(i)[line(j) + column(k)].
struct TileValues {
  const float* corner;
  __device__ __forceinline__ const float* plane(int i) const { return corner + i * kTilePlane; }
  __device__ __forceinline__ std::uint32_t line(int j) const { return static_cast<std::uint32_t>(j * kTileRow); }
  __device__ __forceinline__ std::uint32_t column(int k) const { return static_cast<std::uint32_t>(k); }
};

struct MeshValues {
  const float* mesh;
  std::uint32_t m, row, plane_size;  // m^2 fits 32 bits
  Cell3 first;
  __device__ __forceinline__ const float* plane(int i) const {
    return mesh + static_cast<std::size_t>(wrapped_once(first.x + i, m)) * plane_size;
  }
  __device__ __forceinline__ std::uint32_t line(int j) const {
    return static_cast<std::uint32_t>(wrapped_once(first.y + j, m)) * row;
  }
  __device__ __forceinline__ std::uint32_t column(int k) const {
    return static_cast<std::uint32_t>(wrapped_once(first.z + k, m));
  }
};

struct Fractions {
  std::uint32_t x, y, z;  // MeshPosition
};

struct ValueGather {
  static constexpr const char* kName = "mesh.interpolate";
  float* value;
  float factor;
  bool add;  // to `value`

  template <int S, class Values>
  __device__ __forceinline__ void particle(std::size_t n, const Fractions& at, const Values& values) const {
    float wx[S], wy[S], wz[S], sum = 0;
    float_weights<S>(at.x, wx);
    float_weights<S>(at.y, wy);
    float_weights<S>(at.z, wz);
#pragma unroll
    for (int i = 0; i < S; ++i) {
      const float* plane = values.plane(i);
      float in_y = 0;  // summed over y and z
#pragma unroll
      for (int j = 0; j < S; ++j) {
        const std::uint32_t line = values.line(j);
        float along = 0;
#pragma unroll
        for (int k = 0; k < S; ++k) along += wz[k] * plane[line + values.column(k)];
        in_y += wy[j] * along;
      }
      sum += wx[i] * in_y;
    }
    value[n] = add ? value[n] + factor * sum : factor * sum;
  }
};

struct GradientGather {
  static constexpr const char* kName = "mesh.interpolate_gradient";
  InterpolationOutput out;
  float per_side;  // out.gradient_factor, for slopes per cell

  __device__ __forceinline__ void put(float* array, std::size_t n, float value) const {
    array[n] = out.add ? array[n] + value : value;
  }
  template <int S, class Values>
  __device__ __forceinline__ void particle(std::size_t n, const Fractions& at, const Values& values) const {
    float wx[S], wy[S], wz[S], dx[S], dy[S], dz[S];
    float_weights<S>(at.x, wx);
    float_weights<S>(at.y, wy);
    float_weights<S>(at.z, wz);
    float_slopes<S>(at.x, dx);
    float_slopes<S>(at.y, dy);
    float_slopes<S>(at.z, dz);
    float value = 0, gx = 0, gy = 0, gz = 0;
#pragma unroll
    for (int i = 0; i < S; ++i) {
      const float* plane = values.plane(i);
      float in_y = 0, slope_y = 0, slope_z = 0;  // summed over y and z
#pragma unroll
      for (int j = 0; j < S; ++j) {
        const std::uint32_t line = values.line(j);
        float along = 0, slope = 0;
#pragma unroll
        for (int k = 0; k < S; ++k) {
          const float v = plane[line + values.column(k)];
          along += wz[k] * v;
          slope += dz[k] * v;
        }
        in_y += wy[j] * along;
        slope_y += dy[j] * along;
        slope_z += wy[j] * slope;
      }
      value += wx[i] * in_y;
      gx += dx[i] * in_y;
      gy += wx[i] * slope_y;
      gz += wx[i] * slope_z;
    }
    put(out.gradient.x, n, per_side * gx);
    put(out.gradient.y, n, per_side * gy);
    put(out.gradient.z, n, per_side * gz);
    if (out.value) put(out.value, n, out.factor * value);
  }
};

template <class Gather>
struct InterpolateJob {
  ChunkJob chunks;
  const float* mesh;  // the box's lines, `row` floats apart
  std::uint32_t row;
  Gather gather;
};

// Cells of the tile beyond the box are in no cloud.
struct LoadCell {
  const float* mesh;
  float* tile;
  std::uint32_t row;
  Cell3 extent;
  __device__ __forceinline__ void operator()(std::uint32_t word, const Cell3& cell) const {
    if (!within_box(cell, extent)) return;
    const std::size_t line = line_of(cell.x, cell.y, extent);
    tile[word] = mesh[line * row + static_cast<std::uint32_t>(cell.z)];
  }
};

template <int S, class Gather>
struct InterpolateWorker {
  const InterpolateJob<Gather>& job;
  float* tile;  // shared
  const std::uint16_t* list;

  // Interpolates at each particle of the list from values_at(first cell of its cloud).
  template <class ValuesAt>
  __device__ __forceinline__ void each(const SourceParticle* chunk, unsigned count, const ValuesAt& values_at) const {
    const ChunkJob& c = job.chunks;
    for (unsigned i = threadIdx.x; i < count; i += kChunkThreads) {
      const SourceParticle p = chunk[list[i]];
      const Fractions at{mesh_position<S>(p.x, c.m, c.half_cells).fraction,
                         mesh_position<S>(p.y, c.m, c.half_cells).fraction,
                         mesh_position<S>(p.z, c.m, c.half_cells).fraction};
      job.gather.template particle<S>(static_cast<std::size_t>(blockIdx.x) * kChunk<kChunkThreads> + list[i], at,
                                      values_at(first_cell<S>(c, p.x, p.y, p.z)));
    }
  }

  struct InTile {
    const float* tile;
    Cell3 origin;
    std::uint32_t m;
    __device__ __forceinline__ TileValues operator()(const Cell3& first) const {
      return {tile + tile_word(within_tile(origin, first, m))};
    }
  };
  struct InMesh {
    const float* mesh;
    std::uint32_t m, row, plane_size;
    __device__ __forceinline__ MeshValues operator()(const Cell3& first) const {
      return {mesh, m, row, plane_size, first};
    }
  };

  __device__ __forceinline__ void in_tile(const Cell3& origin, const SourceParticle* chunk, unsigned count) const {
    visit_cells<kChunkThreads>(origin, job.chunks.m, LoadCell{job.mesh, tile, job.row, job.chunks.extent});
    __syncthreads();
    each(chunk, count, InTile{tile, origin, job.chunks.m});
  }
  __device__ __forceinline__ void without_tile(const SourceParticle* chunk, unsigned count) const {
    const ChunkJob& c = job.chunks;
    each(chunk, count, InMesh{job.mesh, c.m, job.row, job.row * static_cast<std::uint32_t>(c.extent.y)});
  }
};

// Blocks that share a multiprocessor, limited by registers: from sm_100 on the compiler would spill those of values with
// more than one block.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
inline constexpr unsigned kGradientBlocks = 2, kValueBlocks = 3;
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 1000
inline constexpr unsigned kGradientBlocks = 3, kValueBlocks = 3;
#else
inline constexpr unsigned kGradientBlocks = 3, kValueBlocks = 1;
#endif
template <int S, class Gather>
inline constexpr unsigned kGatherBlocks = S < 4                                 ? 3
                                          : std::is_same_v<Gather, ValueGather> ? kValueBlocks
                                                                                : kGradientBlocks;

template <int S, class Gather>
__global__ void __launch_bounds__(kChunkThreads, kGatherBlocks<S, Gather>)
    interpolate_kernel(InterpolateJob<Gather> job) {
  __shared__ float tile[kTileWords];
  __shared__ std::uint16_t list[kChunk<kChunkThreads>];
  visit_tiles<S, kChunkThreads>(job.chunks, list, InterpolateWorker<S, Gather>{job, tile, list});
}

template <class Gather>
void launch_interpolate(const Stream& stream, Assignment cloud, const MeshView& mesh, const SourceParticle* particles,
                        std::size_t n, const Gather& gather) {
  for_cloud(cloud, [&]<int S>() {
    const InterpolateJob<Gather> job{chunk_job<S>(particles, n, mesh.box, mesh.shifted ? 1 : 0), mesh.values,
                                     static_cast<std::uint32_t>(mesh.row), gather};
    launch_blocks(stream, Gather::kName, {chunk_count<kChunkThreads>(n), kChunkThreads, 0},
                  interpolate_kernel<S, Gather>, job);
  });
}

}  // namespace maki::cuda

namespace maki {

void interpolate(const Stream& stream, Assignment cloud, const MeshView& mesh, const SourceParticle* particles,
                 std::size_t n, const InterpolationOutput& out) {
  using namespace cuda;
  if (out.gradient.x)
    launch_interpolate(stream, cloud, mesh, particles, n,
                       GradientGather{out, out.gradient_factor * static_cast<float>(mesh.box.cells)});
  else
    launch_interpolate(stream, cloud, mesh, particles, n, ValueGather{out.value, out.factor, out.add});
}

}  // namespace maki
