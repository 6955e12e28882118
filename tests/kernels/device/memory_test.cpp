// The pool of device memory, memory of the host, and threads that take turns with the device.
#include "kernels/device/block_pool.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "kernels/device/buffer.hpp"
#include "kernels/device/device.hpp"
#include "kernels/device/stream.hpp"
#include "kernels/error.hpp"
#include "tests/messages.hpp"
#include "tests/temp_dir.hpp"
#include "tests/test_stream.hpp"

namespace maki {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

BlockPool make_pool() {
  return BlockPool({[](std::size_t bytes) { return std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096); },
                    [](void* block) { std::free(block); }});
}

// A block that work of one stream may still use is not handed to another.
TEST(BlockPool, ReleasedBlocksStayInTheirLane) {
  for (const std::size_t bytes : {std::size_t{1000}, 3 * kMiB, 40 * kMiB}) {
    BlockPool pool = make_pool();
    void* const mine = pool.allocate("a", bytes, 0);
    pool.release(mine);
    void* const other = pool.allocate("b", bytes, 1);
    EXPECT_NE(other, mine);
    EXPECT_EQ(pool.allocate("c", bytes, 0), mine);
    pool.release(other);
    pool.release(nullptr);
    for (const PoolBlock& block : pool.blocks()) pool.release(const_cast<char*>(block.begin));
    pool.trim();
    EXPECT_EQ(pool.report().reserved, 0u);
  }
}

TEST(BlockPool, TheScopeChoosesTheLane) {
  DeviceBuffer<char> outer("test.outer", 5000);
  const char* const place = outer.data();
  outer.release();
  {
    const PoolLane lane(7);
    DeviceBuffer<char> inner("test.inner", 5000);
    EXPECT_NE(inner.data(), place);
  }
  DeviceBuffer<char> again("test.outer", 5000);
  EXPECT_EQ(again.data(), place);
}

TEST(BlockPool, ThreadsHaveLanesOfTheirOwn) {
  DeviceBuffer<char> here("test.here", 5000);
  const char* const place = here.data();
  here.release();
  const auto there = [&] {
    const char* found = nullptr;
    std::thread([&] { found = DeviceBuffer<char>("test.there", 5000).data(); }).join();
    return found;
  };
  const char* const first = there();
  EXPECT_NE(first, place);
  EXPECT_EQ(there(), first) << "the next thread goes on with what the last one has left";
}

// Blocks never overlap, keep to their alignment, and the sums are right, whatever the order of requests.
TEST(BlockPool, RandomUseKeepsBlocksApart) {
  BlockPool pool = make_pool();
  std::mt19937 random(3);
  std::vector<std::pair<char*, std::size_t>> live;
  for (int step = 0; step < 4000; ++step) {
    if (live.empty() || (live.size() < 40 && random() % 2)) {
      const std::size_t bytes = std::size_t{1} << (random() % 24), exact = bytes + random() % bytes;
      live.emplace_back(static_cast<char*>(pool.allocate("x", exact, static_cast<int>(random() % 2))), exact);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(live.back().first) % 256, 0u);
    } else {
      const std::size_t i = random() % live.size();
      pool.release(live[i].first);
      live[i] = live.back();
      live.pop_back();
    }
    if (step % 100) continue;
    const std::vector<PoolBlock> blocks = pool.blocks();
    ASSERT_EQ(blocks.size(), live.size());
    std::size_t sum = 0;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      sum += blocks[i].bytes;
      if (i == 0) continue;
      ASSERT_GT(blocks[i].begin, blocks[i - 1].begin + blocks[i - 1].bytes);
    }
    const PoolReport report = pool.report();
    EXPECT_GE(report.in_use, sum);
    EXPECT_LE(report.in_use, sum + sum / 50 + live.size() * (kMiB / 2));
    EXPECT_GE(report.reserved, report.in_use);
  }
  for (const auto& [block, bytes] : live) pool.release(block);
  EXPECT_EQ(pool.report().in_use, 0u);
  pool.trim();
  EXPECT_EQ(pool.report().reserved, 0u);  // every neighbour has joined again
}

// Sizes that creep need little memory beside that in use.
TEST(BlockPool, SizesThatCreepLeaveLittleBehind) {
  BlockPool pool = make_pool();
  void* lists = nullptr;
  void* parts[4];
  for (int round = 0; round < 20; ++round) {
    for (void*& part : parts) part = pool.allocate("scratch", 12 * kMiB + static_cast<std::size_t>(round) * 70001, 0);
    for (void* part : parts) pool.release(part);
    lists = pool.allocate("lists", (44 + static_cast<std::size_t>(round)) * kMiB, 0);
    pool.release(lists);
  }
  EXPECT_LE(pool.report().most_reserved, 3 * pool.report().high_water);
  pool.trim();
}

