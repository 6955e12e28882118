// Accesses that nothing orders.
#include "tests/gpu_model/tests/planted.cuh"

// Faults are expected at lines counted from __LINE__ before their kernel: formatting would move them.
// clang-format off
namespace gpu_model::planted {
namespace {

// In each kernel kBroken is the fault. The constant before it is its own line: the kernel's lines count from there.

constexpr int kReverse = __LINE__;
template <bool kBroken>
__global__ void reverse_block(Data data) {
  __shared__ unsigned tile[kBlock];
  tile[threadIdx.x] = data.in[global_thread()];
  if (!kBroken) __syncthreads();
  data.out[global_thread()] = tile[kBlock - 1 - threadIdx.x];
}

TEST_F(Planted, MissingSyncthreads) {
  expect_found({"a race", {kReverse + 4, kReverse + 6}, "shared memory"}, reverse_block<true>, reverse_block<false>);
}

// The barrier between the reads of one round and the writes of the next.
constexpr int kRounds = __LINE__;
template <bool kBroken>
__global__ void rotate_block(Data data) {
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

TEST_F(Planted, MissingSyncthreadsBetweenRounds) {
  expect_found({"a race", {kRounds + 6, kRounds + 8}, "shared memory"}, rotate_block<true>, rotate_block<false>);
}

constexpr int kNeighbour = __LINE__;
template <bool kBroken>
__global__ void reverse_warp(Data data) {
  __shared__ unsigned tile[kBlock];
  tile[threadIdx.x] = data.in[global_thread()];
  if (kBroken)
    __shfl_sync(kAllLanes, 0u, 0);  // they meet, but nothing is ordered
  else
    __syncwarp();
  data.out[global_thread()] = tile[threadIdx.x ^ 31];
}

TEST_F(Planted, MissingSyncwarp) {
  expect_found({"a race", {kNeighbour + 4, kNeighbour + 9}, "shared memory"}, reverse_warp<true>, reverse_warp<false>);
}

// A __syncwarp that leaves out the lane that reads.
constexpr int kPartial = __LINE__;
template <bool kBroken>
__global__ void half_a_warp(Data data) {
  __shared__ unsigned tile[kBlock];
  const unsigned lane = threadIdx.x % 32, left = lane < 16 ? lane : lane - 16;
  tile[threadIdx.x] = data.in[global_thread()];
  __syncwarp(lane < 16 ? 0x0000ffffu : 0xffff0000u);
  if (!kBroken) __syncwarp();
  data.out[global_thread()] = tile[threadIdx.x - lane + 15 - left];
}

TEST_F(Planted, SyncwarpOfTheWrongLanes) {
  expect_found({"a race", {kPartial + 5, kPartial + 8}, "shared memory"}, half_a_warp<true>, half_a_warp<false>);
}

constexpr int kSameValue = __LINE__;
template <bool kBroken>
__global__ void all_write_one(Data data) {
  __shared__ unsigned flag;
  if (kBroken || threadIdx.x == 0)
    flag = data.in[1];
  __syncthreads();
  data.out[global_thread()] = flag;
}

TEST_F(Planted, AllThreadsWriteTheSameValue) {
  expect_found({"a race", {kSameValue + 5}, "shared memory"}, all_write_one<true>, all_write_one<false>);
}

constexpr int kCounter = __LINE__;
template <bool kBroken>
__global__ void count_in_shared(Data data) {
  __shared__ unsigned count;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  atomicAdd(&count, 1u);
  if (!kBroken) __syncthreads();
  data.out[global_thread()] = count;
}

TEST_F(Planted, PlainReadBesideAtomics) {
  expect_found({"a race", {kCounter + 6, kCounter + 8}, "shared memory"}, count_in_shared<true>, count_in_shared<false>);
}

constexpr int kBytes = __LINE__;
template <bool kBroken>
__global__ void bytes_of_a_word(Data data) {
  __shared__ unsigned char tile[kBlock + 1];
  tile[threadIdx.x] = static_cast<unsigned char>(threadIdx.x);  // neighbours share a word, but no byte
  if (kBroken) tile[threadIdx.x + 1] = 0;
  __syncthreads();
  data.out[global_thread()] = tile[threadIdx.x];
}

TEST_F(Planted, BytesOfAWord) {
  expect_found({"a race", {kBytes + 4, kBytes + 5}, "shared memory"}, bytes_of_a_word<true>, bytes_of_a_word<false>);
}

constexpr int kBlocks = __LINE__;
template <bool kBroken>
__global__ void total_of_blocks(Data data) {
  if (threadIdx.x == 0) {
    if (kBroken)
      *data.one = *data.one + data.in[blockIdx.x];
    else
      atomicAdd(data.one, data.in[blockIdx.x]);
  }
}

TEST_F(Planted, TwoBlocksAtOneWord) {
  expect_found({"a race between blocks", {kBlocks + 5}, "", 0}, total_of_blocks<true>, total_of_blocks<false>);
}

// The block that comes last to the counter adds up what all have written.
constexpr int kLast = __LINE__;
template <bool kBroken>
__global__ void last_block_adds(Data data) {
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

TEST_F(Planted, LastBlockWithoutAFence) {
  expect_found({"a race", {kLast + 4, kLast + 11}}, last_block_adds<true>, last_block_adds<false>);
}

}  // namespace
}  // namespace gpu_model::planted
