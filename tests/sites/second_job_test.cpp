// A job of a site that has one in the run already, or had one that is gone.
#include <gtest/gtest.h>

#include <string>

#include "tests/sites/net_rings.hpp"
#include "tests/wan/net/proxy.hpp"
#include "wan/sites/link_check.hpp"
#include "wan/sites/link_start.hpp"

namespace maki::sites {
namespace {

using namespace test;

// What the start of a job says; a loss of a site would be none of this run.
std::string refusal_of(const RingPlan& plan) {
  try {
    NetRing ring(plan);
  } catch (const SiteLost& lost) {
    return std::string("lost: ") + lost.what();
  } catch (const Error& error) {
    return error.what();
  }
  return "it takes part";
}

// Another job of site a on a machine of its own.
RingPlan second_job(Plans& plans) {
  RingPlan second = plans[0];
  second.sites[0].listen = {"127.0.0.1", wan::test::free_ports(1)[0]};
  return second;
}

TEST(SecondJob, IsTurnedAwayFromARunThatIsUnderWay) {
  Plans plans(2);
  auto rings = start(plans);
  const std::string text = refusal_of(second_job(plans));
  EXPECT_TRUE(has(text, "site b turns this site away (the run is under way since 20")) << text;
  EXPECT_TRUE(has(text, " UTC with another job of site a)")) << text;
  const std::string line = "a site that calls itself a was turned away: the run is under way since";
  EXPECT_TRUE(comes_true([&] { return plans.quiet.has(line); }));
  const auto links = check_links(second_job(plans));
  ASSERT_EQ(links.size(), 1u);
  EXPECT_FALSE(links[0].reachable);
  EXPECT_TRUE(has(links[0].error, "the run is under way since")) << links[0].error;
  rings[0]->publish(Phase::kSums, 1, pattern(1000, 1));  // the run goes on
  EXPECT_EQ(rings[1]->receive(0, Phase::kSums, 1), pattern(1000, 1));
  close_all(rings);
}

TEST(SecondJob, IsTurnedAwayWhereSitesStillWait) {
  Plans plans(3);
  wan::test::Lines at_b;
  plans[1].report = [&](const std::string& line) { at_b.add(line); };
  auto a = plans.begin(0), b = plans.begin(1);
  ASSERT_TRUE(comes_true([&] {  // where site a is missing, too, it is named last
    const auto lines = at_b.all();
    return !lines.empty() && has(lines.back(), "waiting for site c");
  }));
  const std::string text = refusal_of(second_job(plans));
  EXPECT_TRUE(has(text, "site b turns this site away (another job of site a takes part already")) << text;
  EXPECT_TRUE(comes_true([&] { return at_b.has("a site that calls itself a was turned away: another job"); }));
  auto c = plans.begin(2);
  std::vector<std::unique_ptr<NetRing>> rings;
  for (auto* one : {&a, &b, &c}) rings.push_back(one->get());
  close_all(rings);
}

// The first job is silent, and its connections are open: as where its machine has lost its power.
TEST(SecondJob, TakesThePlaceOfOneThatIsGone) {
  Plans plans(3);
  plans.for_all([](RingPlan& plan) {
    plan.path.heartbeat = 0.2;
    plan.path.stream_timeout = 2;
  });
  auto b = plans.begin(1);
  wan::test::Proxy proxy(plans[1].sites[1].listen);
  wan::Path gone;
  ASSERT_TRUE(comes_true([&] {
    try {
      gone = wan::Path::connect(proxy.address(), plans[0].security, plans[0].path, {.name = "a", .within = 1});
    } catch (const wan::PathError&) {  // site b does not listen yet
    }
    return gone.valid();
  }));
  gone.start_send(kHelloTag, encode(hello_of(plans[0], Purpose::kRun)));
  gone.receive_any(kHelloTag, kLongestHello);
  proxy.stall(true);
  auto a = plans.begin(0), c = plans.begin(2);
  std::vector<std::unique_ptr<NetRing>> rings;
  for (auto* one : {&a, &b, &c}) rings.push_back(one->get());
  close_all(rings);
}

// Site b finds the path down, and need not wait as long as its patience.
TEST(SecondJob, OfOneThatIsGoneTellsTheOthersOfTheLoss) {
  Plans plans(2);
  plans.for_all([](RingPlan& plan) {
    plan.path.heartbeat = 0.2;
    plan.path.stream_timeout = 1;
    plan.path.patience = 600;
  });
  wan::test::Proxy proxy(plans[1].sites[1].listen);
  const RingPlan second = second_job(plans);
  plans[0].sites[1].address = proxy.address();
  auto rings = start(plans);
  proxy.stall(true);
  auto waiting = std::async(std::launch::async, [&] { return std::make_unique<NetRing>(second); });
  const std::string lost = error_of<SiteLost>([&] { rings[1]->receive(0, Phase::kSums, 1); });
  EXPECT_TRUE(has(lost, "site a is lost (seen by site b: another job of it has called")) << lost;
  rings.clear();
  auto b = plans.begin(1);  // its next job
  std::vector<std::unique_ptr<NetRing>> next;
  next.push_back(waiting.get());
  next.push_back(b.get());
  close_all(next);
}

}  // namespace
}  // namespace maki::sites
