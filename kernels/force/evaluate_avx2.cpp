// List evaluation with AVX2 and FMA. Only called where the processor has them.
#include <immintrin.h>

#include "kernels/force/evaluate_cpu.hpp"
#include "kernels/force/pair_formula.hpp"

namespace maki::avx2 {
namespace {
// Vectors of 8 and 4 floats on AVX2 with FMA, with the operations that pair_formula.hpp asks for.

struct Mask8 {
  __m256 m;
};

struct Wide {
  static constexpr unsigned kLanes = 8;
  __m256 v;
  Wide() = default;
  Wide(__m256 value) : v(value) {}
  explicit Wide(float value) : v(_mm256_set1_ps(value)) {}
  static Wide load(const float* from) { return _mm256_load_ps(from); }
  void store(float* to) const { _mm256_store_ps(to, v); }
};

inline Wide operator+(Wide a, Wide b) { return _mm256_add_ps(a.v, b.v); }
inline Wide operator-(Wide a, Wide b) { return _mm256_sub_ps(a.v, b.v); }
inline Wide operator*(Wide a, Wide b) { return _mm256_mul_ps(a.v, b.v); }
inline Wide larger(Wide a, Wide b) { return _mm256_max_ps(a.v, b.v); }
inline Mask8 less(Wide a, Wide b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_LT_OQ)}; }
inline Wide where(Mask8 mask, Wide a, Wide b) { return _mm256_blendv_ps(b.v, a.v, mask.m); }
inline Wide zero_unless(Mask8 mask, Wide a) { return _mm256_and_ps(mask.m, a.v); }
inline bool any(Mask8 mask) { return _mm256_movemask_ps(mask.m) != 0; }
// 12 bits from the instruction's table, 23 after a Newton step.
inline Wide reciprocal_root(Wide x, Root<true>) {
  const Wide y = _mm256_rsqrt_ps(x.v);
  return y * (Wide(1.5f) - (Wide(0.5f) * x) * (y * y));
}
// Fixed-point coordinates. Their difference is exact, then rounded once.
struct WideBits {
  __m256i v;
  static WideBits load(const std::uint32_t* from) {
    return {_mm256_load_si256(reinterpret_cast<const __m256i*>(from))};
  }
};
inline Wide difference(std::uint32_t to, WideBits from) {
  return _mm256_cvtepi32_ps(_mm256_sub_epi32(_mm256_set1_epi32(static_cast<int>(to)), from.v));
}

struct Mask4 {
  __m128 m;
};

struct Half {
  static constexpr unsigned kLanes = 4;
  __m128 v;
  Half() = default;
  Half(__m128 value) : v(value) {}
  explicit Half(float value) : v(_mm_set1_ps(value)) {}
  static Half load(const float* from) { return _mm_load_ps(from); }
  void store(float* to) const { _mm_store_ps(to, v); }
};

inline Half operator+(Half a, Half b) { return _mm_add_ps(a.v, b.v); }
inline Half operator-(Half a, Half b) { return _mm_sub_ps(a.v, b.v); }
inline Half operator*(Half a, Half b) { return _mm_mul_ps(a.v, b.v); }
inline Half larger(Half a, Half b) { return _mm_max_ps(a.v, b.v); }
inline Mask4 less(Half a, Half b) { return {_mm_cmp_ps(a.v, b.v, _CMP_LT_OQ)}; }
inline Half where(Mask4 mask, Half a, Half b) { return _mm_blendv_ps(b.v, a.v, mask.m); }
inline Half zero_unless(Mask4 mask, Half a) { return _mm_and_ps(mask.m, a.v); }
inline bool any(Mask4 mask) { return _mm_movemask_ps(mask.m) != 0; }
inline Half reciprocal_root(Half x, Root<true>) {
  const Half y = _mm_rsqrt_ps(x.v);
  return y * (Half(1.5f) - (Half(0.5f) * x) * (y * y));
}
struct HalfBits {
  __m128i v;
  static HalfBits load(const std::uint32_t* from) { return {_mm_load_si128(reinterpret_cast<const __m128i*>(from))}; }
};
inline Half difference(std::uint32_t to, HalfBits from) {
  return _mm_cvtepi32_ps(_mm_sub_epi32(_mm_set1_epi32(static_cast<int>(to)), from.v));
}

inline constexpr bool kHasCoarseRoot = false;

// x, y, z relative to the centre, times `scale`; the fourth lane stays as it is.
inline __m128 move_record(__m128i bits, __m128i middle, float scale) {
  const __m128 moved = _mm_mul_ps(_mm_cvtepi32_ps(_mm_sub_epi32(bits, middle)), _mm_set1_ps(scale));
  return _mm_blend_ps(moved, _mm_castsi128_ps(bits), 0x8);
}

inline __m128i as_vector(const std::uint32_t* centre) {
  return _mm_set_epi32(0, static_cast<int>(centre[2]), static_cast<int>(centre[1]), static_cast<int>(centre[0]));
}

// `count` particles as x, y, z (relative to the centre, times `scale`) and mass.
inline void gather_particles(const SourceParticle* from, unsigned count, const std::uint32_t* centre, float scale,
                             float* to) {
  const __m128i middle = as_vector(centre);
  const __m256i middle2 = _mm256_broadcastsi128_si256(middle);
  unsigned i = 0;
  for (; i + 2 <= count; i += 2) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i));
    const __m256 moved = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_sub_epi32(bits, middle2)), _mm256_set1_ps(scale));
    _mm256_storeu_ps(to + 4 * i, _mm256_blend_ps(moved, _mm256_castsi256_ps(bits), 0x88));
  }
  if (i < count)
    _mm_storeu_ps(to + 4 * i, move_record(_mm_load_si128(reinterpret_cast<const __m128i*>(from + i)), middle, scale));
}

// The same for count <= 16, written to two places. Returns whether any particle may be closer to the centre than
// reach[axis] on all axes.
inline bool gather_sixteen(const SourceParticle* from, unsigned count, const std::uint32_t* centre, float scale,
                           const float* reach, float* const (&to)[2]) {
  const __m128i middle = as_vector(centre);
  const __m128 most = _mm_loadu_ps(reach), sign = _mm_set1_ps(-0.0f);
  int within = 0;  // by component
  for (unsigned i = 0; i < count; ++i) {
    const __m128 record = move_record(_mm_load_si128(reinterpret_cast<const __m128i*>(from + i)), middle, scale);
    _mm_storeu_ps(to[0] + 4 * i, record);
    _mm_storeu_ps(to[1] + 4 * i, record);
    within |= _mm_movemask_ps(_mm_cmp_ps(_mm_andnot_ps(sign, record), most, _CMP_LT_OQ));
  }
  return (within & 7) == 7;
}

inline void gather_cell(const CellMoments& cell, const std::uint32_t* centre, float scale, float moment_scale,
                        float* to) {
  _mm_storeu_ps(to, move_record(_mm_loadu_si128(reinterpret_cast<const __m128i*>(&cell)), as_vector(centre), scale));
  const float* q = &cell.qxx;
  for (int i = 0; i < 6; ++i) to[4 + i] = q[i] * moment_scale;
  to[10] = 0.5f * (to[4] + to[5] + to[6]);
}

#include "kernels/force/evaluate_cpu.inl"
}  // namespace

const CpuKernels kForceKernels = {centred, evaluate_group, direct, loop};

}  // namespace maki::avx2
