// Accesses that nothing orders.
#include "tests/gpu_model/tests/planted.cuh"

// Faults are expected at lines counted from that of PLANTED: formatting would move them.
// clang-format off
namespace gpu_model::planted {
namespace {

PLANTED(MissingSyncthreads, "a race", {2, 4}, "shared memory") {
  __shared__ unsigned tile[kBlock];
  tile[threadIdx.x] = data.in[global_thread()];
  if (!kBroken) __syncthreads();
  data.out[global_thread()] = tile[kBlock - 1 - threadIdx.x];
}

// The barrier between the reads of one round and the writes of the next.
PLANTED(MissingSyncthreadsBetweenRounds, "a race", {4, 6}, "shared memory") {
  __shared__ unsigned tile[kBlock];
  unsigned value = data.in[global_thread()];
  for (int round = 0; round < 3; ++round) {
    tile[threadIdx.x] = value;
    __syncthreads();
    value = tile[(threadIdx.x + 1) % kBlock];
    if (!kBroken) __syncthreads();
  }
  data.out[global_thread()] = value;
}

PLANTED(MissingSyncwarp, "a race", {2, 7}, "shared memory") {
  __shared__ unsigned tile[kBlock];
  tile[threadIdx.x] = data.in[global_thread()];
  if (kBroken)
    __shfl_sync(kAllLanes, 0u, 0);  // they meet, but nothing is ordered
  else
    __syncwarp();
  data.out[global_thread()] = tile[threadIdx.x ^ 31];
}

// A __syncwarp that leaves out the lane that reads.
PLANTED(SyncwarpOfTheWrongLanes, "a race", {3, 6}, "shared memory") {
  __shared__ unsigned tile[kBlock];
  const unsigned lane = threadIdx.x % 32, left = lane < 16 ? lane : lane - 16;
  tile[threadIdx.x] = data.in[global_thread()];
  __syncwarp(lane < 16 ? 0x0000ffffu : 0xffff0000u);
  if (!kBroken) __syncwarp();
  data.out[global_thread()] = tile[threadIdx.x - lane + 15 - left];
}

PLANTED(AllThreadsWriteTheSameValue, "a race", {3}, "shared memory") {
  __shared__ unsigned flag;
  if (kBroken || threadIdx.x == 0)
    flag = data.in[1];
  __syncthreads();
  data.out[global_thread()] = flag;
}

PLANTED(PlainReadBesideAtomics, "a race", {4, 6}, "shared memory") {
  __shared__ unsigned count;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  atomicAdd(&count, 1u);
  if (!kBroken) __syncthreads();
  data.out[global_thread()] = count;
}

PLANTED(BytesOfAWord, "a race", {2, 3}, "shared memory") {
  __shared__ unsigned char tile[kBlock + 1];
  tile[threadIdx.x] = static_cast<unsigned char>(threadIdx.x);  // neighbours share a word, but no byte
  if (kBroken) tile[threadIdx.x + 1] = 0;
  __syncthreads();
  data.out[global_thread()] = tile[threadIdx.x];
}

PLANTED(TwoBlocksAtOneWord, "a race between blocks", {3}, "", 0) {
  if (threadIdx.x == 0) {
    if (kBroken)
      *data.one = *data.one + data.in[blockIdx.x];
    else
      atomicAdd(data.one, data.in[blockIdx.x]);
  }
}

// The block that comes last to the counter adds up what all have written.
PLANTED(LastBlockWithoutAFence, "a race", {2, 9}) {
  __shared__ bool last;
  data.out[global_thread()] = data.in[global_thread()];
  if (!kBroken) __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(data.one, 1u) == gridDim.x - 1;
  __syncthreads();
  if (!last || threadIdx.x > 0) return;
  for (unsigned i = 1; i < kCount; ++i)
    data.out[0] += data.out[i];
}

}  // namespace
}  // namespace gpu_model::planted
