// Vectors of floats with the operations that pair_formula.hpp asks for, and sources gathered for them: for a unit that
// is compiled once for each instruction set, in a namespace of its name. No templates of the standard library here.
#pragma once

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "kernels/force/pair_formula.hpp"
#include "kernels/tree/types.hpp"

namespace maki::MAKI_INSTRUCTION_SET {
namespace {

// (An alias whose width depends on a template's parameter has to depend on its type too.)
template <class T, unsigned kWidth>
struct Lanes {
  using Type [[gnu::vector_size(sizeof(T) * kWidth)]] = T;
};

template <unsigned kWidth>
struct Vector {
  using Floats = typename Lanes<float, kWidth>::Type;
  using Integers = typename Lanes<std::int32_t, kWidth>::Type;
  using Bits = typename Lanes<std::uint32_t, kWidth>::Type;

  static constexpr unsigned kLanes = kWidth;
  Floats v;
  Vector() = default;
  Vector(Floats value) : v(value) {}
  explicit Vector(float value) : v(value - Floats{}) {}
  static Vector load(const float* from) { return *reinterpret_cast<const Floats*>(from); }
  void store(float* to) const { *reinterpret_cast<Floats*>(to) = v; }

  friend Vector operator+(Vector a, Vector b) { return a.v + b.v; }
  friend Vector operator-(Vector a, Vector b) { return a.v - b.v; }
  friend Vector operator*(Vector a, Vector b) { return a.v * b.v; }

#if defined(__AVX512F__)
  // (Masks of integers, and a maximum by comparison, cost some per cent.)
  struct Mask {
    __mmask16 m;
  };
  friend Mask less(Vector a, Vector b) {
    if constexpr (kWidth == 16)
      return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)};
    else
      return {_mm256_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)};
  }
  friend Vector where(Mask mask, Vector a, Vector b) {
    if constexpr (kWidth == 16)
      return _mm512_mask_blend_ps(mask.m, b.v, a.v);
    else
      return _mm256_mask_blend_ps(static_cast<__mmask8>(mask.m), b.v, a.v);
  }
  friend Vector zero_unless(Mask mask, Vector a) { return where(mask, a, Floats{}); }
  friend bool any(Mask mask) { return mask.m != 0; }
  friend Vector larger(Vector a, Vector b) {
    if constexpr (kWidth == 16)
      return _mm512_maskz_max_ps(0xffff, a.v, b.v);
    else
      return _mm256_max_ps(a.v, b.v);
  }
  static Vector root_of_table(Vector x) {  // 14 bits
    if constexpr (kWidth == 16)
      return _mm512_maskz_rsqrt14_ps(0xffff, x.v);
    else
      return _mm256_rsqrt14_ps(x.v);
  }
  friend Vector reciprocal_root(Vector x, Root<false>) { return root_of_table(x); }
#else
  struct Mask {
    Integers m;
  };
  friend Mask less(Vector a, Vector b) { return {a.v < b.v}; }
  friend Vector where(Mask mask, Vector a, Vector b) { return mask.m ? a.v : b.v; }
  friend Vector zero_unless(Mask mask, Vector a) { return mask.m ? a.v : Floats{}; }
  friend Vector larger(Vector a, Vector b) { return a.v < b.v ? b.v : a.v; }
#if defined(__AVX2__)
  friend bool any(Mask mask) {
    if constexpr (kWidth == 8)
      return _mm256_movemask_ps(reinterpret_cast<__m256>(mask.m)) != 0;
    else
      return _mm_movemask_ps(reinterpret_cast<__m128>(mask.m)) != 0;
  }
  static Vector root_of_table(Vector x) {  // 12 bits
    if constexpr (kWidth == 8)
      return _mm256_rsqrt_ps(x.v);
    else
      return _mm_rsqrt_ps(x.v);
  }
#else
  friend bool any(Mask mask) { return (mask.m[0] | mask.m[1] | mask.m[2] | mask.m[3]) != 0; }
#endif
#endif

  friend Vector reciprocal_root(Vector x, Root<true>) {
#if defined(__AVX2__)
    const Vector y = root_of_table(x);  // 23 bits after a Newton step
    return y * (Vector(1.5f) - (Vector(0.5f) * x) * (y * y));
#else
    Vector y;
    for (unsigned i = 0; i < kWidth; ++i) y.v[i] = 1 / __builtin_sqrtf(x.v[i]);
    return y;
#endif
  }
};

// Fixed-point coordinates. Their difference is exact, then rounded once.
template <class V>
struct Coordinates {
  typename V::Bits v;
  static Coordinates load(const std::uint32_t* from) { return {*reinterpret_cast<const typename V::Bits*>(from)}; }
  friend V difference(std::uint32_t to, Coordinates from) {
    return __builtin_convertvector(reinterpret_cast<typename V::Integers>(to - from.v), typename V::Floats);
  }
};

