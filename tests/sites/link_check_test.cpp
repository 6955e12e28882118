#include "wan/sites/link_check.hpp"

#include <gtest/gtest.h>

#include "tests/sites/net_rings.hpp"

namespace maki::sites {
namespace {

using namespace test;

std::vector<std::vector<LinkCheck>> check_all(Plans& plans) {
  std::vector<std::future<std::vector<LinkCheck>>> begun;
  for (int i = 0; i < plans.count(); ++i)
    begun.push_back(std::async(std::launch::async, [&plans, i] { return check_links(plans[i]); }));
  std::vector<std::vector<LinkCheck>> all;
  for (auto& one : begun) all.push_back(one.get());
  return all;
}

TEST(LinkCheck, BothEndsFindTheSame) {
  Plans plans(2);
  plans[1].agreement = "gravity.theta = 0.4\ntime.steps = 10\n";
  const auto all = check_all(plans);
  for (int i : {0, 1}) {
    ASSERT_EQ(all[i].size(), 1u);
    const LinkCheck& link = all[i][0];
    EXPECT_EQ(link.site, 1 - i);
    EXPECT_EQ(link.peer_calls, i == 1);
    EXPECT_TRUE(link.reachable);
    EXPECT_EQ(link.error, "");
    EXPECT_EQ(link.version, "1.0");
    ASSERT_EQ(link.differences.size(), 1u);
    EXPECT_TRUE(has(link.differences[0], i == 0 ? "gravity.theta is 0.5 at site a and 0.4 at site b"
                                                : "gravity.theta is 0.4 at site b and 0.5 at site a"));
    EXPECT_FALSE(link.waits_to_run);
    EXPECT_GT(link.round_trip, 0);
    EXPECT_LT(std::abs(link.clock_difference), 1);  // the same clock
    EXPECT_GT(link.rate_out, 1e5);
  }
  EXPECT_EQ(all[0][0].rate_out, all[1][0].rate_in);
  EXPECT_EQ(all[0][0].rate_in, all[1][0].rate_out);
  EXPECT_EQ(all[0][0].clock_difference, -all[1][0].clock_difference);
}

TEST(LinkCheck, WhatIsThereIsFoundWhereOthersAreMissing) {
  Plans plans(3);
  plans.for_all([](RingPlan& plan) { plan.wait_limit = 1; });
  auto other = std::async(std::launch::async, [&] { return check_links(plans[1]); });
  const auto links = check_links(plans[0]);
  other.get();
  ASSERT_EQ(links.size(), 2u);
  EXPECT_EQ(links[0].site, 1);
  EXPECT_TRUE(links[0].reachable) << links[0].error;
  EXPECT_GT(links[0].rate_in, 0);
  EXPECT_EQ(links[1].site, 2);
  EXPECT_FALSE(links[1].reachable);
  EXPECT_TRUE(has(links[1].error, "site c did not come within 1 s")) << links[1].error;
}

// A site that waits to run answers a check, and runs when its neighbour does.
TEST(LinkCheck, ARunThatWaitsIsNotDisturbed) {
  for (int waiting : {0, 1}) {
    Plans plans(2);
    auto run = plans.begin(waiting);
    const auto links = check_links(plans[1 - waiting]);
    ASSERT_EQ(links.size(), 1u);
    EXPECT_TRUE(links[0].reachable) << links[0].error;
    EXPECT_TRUE(links[0].waits_to_run);
    EXPECT_EQ(links[0].rate_in, 0);
    std::vector<std::unique_ptr<NetRing>> rings;
    rings.push_back(plans.begin(1 - waiting).get());
    rings.push_back(run.get());
    rings[0]->publish(Phase::kSums, 1, pattern(10, 1));
    EXPECT_EQ(rings[1]->receive(1 - waiting, Phase::kSums, 1), pattern(10, 1));
    close_all(rings);
  }
}

}  // namespace
}  // namespace maki::sites
