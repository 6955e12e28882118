// List evaluation with AVX-512 (F, VL, DQ, BW). Only called where the processor has it.
#include <immintrin.h>

#include "kernels/force/evaluate_cpu.hpp"
#include "kernels/force/pair_formula.hpp"

namespace maki::avx512 {
namespace {
// Vectors of 16 and 8 floats on AVX-512, with the operations that pair_formula.hpp asks for.

// Masked intrinsics with all lanes on compile to the plain instructions. GCC 12 warns of an uninitialised value in its
// plain intrinsics, wrongly.
inline constexpr __mmask16 kAll = 0xffff;

struct Mask16 {
  __mmask16 m;
};

struct Wide {
  static constexpr unsigned kLanes = 16;
  __m512 v;
  Wide() = default;
  Wide(__m512 value) : v(value) {}
  explicit Wide(float value) : v(_mm512_set1_ps(value)) {}
  static Wide load(const float* from) { return _mm512_load_ps(from); }
  void store(float* to) const { _mm512_store_ps(to, v); }
};

inline Wide operator+(Wide a, Wide b) { return _mm512_add_ps(a.v, b.v); }
inline Wide operator-(Wide a, Wide b) { return _mm512_sub_ps(a.v, b.v); }
inline Wide operator*(Wide a, Wide b) { return _mm512_mul_ps(a.v, b.v); }
inline Wide larger(Wide a, Wide b) { return _mm512_maskz_max_ps(kAll, a.v, b.v); }
inline Mask16 less(Wide a, Wide b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)}; }
inline Wide where(Mask16 mask, Wide a, Wide b) { return _mm512_mask_blend_ps(mask.m, b.v, a.v); }
inline Wide zero_unless(Mask16 mask, Wide a) { return _mm512_maskz_mov_ps(mask.m, a.v); }
inline bool any(Mask16 mask) { return mask.m != 0; }
inline Wide reciprocal_root(Wide x, Root<false>) { return _mm512_maskz_rsqrt14_ps(kAll, x.v); }
inline Wide reciprocal_root(Wide x, Root<true>) {
  const Wide y = _mm512_maskz_rsqrt14_ps(kAll, x.v);
  return y * (Wide(1.5f) - (Wide(0.5f) * x) * (y * y));
}
// Difference of fixed-point coordinates: exact, then one rounding.
struct WideBits {
  __m512i v;
  static WideBits load(const std::uint32_t* from) { return {_mm512_load_si512(from)}; }
};
inline Wide difference(std::uint32_t to, WideBits from) {
  return _mm512_maskz_cvtepi32_ps(kAll, _mm512_sub_epi32(_mm512_set1_epi32(static_cast<int>(to)), from.v));
}

struct Mask8 {
  __mmask8 m;
};

struct Half {
  static constexpr unsigned kLanes = 8;
  __m256 v;
  Half() = default;
  Half(__m256 value) : v(value) {}
  explicit Half(float value) : v(_mm256_set1_ps(value)) {}
  static Half load(const float* from) { return _mm256_load_ps(from); }
  void store(float* to) const { _mm256_store_ps(to, v); }
};

inline Half operator+(Half a, Half b) { return _mm256_add_ps(a.v, b.v); }
inline Half operator-(Half a, Half b) { return _mm256_sub_ps(a.v, b.v); }
inline Half operator*(Half a, Half b) { return _mm256_mul_ps(a.v, b.v); }
inline Half larger(Half a, Half b) { return _mm256_max_ps(a.v, b.v); }
inline Mask8 less(Half a, Half b) { return {_mm256_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)}; }
inline Half where(Mask8 mask, Half a, Half b) { return _mm256_mask_blend_ps(mask.m, b.v, a.v); }
inline Half zero_unless(Mask8 mask, Half a) { return _mm256_maskz_mov_ps(mask.m, a.v); }
inline bool any(Mask8 mask) { return mask.m != 0; }
inline Half reciprocal_root(Half x, Root<false>) { return _mm256_rsqrt14_ps(x.v); }
inline Half reciprocal_root(Half x, Root<true>) {
  const Half y = _mm256_rsqrt14_ps(x.v);
  return y * (Half(1.5f) - (Half(0.5f) * x) * (y * y));
}
struct HalfBits {
  __m256i v;
  static HalfBits load(const std::uint32_t* from) {
    return {_mm256_load_si256(reinterpret_cast<const __m256i*>(from))};
  }
};
inline Half difference(std::uint32_t to, HalfBits from) {
  return _mm256_cvtepi32_ps(_mm256_sub_epi32(_mm256_set1_epi32(static_cast<int>(to)), from.v));
}