// Lists are released where particles are sorted, and are longer afterwards.
TEST(BlockPool, AnArrayThatStaysLeavesLargeFreeBlocksWhole) {
  BlockPool pool = make_pool();
  pool.set_limit(128 * kMiB);
  void* const lists = pool.allocate("lists", 64 * kMiB, 0);
  pool.release(lists);
  void* const particles = pool.allocate("particles", 20 * kMiB, 0);
  void* const longer = pool.allocate("lists", 90 * kMiB, 0);
  for (void* const block : {particles, longer}) pool.release(block);
  pool.trim();
}

TEST(BlockPool, PeaksRememberWhoHeldWhat) {
  BlockPool pool = make_pool();
  void* const kept = pool.allocate("tree.cells", 2 * kMiB, 0);
  pool.watch({{"mesh."}, {"mesh.", "tree."}});
  void* const mesh = pool.allocate("mesh.density", 8 * kMiB, 0);
  void* const scratch = pool.allocate("sort.scratch", 4 * kMiB, 0);
  pool.release(scratch);
  pool.release(mesh);
  void* const later = pool.allocate("lists.words", 6 * kMiB, 0);
  const PoolReport report = pool.report();
  ASSERT_EQ(report.peaks.size(), 3u);
  EXPECT_EQ(report.high_water, report.peaks[0].bytes);
  ASSERT_EQ(report.peaks[0].arrays.size(), 3u);
  EXPECT_EQ(report.peaks[0].arrays[0].name, "mesh.density");
  EXPECT_EQ(report.peaks[0].arrays[2].name, "tree.cells");
  EXPECT_NEAR(static_cast<double>(report.peaks[0].bytes), 14.0 * kMiB, 0.01 * kMiB * 14);
  ASSERT_EQ(report.peaks[1].arrays.size(), 2u);  // at another moment
  EXPECT_EQ(report.peaks[1].arrays[0].name, "lists.words");
  ASSERT_EQ(report.peaks[2].arrays.size(), 1u);
  EXPECT_NEAR(static_cast<double>(report.peaks[2].bytes), 6.0 * kMiB, 0.01 * kMiB * 6);
  for (void* const block : {kept, later}) pool.release(block);
  pool.trim();
}

TEST(BlockPool, TheLimitFirstTrimsAndThenRefuses) {
  BlockPool pool = make_pool();
  pool.set_limit(100 * kMiB);
  void* const first = pool.allocate("first", 60 * kMiB, 0);
  pool.release(first);
  void* const second = pool.allocate("second", 80 * kMiB, 0);  // fits once the first has gone back
  EXPECT_LE(pool.report().reserved, 100 * kMiB);
  test::expect_contains(test::error_of([&] { pool.allocate("third.array", 30 * kMiB, 0); }), {"third.array"});
  void* const small = pool.allocate("small", 10 * kMiB, 0);
  pool.release(small);
  pool.release(second);
  pool.trim();
}

TEST(BlockPool, DevicesShareNeitherBlocksNorLimits) {
  BlockPool pool = make_pool();
  pool.set_limit(30 * kMiB, 1);
  void* const there = pool.allocate("there", 20 * kMiB, 0, 1);
  pool.release(there);
  void* const here = pool.allocate("here", 20 * kMiB, 0, 0);
  EXPECT_NE(here, there);
  EXPECT_EQ(pool.allocate("there", 20 * kMiB, 0, 1), there);
  EXPECT_NE(pool.allocate("here", 60 * kMiB, 0, 0), nullptr);
  test::expect_contains(test::error_of([&] { pool.allocate("third.array", 20 * kMiB, 0, 1); }), {"third.array"});
  EXPECT_EQ(pool.report(1).reserved_here + pool.report(0).reserved_here, pool.report().reserved);
  for (const PoolBlock& block : pool.blocks()) pool.release(const_cast<char*>(block.begin));
  pool.trim();
  EXPECT_EQ(pool.report(1).reserved_here, 0u);
}

