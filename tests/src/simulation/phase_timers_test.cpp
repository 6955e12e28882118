#include "src/simulation/phase_timers.hpp"

#include <gtest/gtest.h>

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

TEST(PhaseTimers, TableHasOneLineForEachNodeAndTheTotal) {
  PhaseTimers timers;
  {
    PhaseTimers::Scope step(timers, "step");
    PhaseTimers::Scope tree(timers, "tree");
  }
  const std::string table = timers.table();
  EXPECT_NE(table.find("\nstep"), std::string::npos);
  EXPECT_NE(table.find("\n  tree"), std::string::npos);
  EXPECT_NE(table.find("\ntotal"), std::string::npos);
}

}  // namespace
}  // namespace maki