// Half: for the last targets.
#if defined(__AVX512F__)
using Wide = Vector<16>;
using Half = Vector<8>;
#elif defined(__AVX2__)
using Wide = Vector<8>;
using Half = Vector<4>;
#else
using Wide = Vector<4>;
using Half = Vector<4>;
#endif
// Whether Root<false> is coarser than Root<true> (AVX-512 only).
inline constexpr bool kHasCoarseRoot = Wide::kLanes == 16;

// ---- sources relative to a group's centre: an array of three coordinates and a fourth, unused number ----------------

// The first four numbers of a source: three coordinates and a mass.
using Record = Vector<4>;

inline Record::Bits load_bits(const void* from) {
  Record::Bits bits;
  __builtin_memcpy(&bits, from, sizeof bits);
  return bits;
}

// x, y, z relative to the centre, times `scale`; the fourth place stays as it is.
inline Record moved(Record::Bits bits, Record::Bits middle, float scale) {
  const Record::Floats places =
      __builtin_convertvector(reinterpret_cast<Record::Integers>(bits - middle), Record::Floats) * scale;
  return __builtin_shufflevector(places, reinterpret_cast<Record::Floats>(bits), 0, 1, 2, 7);
}

inline void store_anywhere(float* to, Record record) { __builtin_memcpy(to, &record.v, sizeof record.v); }

#if defined(__AVX512F__)

// Four records; `there` has a bit for each of their 16 words that exists.
inline __m512 move_records(__mmask16 there, const SourceParticle* from, __m512i middle, __m512 factor) {
  const __m512i bits = _mm512_maskz_loadu_epi32(there, from);
  const __m512 moved = _mm512_maskz_cvtepi32_ps(0xffff, _mm512_sub_epi32(bits, middle));
  return _mm512_mask_mul_ps(_mm512_castsi512_ps(bits), 0x7777, moved, factor);
}

inline __m512i in_each_record(const std::uint32_t* centre) {
  return _mm512_maskz_broadcast_i32x4(0xffff, reinterpret_cast<__m128i>(load_bits(centre)));
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
    for (unsigned v = 0; v < 4; ++v)
      _mm512_storeu_ps(to + 4 * (i + 4 * v),
                       move_records(static_cast<__mmask16>(there >> (16 * v)), from + i + 4 * v, middle, factor));
  }
}

// gather_particles() for count <= 16, written to two places. Returns whether any particle may be closer to the centre
// than reach[axis] on all axes.
inline bool gather_sixteen(const SourceParticle* from, unsigned count, const std::uint32_t* centre, float scale,
                           const float* reach, float* const (&to)[2]) {
  const __m512i middle = in_each_record(centre);
  const __m512 factor = _mm512_set1_ps(scale), most = _mm512_maskz_broadcast_f32x4(0xffff, _mm_loadu_ps(reach));
  const std::uint64_t there = words_of(count);
  unsigned within = 0;  // by place in the vectors
#pragma GCC unroll 4
  for (unsigned v = 0; v < 4; ++v) {
    const auto here = static_cast<__mmask16>(there >> (16 * v));
    const __m512 records = move_records(here, from + 4 * v, middle, factor);
    _mm512_storeu_ps(to[0] + 16 * v, records);
    _mm512_storeu_ps(to[1] + 16 * v, records);
    within |= _mm512_mask_cmp_ps_mask(here, _mm512_abs_ps(records), most, _CMP_LT_OQ);
  }
  return (within & within >> 1 & within >> 2 & 0x1111u) != 0;
}

#else

// `count` particles as x, y, z (relative to the centre, times `scale`) and mass.
inline void gather_particles(const SourceParticle* from, unsigned count, const std::uint32_t* centre, float scale,
                             float* to) {
  for (unsigned i = 0; i < count; ++i) store_anywhere(to + 4 * i, moved(load_bits(from + i), load_bits(centre), scale));
}

// gather_particles() for count <= 16, written to two places. Returns whether any particle may be closer to the centre
// than reach[axis] on all axes.
inline bool gather_sixteen(const SourceParticle* from, unsigned count, const std::uint32_t* centre, float scale,
                           const float* reach, float* const (&to)[2]) {
  const Record most(reinterpret_cast<Record::Floats>(load_bits(reach)));
  Record::Integers within{};  // by component
  for (unsigned i = 0; i < count; ++i) {
    const Record record = moved(load_bits(from + i), load_bits(centre), scale);
    store_anywhere(to[0] + 4 * i, record);
    store_anywhere(to[1] + 4 * i, record);
    within |= less(larger(record, Record(0.0f) - record), most).m;
  }
  return (within[0] & within[1] & within[2]) != 0;
}

#endif

inline void gather_cell(const CellMoments& cell, const std::uint32_t* centre, float scale, float moment_scale,
                        float* to) {
  store_anywhere(to, moved(load_bits(&cell), load_bits(centre), scale));
  const float* q = &cell.qxx;
  for (int i = 0; i < 6; ++i) to[4 + i] = q[i] * moment_scale;
  to[10] = 0.5f * (to[4] + to[5] + to[6]);
}

}  // namespace
}  // namespace maki::MAKI_INSTRUCTION_SET
