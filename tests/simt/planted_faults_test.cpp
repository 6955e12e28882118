// Kernels with one fault each, beside their repaired twins: the model must find the fault whatever the order of threads,
// at its line, and must let the twin pass.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "kernels/device/buffer.hpp"
#include "kernels/device/cooperative.cuh"

namespace maki {
namespace {

using simt::Fault;
using simt::FaultKind;
using Lines = std::vector<int>;

constexpr unsigned kBlock = 64, kGrid = 2, kCount = kBlock * kGrid, kSeeds = 20;

struct Expected {
  FaultKind kind;
  Lines lines;                   // a fault is reported at one of them, and so is the other side of a race
  const char* buffer = "";       // part of its name
  int thread = -1;               // where only one can be
};

struct Data {
  const unsigned* in;  // 0, 1, 2 ... kCount
  unsigned* out;       // kCount
  unsigned* one;       // a single word
};
using Kernel = void (*)(Data);

class Planted : public testing::Test {
 protected:
  Planted() : in_("numbers", kCount), out_("results", kCount), one_("one word", 1) {
    std::vector<unsigned> values(kCount);
    for (unsigned i = 0; i < kCount; ++i) values[i] = i;
    in_.upload(stream_, values);
  }

  std::optional<Fault> run(const char* name, Kernel kernel, std::size_t shared_bytes) {
    one_.fill_zero(stream_);
    try {
      launch_blocks(stream_, name, {kGrid, kBlock, shared_bytes}, kernel, Data{in_.data(), out_.data(), one_.data()});
    } catch (const Fault& fault) {
      return fault;
    }
    return std::nullopt;
  }

  // With every seed `broken` fails as expected, the same way each time, and `repaired` passes.
  void expect_found(const Expected& expected, Kernel broken, Kernel repaired, std::size_t shared_bytes = 0) {
    if (!simt::knows_lines()) GTEST_SKIP() << "no addr2line here (package binutils) to tell the lines of faults";
    const auto listed = [&](const std::string& file, int line) {
      return file == "tests/simt/planted_faults_test.cpp" &&
             std::find(expected.lines.begin(), expected.lines.end(), line) != expected.lines.end();
    };
    simt::for_seeds(kSeeds, [&](std::uint64_t seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      const auto fault = run("broken", broken, shared_bytes);
      ASSERT_TRUE(fault) << "not found";
      SCOPED_TRACE(fault->what());
      EXPECT_EQ(fault->kind, expected.kind);
      EXPECT_EQ(fault->kernel, "broken");
      EXPECT_LT(fault->block, kGrid);
      EXPECT_GE(fault->thread, 0);
      EXPECT_LT(fault->thread, static_cast<int>(kBlock));
      EXPECT_TRUE(expected.thread < 0 || fault->thread == expected.thread);
      EXPECT_TRUE(listed(fault->file, fault->line));
      EXPECT_NE(fault->buffer.find(expected.buffer), std::string::npos);
      if (fault->kind == FaultKind::race) {
        EXPECT_TRUE(listed(fault->other.file, fault->other.line));
        EXPECT_TRUE(fault->other.block != fault->block || fault->other.thread != fault->thread);
      }
      simt::set_options(simt::options());  // the same random numbers again
      const auto again = run("broken", broken, shared_bytes);
      ASSERT_TRUE(again);
      EXPECT_STREQ(again->what(), fault->what());
      const auto none = run("repaired", repaired, shared_bytes);
      EXPECT_FALSE(none) << none->what();
    });
  }

