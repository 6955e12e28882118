// Assignment and interpolation on the CPU, compiled once for each instruction set, in a namespace of its name. No
// templates of std here. Weights are computed for a batch of particles, one lane a particle; then the rows of cells are
// added one particle after another.
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "kernels/mesh/cloud.hpp"
#include "kernels/mesh/cpu_loops.hpp"

namespace maki::MAKI_INSTRUCTION_SET {
namespace {

// add_row: cells[i] += weights[i] * units for S neighbouring 64-bit counts, each product first rounded to
// (product + half) & kept where kRounds; half and kept by wide().
#if defined(__AVX2__)
// Four 32-bit weights, each in a 64-bit lane.
template <int S>
inline __m256i load_weights(const std::uint32_t* w) {
  return _mm256_cvtepu32_epi64(_mm_loadu_si128(reinterpret_cast<const __m128i*>(w)));
}

inline __m256i wide(std::uint64_t value) { return _mm256_set1_epi64x(static_cast<long long>(value)); }

template <int S, bool kRounds>
inline void add_row(std::uint64_t* cells, __m256i weights, std::uint32_t units, __m256i half, __m256i kept) {
  __m256i product = _mm256_mul_epu32(weights, _mm256_set1_epi32(static_cast<int>(units)));
  if constexpr (kRounds) product = _mm256_and_si256(_mm256_add_epi64(product, half), kept);
  if constexpr (S == 2) {
    __m128i* at = reinterpret_cast<__m128i*>(cells);
    _mm_storeu_si128(at, _mm_add_epi64(_mm_loadu_si128(at), _mm256_castsi256_si128(product)));
  } else {
    __m256i* at = reinterpret_cast<__m256i*>(cells);
    _mm256_storeu_si256(at, _mm256_add_epi64(_mm256_loadu_si256(at), product));
  }
}
#else
template <int S>
inline const std::uint32_t* load_weights(const std::uint32_t* w) {
  return w;
}

inline std::uint64_t wide(std::uint64_t value) { return value; }

template <int S, bool kRounds>
inline void add_row(std::uint64_t* cells, const std::uint32_t* weights, std::uint32_t units, std::uint64_t half,
                    std::uint64_t kept) {
  for (int i = 0; i < S; ++i) {
    const std::uint64_t product = static_cast<std::uint64_t>(weights[i]) * units;
    cells[i] += kRounds ? (product + half) & kept : product;
  }
}
#endif

constexpr int kBatch = 16;

// One axis of a batch: the first cells of the clouds, and their integer weights, weight by weight.
template <int S>
struct BatchAxis {
  std::int32_t first[kBatch];
  std::uint32_t weight[S][kBatch];
};

template <int S>
inline void weigh_axis(const std::uint32_t* p, std::uint32_t m, std::uint32_t half_cells, int origin, int bits,
                       BatchAxis<S>& axis) {
  for (int l = 0; l < kBatch; ++l) {
    const MeshPosition u = mesh_position<S>(p[l], m, half_cells);
    std::uint32_t w[S];
    integer_weights<S>(u.fraction, bits, w);
    const std::int32_t first = u.first - origin + 1;
    axis.first[l] = first < 0 ? first + static_cast<std::int32_t>(m) : first;
    for (int i = 0; i < S; ++i) axis.weight[i][l] = w[i];
  }
}

// The contribution of one batch to one tile.
template <int S>
struct BatchRows {
  std::uint32_t units[S * S][kBatch];  // of each row of cells
  std::uint32_t weight[kBatch][4];     // along z
  std::int32_t offset[kBatch];         // of the cloud's first cell in the tile
};

template <int S>
inline void weigh_batch(const std::uint32_t (&p)[3][kBatch], const std::uint32_t* units, const TileJob& job,
                        BatchRows<S>& rows) {
  const int side = job.tile.side;
  BatchAxis<S> x, y, z;
  weigh_axis<S>(p[0], job.mesh_cells, job.half_cells, job.origin[0], job.bits, x);
  weigh_axis<S>(p[1], job.mesh_cells, job.half_cells, job.origin[1], job.bits, y);
  weigh_axis<S>(p[2], job.mesh_cells, job.half_cells, job.origin[2], job.bits, z);
  for (int l = 0; l < kBatch; ++l) {
    std::uint32_t wx[S], in_x[S];
    for (int i = 0; i < S; ++i) wx[i] = x.weight[i][l];
    split_units<S>(units[l], job.bits, wx, in_x);
    for (int i = 0; i < S; ++i) {
      std::uint32_t wy[S], in_row[S];
      for (int j = 0; j < S; ++j) wy[j] = y.weight[j][l];
      split_units<S>(in_x[i], job.bits, wy, in_row);
      for (int j = 0; j < S; ++j) rows.units[i * S + j][l] = in_row[j];
    }
  }
  for (int l = 0; l < kBatch; ++l) rows.offset[l] = (x.first[l] * side + y.first[l]) * side + z.first[l];
  for (int i = 0; i < 4; ++i)
    for (int l = 0; l < kBatch; ++l) rows.weight[l][i] = i < S ? z.weight[i < S ? i : 0][l] : 0;
}

template <int S, bool kRounds, class Wide>
inline void add_particle(const MassTile& tile, const BatchRows<S>& rows, int l, Wide half, Wide kept) {
  std::uint64_t* corner = tile.cells + rows.offset[l];
  const auto weights = load_weights<S>(rows.weight[l]);
  for (int i = 0; i < S; ++i)
    for (int j = 0; j < S; ++j)
      add_row<S, kRounds>(corner + (i * tile.side + j) * tile.side, weights, rows.units[i * S + j][l], half, kept);
}

template <int S, bool kRounds>
void add_to_tile(const TileJob& job) {
  const auto half = wide(job.half), kept = wide(job.kept);
  std::uint32_t p[3][kBatch], units[kBatch];
  BatchRows<S> rows;
  for (std::size_t begin = 0; begin < job.count; begin += kBatch) {
    const int n = job.count - begin < kBatch ? static_cast<int>(job.count - begin) : kBatch;
    for (int l = 0; l < kBatch; ++l) {
      const SourceParticle s = job.particles[job.selected[begin + (l < n ? l : 0)]];
      p[0][l] = s.x;
      p[1][l] = s.y;
      p[2][l] = s.z;
      units[l] = units_of(s.mass, job.equal_units, job.units_per_mass);
    }
    weigh_batch<S>(p, units, job, rows);
    for (int l = 0; l < n; ++l) add_particle<S, kRounds>(job.tile, rows, l, half, kept);
  }
}

void flush_tile(const TileFlush& f) {
  const int m = f.mesh_cells, side = f.tile.side;
  for (int x = f.begin[0]; x < f.end[0]; ++x) {
    for (int y = f.begin[1]; y < f.end[1]; ++y) {
      std::uint64_t* __restrict from = f.tile.cells + (x * side + y) * side;
      const int mesh_y = (f.origin[1] - 1 + y + m) % m;
      std::uint64_t* row = f.planes[x] + static_cast<std::size_t>(mesh_y) * f.row;
      int z = (f.origin[2] - 1 + f.begin[2] + m) % m;
      for (int done = f.begin[2]; done < f.end[2];) {
        const int run = f.end[2] - done < m - z ? f.end[2] - done : m - z;
        std::uint64_t* __restrict to = row + z;
        for (int i = 0; i < run; ++i) to[i] += from[done + i];
        done += run;
        z = 0;
      }
      for (int i = 0; i < side; ++i) from[i] = 0;
    }
  }
}

void convert_row(std::uint64_t* counts, int n, const CountScale& scale, float* out) {
  const std::uint64_t half = scale.half, kept = scale.kept;
  const std::int64_t mean = scale.mean;
  const float quantum = scale.quantum;
  for (int i = 0; i < n; ++i) {
    out[i] = static_cast<float>(static_cast<std::int64_t>((counts[i] + half) & kept) - mean) * quantum;
    counts[i] = 0;
  }
}

typedef float Float4 __attribute__((vector_size(16), aligned(4), may_alias));

inline int wrapped_once(int i, int m) { return i < 0 ? i + m : i >= m ? i - m : i; }

// The rows of one cloud: four values from plane[i] + row[j] on, of which the first S count.
template <int S>
struct CloudRows {
  const float* plane[S];
  std::size_t row[S];

