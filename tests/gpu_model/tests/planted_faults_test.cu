// Barriers and warp operations that not all come to, accesses out of bounds, too early, or of what nobody wrote.
#include "tests/gpu_model/tests/planted.cuh"

// Faults are expected at lines counted from __LINE__ before their kernel: formatting would move them.
// clang-format off
namespace gpu_model::planted {
namespace {

// In each kernel kBroken is the fault. The constant before it is its own line: the kernel's lines count from there.

// ---- barriers -----------------------------------------------------------------------------------------------------
constexpr int kExit = __LINE__;
template <bool kBroken>
__global__ void early_exit(Data data) {
  __shared__ unsigned tile[kBlock];
  const bool work = threadIdx.x < 50;
  if (kBroken && !work) return;
  tile[threadIdx.x] = threadIdx.x;
  __syncthreads();
  if (work) data.out[global_thread()] = tile[49 - threadIdx.x];
}

TEST_F(Planted, BarrierAfterAnEarlyExit) {
  expect_found({"a divergent barrier", {kExit + 7}}, early_exit<true>, early_exit<false>);
}

constexpr int kBranches = __LINE__;
template <bool kBroken>
__global__ void barrier_in_branches(Data data) {
  __shared__ unsigned tile[kBlock];
  tile[threadIdx.x] = threadIdx.x;
  if (kBroken && threadIdx.x < 32) {
    __syncthreads();
  } else {
    __syncthreads();
  }
  data.out[global_thread()] = tile[kBlock - 1 - threadIdx.x];
}

TEST_F(Planted, BarriersInBothBranches) {
  expect_found({"a divergent barrier", {kBranches + 6, kBranches + 8}}, barrier_in_branches<true>,
               barrier_in_branches<false>);
}

constexpr int kTrips = __LINE__;
template <bool kBroken>
__global__ void trips_differ(Data data) {
  const unsigned trips = kBroken ? 1 + threadIdx.x / 32 : 2;
  unsigned sum = 0;
  for (unsigned i = 0; i < trips; ++i)
    sum += static_cast<unsigned>(__syncthreads_or(1));
  data.out[global_thread()] = sum;
}

TEST_F(Planted, LoopsOfDifferentLengthsAroundABarrier) {
  expect_found({"a divergent barrier", {kTrips + 6}}, trips_differ<true>, trips_differ<false>);
}

// ---- warp operations ----------------------------------------------------------------------------------------------
constexpr int kMissing = __LINE__;
template <bool kBroken>
__global__ void lane_does_not_come(Data data) {
  unsigned sum = data.in[global_thread()];
  if (!kBroken || threadIdx.x % 32 != 7)
    sum = __reduce_add_sync(kAllLanes, sum);
  __syncthreads();
  data.out[global_thread()] = sum;
}

TEST_F(Planted, LaneMissingFromAReduction) {
  expect_found({"a lane missing from a mask", {kMissing + 5}}, lane_does_not_come<true>, lane_does_not_come<false>);
}

constexpr int kEnded = __LINE__;
template <bool kBroken>
__global__ void lane_has_ended(Data data) {
  if (threadIdx.x % 32 == 31) return;
  data.out[global_thread()] = __ballot_sync(kBroken ? kAllLanes : kAllLanes >> 1, threadIdx.x % 2);
}

TEST_F(Planted, LaneOfAMaskHasEnded) {
  expect_found({"a lane missing from a mask", {kEnded + 4}}, lane_has_ended<true>, lane_has_ended<false>);
}

constexpr int kOutside = __LINE__;
template <bool kBroken>
__global__ void caller_outside_mask(Data data) {
  const unsigned mask = kBroken ? kAllLanes - 1 : kAllLanes;
  data.out[global_thread()] = static_cast<unsigned>(__any_sync(mask, threadIdx.x == 3));
}

TEST_F(Planted, CallerOutsideItsMask) {
  expect_found({"a lane missing from a mask", {kOutside + 4}}, caller_outside_mask<true>, caller_outside_mask<false>);
}

constexpr int kShuffle = __LINE__;
template <bool kBroken>
__global__ void shuffle_from_outside(Data data) {
  const unsigned mask = threadIdx.x % 32 < 16 ? 0x0000ffffu : 0xffff0000u;
  const unsigned from = kBroken ? threadIdx.x + 8 : threadIdx.x ^ 8;
  data.out[global_thread()] = __shfl_sync(mask, threadIdx.x, static_cast<int>(from % 32));
}

TEST_F(Planted, ShuffleFromOutsideTheMask) {
  expect_found({"a lane missing from a mask", {kShuffle + 5}}, shuffle_from_outside<true>, shuffle_from_outside<false>);
}

// ---- bounds -------------------------------------------------------------------------------------------------------
constexpr int kBuffer = __LINE__;
template <bool kBroken>
__global__ void one_past_a_buffer(Data data) {
  const unsigned next = global_thread() + 1;
  data.out[global_thread()] = kBroken || next < kCount ? data.in[next] : 0;
}

TEST_F(Planted, OnePastTheEndOfABuffer) {
  expect_found({"out of bounds", {kBuffer + 4}, "numbers", kBlock - 1}, one_past_a_buffer<true>,
               one_past_a_buffer<false>);
}

constexpr int kStatic = __LINE__;
template <bool kBroken>
__global__ void one_past_a_static_array(Data data) {
  __shared__ unsigned tile[kBlock];
  __shared__ unsigned next_to_it[kBlock];
  tile[(threadIdx.x + kBroken) % (kBlock + kBroken)] = threadIdx.x;
  next_to_it[threadIdx.x] = 0;
  __syncthreads();
  data.out[global_thread()] = tile[threadIdx.x] + next_to_it[threadIdx.x];
}

TEST_F(Planted, OnePastTheEndOfAStaticSharedArray) {
  expect_found({"out of bounds", {kStatic + 5}, "shared memory", kBlock - 1}, one_past_a_static_array<true>,
               one_past_a_static_array<false>);
}

constexpr int kDynamic = __LINE__;
template <bool kBroken>
__global__ void one_past_dynamic_memory(Data data) {
  unsigned* tile = dynamic_shared<unsigned>();
  tile[threadIdx.x + kBroken] = threadIdx.x;
  data.out[global_thread()] = 0;
}

TEST_F(Planted, OnePastTheEndOfDynamicSharedMemory) {
  expect_found({"out of bounds", {kDynamic + 4}, "shared memory", kBlock - 1}, one_past_dynamic_memory<true>,
               one_past_dynamic_memory<false>, kBlock * sizeof(unsigned));
}

constexpr int kStack = __LINE__;
template <bool kBroken>
__global__ void address_of_a_local(Data data) {
  __shared__ const unsigned* pointer;
  unsigned local[2] = {threadIdx.x, data.in[1]};
  if (threadIdx.x == 0) pointer = kBroken ? &local[data.in[0]] : data.in;
  __syncthreads();
  if (threadIdx.x == 1)
    data.out[global_thread()] = *pointer;
  __syncthreads();
}

TEST_F(Planted, LocalArrayOfAnotherThread) {
  expect_found({"out of bounds", {kStack + 8}, "", 1}, address_of_a_local<true>, address_of_a_local<false>);
}

constexpr int kMisaligned = __LINE__;
template <bool kBroken>
__global__ void misaligned_vector(Data data) {
  const float2* pairs = reinterpret_cast<const float2*>(data.in + (kBroken ? 1 : 0));
  if (threadIdx.x < 8) data.out[global_thread()] = __float_as_uint(pairs[threadIdx.x].y);
  const auto* wide = reinterpret_cast<const unsigned long long*>(pairs);
  if (threadIdx.x < 8) data.out[global_thread()] = static_cast<unsigned>(wide[threadIdx.x]);
}

TEST_F(Planted, MisalignedVector) {
  expect_found({"misaligned", {kMisaligned + 6}}, misaligned_vector<true>,
               misaligned_vector<false>);
}

// ---- unwritten and not yet written --------------------------------------------------------------------------------
constexpr int kUnwritten = __LINE__;
template <bool kBroken>
__global__ void reads_unwritten(Data data) {
  __shared__ unsigned tile[kBlock];
  if (!kBroken || threadIdx.x != 13) tile[threadIdx.x] = threadIdx.x;
  __syncthreads();
  data.out[global_thread()] = tile[threadIdx.x ^ 1];
}

TEST_F(Planted, ReadOfUnwrittenSharedMemory) {
  expect_found({"an uninitialised read", {kUnwritten + 6}, "shared memory", 12}, reads_unwritten<true>, reads_unwritten<false>);
}

constexpr int kCopies = __LINE__;
template <bool kBroken>
__global__ void reads_before_the_wait(Data data) {
  auto* tile = dynamic_shared<uint4>();
  const auto* in = reinterpret_cast<const uint4*>(data.in);
  if (threadIdx.x < kBlock / 4) copy_async<16>(tile + threadIdx.x, in + threadIdx.x);
  commit_copies();
  if (threadIdx.x < kBlock / 4) copy_async<16>(tile + kBlock / 4 + threadIdx.x, in + kBlock / 4 + threadIdx.x);
  commit_copies();
  wait_copies<kBroken ? 2 : 1>();
  __syncthreads();
  data.out[global_thread()] = dynamic_shared<unsigned>()[kBlock - 1 - threadIdx.x];
  wait_copies<0>();
}

TEST_F(Planted, ReadBeforeTheWaitForItsCopy) {
  expect_found({"a copy not waited for", {kCopies + 11}, "shared memory"}, reads_before_the_wait<true>,
               reads_before_the_wait<false>, 2 * kBlock * sizeof(unsigned));
}

constexpr int kLanded = __LINE__;
template <bool kBroken>
__global__ void no_barrier_after_the_wait(Data data) {
  auto* tile = dynamic_shared<unsigned>();
  copy_async<4>(tile + threadIdx.x, data.in + global_thread());
  commit_copies();
  wait_copies<0>();
  if (!kBroken) __syncthreads();
  data.out[global_thread()] = tile[kBlock - 1 - threadIdx.x];
}

TEST_F(Planted, CopyLandsForItsOwnThreadOnly) {
  expect_found({"", {kLanded + 4, kLanded + 8}, "shared memory"}, no_barrier_after_the_wait<true>,
               no_barrier_after_the_wait<false>, kBlock * sizeof(unsigned));  // what is found first depends on the order
}

}  // namespace
}  // namespace gpu_model::planted
