// Bits, whole numbers, real numbers and conversions against their definitions.
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/particles/types.hpp"
#include "tests/gpu_model/tests/each_thread.cuh"

namespace gpu_model {
namespace {

using namespace maki;

// apply(in, out) for each of the inputs.
template <class In, class Out>
std::vector<Out> of_each(void (*kernel)(const In*, Out*, unsigned), const std::vector<In>& inputs) {
  const Stream stream;
  const auto n = static_cast<unsigned>(inputs.size());
  DeviceBuffer<In> in("in");
  DeviceBuffer<Out> out("out", n);
  in.upload(stream, inputs);
  launch_blocks(stream, "of_each", {(n + 63) / 64, 64}, kernel, static_cast<const In*>(in.data()), out.data(), n);
  return out.download(stream);
}

__device__ unsigned own() { return blockIdx.x * blockDim.x + threadIdx.x; }

struct TwoWords {
  unsigned x, y, k;
};
struct Bits {
  int popc, ffs, clz, popcll, clzll, ffsll, mulhi;
  unsigned brev, umulhi, left, right, bytes;
  unsigned long long brevll, umul64hi, quotient, rest;
  long long mul64hi, shifted;
};

__global__ void bits(const TwoWords* in, Bits* out, unsigned n) {
  if (own() >= n) return;
  const auto [x, y, k] = in[own()];
  const unsigned long long w = static_cast<unsigned long long>(x) << 32 | y;
  const auto s = static_cast<long long>(w);
  Bits& b = out[own()];
  b.popc = __popc(x), b.ffs = __ffs(static_cast<int>(x)), b.clz = __clz(static_cast<int>(x));
  b.popcll = __popcll(w), b.clzll = __clzll(s), b.ffsll = __ffsll(s);
  b.brev = __brev(x), b.brevll = __brevll(w);
  b.umulhi = __umulhi(x, y), b.mulhi = __mulhi(static_cast<int>(x), static_cast<int>(y));
  b.umul64hi = __umul64hi(w, w), b.mul64hi = __mul64hi(s, static_cast<int>(y));
  b.left = __funnelshift_l(y, x, k), b.right = __funnelshift_r(y, x, k);
  b.bytes = __byte_perm(x, y, 0x7250u);
  b.quotient = w / (y | 1u), b.rest = w % (y | 1u), b.shifted = s >> (k & 63u);
}

TEST(Intrinsics, Bits) {
  std::vector<TwoWords> in;
  for (unsigned k = 0; k < 1000; ++k)
    in.push_back({k < 33 ? (k ? 1u << (k - 1) : 0u) : some_number(k) * 977, some_number(k + 1), k});
  const auto out = of_each(bits, in);
  for (std::size_t i = 0; i < in.size(); ++i) {
    const auto [x, y, k] = in[i];
    const Bits& b = out[i];
    const std::uint64_t w = std::uint64_t{x} << 32 | y;
    std::uint64_t reversed = 0;
    int ones = 0, ones_high = 0, first = 0, first_high = 0, zeros = 64;
    for (int n = 0; n < 64; ++n) {
      if (!(w >> n & 1)) continue;
      ++ones, ones_high += n >= 32;
      reversed |= std::uint64_t{1} << (63 - n);
      if (!first) first = n + 1;
      if (!first_high && n >= 32) first_high = n - 31;
      zeros = 63 - n;
    }
    ASSERT_EQ(b.popc, ones_high);
    ASSERT_EQ(b.popcll, ones);
    ASSERT_EQ(b.ffs, first_high);
    ASSERT_EQ(b.ffsll, first);
    ASSERT_EQ(b.clz, std::min(zeros, 32));
    ASSERT_EQ(b.clzll, zeros);
    ASSERT_EQ(b.brev, static_cast<unsigned>(reversed));
    ASSERT_EQ(b.brevll, reversed);
    const auto s = static_cast<std::int64_t>(w);
    ASSERT_EQ(b.umulhi, static_cast<unsigned>(std::uint64_t{x} * y >> 32));
    ASSERT_EQ(b.mulhi, static_cast<int>(std::int64_t{static_cast<int>(x)} * static_cast<int>(y) >> 32));
    ASSERT_EQ(b.umul64hi, static_cast<std::uint64_t>(static_cast<unsigned __int128>(w) * w >> 64));
    ASSERT_EQ(b.mul64hi, static_cast<std::int64_t>(static_cast<__int128>(s) * static_cast<int>(y) >> 64));
    ASSERT_EQ(b.left, static_cast<unsigned>(w << k % 32 >> 32));
    ASSERT_EQ(b.right, static_cast<unsigned>(w >> k % 32));
    ASSERT_EQ(b.bytes, (y >> 24) << 24 | (x >> 16 & 255) << 16 | (y >> 8 & 255) << 8 | (x & 255));
    ASSERT_EQ(b.quotient, w / (y | 1u));
    ASSERT_EQ(b.rest, w % (y | 1u));
    ASSERT_EQ(b.shifted, s >> (k & 63u));
  }
}

struct Reals {
  float root, fused, product, sum, difference, quotient, square_root, least;
  double root_of_double, least_of_double, with_sign, wider;
  unsigned bits;
};

__global__ void reals(const float2* in, Reals* out, unsigned n) {
  if (own() >= n) return;
  const auto [x, y] = in[own()];
  Reals& r = out[own()];
  r.root = rsqrtf(x), r.root_of_double = rsqrt(static_cast<double>(x));
  r.fused = __fmaf_rn(x, y, -__fmul_rn(x, y));
  r.product = __fmul_rn(x, y), r.sum = __fadd_rn(y, x), r.difference = __fsub_rn(y, x);
  r.quotient = __fdiv_rn(x, y), r.square_root = __fsqrt_rn(x);
  r.least = fminf(x, y), r.least_of_double = fmax(static_cast<double>(x), 1.0 / y);
  r.with_sign = copysign(r.least_of_double, static_cast<double>(r.difference)), r.wider = widened(r.difference);
  r.bits = __float_as_uint(x) ^ static_cast<unsigned>(__double2hiint(__hiloint2double(7, 9)));
}

TEST(Intrinsics, RealNumbers) {
  std::vector<float2> in;
  for (unsigned k = 1; k < 1000; ++k)
    in.push_back({std::ldexp(1.0f + static_cast<float>(some_number(k)) * 0x1p-26f, static_cast<int>(k % 60) - 30),
                  1.0f / 3 + static_cast<float>(k % 100)});
  const auto out = of_each(reals, in);
  for (std::size_t i = 0; i < in.size(); ++i) {
    const auto [x, y] = in[i];
    const Reals& r = out[i];
    const double xd = x, yd = y;
    ASSERT_NEAR(r.root * std::sqrt(xd), 1.0, 1.2e-7);
    ASSERT_NEAR(r.root_of_double * std::sqrt(xd), 1.0, 4e-16);
    ASSERT_EQ(r.product, static_cast<float>(xd * yd));
    ASSERT_EQ(r.fused, static_cast<float>(xd * yd - static_cast<double>(r.product)));
    ASSERT_EQ(r.sum, y + x);
    ASSERT_EQ(r.difference, y - x);
    ASSERT_EQ(r.quotient, static_cast<float>(xd / yd));
    ASSERT_EQ(r.square_root, static_cast<float>(std::sqrt(xd)));
    ASSERT_EQ(r.least, std::min(x, y));
    ASSERT_EQ(r.least_of_double, std::max(xd, 1.0 / y));
    ASSERT_EQ(r.with_sign, std::copysign(r.least_of_double, r.difference));
    ASSERT_EQ(r.wider, static_cast<double>(r.difference));
    unsigned expected = 0;
    std::memcpy(&expected, &x, sizeof expected);
    ASSERT_EQ(r.bits, expected ^ 7u);
  }
}

// What is no number gives way to one; a number below the smallest normal one is zero in single precision (-ftz=true).
__global__ void special_reals(const float2* in, float2* out, unsigned n) {
  if (own() < n) out[own()] = {fminf(in[own()].x, in[own()].y), __fmul_rn(in[own()].x, in[own()].y)};
}

TEST(Intrinsics, SpecialNumbers) {
  const float nan = std::nanf("");
  const auto out =
      of_each(special_reals, std::vector<float2>{{1.0f, nan}, {nan, 2.0f}, {1e-30f, 1e-10f}, {-1e-30f, 1e-10f}});
  EXPECT_EQ(out[0].x, 1.0f);
  EXPECT_EQ(out[1].x, 2.0f);
  EXPECT_TRUE(std::isnan(out[0].y));
  EXPECT_EQ(out[2].y, 0.0f);
  EXPECT_TRUE(std::signbit(out[3].y));
}

struct Converted {
  int rn, rz, ru, rd;
  unsigned unsigned_rz;
  long long of_double, wide;
  float back;
  double back_wide;
};

__global__ void conversions(const double* in, Converted* out, unsigned n) {
  if (own() >= n) return;
  const double d = in[own()];
  const auto f = static_cast<float>(d);
  Converted& c = out[own()];
  c.rn = __float2int_rn(f), c.rz = __float2int_rz(f), c.ru = __float2int_ru(f), c.rd = __float2int_rd(f);
  c.unsigned_rz = __float2uint_rz(f), c.of_double = __double2ll_rn(d), c.wide = __float2ll_rz(f);
  c.back = static_cast<float>(c.wide), c.back_wide = static_cast<double>(static_cast<unsigned long long>(c.wide));
}

// Out of range: the nearest number there is.
template <class T>
T nearest(double v) {
  if (v <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  if (v >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  return static_cast<T>(v);
}

TEST(Intrinsics, Conversions) {
  std::vector<double> in{2.5, -3.5, 1e20, -1e20, -1.0, 4e9, -1e18, 0.5, -0.5, 1.5, 2147483647.0, -2147483648.0};
  for (unsigned k = 0; k < 500; ++k) in.push_back((some_number(k) * 0x1p-12 - 4000) * (k % 7));
  const auto out = of_each(conversions, in);
  for (std::size_t i = 0; i < in.size(); ++i) {
    const Converted& c = out[i];
    const float f = static_cast<float>(in[i]);
    ASSERT_EQ(c.rn, nearest<int>(std::nearbyint(f))) << f;
    ASSERT_EQ(c.rz, nearest<int>(std::trunc(f))) << f;
    ASSERT_EQ(c.ru, nearest<int>(std::ceil(f))) << f;
    ASSERT_EQ(c.rd, nearest<int>(std::floor(f))) << f;
    ASSERT_EQ(c.unsigned_rz, nearest<unsigned>(std::trunc(f))) << f;
    ASSERT_EQ(c.of_double, nearest<long long>(std::nearbyint(in[i]))) << f;
    ASSERT_EQ(c.wide, nearest<long long>(std::trunc(f))) << f;
    ASSERT_EQ(c.back, static_cast<float>(c.wide));
    ASSERT_EQ(c.back_wide, static_cast<double>(static_cast<std::uint64_t>(c.wide)));
  }
  EXPECT_EQ(of_each(conversions, std::vector{std::nan("")})[0].rz, 0);
}

}  // namespace
}  // namespace gpu_model