  inline Float4 load(int i, int j) const { return *reinterpret_cast<const Float4*>(plane[i] + row[j]); }
};

// Copies of rows that wrap around the edge, so that sums have the same bits as any other cloud's.
template <int S>
struct RowsAround {
  float values[S][S][4];
};
template <int S>
__attribute__((noinline)) void copy_around(const InterpolationJob& job, int x, int y, int z, RowsAround<S>& around) {
  const int m = static_cast<int>(job.mesh_cells);
  for (int i = 0; i < S; ++i) {
    for (int j = 0; j < S; ++j) {
      const std::size_t line = wrapped_once(x + i, m) * job.box_lines + wrapped_once(y + j, m);
      const float* row = job.mesh + line * job.box_row;
      for (int k = 0; k < 4; ++k) around.values[i][j][k] = k < S ? row[wrapped_once(z + k, m)] : 0;
    }
  }
}

template <int S>
inline CloudRows<S> cloud_rows(const InterpolationJob& job, int x, int y, int z, RowsAround<S>& around) {
  const int m = static_cast<int>(job.mesh_cells);
  const std::size_t row = job.box_row, plane = row * job.box_lines;
  x -= job.box_origin[0];
  y -= job.box_origin[1];
  z = wrapped_once(z - job.box_origin[2], m);
  CloudRows<S> rows;
  for (int i = 0; i < S; ++i) {
    rows.plane[i] = job.mesh + wrapped_once(x + i, m) * plane + z;
    rows.row[i] = wrapped_once(y + i, m) * row;
  }
  if (__builtin_expect(z + 4 > job.box_end, 0)) {
    copy_around<S>(job, x, y, z, around);
    for (int i = 0; i < S; ++i) {
      rows.plane[i] = around.values[i][0];
      rows.row[i] = static_cast<std::size_t>(i) * 4;
    }
  }
  return rows;
}

// Weights of a batch, one lane a particle.
struct BatchWeights {
  std::int32_t first[3][kBatch];
  float weight[3][4][kBatch];
  float slope[3][4][kBatch];
};

template <int S, bool kSlopes>
inline void weigh_for_interpolation(const InterpolationJob& job, std::size_t begin, int n, BatchWeights& batch) {
  const std::uint32_t half_cells = job.shifted ? 1 : 0;
  std::uint32_t p[3][kBatch];
  for (int l = 0; l < kBatch; ++l) {
    const SourceParticle& s = job.particles[begin + (l < n ? l : 0)];
    p[0][l] = s.x;
    p[1][l] = s.y;
    p[2][l] = s.z;
  }
  for (int axis = 0; axis < 3; ++axis) {
    for (int l = 0; l < kBatch; ++l) {
      const MeshPosition u = mesh_position<S>(p[axis][l], job.mesh_cells, half_cells);
      float w[S], d[S];
      float_weights<S>(u.fraction, w);
      if (kSlopes) float_slopes<S>(u.fraction, d);
      batch.first[axis][l] = u.first;
      for (int i = 0; i < S; ++i) batch.weight[axis][i][l] = w[i];
      if (kSlopes)
        for (int i = 0; i < S; ++i) batch.slope[axis][i][l] = d[i];
    }
  }
}

template <int S>
inline float along_z(Float4 sum, const float (&w)[4][kBatch], int l) {
  float total = 0;
  for (int i = 0; i < S; ++i) total += sum[i] * w[i][l];
  return total;
}

inline void put(float* out, std::size_t i, bool add, float value) { out[i] = add ? out[i] + value : value; }

template <int S>
void interpolate(const InterpolationJob& job) {
  BatchWeights b;
  RowsAround<S> around;
  for (std::size_t begin = job.first; begin < job.last; begin += kBatch) {
    const int n = job.last - begin < kBatch ? static_cast<int>(job.last - begin) : kBatch;
    weigh_for_interpolation<S, false>(job, begin, n, b);
    for (int l = 0; l < n; ++l) {
      const CloudRows<S> rows = cloud_rows<S>(job, b.first[0][l], b.first[1][l], b.first[2][l], around);
      Float4 sum = {0, 0, 0, 0};
      for (int i = 0; i < S; ++i)
        for (int j = 0; j < S; ++j) sum += rows.load(i, j) * (b.weight[0][i][l] * b.weight[1][j][l]);
      put(job.out, begin + l, job.add, job.factor * along_z<S>(sum, b.weight[2], l));
    }
  }
}

template <int S>
void interpolate_gradient(const InterpolationJob& job) {
  BatchWeights b;
  RowsAround<S> around;
  for (std::size_t begin = job.first; begin < job.last; begin += kBatch) {
    const int n = job.last - begin < kBatch ? static_cast<int>(job.last - begin) : kBatch;
    weigh_for_interpolation<S, true>(job, begin, n, b);
    for (int l = 0; l < n; ++l) {
      const CloudRows<S> rows = cloud_rows<S>(job, b.first[0][l], b.first[1][l], b.first[2][l], around);
      Float4 sum = {0, 0, 0, 0}, sum_x = {0, 0, 0, 0}, sum_y = {0, 0, 0, 0};
      for (int i = 0; i < S; ++i) {
        const float wx = b.weight[0][i][l], dx = b.slope[0][i][l];
        Float4 in_y = {0, 0, 0, 0}, slope_y = {0, 0, 0, 0};
        for (int j = 0; j < S; ++j) {
          const Float4 v = rows.load(i, j);
          in_y += v * b.weight[1][j][l];
          slope_y += v * b.slope[1][j][l];
        }
        sum += in_y * wx;
        sum_x += in_y * dx;
        sum_y += slope_y * wx;
      }
      put(job.gradient[0], begin + l, job.add, job.gradient_factor * along_z<S>(sum_x, b.weight[2], l));
      put(job.gradient[1], begin + l, job.add, job.gradient_factor * along_z<S>(sum_y, b.weight[2], l));
      put(job.gradient[2], begin + l, job.add, job.gradient_factor * along_z<S>(sum, b.slope[2], l));
      if (job.out) put(job.out, begin + l, job.add, job.factor * along_z<S>(sum, b.weight[2], l));
    }
  }
}

}  // namespace

const MeshKernels kMeshKernels = {{add_to_tile<2, false>, add_to_tile<3, false>, add_to_tile<4, false>},
                                  {add_to_tile<2, true>, add_to_tile<3, true>, add_to_tile<4, true>},
                                  {interpolate<2>, interpolate<3>, interpolate<4>},
                                  {interpolate_gradient<2>, interpolate_gradient<3>, interpolate_gradient<4>},
                                  flush_tile,
                                  convert_row};

}  // namespace maki::MAKI_INSTRUCTION_SET
