#include "src/timing/phase_timers.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include "tests/messages.hpp"

namespace maki {
namespace {

TEST(PhaseTimers, ScopesNestAndCount) {
  PhaseTimers timers;
  for (int i = 0; i < 3; ++i) {
    PhaseTimers::Scope step(timers, "step");
    { PhaseTimers::Scope tree(timers, "tree"); }
    { PhaseTimers::Scope tree(timers, "tree"); }
  }
  const std::vector<PhaseTime> phases = timers.phases();
  ASSERT_EQ(phases.size(), 2u);
  EXPECT_EQ(phases[0].path, "step");
  EXPECT_EQ(phases[0].calls, 3u);
  EXPECT_EQ(phases[1].path, "step/tree");
  EXPECT_EQ(phases[1].calls, 6u);
  EXPECT_LE(phases[1].seconds, phases[0].seconds);
}

TEST(PhaseTimers, ResetKeepsTotals) {
  PhaseTimers timers;
  { PhaseTimers::Scope step(timers, "step"); }
  const double total = timers.phases()[0].total_seconds;
  timers.reset();
  EXPECT_EQ(timers.phases()[0].seconds, 0);
  EXPECT_EQ(timers.phases()[0].total_seconds, total);
}

TEST(PhaseTimers, SameNameUnderTwoParentsIsTwoNodes) {
  PhaseTimers timers;
  {
    PhaseTimers::Scope a(timers, "a");
    PhaseTimers::Scope sort(timers, "sort");
  }
  {
    PhaseTimers::Scope b(timers, "b");
    PhaseTimers::Scope sort(timers, "sort");
  }
  {
    PhaseTimers::Scope a(timers, "a");
    PhaseTimers::Scope walk(timers, "walk");
  }
  std::vector<std::string> paths;
  for (const PhaseTime& phase : timers.phases()) paths.push_back(phase.path);
  EXPECT_EQ(paths, (std::vector<std::string>{"a", "a/sort", "a/walk", "b", "b/sort"}));
  EXPECT_EQ(timers.phases().back().calls, 1u);
}

// Work on a stream is timed there; its seconds come with collect(), and the clock's marks are used again.
TEST(PhaseTimers, WorkOnStreamsIsCollected) {
  const Stream main, side;
  PhaseTimers timers;
  std::size_t marks = 0;
  for (int step = 1; step <= 5; ++step) {
    timers.reset();
    {
      const PhaseTimers::Scope tree(timers, "tree", main);
      const PhaseTimers::Scope walk(timers, "walk", main);
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    { const PhaseTimers::Scope mesh(timers, "mesh", side); }
    timers.collect();
    const std::vector<PhaseTime> phases = timers.phases();
    const PhaseTime& tree = phases[0];
    EXPECT_EQ(tree.calls, static_cast<std::uint64_t>(step));
    EXPECT_GT(tree.seconds, 0);
    EXPECT_LE(phases[1].seconds, tree.seconds);
    EXPECT_GE(tree.total_seconds, tree.seconds);
    if (step == 1) marks = timers.marks_made();
  }
  EXPECT_EQ(marks, StreamClock::kChunk);
  EXPECT_EQ(timers.marks_made(), marks);
  EXPECT_EQ(timers.phases().at(2).path, "mesh");
}

TEST(PhaseTimers, UncollectedTimesArriveInTheEnd) {
  const Stream stream;
  PhaseTimers timers;
  for (int i = 0; i < 5000; ++i) PhaseTimers::Scope(timers, "kick", stream);
  EXPECT_LT(timers.marks_made(), 3000u);
  timers.reset();
  EXPECT_GT(timers.phases()[0].total_seconds, 0);
  EXPECT_EQ(timers.phases()[0].calls, 5000u);
  EXPECT_EQ(timers.phases()[0].seconds, 0);
}

TEST(PhaseTimers, TableHasOneLineForEachNodeAndTheTotal) {
  PhaseTimers timers;
  {
    PhaseTimers::Scope step(timers, "step");
    PhaseTimers::Scope tree(timers, "tree");
  }
  const std::string table = timers.table();
  test::expect_contains(table, {"\nstep", "\n  tree", "\ntotal"});
}

}  // namespace
}  // namespace maki