  Stream stream_;
  DeviceBuffer<unsigned> in_, out_, one_;
};

__device__ unsigned global_thread() { return blockIdx.x * kBlock + threadIdx.x; }

// In each kernel kBroken is the fault; the constant before it is the line on which the kernel's own text begins, less one.

// ---- races -----------------------------------------------------------------------------------------------------------
constexpr int kReverse = __LINE__;
template <bool kBroken>
__global__ void reverse_block(Data data) {
  __shared__ unsigned tile[kBlock];
  tile[threadIdx.x] = data.in[global_thread()];
  if (!kBroken) __syncthreads();
  data.out[global_thread()] = tile[kBlock - 1 - threadIdx.x];
}

TEST_F(Planted, MissingSyncthreads) {
  expect_found({FaultKind::race, {kReverse + 4, kReverse + 6}, "tile"}, reverse_block<true>, reverse_block<false>);
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
  expect_found({FaultKind::race, {kRounds + 6, kRounds + 8}, "tile"}, rotate_block<true>, rotate_block<false>);
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
  expect_found({FaultKind::race, {kNeighbour + 4, kNeighbour + 9}, "tile"}, reverse_warp<true>, reverse_warp<false>);
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
  expect_found({FaultKind::race, {kPartial + 5, kPartial + 8}, "tile"}, half_a_warp<true>, half_a_warp<false>);
}

constexpr int kSameValue = __LINE__;
template <bool kBroken>
__global__ void all_write_one(Data data) {
  __shared__ unsigned flag;
  if (kBroken || threadIdx.x == 0)
    flag = 1;
  __syncthreads();
  data.out[global_thread()] = flag;
}

TEST_F(Planted, AllThreadsWriteTheSameValue) {
  expect_found({FaultKind::race, {kSameValue + 5}, "flag"}, all_write_one<true>, all_write_one<false>);
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
  expect_found({FaultKind::race, {kCounter + 6, kCounter + 8}, "count"}, count_in_shared<true>, count_in_shared<false>);
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
  expect_found({FaultKind::race, {kBytes + 4, kBytes + 5}, "tile"}, bytes_of_a_word<true>, bytes_of_a_word<false>);
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
  expect_found({FaultKind::race, {kBlocks + 5}, "one word", 0}, total_of_blocks<true>, total_of_blocks<false>);
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
  expect_found({FaultKind::race, {kLast + 4, kLast + 11}, "results", 0}, last_block_adds<true>, last_block_adds<false>);
}

// ---- barriers --------------------------------------------------------------------------------------------------------
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
  expect_found({FaultKind::divergent_barrier, {kExit + 7}}, early_exit<true>, early_exit<false>);
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
  expect_found({FaultKind::divergent_barrier, {kBranches + 6, kBranches + 8}}, barrier_in_branches<true>,
               barrier_in_branches<false>);
}

constexpr int kTrips = __LINE__;
template <bool kBroken>
__global__ void trips_differ(Data data) {
  const unsigned trips = kBroken ? 1 + threadIdx.x / 32 : 2;
  unsigned sum = 0;
  for (unsigned i = 0; i < trips; ++i)
    sum += static_cast<unsigned>(__syncthreads_count(1));
  data.out[global_thread()] = sum;
}

TEST_F(Planted, LoopsOfDifferentLengthsAroundABarrier) {
  expect_found({FaultKind::divergent_barrier, {kTrips + 6}}, trips_differ<true>, trips_differ<false>);
}

// ---- warp operations -------------------------------------------------------------------------------------------------
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
  expect_found({FaultKind::missing_lane, {kMissing + 5}}, lane_does_not_come<true>, lane_does_not_come<false>);
}

constexpr int kEnded = __LINE__;
template <bool kBroken>
__global__ void lane_has_ended(Data data) {
  if (threadIdx.x % 32 == 31) return;
  data.out[global_thread()] = __ballot_sync(kBroken ? kAllLanes : kAllLanes >> 1, threadIdx.x % 2);
}

TEST_F(Planted, LaneOfAMaskHasEnded) {
  expect_found({FaultKind::missing_lane, {kEnded + 4}}, lane_has_ended<true>, lane_has_ended<false>);
}