inline constexpr bool kHasCoarseRoot = true;

// The record moved by `middle` and scaled by `factor`; the mass stays as it is.
inline __m512 move_records(__m512i bits, __m512i middle, __m512 factor) {
  const __m512 moved = _mm512_maskz_cvtepi32_ps(kAll, _mm512_sub_epi32(bits, middle));
  return _mm512_mask_mul_ps(_mm512_castsi512_ps(bits), 0x7777, moved, factor);
}

inline __m512i in_each_record(const std::uint32_t* centre) {
  return _mm512_maskz_broadcast_i32x4(kAll, _mm_set_epi32(0, static_cast<int>(centre[2]), static_cast<int>(centre[1]),
                                                          static_cast<int>(centre[0])));
}

// A bit mask of the words of the first `count` particles, up to 16.
inline std::uint64_t words_of(unsigned count) { return count >= 16 ? ~0ull : (1ull << (4 * count)) - 1; }

// `count` particles as x, y, z (relative to the centre, times `scale`) and mass. Always writes runs of 16: a leaf has
// about as many, and a loop of unpredictable length costs more than it saves.
inline void gather_particles(const SourceParticle* from, unsigned count, const std::uint32_t* centre, float scale,
                             float* to) {
  const __m512i middle = in_each_record(centre);
  const __m512 factor = _mm512_set1_ps(scale);
  for (unsigned i = 0; i < count; i += 16) {
    const std::uint64_t there = words_of(count - i);
#pragma GCC unroll 4
    for (unsigned v = 0; v < 4; ++v) {
      const __m512i bits = _mm512_maskz_loadu_epi32(static_cast<__mmask16>(there >> (16 * v)), from + i + 4 * v);
      _mm512_storeu_ps(to + 4 * (i + 4 * v), move_records(bits, middle, factor));
    }
  }
}

// The same for count <= 16, written to two places. Returns whether any particle may be closer to the centre than
// reach[axis] on all axes.
inline bool gather_sixteen(const SourceParticle* from, unsigned count, const std::uint32_t* centre, float scale,
                           const float* reach, float* const (&to)[2]) {
  const __m512i middle = in_each_record(centre);
  const __m512 factor = _mm512_set1_ps(scale), most = _mm512_maskz_broadcast_f32x4(kAll, _mm_loadu_ps(reach));
  const std::uint64_t there = words_of(count);
  unsigned within = 0;  // by place in the vectors
#pragma GCC unroll 4
  for (unsigned v = 0; v < 4; ++v) {
    const auto here = static_cast<__mmask16>(there >> (16 * v));
    const __m512 record = move_records(_mm512_maskz_loadu_epi32(here, from + 4 * v), middle, factor);
    _mm512_storeu_ps(to[0] + 16 * v, record);
    _mm512_storeu_ps(to[1] + 16 * v, record);
    within |= _mm512_mask_cmp_ps_mask(here, _mm512_abs_ps(record), most, _CMP_LT_OQ);
  }
  return (within & within >> 1 & within >> 2 & 0x1111u) != 0;
}

inline void gather_cell(const CellMoments& cell, const std::uint32_t* centre, float scale, float moment_scale,
                        float* to) {
  const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(&cell));
  const __m128i middle =
      _mm_set_epi32(0, static_cast<int>(centre[2]), static_cast<int>(centre[1]), static_cast<int>(centre[0]));
  const __m128 moved = _mm_cvtepi32_ps(_mm_sub_epi32(bits, middle));
  _mm_storeu_ps(to, _mm_mask_mul_ps(_mm_castsi128_ps(bits), 0x7, moved, _mm_set1_ps(scale)));
  const __m256 q = _mm256_maskz_loadu_ps(0x3f, &cell.qxx);
  _mm256_storeu_ps(to + 4, _mm256_mul_ps(q, _mm256_set1_ps(moment_scale)));
  to[10] = 0.5f * (to[4] + to[5] + to[6]);
}

#include "kernels/force/evaluate_cpu.inl"
}  // namespace

const CpuKernels kForceKernels = {centred, evaluate_group, direct, loop};

}  // namespace maki::avx512
