// Which memory work may use, and which work comes after which.
#include <gtest/gtest.h>

#include "tests/gpu_model/memory/address_space.hpp"
#include "tests/gpu_model/memory/work.hpp"
#include "tests/gpu_model/runtime/call.hpp"

namespace gpu_model {
namespace {

// Streams that the runtime does not use.
constexpr int kFirst = 1000, kSecond = 1001;

struct Work {
  WorkNumber number;
  explicit Work(int stream) : number(add_work(stream, "test")) {}
  ~Work() { work_carried_out(number); }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
};

TEST(ModelledWork, ComesAfterWhatItsStreamAndTheHostWaitedFor) {
  const Lock lock;
  const Work a(kFirst), b(kSecond), c(kFirst);
  EXPECT_TRUE(comes_after(c.number, a.number));
  EXPECT_FALSE(comes_after(a.number, c.number));
  EXPECT_FALSE(comes_after(b.number, a.number));
  const Place place = end_of(kFirst);
  const Work d(kFirst);
  stream_waits(kSecond, place);
  const Work e(kSecond);
  EXPECT_TRUE(comes_after(e.number, c.number));
  EXPECT_FALSE(comes_after(e.number, d.number));
  EXPECT_FALSE(host_knows(end_of(kSecond)));
  host_waited(end_of(kSecond));
  const Work f(kFirst + 2);
  EXPECT_TRUE(host_knows(end_of(kSecond)));
  EXPECT_TRUE(host_knows(place));  // what the second stream waited for
  EXPECT_TRUE(comes_after(f.number, a.number));
  EXPECT_FALSE(comes_after(f.number, d.number));
  EXPECT_NE(words(f.number).find("stream 1002"), std::string::npos);
  host_waited(end_of(kFirst));
}

TEST(ModelledMemory, BlocksOfThePool) {
  const Lock lock;
  const Address segment = allocate_device(0, 4096);
  ASSERT_NE(segment, 0u);
  EXPECT_EQ(find_extent(segment + 5, next_work())->begin, segment);
  pool_block_made(segment, 1000, "first");
  pool_block_made(segment + 1024, 1000, "second");
  const Work early(kFirst);
  EXPECT_EQ(find_extent(segment + 999, early.number)->name, "first");
  EXPECT_EQ(find_extent(segment + 1000, early.number), nullptr);
  EXPECT_EQ(whereabouts(segment + 1004, early.number), "4 bytes behind the pool's block first (1000 bytes)");
  EXPECT_EQ(whereabouts(segment + 1020, early.number), "4 bytes before the pool's block second (1000 bytes)");

  // Given out again, and made smaller, while earlier work is queued.
  pool_block_gone(segment);
  pool_block_made(segment, 500, "third");
  pool_block_extent(segment + 1024, 10);
  const Work late(kFirst);
  EXPECT_EQ(find_extent(segment + 100, early.number)->name, "first");
  EXPECT_EQ(find_extent(segment + 900, early.number)->end, segment + 1000);
  EXPECT_EQ(find_extent(segment + 100, late.number)->name, "third");
  EXPECT_EQ(find_extent(segment + 900, late.number), nullptr);
  EXPECT_EQ(whereabouts(segment + 900, late.number),
            "in the pool's block first (1000 bytes), which was given back before");
  EXPECT_EQ(find_extent(segment + 1500, early.number)->end, segment + 2024);
  EXPECT_EQ(find_extent(segment + 1500, late.number), nullptr);
  EXPECT_EQ(find_extent(segment + 1030, late.number)->end, segment + 1034);

  EXPECT_TRUE(free_memory(segment));
  EXPECT_EQ(find_extent(segment + 100, late.number), nullptr);
  EXPECT_EQ(whereabouts(segment + 100, late.number), "in memory of GPU 0 (4096 bytes), which was freed");
  EXPECT_FALSE(free_memory(segment));
}

TEST(ModelledMemory, IsPoisonedAndHasGaps) {
  const Lock lock;
  const Address a = allocate_device(0, 100), b = allocate_device(0, 100);
  EXPECT_EQ(a % 256, 0u);
  EXPECT_EQ(*reinterpret_cast<unsigned char*>(view(a) + 99), 0xff);
  EXPECT_EQ(find_extent(a + 100, next_work()), nullptr);
  EXPECT_EQ(whereabouts(a + 101, next_work()), "1 bytes behind memory of GPU 0 (100 bytes)");
  EXPECT_EQ(whereabouts(12, next_work()), "at the null address");
  int own = 0;
  EXPECT_EQ(whereabouts(reinterpret_cast<Address>(&own), next_work()), "in the host's memory");
  EXPECT_TRUE(free_memory(b));
  EXPECT_TRUE(free_memory(a));
}

}  // namespace
}  // namespace gpu_model
