// Every intrinsic of the model against its definition, for each thread of a block of two warps.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "kernels/device/buffer.hpp"
#include "kernels/device/cooperative.cuh"

namespace maki {
namespace {

constexpr unsigned kBlock = 64;

// What f() gives in each thread, the same for a few orders of threads.
template <class F>
auto in_each_thread(F f) {
  using T = decltype(f());
  DeviceBuffer<T> out("out", kBlock);
  std::vector<T> result;
  T* to = out.data();
  simt::for_seeds(4, [&](std::uint64_t seed) {
    simt::launch("each", 1, kBlock, 0, [=] { to[threadIdx.x] = f(); });
    const std::vector<T> now = out.download(Stream());
    EXPECT_TRUE(result.empty() || now == result) << "seed " << seed;
    result = now;
  });
  return result;
}

unsigned some_number(unsigned i) { return i * 2654435761u >> 7; }

TEST(Intrinsics, Shuffles) {
  const auto value = [](unsigned i) { return std::ldexp(static_cast<double>(some_number(i)), -30) - 1.0; };
  for (const int width : {2, 8, 32}) {
    for (const int argument : {0, 1, 3, 7, 19, 40}) {
      const auto direct = in_each_thread([=] { return __shfl_sync(kAllLanes, value(threadIdx.x), argument, width); });
      const auto up = in_each_thread([=] { return __shfl_up_sync(kAllLanes, value(threadIdx.x), argument, width); });
      const auto down =
          in_each_thread([=] { return __shfl_down_sync(kAllLanes, value(threadIdx.x), argument, width); });
      const auto crossed =
          in_each_thread([=] { return __shfl_xor_sync(kAllLanes, value(threadIdx.x), argument & 31, width); });
      for (int i = 0; i < static_cast<int>(kBlock); ++i) {
        const int first = i / width * width;
        ASSERT_EQ(direct[i], value(first + argument % width)) << i << " " << width << " " << argument;
        ASSERT_EQ(up[i], value(i - argument >= first ? i - argument : i));
        ASSERT_EQ(down[i], value(i + argument < first + width ? i + argument : i));
        const int partner = i % 32 ^ (argument & 31), end = i % 32 / width * width + width;
        ASSERT_EQ(crossed[i], value(partner < end ? i / 32 * 32 + partner : i));
      }
    }
  }
}

// Each half of a warp for itself, with all types that are shuffled.
TEST(Intrinsics, PartialMasks) {
  const auto half = [] { return threadIdx.x % 32 < 16 ? 0x0000ffffu : 0xffff0000u; };
  const auto f = in_each_thread([=] { return __shfl_xor_sync(half(), 0.5f * threadIdx.x, 1); });
  const auto l = in_each_thread([=] { return __shfl_xor_sync(half(), -1ll - threadIdx.x, 5); });
  const auto sum = in_each_thread([=] { return __reduce_add_sync(half(), threadIdx.x); });
  const auto votes = in_each_thread([=] { return __ballot_sync(half(), threadIdx.x % 3 == 0); });
  for (unsigned i = 0; i < kBlock; ++i) {
    ASSERT_EQ(f[i], 0.5f * (i ^ 1));
    ASSERT_EQ(l[i], -1ll - (i ^ 5));
    const unsigned first = i / 16 * 16;
    ASSERT_EQ(sum[i], 16 * first + 120);
    unsigned expected = 0;
    for (unsigned j = first; j < first + 16; ++j) expected |= (j % 3 == 0 ? 1u : 0u) << j % 32;
    ASSERT_EQ(votes[i], expected);
  }
}

// Lanes with different masks reach the operation inside a branch; a single lane may be a mask of its own.
TEST(Intrinsics, MasksInsideBranches) {
  const auto all = in_each_thread([] {
    const unsigned lane = threadIdx.x % 32;
    if (lane == 9) return __ballot_sync(1u << 9, 1) + __activemask();
    const unsigned others = ~(1u << 9);
    return lane % 2 ? __ballot_sync(others & 0xaaaaaaaau, 1) : __ballot_sync(others & 0x55555555u, lane < 10);
  });
  for (unsigned i = 0; i < kBlock; ++i)
    ASSERT_EQ(all[i], i % 32 == 9 ? 1u << 10 : i % 2 ? 0xaaaaaaaau & ~(1u << 9) : 0x155u) << i;
}

TEST(Intrinsics, VotesAndMatches) {
  EXPECT_EQ(in_each_thread([] { return __any_sync(kAllLanes, threadIdx.x == 40); })[40], 1);
  EXPECT_EQ(in_each_thread([] { return __any_sync(kAllLanes, threadIdx.x == 40); })[31], 0);
  EXPECT_EQ(in_each_thread([] { return __all_sync(kAllLanes, threadIdx.x != 40); })[31], 1);
  EXPECT_EQ(in_each_thread([] { return __all_sync(kAllLanes, threadIdx.x != 40); })[63], 0);
  const auto any = in_each_thread([] { return __match_any_sync(kAllLanes, some_number(threadIdx.x) % 5); });
  const auto all = in_each_thread([] {
    int equal = 7;
    const unsigned lanes = __match_all_sync(kAllLanes, threadIdx.x / 33, &equal);  // lane 32 differs from the rest
    return lanes ^ static_cast<unsigned>(equal);
  });
  for (unsigned i = 0; i < kBlock; ++i) {
    unsigned expected = 0;
    for (unsigned j = i / 32 * 32; j < i / 32 * 32 + 32; ++j)
      expected |= (some_number(i) % 5 == some_number(j) % 5 ? 1u : 0u) << j % 32;
    ASSERT_EQ(any[i], expected);
    ASSERT_EQ(all[i], i < 32 ? kAllLanes ^ 1u : 0u);
  }
}

TEST(Intrinsics, Reductions) {
  const auto bits = [] { return some_number(threadIdx.x) ^ 0x80000000u * (threadIdx.x % 2); };
  const auto signs = [=] { return static_cast<int>(bits()); };
  const auto add = in_each_thread([=] { return __reduce_add_sync(kAllLanes, bits()); });
  const auto add_signed = in_each_thread([=] { return __reduce_add_sync(kAllLanes, signs()); });
  const auto low = in_each_thread([=] { return __reduce_min_sync(kAllLanes, bits()); });
  const auto low_signed = in_each_thread([=] { return __reduce_min_sync(kAllLanes, signs()); });
  const auto high = in_each_thread([=] { return __reduce_max_sync(kAllLanes, bits()); });
  const auto high_signed = in_each_thread([=] { return __reduce_max_sync(kAllLanes, signs()); });
  const auto conjunction = in_each_thread([=] { return __reduce_and_sync(kAllLanes, bits() | 5); });
  const auto disjunction = in_each_thread([=] { return __reduce_or_sync(kAllLanes, bits()); });
  const auto parity = in_each_thread([=] { return __reduce_xor_sync(kAllLanes, bits()); });
  for (unsigned warp = 0; warp < 2; ++warp) {
    unsigned sum = 0, both = ~0u, either = 0, odd = 0, least = ~0u, most = 0;
    int least_signed = std::numeric_limits<int>::max(), most_signed = std::numeric_limits<int>::min();
    for (unsigned i = 32 * warp; i < 32 * warp + 32; ++i) {
      const unsigned x = some_number(i) ^ 0x80000000u * (i % 2);
      sum += x, both &= x | 5, either |= x, odd ^= x;
      least = std::min(least, x), most = std::max(most, x);
      least_signed = std::min(least_signed, static_cast<int>(x));
      most_signed = std::max(most_signed, static_cast<int>(x));
    }
    for (unsigned i = 32 * warp; i < 32 * warp + 32; ++i) {
      ASSERT_EQ(add[i], sum);
      ASSERT_EQ(add_signed[i], static_cast<int>(sum));
      ASSERT_EQ(conjunction[i], both);
      ASSERT_EQ(disjunction[i], either);
      ASSERT_EQ(parity[i], odd);
      ASSERT_EQ(low[i], least);
      ASSERT_EQ(high[i], most);
      ASSERT_EQ(low_signed[i], least_signed);
      ASSERT_EQ(high_signed[i], most_signed);
    }
  }
}

TEST(Intrinsics, BarriersThatCount) {
  const auto count = in_each_thread([] { return __syncthreads_count(threadIdx.x % 5 == 0); });
  const auto all = in_each_thread([] { return __syncthreads_and(threadIdx.x != 17); });
  const auto any = in_each_thread([] { return __syncthreads_or(threadIdx.x == 17) * 2 + __syncthreads_or(0); });
  for (unsigned i = 0; i < kBlock; ++i) {
    ASSERT_EQ(count[i], 13);
    ASSERT_EQ(all[i], 0);
    ASSERT_EQ(any[i], 2);
  }
}

// ---- atomics ------------------------------------------------------------------------------------------------------
// 128 threads of four blocks apply `f(word, i)` to a word that was `start`, in any order; the old values come back.
template <class T, class F>
std::pair<T, std::vector<T>> all_at_one_word(T start, F f) {
  DeviceBuffer<T> word("word"), old("old", 128);
  word.upload(Stream(), std::vector<T>{start});
  T* at = word.data();
  T* to = old.data();
  simt::launch("atomics", 4, 32, 0, [=] {
    const unsigned i = blockIdx.x * 32 + threadIdx.x;
    to[i] = f(at, i);
  });
  return {word.download(Stream())[0], old.download(Stream())};
}

template <class T>
class Atomics : public testing::Test {};
using Integers = testing::Types<int, unsigned, unsigned long long>;
TYPED_TEST_SUITE(Atomics, Integers);

TYPED_TEST(Atomics, Integers) {
  using T = TypeParam;
  simt::for_seeds(5, [](std::uint64_t) {
    const auto [sum, before] = all_at_one_word<T>(7, [](T* p, unsigned) { return atomicAdd(p, T{3}); });
    EXPECT_EQ(sum, T{7 + 3 * 128});
    EXPECT_EQ(std::set<T>(before.begin(), before.end()).size(), 128u);  // each came at another time
    EXPECT_EQ((all_at_one_word<T>(64, [](T* p, unsigned i) { return atomicMin(p, static_cast<T>(i + 5)); }).first),
              T{5});
    EXPECT_EQ((all_at_one_word<T>(64, [](T* p, unsigned i) { return atomicMax(p, static_cast<T>(i)); }).first), T{127});
    EXPECT_EQ(
        (all_at_one_word<T>(255, [](T* p, unsigned i) { return atomicAnd(p, static_cast<T>(~(1u << i % 4))); }).first),
        T{240});
    EXPECT_EQ((all_at_one_word<T>(0, [](T* p, unsigned i) { return atomicOr(p, static_cast<T>(1u << i % 9)); }).first),
              T{511});
    EXPECT_EQ((all_at_one_word<T>(1, [](T* p, unsigned i) { return atomicXor(p, static_cast<T>(i)); }).first), T{1});
    auto [last, earlier] = all_at_one_word<T>(1000, [](T* p, unsigned i) { return atomicExch(p, static_cast<T>(i)); });
    earlier.push_back(last);
    EXPECT_EQ(std::set<T>(earlier.begin(), earlier.end()).size(), 129u);  // nothing is lost
    const auto increased = all_at_one_word<T>(0, [](T* p, unsigned) {
      T seen = 0;
      for (;;) {
        const T found = atomicCAS(p, seen, static_cast<T>(seen + 2));
        if (found == seen) return found;
        seen = found;
      }
    });
    EXPECT_EQ(increased.first, T{256});
  });
}

TEST(Intrinsics, OtherAtomics) {
  EXPECT_EQ((all_at_one_word<unsigned>(0, [](unsigned* p, unsigned) { return atomicInc(p, 9); }).first), 128u % 10);
  EXPECT_EQ((all_at_one_word<unsigned>(4, [](unsigned* p, unsigned) { return atomicDec(p, 9); }).first), 6u);
  EXPECT_EQ((all_at_one_word<unsigned>(500, [](unsigned* p, unsigned) { return atomicSub(p, 2u); }).first), 244u);
  EXPECT_EQ((all_at_one_word<float>(0.5f, [](float* p, unsigned i) { return atomicAdd(p, 0.25f * i); }).first),
            2032.5f);
  EXPECT_EQ((all_at_one_word<double>(0, [](double* p, unsigned i) { return atomicAdd(p, 1.0 * i); }).first), 8128.0);
  EXPECT_EQ((all_at_one_word<long long>(5, [](long long* p, unsigned i) { return atomicMin(p, 3ll - i); }).first),
            -124);
  // 64 bits with the carry from the low word.
  using Wide = unsigned long long;
  EXPECT_EQ((all_at_one_word<Wide>(0xfffffff0u, [](Wide* p, unsigned) { return atomicAdd(p, Wide{1}); }).first),
            0xfffffff0ull + 128);
}

// ---- arithmetic ---------------------------------------------------------------------------------------------------
TEST(Intrinsics, Bits) {
  for (unsigned k = 0; k < 1000; ++k) {
    const unsigned x = k < 33 ? (k ? 1u << (k - 1) : 0u) : some_number(k) * 977, y = some_number(k + 1);
    const unsigned long long w = static_cast<unsigned long long>(x) << 32 | y;
    unsigned ones = 0, reversed = 0, first = 0, zeros = 32;
    for (unsigned i = 0; i < 32; ++i) {
      if (!(x >> i & 1)) continue;
      ++ones;
      reversed |= 1u << (31 - i);
      if (!first) first = i + 1;
      zeros = 31 - i;
    }
    ASSERT_EQ(__popc(x), static_cast<int>(ones));
    ASSERT_EQ(__brev(x), reversed);
    ASSERT_EQ(__ffs(static_cast<int>(x)), static_cast<int>(first));
    ASSERT_EQ(__clz(static_cast<int>(x)), static_cast<int>(zeros));
    ASSERT_EQ(__popcll(w), __popc(x) + __popc(y));
    ASSERT_EQ(__clzll(static_cast<long long>(w)), x ? __clz(static_cast<int>(x)) : 32 + __clz(static_cast<int>(y)));
    ASSERT_EQ(__ffsll(static_cast<long long>(w)), y   ? __ffs(static_cast<int>(y))
                                                  : x ? 32 + __ffs(static_cast<int>(x))
                                                      : 0);
    ASSERT_EQ(__brevll(w), static_cast<unsigned long long>(__brev(y)) << 32 | __brev(x));
    ASSERT_EQ(__umulhi(x, y), static_cast<unsigned>(static_cast<unsigned long long>(x) * y >> 32));
    const std::uint64_t xx = std::uint64_t{x} * x, xy = std::uint64_t{x} * y, yy = std::uint64_t{y} * y;
    ASSERT_EQ(__umul64hi(w, w), xx + 2 * (xy >> 32) + ((2 * (xy & 0xffffffffu) + (yy >> 32)) >> 32));
    ASSERT_EQ(__funnelshift_l(y, x, k), static_cast<unsigned>(w << k % 32 >> 32));
    ASSERT_EQ(__funnelshift_r(y, x, k), static_cast<unsigned>(w >> k % 32));
  }
  EXPECT_EQ(__mulhi(-3, 5), -1);
  EXPECT_EQ(__mul64hi(-3, 5), -1);
  EXPECT_EQ(__byte_perm(0x33221100u, 0x77665544u, 0x7250u), 0x77225500u);
  EXPECT_EQ(__byte_perm(0x00008000u, 0, 0x0919u), 0x00ff80ffu);
}

TEST(Intrinsics, RealNumbers) {
  EXPECT_EQ(__float_as_uint(1.0f), 0x3f800000u);
  EXPECT_EQ(__float_as_int(-0.0f), std::numeric_limits<int>::min());
  EXPECT_EQ(__uint_as_float(0x40490fdbu), 3.14159274f);
  EXPECT_EQ(__int_as_float(0x3f000000), 0.5f);
  EXPECT_EQ(__longlong_as_double(__double_as_longlong(0.1)), 0.1);
  EXPECT_EQ(__hiloint2double(__double2hiint(0.1), __double2loint(0.1)), 0.1);
  for (unsigned k = 1; k < 1000; ++k) {
    const float x = std::ldexp(1.0f + some_number(k) * 0x1p-26f, static_cast<int>(k % 60) - 30), y = 1.0f / 3 + k;
    ASSERT_NEAR(static_cast<double>(rsqrtf(x)) * std::sqrt(static_cast<double>(x)), 1.0, 6e-8);
    ASSERT_NEAR(rsqrt(static_cast<double>(x)) * std::sqrt(static_cast<double>(x)), 1.0, 3e-16);
    ASSERT_EQ(__fmaf_rn(x, y, -x * y), static_cast<float>(static_cast<double>(x) * y - static_cast<double>(x * y)));
    ASSERT_EQ(__fmul_rn(x, y), static_cast<float>(static_cast<double>(x) * y));
    ASSERT_EQ(__fadd_rn(y, 1.0f), y + 1.0f);
    ASSERT_EQ(__fsub_rn(y, 1.0f), y - 1.0f);
  }
  EXPECT_EQ(__float2int_rn(2.5f), 2);
  EXPECT_EQ(__float2int_rn(-3.5f), -4);
  EXPECT_EQ(__float2int_rz(-3.5f), -3);
  EXPECT_EQ(__float2int_ru(-3.5f), -3);
  EXPECT_EQ(__float2int_rd(-3.5f), -4);
  EXPECT_EQ(__float2int_rn(1e20f), std::numeric_limits<int>::max());
  EXPECT_EQ(__float2int_rn(-1e20f), std::numeric_limits<int>::min());
  EXPECT_EQ(__float2int_rz(std::nanf("")), 0);
  EXPECT_EQ(__float2uint_rz(-1.0f), 0u);
  EXPECT_EQ(__float2uint_rz(4e9f), 4000000000u);
  EXPECT_EQ(__double2ll_rn(-1e18), -1000000000000000000ll);
  EXPECT_EQ(__saturatef(-1.0f) + __saturatef(2.0f) + __saturatef(0.25f), 1.25f);
  EXPECT_EQ(min(-1, 1u), 1u);  // as unsigned numbers
  EXPECT_EQ(max(-1, 1u), 0xffffffffu);
  EXPECT_EQ(min(1.0f, std::nanf("")), 1.0f);
  EXPECT_EQ(max(2.0, 3.0f), 3.0);
}

TEST(Intrinsics, VectorTypes) {
  EXPECT_EQ(alignof(float4), 16u);
  EXPECT_EQ(alignof(float2), 8u);
  EXPECT_EQ(sizeof(float3), 12u);
  EXPECT_EQ(alignof(double2), 16u);
  EXPECT_EQ(sizeof(uchar4), 4u);
  const uint4 v = make_uint4(1, 2, 3, 4);
  EXPECT_EQ(v.x + 10 * v.y + 100 * v.z + 1000 * v.w, 4321u);
  const auto loaded = in_each_thread([] {
    float4 local[2] = {make_float4(1, 2, 3, 4), make_float4(5, 6, 7, 8)};
    return __ldg(&local[threadIdx.x % 2]).w;
  });
  for (unsigned i = 0; i < kBlock; ++i) ASSERT_EQ(loaded[i], i % 2 ? 8.0f : 4.0f);
}

}  // namespace
}  // namespace maki
