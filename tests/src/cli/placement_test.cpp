#include "src/cli/placement.hpp"

#include <gtest/gtest.h>

namespace maki {
namespace {

TEST(Placement, ProcessorsAreSharedByTheRanksOfAMachine) {
  EXPECT_EQ(share_processors(16, 16, 4), 4);  // none is bound
  EXPECT_EQ(share_processors(4, 16, 4), 4);   // each is bound to its own
  EXPECT_EQ(share_processors(1, 16, 4), 1);   // to fewer than its share
  EXPECT_EQ(share_processors(2, 2, 8), 1);    // more ranks than processors
}

TEST(Placement, OfOneRankIsWhatTheConfigurationSays) {
  Config config;
  Placement placement = place_ranks(config, Communicator::self());
  EXPECT_EQ(placement.device, 0);
  EXPECT_EQ(placement.threads, 0);
  EXPECT_EQ(placement.sharing, 1);
  EXPECT_TRUE(describe_ranks(placement, Communicator::self()).empty());
  config.run.device = 3;
  config.run.threads = 5;
  placement = place_ranks(config, Communicator::self());
  EXPECT_EQ(placement.device, 3);
  EXPECT_EQ(placement.threads, 5);
}

}  // namespace
}  // namespace maki
