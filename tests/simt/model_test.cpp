// Whole kernels under the model, and the model's own manners: order, seeds, shared memory, copies, constants.
#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "kernels/device/buffer.hpp"
#include "kernels/device/cooperative.cuh"

namespace maki {
namespace {

std::vector<unsigned> numbers(unsigned n) {
  std::vector<unsigned> values(n);
  for (unsigned i = 0; i < n; ++i) values[i] = i * i % 17;
  return values;
}

__global__ void scan_kernel(const unsigned* in, unsigned* out) {
  __shared__ unsigned totals[32];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned sum = in[i];
  for (unsigned d = 1; d < 32; d *= 2) {
    const unsigned left = __shfl_up_sync(kAllLanes, sum, d);
    if (lane >= d) sum += left;
  }
  if (lane == 31) totals[warp] = sum;
  __syncthreads();
  for (unsigned w = 0; w < warp; ++w) sum += totals[w];
  out[i] = sum;
}

TEST(Model, ScanOfABlock) {
  Stream stream;
  for (const unsigned block : {32u, 128u, 1024u}) {
    const unsigned grid = 3;
    const auto values = numbers(block * grid);
    DeviceBuffer<unsigned> in("in"), out("out", values.size());
    in.upload(stream, values);
    simt::for_seeds(20, [&](std::uint64_t) {
      launch_blocks(stream, "scan", {grid, block}, scan_kernel, in.data(), out.data());
      const auto result = out.download(stream);
      for (unsigned b = 0; b < grid; ++b) {
        unsigned sum = 0;
        for (unsigned i = 0; i < block; ++i) ASSERT_EQ(result[b * block + i], sum += values[b * block + i]);
      }
    });
  }
}

// Halving in dynamic shared memory: the last steps within a warp.
template <class T>
__global__ void reduce_kernel(const T* in, T* out) {
  T* sums = dynamic_shared<T>();
  sums[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
  for (unsigned half = blockDim.x / 2; half >= 32; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  if (threadIdx.x >= 32) return;
  for (unsigned half = 16; half > 0; half /= 2) {
    __syncwarp();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  if (threadIdx.x == 0) atomicAdd(out, sums[0]);
}

TEST(Model, SumOfAllBlocks) {
  Stream stream;
  const unsigned block = 256, grid = 5;
  const auto values = numbers(block * grid);
  DeviceBuffer<unsigned> in("in"), out("out", 1);
  in.upload(stream, values);
  simt::for_seeds(20, [&](std::uint64_t) {
    out.fill_zero(stream);
    launch_blocks(stream, "reduce", {grid, block, block * sizeof(unsigned)}, reduce_kernel<unsigned>, in.data(),
                  out.data());
    ASSERT_EQ(out.download(stream)[0], std::accumulate(values.begin(), values.end(), 0u));
  });
}

// Double-buffered tiles: the sum of all values, by every thread of every block.
__global__ void tiles_kernel(const uint4* in, unsigned tiles, unsigned* out) {
  uint4* shared = dynamic_shared<uint4>();
  const unsigned n = blockDim.x;
  copy_async<16>(shared + threadIdx.x, in + threadIdx.x);
  commit_copies();
  unsigned sum = 0;
  for (unsigned t = 0; t < tiles; ++t) {
    if (t + 1 < tiles) copy_async<16>(shared + (t + 1) % 2 * n + threadIdx.x, in + (t + 1) * n + threadIdx.x);
    commit_copies();
    wait_copies<1>();
    __syncthreads();
    for (unsigned i = 0; i < n; ++i) {
      const uint4 v = shared[t % 2 * n + i];
      sum += v.x + v.y + v.z + v.w;
    }
    __syncthreads();
  }
  out[blockIdx.x * n + threadIdx.x] = sum;
}

TEST(Model, DoubleBufferedTiles) {
  Stream stream;
  const unsigned block = 64, grid = 2, tiles = 5;
  const auto values = numbers(4 * block * tiles);
  DeviceBuffer<unsigned> in("in"), out("out", grid * block);
  in.upload(stream, values);
  simt::for_seeds(20, [&](std::uint64_t) {
    launch_blocks(stream, "tiles", {grid, block, 2 * block * sizeof(uint4)}, tiles_kernel,
                  reinterpret_cast<const uint4*>(in.data()), tiles, out.data());
    for (const unsigned sum : out.download(stream)) ASSERT_EQ(sum, std::accumulate(values.begin(), values.end(), 0u));
  });
}

// A copy is made at the wait and not before: what its thread writes to the source in between arrives with it.
TEST(Model, CopiesLandAtTheWait) {
  Stream stream;
  DeviceBuffer<unsigned> word("word", 1), out("out", 1);
  unsigned* const at = word.data();
  unsigned* const to = out.data();
  word.fill_zero(stream);
  simt::launch("copy", 1, 32, 4, [=] {
    unsigned* shared = dynamic_shared<unsigned>();
    if (threadIdx.x != 0) return;
    copy_async<4>(shared, at);
    commit_copies();
    *at = 5;
    wait_copies<0>();
    *to = *shared;
  });
  EXPECT_EQ(out.download(stream)[0], 5u);
}

constexpr unsigned kTable[5] = {2, 3, 5, 7, 11};

struct Large {
  unsigned words[40];
};

__global__ void constants_kernel(Large large, unsigned* out) {
  unsigned local[40];
  for (unsigned i = 0; i < 40; ++i) local[i] = large.words[(i + threadIdx.x) % 40];
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = local[threadIdx.x % 7] * kTable[i % 5];
}

TEST(Model, ArgumentsConstantsAndLocalArrays) {
  Stream stream;
  Large large;
  for (unsigned i = 0; i < 40; ++i) large.words[i] = 100 + i;
  DeviceBuffer<unsigned> out("out", 128);
  launch_blocks(stream, "constants", {2, 64}, constants_kernel, large, out.data());
  const auto result = out.download(stream);
  for (unsigned i = 0; i < 128; ++i) {
    const unsigned t = i % 64;
    ASSERT_EQ(result[i], (100 + (t % 7 + t) % 40) * kTable[i % 5]);
  }
}

// The tickets that threads draw: different seeds give different orders, the same seed the same one; threads of a warp
// overtake each other.
TEST(Model, OrderComesFromTheSeed) {
  Stream stream;
  DeviceBuffer<unsigned> next("next", 1), out("out", 128);
  unsigned* const counter = next.data();
  unsigned* const to = out.data();
  const auto tickets = [&] {
    next.fill_zero(stream);
    simt::launch("tickets", 2, 64, 0, [=] { to[blockIdx.x * 64 + threadIdx.x] = atomicAdd(counter, 1u); });
    return out.download(stream);
  };
  std::set<std::vector<unsigned>> orders;
  std::set<bool> first_blocks, rising;
  simt::for_seeds(20, [&](std::uint64_t) {
    const auto order = tickets();
    simt::set_options(simt::options());
    EXPECT_EQ(tickets(), order);
    orders.insert(order);
    first_blocks.insert(order[0] < 64);
    rising.insert(order[0] < order[1]);
    auto sorted = order;
    std::sort(sorted.begin(), sorted.end());
    for (unsigned i = 0; i < 128; ++i) ASSERT_EQ(sorted[i], i);
  });
  EXPECT_GT(orders.size(), 10u);
  EXPECT_EQ(first_blocks.size(), 2u);
  EXPECT_EQ(rising.size(), 2u);
}

TEST(Model, ThreadsGiveWayBetweenAccesses) {
  Stream stream;
  DeviceBuffer<unsigned> flag("flag", 1), out("out", 32);
  unsigned* const at = flag.data();
  simt::for_seeds(5, [&](std::uint64_t) {
    flag.fill_zero(stream);
    // Every thread waits until all have come: without turns this would not end.
    simt::launch("spin", 1, 32, 0, [=] {
      atomicAdd(at, 1u);
      while (atomicAdd(at, 0u) < 32) {
      }
    });
  });
  simt::Options impatient = simt::options();
  const simt::Options before = impatient;
  impatient.patience = 100000;
  simt::set_options(impatient);
  try {
    simt::launch("spin", 1, 32, 0, [=] {
      while (atomicAdd(at, 0u) < 33) {
      }
    });
    ADD_FAILURE() << "it ended";
  } catch (const simt::Fault& fault) {
    EXPECT_EQ(fault.kind, simt::FaultKind::endless);
  }
  simt::set_options(before);
}

struct Square {
  const unsigned* in;
  unsigned* out;
  MAKI_HD void operator()(std::size_t i) const { out[i] = in[i] * in[i]; }
};

// Flat launches of the tests' own kernels are checked as well.
TEST(Model, FlatWork) {
  Stream stream;
  const auto values = numbers(1000);
  DeviceBuffer<unsigned> in("in"), out("out", values.size());
  in.upload(stream, values);
  launch(stream, "square", values.size(), Square{in.data(), out.data()});
  const auto result = out.download(stream);
  for (unsigned i = 0; i < 1000; ++i) ASSERT_EQ(result[i], values[i] * values[i]);
  try {
    launch(stream, "square", values.size() + 1, Square{in.data(), out.data()});
    ADD_FAILURE() << "one element too many";
  } catch (const simt::Fault& fault) {
    EXPECT_EQ(fault.kind, simt::FaultKind::out_of_bounds);
    EXPECT_EQ(fault.kernel, "square");
    EXPECT_EQ(fault.buffer, "in");
  }
}

TEST(Model, LaunchesThatNoDeviceTakes) {
  for (const auto& [block, bytes] :
       {std::pair{1025u, std::size_t{0}}, {0u, std::size_t{0}}, {32u, std::size_t{1} << 18}}) {
    try {
      simt::launch("large", 1, block, bytes, [] {});
      ADD_FAILURE() << block << " " << bytes;
    } catch (const simt::Fault& fault) {
      EXPECT_EQ(fault.kind, simt::FaultKind::bad_launch);
    }
  }
}

TEST(Model, FaultsSayEverything) {
  Stream stream;
  DeviceBuffer<unsigned> out("some.array", 100);
  unsigned* const to = out.data();
  try {
    simt::launch("too_far", 2, 64, 0, [=] { to[blockIdx.x * 64 + threadIdx.x] = 1; });
    FAIL();
  } catch (const simt::Fault& fault) {
    const std::string text = fault.what();
    for (const char* part : {"kernel 'too_far'", "block 1", "warp 1, lane", "writes 4 bytes at offset ", "'some.array'",
                             "400 bytes", "seed", "tests/simt/model_test.cpp:"})
      EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
    EXPECT_EQ(fault.buffer, "some.array");
  }
  EXPECT_THROW(simt::launch("throws", 1, 32, 0, [] { throw std::runtime_error("from a kernel"); }), simt::Fault);
  EXPECT_THROW(simt::launch("traps", 1, 32, 0, [] { __trap(); }), simt::Fault);
}

}  // namespace
}  // namespace maki
