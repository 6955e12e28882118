// What a warp's lanes do together, and atomics, against their definitions.
#include <set>

#include "tests/gpu_model/tests/each_thread.cuh"

namespace gpu_model {
namespace {

using namespace maki;

MAKI_HD double some_value(unsigned i) { return some_number(i) * 0x1p-30 - 1.0; }

struct Shuffled {
  double direct, up, down, crossed;
  bool operator==(const Shuffled&) const = default;
};

__global__ void shuffles(Shuffled* out, int argument, int width) {
  const double v = some_value(threadIdx.x);
  out[threadIdx.x] = {__shfl_sync(kAllLanes, v, argument, width), __shfl_up_sync(kAllLanes, v, argument, width),
                      __shfl_down_sync(kAllLanes, v, argument, width),
                      __shfl_xor_sync(kAllLanes, v, argument & 31, width)};
}

TEST(Intrinsics, Shuffles) {
  const auto value = [](int i) { return some_value(static_cast<unsigned>(i)); };
  for (const int width : {2, 8, 32}) {
    for (const int argument : {0, 1, 3, 7, 19}) {
      const auto out = in_each_thread(shuffles, argument, width);
      for (int i = 0; i < static_cast<int>(kBlockOfTwo); ++i) {
        const Shuffled& s = out[static_cast<std::size_t>(i)];
        const int first = i / width * width;
        ASSERT_EQ(s.direct, value(first + argument % width)) << i << " " << width << " " << argument;
        ASSERT_EQ(s.up, value(i - argument >= first ? i - argument : i));
        ASSERT_EQ(s.down, value(i + argument < first + width ? i + argument : i));
        const int partner = i % 32 ^ argument, end = i % 32 / width * width + width;
        ASSERT_EQ(s.crossed, value(partner < end ? i / 32 * 32 + partner : i));
      }
    }
  }
}

struct OfHalf {
  long long l;
  float f;
  unsigned sum, votes, place;
  bool operator==(const OfHalf&) const = default;
};

// Each half of a warp for itself.
__global__ void partial_masks(OfHalf* out) {
  const unsigned half = threadIdx.x % 32 < 16 ? 0x0000ffffu : 0xffff0000u;
  out[threadIdx.x] = {__shfl_xor_sync(half, -1ll - threadIdx.x, 5), __shfl_xor_sync(half, 0.5f * threadIdx.x, 1),
                      __reduce_add_sync(half, threadIdx.x), __ballot_sync(half, threadIdx.x % 3 == 0), threadIdx.x};
}

TEST(Intrinsics, PartialMasks) {
  for (const OfHalf& r : in_each_thread(partial_masks)) {
    const unsigned i = r.place, first = i / 16 * 16;
    ASSERT_EQ(r.f, 0.5f * static_cast<float>(i ^ 1));
    ASSERT_EQ(r.l, -1ll - (i ^ 5));
    ASSERT_EQ(r.sum, 16 * first + 120);
    unsigned expected = 0;
    for (unsigned j = first; j < first + 16; ++j) expected |= (j % 3 == 0 ? 1u : 0u) << j % 32;
    ASSERT_EQ(r.votes, expected);
  }
}

// Lanes with different masks come to the operation inside a branch; a single lane may be a mask of its own.
__global__ void masks_in_branches(unsigned* out) {
  const unsigned lane = threadIdx.x % 32, others = ~(1u << 9);
  if (lane == 9)
    out[threadIdx.x] = __ballot_sync(1u << 9, 1);
  else if (lane % 2)
    out[threadIdx.x] = __ballot_sync(others & 0xaaaaaaaau, 1);
  else
    out[threadIdx.x] = __ballot_sync(others & 0x55555555u, lane < 10);
}

// One operation for all, each group of lanes with the mask that it has computed.
__global__ void masks_that_differ(unsigned* out) {
  const unsigned lane = threadIdx.x % 32, mask = lane < 5 ? 0x1fu : lane % 2 ? 0xaaaaaaa0u & ~0x1fu : 0x55555540u;
  out[threadIdx.x] = __ballot_sync(mask, lane % 3 == 0) ^ __reduce_or_sync(mask, 1u << lane);
}

TEST(Intrinsics, MasksOfBranches) {
  const auto all = in_each_thread(masks_in_branches);
  for (unsigned i = 0; i < kBlockOfTwo; ++i)
    ASSERT_EQ(all[i], i % 32 == 9 ? 1u << 9 : i % 2 ? 0xaaaaaaaau & ~(1u << 9) : 0x155u) << i;
  const auto differ = in_each_thread(masks_that_differ);
  for (unsigned i = 0; i < kBlockOfTwo; ++i) {
    const unsigned lane = i % 32, mask = lane < 5 ? 0x1fu : lane % 2 ? 0xaaaaaaa0u & ~0x1fu : 0x55555540u;
    unsigned votes = 0;
    for (unsigned j = 0; j < 32; ++j) votes |= (mask >> j & 1 && j % 3 == 0 ? 1u : 0u) << j;
    ASSERT_EQ(differ[i], votes ^ mask) << i;
  }
}

struct Together {
  int any, all, any_of_block, none_of_block;
  unsigned match, add, low, either;
  bool operator==(const Together&) const = default;
};

MAKI_HD unsigned some_bits(unsigned i) { return some_number(i) ^ 0x80000000u * (i % 2); }

__global__ void together(Together* out) {
  const unsigned t = threadIdx.x, bits = some_bits(t);
  out[t] = {__any_sync(kAllLanes, t == 40),
            __all_sync(kAllLanes, t != 40),
            __syncthreads_or(t == 17),
            __syncthreads_or(0),
            __match_any_sync(kAllLanes, some_number(t) % 5),
            __reduce_add_sync(kAllLanes, bits),
            __reduce_min_sync(kAllLanes, bits),
            __reduce_or_sync(kAllLanes, bits)};
}

TEST(Intrinsics, VotesMatchesReductionsAndBarriers) {
  const auto out = in_each_thread(together);
  for (unsigned i = 0; i < kBlockOfTwo; ++i) {
    const unsigned first = i / 32 * 32;
    Together e{i >= 32, i < 32, 1, 0, 0, 0, ~0u, 0};
    for (unsigned j = first; j < first + 32; ++j) {
      e.match |= (some_number(i) % 5 == some_number(j) % 5 ? 1u : 0u) << j % 32;
      e.add += some_bits(j), e.low = std::min(e.low, some_bits(j)), e.either |= some_bits(j);
    }
    ASSERT_TRUE(out[i] == e) << i;
  }
}

// ---- atomics ------------------------------------------------------------------------------------------------------
enum Word { kSum, kMin, kMax, kSwapped, kWords };

template <class T>
__device__ void change_all(T* words, unsigned i, T* before_sum) {
  *before_sum = atomicAdd(words + kSum, T{3});
  atomicMin(words + kMin, static_cast<T>(i + 5));
  atomicMax(words + kMax, static_cast<T>(i));
  T seen = 0;
  for (;;) {
    const T found = atomicCAS(words + kSwapped, seen, static_cast<T>(seen + 2));
    if (found == seen) break;
    seen = found;
  }
}

// 128 threads at the same words, of global memory in four blocks, of shared memory in one.
template <class T>
__global__ void in_global(T* words, T* sums) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  change_all(words, i, sums + i);
}
template <class T>
__global__ void in_shared(T* words, T* sums) {
  __shared__ T own[kWords];
  if (threadIdx.x < kWords) own[threadIdx.x] = words[threadIdx.x];
  __syncthreads();
  change_all(own, threadIdx.x, sums + threadIdx.x);
  __syncthreads();
  if (threadIdx.x < kWords) words[threadIdx.x] = own[threadIdx.x];
}

template <class T>
class Atomics : public testing::Test {};
using Integers = testing::Types<int, unsigned, unsigned long long>;
TYPED_TEST_SUITE(Atomics, Integers);

TYPED_TEST(Atomics, OfIntegers) {
  using T = TypeParam;
  const Stream stream;
  DeviceBuffer<T> words("words"), sums("sums", 128);
  for (int run = 0; run < 6; ++run) {
    words.upload(stream, std::vector<T>{7, 64, 64, 0});
    if (run % 2)
      launch_blocks(stream, "in_shared", {1, 128}, in_shared<T>, words.data(), sums.data());
    else
      launch_blocks(stream, "in_global", {4, 32}, in_global<T>, words.data(), sums.data());
    const auto w = words.download(stream), before = sums.download(stream);
    EXPECT_EQ(w[kSum], T{7 + 3 * 128});
    EXPECT_EQ(std::set<T>(before.begin(), before.end()).size(), 128u);  // each came at another time
    EXPECT_EQ(w[kMin], T{5});
    EXPECT_EQ(w[kMax], T{127});
    EXPECT_EQ(w[kSwapped], T{256});
  }
}

}  // namespace
}  // namespace gpu_model