constexpr int kOutside = __LINE__;
template <bool kBroken>
__global__ void caller_outside_mask(Data data) {
  const unsigned mask = kBroken ? kAllLanes - 1 : kAllLanes;
  data.out[global_thread()] = static_cast<unsigned>(__any_sync(mask, threadIdx.x == 3));
}

TEST_F(Planted, CallerOutsideItsMask) {
  expect_found({FaultKind::missing_lane, {kOutside + 4}}, caller_outside_mask<true>, caller_outside_mask<false>);
}

constexpr int kShuffle = __LINE__;
template <bool kBroken>
__global__ void shuffle_from_outside(Data data) {
  const unsigned mask = threadIdx.x % 32 < 16 ? 0x0000ffffu : 0xffff0000u;
  const unsigned from = kBroken ? threadIdx.x + 8 : threadIdx.x ^ 8;
  data.out[global_thread()] = __shfl_sync(mask, threadIdx.x, static_cast<int>(from % 32));
}

TEST_F(Planted, ShuffleFromOutsideTheMask) {
  expect_found({FaultKind::bad_shuffle, {kShuffle + 5}}, shuffle_from_outside<true>, shuffle_from_outside<false>);
}

// ---- bounds ----------------------------------------------------------------------------------------------------------
constexpr int kBuffer = __LINE__;
template <bool kBroken>
__global__ void one_past_a_buffer(Data data) {
  const unsigned next = global_thread() + 1;
  data.out[global_thread()] = kBroken || next < kCount ? data.in[next] : 0;
}

TEST_F(Planted, OnePastTheEndOfABuffer) {
  expect_found({FaultKind::out_of_bounds, {kBuffer + 4}, "numbers", kBlock - 1}, one_past_a_buffer<true>,
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
  expect_found({FaultKind::out_of_bounds, {kStatic + 5}, "tile", kBlock - 1}, one_past_a_static_array<true>,
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
  expect_found({FaultKind::out_of_bounds, {kDynamic + 4}, "dynamic", kBlock - 1}, one_past_dynamic_memory<true>,
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
  expect_found({FaultKind::out_of_bounds, {kStack + 8}, "", 1}, address_of_a_local<true>, address_of_a_local<false>);
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
  expect_found({FaultKind::misaligned, {kMisaligned + 6}, "numbers"}, misaligned_vector<true>,
               misaligned_vector<false>);
}

// ---- unwritten and not yet written -----------------------------------------------------------------------------------
constexpr int kUnwritten = __LINE__;
template <bool kBroken>
__global__ void reads_unwritten(Data data) {
  __shared__ unsigned tile[kBlock];
  if (!kBroken || threadIdx.x != 13) tile[threadIdx.x] = threadIdx.x;
  __syncthreads();
  data.out[global_thread()] = tile[threadIdx.x ^ 1];
}

TEST_F(Planted, ReadOfUnwrittenSharedMemory) {
  expect_found({FaultKind::unwritten, {kUnwritten + 6}, "tile", 12}, reads_unwritten<true>, reads_unwritten<false>);
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
  expect_found({FaultKind::unlanded_copy, {kCopies + 11}, "dynamic"}, reads_before_the_wait<true>,
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
  if (!simt::knows_lines()) GTEST_SKIP() << "no addr2line here (package binutils) to tell the lines of faults";
  simt::for_seeds(kSeeds, [&](std::uint64_t) {
    const auto fault = run("broken", no_barrier_after_the_wait<true>, kBlock * sizeof(unsigned));
    ASSERT_TRUE(fault);  // a race, or before that an unwritten word or a copy under way, as the order is
    EXPECT_TRUE(fault->line == kLanded + 8 || fault->line == kLanded + 4) << fault->what();
    const auto none = run("repaired", no_barrier_after_the_wait<false>, kBlock * sizeof(unsigned));
    EXPECT_FALSE(none) << none->what();
  });
}

}  // namespace
}  // namespace maki
