// Barriers and warp operations that not all come to, accesses out of bounds, too early, or of what nobody wrote.
#include "tests/gpu_model/tests/planted.cuh"

// Faults are expected at lines counted from that of PLANTED: formatting would move them.
// clang-format off
namespace gpu_model::planted {
namespace {

// ---- barriers -----------------------------------------------------------------------------------------------------
PLANTED(BarrierAfterAnEarlyExit, "a divergent barrier", {5}) {
  __shared__ unsigned tile[kBlock];
  const bool work = threadIdx.x < 50;
  if (kBroken && !work) return;
  tile[threadIdx.x] = threadIdx.x;
  __syncthreads();
  if (work) data.out[global_thread()] = tile[49 - threadIdx.x];
}

PLANTED(BarriersInBothBranches, "a divergent barrier", {4, 6}) {
  __shared__ unsigned tile[kBlock];
  tile[threadIdx.x] = threadIdx.x;
  if (kBroken && threadIdx.x < 32) {
    __syncthreads();
  } else {
    __syncthreads();
  }
  data.out[global_thread()] = tile[kBlock - 1 - threadIdx.x];
}

PLANTED(LoopsOfDifferentLengthsAroundABarrier, "a divergent barrier", {4}) {
  const unsigned trips = kBroken ? 1 + threadIdx.x / 32 : 2;
  unsigned sum = 0;
  for (unsigned i = 0; i < trips; ++i)
    sum += static_cast<unsigned>(__syncthreads_or(1));
  data.out[global_thread()] = sum;
}

// ---- warp operations ----------------------------------------------------------------------------------------------
PLANTED(LaneMissingFromAReduction, "a lane missing from a mask", {3}) {
  unsigned sum = data.in[global_thread()];
  if (!kBroken || threadIdx.x % 32 != 7)
    sum = __reduce_add_sync(kAllLanes, sum);
  __syncthreads();
  data.out[global_thread()] = sum;
}

PLANTED(LaneOfAMaskHasEnded, "a lane missing from a mask", {2}) {
  if (threadIdx.x % 32 == 31) return;
  data.out[global_thread()] = __ballot_sync(kBroken ? kAllLanes : kAllLanes >> 1, threadIdx.x % 2);
}

PLANTED(CallerOutsideItsMask, "a lane missing from a mask", {2}) {
  const unsigned mask = kBroken ? kAllLanes - 1 : kAllLanes;
  data.out[global_thread()] = static_cast<unsigned>(__any_sync(mask, threadIdx.x == 3));
}

PLANTED(ShuffleFromOutsideTheMask, "a lane missing from a mask", {3}) {
  const unsigned mask = threadIdx.x % 32 < 16 ? 0x0000ffffu : 0xffff0000u;
  const unsigned from = kBroken ? threadIdx.x + 8 : threadIdx.x ^ 8;
  data.out[global_thread()] = __shfl_sync(mask, threadIdx.x, static_cast<int>(from % 32));
}

// ---- bounds -------------------------------------------------------------------------------------------------------
PLANTED(OnePastTheEndOfABuffer, "out of bounds", {2}, "numbers", kBlock - 1) {
  const unsigned next = global_thread() + 1;
  data.out[global_thread()] = kBroken || next < kCount ? data.in[next] : 0;
}

PLANTED(OnePastTheEndOfAStaticSharedArray, "out of bounds", {3}, "shared memory", kBlock - 1) {
  __shared__ unsigned tile[kBlock];
  __shared__ unsigned next_to_it[kBlock];
  tile[(threadIdx.x + kBroken) % (kBlock + kBroken)] = threadIdx.x;
  next_to_it[threadIdx.x] = 0;
  __syncthreads();
  data.out[global_thread()] = tile[threadIdx.x] + next_to_it[threadIdx.x];
}

PLANTED(OnePastTheEndOfDynamicSharedMemory, "out of bounds", {2}, "shared memory", kBlock - 1, kTileBytes) {
  unsigned* tile = dynamic_shared<unsigned>();
  tile[threadIdx.x + kBroken] = threadIdx.x;
  data.out[global_thread()] = 0;
}

PLANTED(LocalArrayOfAnotherThread, "out of bounds", {6}, "", 1) {
  __shared__ const unsigned* pointer;
  unsigned local[2] = {threadIdx.x, data.in[1]};
  if (threadIdx.x == 0) pointer = kBroken ? &local[data.in[0]] : data.in;
  __syncthreads();
  if (threadIdx.x == 1)
    data.out[global_thread()] = *pointer;
  __syncthreads();
}

PLANTED(MisalignedVector, "misaligned", {4}) {
  const float2* pairs = reinterpret_cast<const float2*>(data.in + (kBroken ? 1 : 0));
  if (threadIdx.x < 8) data.out[global_thread()] = __float_as_uint(pairs[threadIdx.x].y);
  const auto* wide = reinterpret_cast<const unsigned long long*>(pairs);
  if (threadIdx.x < 8) data.out[global_thread()] = static_cast<unsigned>(wide[threadIdx.x]);
}

// ---- unwritten and not yet written --------------------------------------------------------------------------------
PLANTED(ReadOfUnwrittenSharedMemory, "an uninitialised read", {4}, "shared memory", 12) {
  __shared__ unsigned tile[kBlock];
  if (!kBroken || threadIdx.x != 13) tile[threadIdx.x] = threadIdx.x;
  __syncthreads();
  data.out[global_thread()] = tile[threadIdx.x ^ 1];
}

PLANTED(ReadBeforeTheWaitForItsCopy, "a copy not waited for", {9}, "shared memory", kAnyThread, 2 * kTileBytes) {
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

// What is found first depends on the order.
PLANTED(CopyLandsForItsOwnThreadOnly, "", {2, 6}, "shared memory", kAnyThread, kTileBytes) {
  auto* tile = dynamic_shared<unsigned>();
  copy_async<4>(tile + threadIdx.x, data.in + global_thread());
  commit_copies();
  wait_copies<0>();
  if (!kBroken) __syncthreads();
  data.out[global_thread()] = tile[kBlock - 1 - threadIdx.x];
}

}  // namespace
}  // namespace gpu_model::planted
