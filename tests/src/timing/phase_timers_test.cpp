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
  ASSERT_EQ(timers.root().children.size(), 1u);
  const auto& step = *timers.root().children[0];
  EXPECT_EQ(step.name, "step");
  EXPECT_EQ(step.calls, 3u);
  ASSERT_EQ(step.children.size(), 1u);
  EXPECT_EQ(step.children[0]->calls, 6u);
  EXPECT_LE(step.children[0]->seconds, step.seconds);
}

TEST(PhaseTimers, ResetKeepsTotals) {
  PhaseTimers timers;
  { PhaseTimers::Scope step(timers, "step"); }
  const double total = timers.root().children[0]->total_seconds;
  timers.reset();
  EXPECT_EQ(timers.root().children[0]->seconds, 0);
  EXPECT_EQ(timers.root().children[0]->total_seconds, total);
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
  EXPECT_EQ(timers.root().children.size(), 2u);
  EXPECT_EQ(timers.root().children[1]->children[0]->calls, 1u);
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
    const auto& tree = *timers.root().children[0];
    EXPECT_EQ(tree.calls, static_cast<std::uint64_t>(step));
    EXPECT_GT(tree.seconds, 0);
    EXPECT_LE(tree.children[0]->seconds, tree.seconds);
    EXPECT_GE(tree.total_seconds, tree.seconds);
    if (step == 1) marks = timers.marks_made();
  }
  EXPECT_EQ(marks, StreamClock::kChunk);
  EXPECT_EQ(timers.marks_made(), marks);
  EXPECT_EQ(timers.root().children[1]->name, "mesh");
}

TEST(PhaseTimers, UncollectedTimesArriveInTheEnd) {
  const Stream stream;
  PhaseTimers timers;
  for (int i = 0; i < 5000; ++i) PhaseTimers::Scope(timers, "kick", stream);
  EXPECT_LT(timers.marks_made(), 3000u);
  timers.reset();
  EXPECT_GT(timers.root().children[0]->total_seconds, 0);
  EXPECT_EQ(timers.root().children[0]->calls, 5000u);
  EXPECT_EQ(timers.root().children[0]->seconds, 0);
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
