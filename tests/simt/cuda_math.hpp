// Arithmetic, bits and conversions, each by its definition. Approximate functions of the device are exact to rounding.
#pragma once

#include <math.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "tests/simt/cuda_language.hpp"

#define MAKI_MIN_MAX(type, a, b)                                \
  constexpr type min(a x, b y) {                                \
    return static_cast<type>(x) < static_cast<type>(y) ? static_cast<type>(x) : static_cast<type>(y); \
  }                                                             \
  constexpr type max(a x, b y) {                                \
    return static_cast<type>(x) > static_cast<type>(y) ? static_cast<type>(x) : static_cast<type>(y); \
  }
#define MAKI_MIN_MAX_INTEGERS(sign, unsign) \
  MAKI_MIN_MAX(sign, sign, sign)            \
  MAKI_MIN_MAX(unsign, unsign, unsign)      \
  MAKI_MIN_MAX(unsign, sign, unsign)        \
  MAKI_MIN_MAX(unsign, unsign, sign)
MAKI_MIN_MAX_INTEGERS(int, unsigned)
MAKI_MIN_MAX_INTEGERS(long, unsigned long)
MAKI_MIN_MAX_INTEGERS(long long, unsigned long long)
#undef MAKI_MIN_MAX_INTEGERS
#undef MAKI_MIN_MAX
// A NaN loses against a number.
inline float min(float x, float y) { return fminf(x, y); }
inline float max(float x, float y) { return fmaxf(x, y); }
inline double min(double x, double y) { return fmin(x, y); }
inline double max(double x, double y) { return fmax(x, y); }
inline double min(float x, double y) { return fmin(x, y); }
inline double max(float x, double y) { return fmax(x, y); }
inline double min(double x, float y) { return fmin(x, y); }
inline double max(double x, float y) { return fmax(x, y); }

#if !(defined(__GLIBC__) && __GLIBC_PREREQ(2, 41))  // from there on in <math.h>
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline float rsqrtf(float x) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(x))); }
#endif
inline float __frsqrt_rn(float x) { return rsqrtf(x); }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
// <math.h> declares these names for its own use.
#define __expf(x) (::expf(x))
#define __exp2f(x) (::exp2f(x))
#define __logf(x) (::logf(x))
#define __log2f(x) (::log2f(x))
#define __powf(x, y) (::powf(x, y))
#define __sinf(x) (::sinf(x))
#define __cosf(x) (::cosf(x))

// Rounded once each; the compiler does not contract them (the tests are built without fused multiply-add).
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fsub_rn(float x, float y) { return x - y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fmaf_rn(float x, float y, float z) { return std::fma(x, y, z); }
inline double __dadd_rn(double x, double y) { return x + y; }
inline double __dsub_rn(double x, double y) { return x - y; }
inline double __dmul_rn(double x, double y) { return x * y; }
inline double __ddiv_rn(double x, double y) { return x / y; }
inline double __fma_rn(double x, double y, double z) { return std::fma(x, y, z); }

inline int __popc(unsigned x) { return std::popcount(x); }
inline int __popcll(unsigned long long x) { return std::popcount(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline int __clzll(long long x) { return std::countl_zero(static_cast<unsigned long long>(x)); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned long long __brevll(unsigned long long x) {
  unsigned long long y = 0;
  for (int i = 0; i < 64; ++i) y |= (x >> i & 1) << (63 - i);
  return y;
}
inline unsigned __brev(unsigned x) { return static_cast<unsigned>(__brevll(x) >> 32); }
inline unsigned __umulhi(unsigned x, unsigned y) { return static_cast<unsigned>(std::uint64_t{x} * y >> 32); }
inline int __mulhi(int x, int y) { return static_cast<int>(std::int64_t{x} * y >> 32); }
__extension__ typedef unsigned __int128 maki_uint128;
__extension__ typedef __int128 maki_int128;
inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return static_cast<unsigned long long>(static_cast<maki_uint128>(x) * y >> 64);
}
inline long long __mul64hi(long long x, long long y) {
  return static_cast<long long>(static_cast<maki_int128>(x) * y >> 64);
}
// The high, or the low, word of hi:lo shifted by the low five bits of `shift`.
inline unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned shift) {
  return static_cast<unsigned>(((std::uint64_t{hi} << 32 | lo) << (shift & 31)) >> 32);
}
inline unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned shift) {
  return static_cast<unsigned>((std::uint64_t{hi} << 32 | lo) >> (shift & 31));
}
// Byte i of the result is the byte of y:x that nibble i of the selector names (bit 3: its sign, eight times).
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const std::uint64_t bytes = std::uint64_t{y} << 32 | x;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned choice = selector >> (4 * i) & 15;
    unsigned byte = static_cast<unsigned>(bytes >> (8 * (choice & 7)) & 255);
    if (choice & 8) byte = byte & 128 ? 255 : 0;
    result |= byte << (8 * i);
  }
  return result;
}

inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
inline double __longlong_as_double(long long x) { return std::bit_cast<double>(x); }
inline int __double2hiint(double x) { return static_cast<int>(__double_as_longlong(x) >> 32); }
inline int __double2loint(double x) { return static_cast<int>(__double_as_longlong(x)); }
inline double __hiloint2double(int hi, int lo) {
  return std::bit_cast<double>(std::uint64_t{static_cast<unsigned>(hi)} << 32 | static_cast<unsigned>(lo));
}

namespace maki::simt {
// Float to integer as the device does it: out of range goes to the nearest, NaN to 0 (64 bits: to the top bit alone).
template <class Integer, class Real>
Integer to_integer(Real x) {
  using Limits = std::numeric_limits<Integer>;
  if (x != x) return sizeof(Integer) == 8 ? static_cast<Integer>(std::uint64_t{1} << 63) : Integer{0};
  if (x <= static_cast<Real>(Limits::min())) return Limits::min();
  if (x >= static_cast<Real>(Limits::max())) return Limits::max();
  return static_cast<Integer>(x);
}
}  // namespace maki::simt

#define MAKI_CONVERT(name, real, integer)                                                                      \
  inline integer name##_rn(real x) { return ::maki::simt::to_integer<integer>(std::nearbyint(x)); }            \
  inline integer name##_rz(real x) { return ::maki::simt::to_integer<integer>(std::trunc(x)); }                \
  inline integer name##_ru(real x) { return ::maki::simt::to_integer<integer>(std::ceil(x)); }                 \
  inline integer name##_rd(real x) { return ::maki::simt::to_integer<integer>(std::floor(x)); }
MAKI_CONVERT(__float2int, float, int)
MAKI_CONVERT(__float2uint, float, unsigned)
MAKI_CONVERT(__float2ll, float, long long)
MAKI_CONVERT(__float2ull, float, unsigned long long)
MAKI_CONVERT(__double2int, double, int)
MAKI_CONVERT(__double2uint, double, unsigned)
MAKI_CONVERT(__double2ll, double, long long)
MAKI_CONVERT(__double2ull, double, unsigned long long)
#undef MAKI_CONVERT
inline float __int2float_rn(int x) { return static_cast<float>(x); }
inline float __uint2float_rn(unsigned x) { return static_cast<float>(x); }
inline float __ll2float_rn(long long x) { return static_cast<float>(x); }
inline float __ull2float_rn(unsigned long long x) { return static_cast<float>(x); }
inline float __double2float_rn(double x) { return static_cast<float>(x); }

// Loads and stores with a wish about caches: plain ones here.
template <class T>
__forceinline__ T __ldg(const T* p) { return *p; }
template <class T>
__forceinline__ T __ldcs(const T* p) { return *p; }
template <class T>
__forceinline__ T __ldcg(const T* p) { return *p; }
template <class T>
__forceinline__ void __stcs(T* p, std::type_identity_t<T> value) { *p = value; }
template <class T>
__forceinline__ void __stcg(T* p, std::type_identity_t<T> value) { *p = value; }
