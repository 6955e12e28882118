#include "wan/sites/net_ring.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/sites/net_rings.hpp"

namespace maki::sites {
namespace {

using namespace test;

std::size_t index(Phase phase) { return static_cast<std::size_t>(phase); }

TEST(NetRing, SitesHearOneAnotherInOrder) {
  for (int count : {2, 3, 4, 5}) {
    Plans plans(count);
    auto rings = start(plans);
    for (int i = 0; i < count; ++i) {
      EXPECT_EQ(rings[i]->me(), i);
      EXPECT_EQ(rings[i]->count(), count);
      ASSERT_EQ(rings[i]->hellos().size(), static_cast<std::size_t>(count));
      for (int j = 0; j < count; ++j) {
        EXPECT_EQ(rings[i]->hellos()[j].name, plans[j].sites[j].name);
        EXPECT_EQ(rings[i]->hellos()[j].restarts, plans[j].restarts);
      }
    }
    for (std::size_t bytes : {10u, 50'000u, 5'000'000u}) {
      if (bytes > 1'000'000 && count != 3) continue;  // some dozens of times that travel
      talk(rings, bytes);
    }
    close_all(rings);
  }
}

TEST(NetRing, APublishedMessagePassesEachLinkOnce) {
  Plans plans(4);
  auto rings = start(plans);
  constexpr std::size_t kBytes = 100'000;
  rings[0]->publish(Phase::kMesh, 1, pattern(kBytes, 1));
  for (int i : {1, 2, 3}) EXPECT_EQ(rings[i]->receive(0, Phase::kMesh, 1).size(), kBytes);
  const auto traffic = [&](int i) { return rings[i]->take_traffic()[index(Phase::kMesh)]; };
  const Traffic first = traffic(0), second = traffic(1), third = traffic(2), last = traffic(3);
  EXPECT_EQ(first.bytes_sent, 2 * kBytes);  // one for each of its links
  EXPECT_EQ(first.messages_sent, 2u);
  EXPECT_EQ(second.bytes_passed_on, kBytes);
  EXPECT_EQ(third.bytes_passed_on + last.bytes_passed_on, 0u);
  EXPECT_EQ(third.bytes_received, kBytes);
  EXPECT_EQ(second.bytes_sent, 0u);
  close_all(rings);
}

TEST(NetRing, CountsWhatIsWaitedFor) {
  Plans plans(2);
  plans.for_all([](RingPlan& plan) { plan.path.streams = 1; });
  auto rings = start(plans);
  std::atomic<bool> waits = false;
  rings[1]->leave_when([&] {  // asked of one that has waited for a second
    waits = true;
    return false;
  });
  auto receiving = std::async(std::launch::async, [&] { return rings[1]->receive(0, Phase::kSums, 1); });
  EXPECT_TRUE(comes_true([&] { return waits.load(); }));
  rings[0]->publish(Phase::kSums, 1, pattern(5, 1));
  receiving.get();
  const Traffic sums = rings[1]->take_traffic()[index(Phase::kSums)];
  EXPECT_EQ(sums.waits, 1u);
  EXPECT_GE(sums.waited, 1);
  std::uint64_t number = 0;
  EXPECT_TRUE(comes_true([&] {  // what is there when it is received
    rings[0]->send(1, Phase::kTrees, ++number, pattern(5, 1));
    wan::test::pause(0.02);
    rings[1]->receive(0, Phase::kTrees, number);
    const auto traffic = rings[1]->take_traffic();
    EXPECT_EQ(traffic[index(Phase::kTrees)].messages_received, 1u);
    EXPECT_EQ(traffic[index(Phase::kSums)].waits, 0u);
    return traffic[index(Phase::kTrees)].waits == 0;
  }));
  close_all(rings);
}

TEST(NetRing, AVeryLongMessageIsWhole) {
  Plans plans(3);
  plans.for_all([](RingPlan& plan) { plan.path.streams = 4; });
  auto rings = start(plans);
  const Message message = pattern(100'000'000, 7);
  rings[0]->publish(Phase::kMesh, 1, message);
  rings[2]->send(1, Phase::kMesh, 1, message);
  for (const auto& [to, from] : {std::pair{1, 0}, {2, 0}, {1, 2}})
    EXPECT_TRUE(rings[to]->receive(from, Phase::kMesh, 1) == message);
  close_all(rings);
}

TEST(NetRing, SitesStartInAnyOrder) {
  for (const std::vector<int>& order : {std::vector<int>{0, 1}, {1, 0}, {2, 0, 1}, {1, 2, 0}}) {
    Plans plans(static_cast<int>(order.size()));
    std::vector<std::future<std::unique_ptr<NetRing>>> begun(order.size());
    for (const int i : order) {
      begun[i] = plans.begin(i);
      if (i != order.back()) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    Rings rings;
    for (auto& one : begun) rings.push_back(one.get());
    talk(rings);
    close_all(rings);
  }
}

TEST(NetRing, AMissingSiteIsNamed) {
  const auto alone = [](int i) {
    Plans plans(2);
    plans[i].wait_limit = 6;  // the first line is of 2 s
    const std::string other(1, i == 0 ? 'b' : 'a');
    const std::string why =
        i == 0 ? plans[1].sites[1].address.text() + ": Connection refused" : "it has not called port";
    expect_contains(error_of([&] { NetRing ring(plans[i]); }), {"site " + other + " did not come within 6 s", why});
    EXPECT_TRUE(plans.lines.has("waiting for site " + other + " ("));
  };
  auto calls = std::async(std::launch::async, alone, 0);
  alone(1);
  calls.get();
}

TEST(NetRing, ClosingWaitsForWhatIsPassedOn) {
  Plans plans(4);
  auto rings = start(plans);
  const Message message = pattern(8'000'000, 3);
  rings[0]->send(2, Phase::kTrees, 1, message);  // by way of site 1
  rings[0]->publish(Phase::kOutput, 1, message);
  std::vector<std::future<void>> closing;
  for (int i : {0, 1, 3}) closing.push_back(std::async(std::launch::async, [&rings, i] { rings[i]->close(); }));
  EXPECT_TRUE(rings[2]->receive(0, Phase::kTrees, 1) == message);
  EXPECT_TRUE(rings[2]->receive(0, Phase::kOutput, 1) == message);
  EXPECT_TRUE(says(error_of([&] { rings[2]->receive(0, Phase::kTrees, 2); }), "site a has ended its run"));
  rings[2]->close();
  for (auto& one : closing) one.get();
  EXPECT_TRUE(rings[3]->receive(0, Phase::kOutput, 1) == message);  // it had come before
}

TEST(NetRing, WhatIsOutOfStepIsAnError) {
  Plans plans(2);
  auto rings = start(plans);
  rings[0]->publish(Phase::kSums, 4, {});
  EXPECT_EQ(error_of([&] { rings[1]->receive(0, Phase::kSums, 5); }),
            "the sites are not in step (sums 4 came from site a for 5)");
  close_all(rings);
}

TEST(NetRing, ASiteThatNobodyCanCallCalls) {
  for (int hidden : {0, 1, 2}) {
    Plans plans(3);
    plans.for_all([&](RingPlan& plan) {
      plan.sites[static_cast<std::size_t>(hidden)].address = {};
      plan.sites[static_cast<std::size_t>(hidden)].listen = {};
    });
    auto rings = start(plans);
    talk(rings);
    close_all(rings);
  }
  Plans plans(2);
  plans.for_all([](RingPlan& plan) {
    for (SitePlace& site : plan.sites) site.address = {};
  });
  EXPECT_TRUE(
      says(error_of([&] { NetRing ring(plans[0]); }), "sites a and b are neighbours and cannot reach each other"));
}

TEST(NetRing, PhasesThatAreNeededSoonestAreTheMostUrgent) {
  const Phase order[] = {Phase::kControl, Phase::kSums, Phase::kParticles, Phase::kTrees, Phase::kMesh, Phase::kOutput};
  for (std::size_t i = 1; i < kPhases; ++i)
    EXPECT_GT(wan::urgency_of(tag_of(1, order[i - 1])), wan::urgency_of(tag_of(0, order[i]))) << i;
}

}  // namespace
}  // namespace maki::sites