TEST(Results, ComeWithOneWaitAndAreZeroWhereNobodyWrote) {
  const Stream& stream = test::test_stream();
  Results results("test.results");
  for (const std::uint32_t value : {7u, 9u}) {
    const auto first = results.make<std::uint32_t>(stream);
    const auto second = results.make<double>(stream);
    copy_to_device(stream, first.place, &value, sizeof value);
    const std::uint64_t waits = transfer_counters().waits;
    results.fetch(stream);
    EXPECT_EQ(transfer_counters().waits, waits + 1);
    EXPECT_EQ(results[first], value);
    EXPECT_EQ(results[second], 0.0);
  }
}

TEST(Results, AreNoMoreThanThereIsRoomFor) {
  const Stream& stream = test::test_stream();
  Results results("test.results");
  for (std::size_t k = 0; k < Results::kRoom / Results::kAlignment; ++k) results.make<std::uint32_t>(stream);
  EXPECT_THROW(results.make<std::uint32_t>(stream), std::logic_error);
}

class HostMemory : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root_ / name).parent_path());
    std::ofstream(root_ / name) << text;
  }
  std::size_t available() const { return host_memory_available(root_.path()); }
  const test::TempDir root_;
};

TEST_F(HostMemory, IsTheKernelsFigure) {
  EXPECT_EQ(available(), 0u);
  write("proc/meminfo", "MemTotal:  9000 kB\nMemFree:  100 kB\nMemAvailable:  7000 kB\n");
  EXPECT_EQ(available(), 7000u * 1024);
  EXPECT_GT(host_memory_available(), std::size_t{1} << 20);  // of this machine
}

TEST_F(HostMemory, OrWhatAControlGroupLeaves) {
  write("proc/meminfo", "MemAvailable:  7000 kB\n");
  write("proc/self/cgroup", "0::/job/step\n");
  write("sys/fs/cgroup/job/step/memory.max", "max\n");
  write("sys/fs/cgroup/job/step/memory.current", "4096\n");
  EXPECT_EQ(available(), 7000u * 1024);
  write("sys/fs/cgroup/job/memory.max", "1000000\n");  // the limit may be set above
  write("sys/fs/cgroup/job/memory.current", "300000\n");
  EXPECT_EQ(available(), 700000u);
  write("sys/fs/cgroup/job/memory.stat", "anon 5\ninactive_file 100000\n");
  EXPECT_EQ(available(), 800000u);
}

TEST_F(HostMemory, InTheFirstVersionToo) {
  write("proc/self/cgroup", "5:cpu:/x\n4:memory:/job\n");
  write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "5000000\n");
  write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "2000000\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", "2000000\n");
  EXPECT_EQ(available(), 3000000u);
}

TEST_F(HostMemory, AndQuotasOfProcessorsAreThoseOfTheTightestGroup) {
  const auto quota = [this] { return processor_quota(root_.path()); };
  EXPECT_EQ(quota(), std::numeric_limits<double>::infinity());
  write("proc/self/cgroup", "0::/pod/container\n");
  write("sys/fs/cgroup/pod/container/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), std::numeric_limits<double>::infinity());
  write("sys/fs/cgroup/pod/cpu.max", "250000 100000\n");
  EXPECT_EQ(quota(), 2.5);
  write("proc/self/cgroup", "3:cpu,cpuacct:/docker/0f3\n2:cpuset:/docker/0f3\n");  // seen as / in the container
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "50000\n");
  EXPECT_EQ(quota(), std::numeric_limits<double>::infinity());
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n");
  EXPECT_EQ(quota(), 4);
}

constexpr std::size_t kMany = 5000;

// The modelled GPU tells of work that nothing orders, and of memory of another GPU.
TEST(DeviceTurn, StreamsMayChangeTheirThreads) {
  const Stream one, other;
  DeviceBuffer<char> block("test.turns", kMany);
  std::thread([&] {
    const DeviceTurn turn;
    select_device(0, 0);
    block.fill_zero(one);
    block.release();
  }).join();
  const DeviceTurn turn;
  select_device(0, 0);
  DeviceBuffer<char> again("test.turns");
  const std::vector<char> values(kMany, 'x');
  again.upload(other, values);
  EXPECT_EQ(again.download(other), values);
}

TEST(DeviceTurn, DevicesHaveMemoryOfTheirOwn) {
  const int last = device_count() - 1;
  for (const int device : {last, 0, last, 0}) {
    select_device(device, 0);
    const Stream stream;
    DeviceBuffer<int> block("test.device", 100);
    block.fill_zero(stream);
    EXPECT_EQ(block.download(stream), std::vector<int>(100, 0));
    const std::vector<int> values(100, device + 1);
    block.upload(stream, values);
    EXPECT_EQ(block.download(stream), values);
  }
}

}  // namespace
}  // namespace maki
