// Links with keys and settings of their own: a neighbour is who its key says. A job of a site that has one in the run
// already, or had one that is gone.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/sites/net_rings.hpp"
#include "tests/wan/net/proxy.hpp"
#include "wan/sites/link_check.hpp"
#include "wan/sites/link_start.hpp"
#include "wan/sites/ring.hpp"
#include "wan/sites/ring_plan.hpp"

namespace maki::sites {
namespace {

using namespace test;

// Each link has a key, named after the sites at its ends; every site knows those of its own links only.
struct Keys {
  wan::test::TemporaryFolder folder;
  wan::Security security(const std::string& name) const { return {.key_files = {folder / name}}; }
  explicit Keys(Plans& plans) {
    for (const char* name : {"ab", "bc", "ca"}) wan::test::new_key(folder, name);
    for (int i = 0; i < 3; ++i) {
      plans[i].security = {};
      set(plans[i], i, std::array{"ab", "bc", "ca"}[static_cast<std::size_t>(i)]);
      set(plans[i], (i + 2) % 3, std::array{"ca", "ab", "bc"}[static_cast<std::size_t>(i)]);
    }
  }
  // Of the link from site `left` to the next one.
  void set(RingPlan& plan, int left, const std::string& key) const {
    plan.sites[static_cast<std::size_t>(left)].onward = LinkPlan{plan.path, security(key)};
  }
};

// So that both neighbours of site a call it.
void hide_b(Plans& plans) {
  plans.for_all([](RingPlan& plan) { plan.sites[1].address = plan.sites[1].listen = {}; });
}

TEST(LinkKeys, EachLinkHasItsOwn) {
  for (const bool hidden : {false, true}) {
    Plans plans(3);
    const Keys keys(plans);
    if (hidden) hide_b(plans);
    auto rings = start(plans);
    talk(rings);
    for (const auto& [at, to, key] : {std::tuple{0, 1, "ab"}, {1, 0, "ab"}, {1, 2, "bc"}, {2, 1, "bc"}, {0, 2, "ca"}})
      EXPECT_EQ(rings[at]->path_to(to).status().identity, wan::read_key(keys.folder / key).id);
    EXPECT_FALSE(plans.lines.has("hold the same key"));
    close_all(rings);
  }
}

// Site c may call site a with its own key, and says that it is b.
TEST(LinkKeys, ASiteCannotPoseAsAnother) {
  Plans plans(3);
  const Keys keys(plans);
  hide_b(plans);
  auto a = plans.begin(0);
  wan::PathSettings quick = plans[0].path;
  quick.patience = 20;
  wan::Path path;
  for (int i = 0; i < 200 && !path.valid(); ++i) {
    try {
      path = wan::Path::connect(plans[0].sites[0].address, keys.security("ca"), quick, {.name = "b", .within = 1});
    } catch (const wan::PathError&) {  // it does not listen yet
    }
  }
  ASSERT_TRUE(path.valid());
  RingPlan posing = plans[1];
  path.start_send(kHelloTag, encode(hello_of(posing, Purpose::kRun)));
  const wan::Bytes notice = path.receive_any(kNoticeTag, 1 << 16);
  const std::string said(reinterpret_cast<const char*>(notice.data.get()) + 4, notice.size - 4);
  EXPECT_TRUE(says(said, "site a turns this site away (it shows the key " + wan::read_key(keys.folder / "ca").id));
  EXPECT_TRUE(comes_true([&] { return plans.lines.has("calls itself b was turned away: it shows the key"); }));
  // Those that hold the right ones still find each other.
  auto b = plans.begin(1), c = plans.begin(2);
  const Rings rings = rings_of(a, b, c);
  talk(rings);
  close_all(rings);
}

TEST(LinkKeys, AWrongOneIsNamedAtBothEnds) {
  Plans plans(3);
  const Keys keys(plans);
  keys.set(plans[0], 0, "ca");  // a calls b with it
  const LinkPlan b = listening_plan(plans[1]);
  const wan::Listener listener(plans[1].sites[1].listen, b.security, b.path);
  const std::string id = wan::read_key(keys.folder / "ca").id;
  expect_contains(error_of([&] { NetRing ring(plans[0]); }), {"site b at 127.0.0.1", "does not know our key " + id});
  EXPECT_TRUE(comes_true([&] { return plans.quiet.has(id + " is not among ours"); }));
  keys.set(plans[1], 0, "none");
  EXPECT_TRUE(says(error_of([&] { NetRing ring(plans[1]); }), keys.folder / "none"));
}

TEST(LinkKeys, OneKeyForAllIsUsedAndNamed) {
  Plans plans(3);
  const wan::test::TemporaryFolder folder;
  const wan::Security one = wan::test::new_key(folder, "one");
  plans.for_all([&](RingPlan& plan) { plan.security = one; });
  hide_b(plans);  // the listening of site a has it once
  auto rings = start(plans);
  talk(rings);
  close_all(rings);
  EXPECT_TRUE(plans.lines.has("sites b and c hold the same key, " + wan::read_key(folder / "one").id));
  Plans two(2);
  two.for_all([&](RingPlan& plan) { plan.security = one; });
  EXPECT_EQ(shared_key_warning(two[0]), "");
}

// A neighbour chooses the id of a key that it makes: with that of another link it would be let in for that one.
TEST(LinkKeys, TwoKeysOfOneIdAreRefused) {
  Plans plans(3);
  const Keys keys(plans);
  hide_b(plans);
  wan::Key forged = wan::Key::make();
  forged.id = wan::read_key(keys.folder / "ab").id;
  wan::write_key(forged, keys.folder / "forged");
  keys.set(plans[0], 2, "forged");
  expect_contains(error_of([&] { NetRing ring(plans[0]); }), {keys.folder / "forged", "another key"});
}

TEST(LinkKeys, FilesThatAreMissingOrOpenToOthersAreNamed) {
  Plans plans(3);
  const Keys keys(plans);
  keys.set(plans[1], 1, "none");
  expect_contains(error_of([&] { NetRing ring(plans[1]); }), {"no link between sites b and c", keys.folder / "none"});
  std::filesystem::permissions(keys.folder / "bc", std::filesystem::perms(0644));
  keys.set(plans[1], 1, "bc");
  expect_contains(error_of([&] { NetRing ring(plans[1]); }), {"others may read or write it", "chmod 600"});
}

// Both ends of each link have what the site on its left says, whoever called.
TEST(LinkSettings, AreThoseOfTheLink) {
  for (const bool hidden : {false, true}) {
    Plans plans(3);
    if (hidden) hide_b(plans);
    plans.for_all([](RingPlan& plan) {
      for (std::size_t i = 0; i < 3; ++i) {
        LinkPlan link{plan.path, plan.security};
        link.path.streams = static_cast<int>(2 + i);
        link.path.pacing_rate = 1e8 * static_cast<double>(1 + i);
        link.path.heartbeat = 0.5 + 0.1 * static_cast<double>(i);
        plan.sites[i].onward = link;
      }
    });
    auto rings = start(plans);
    talk(rings);
    for (int left = 0; left < 3; ++left) {
      const int right = (left + 1) % 3;
      for (const auto& [at, to] : {std::pair{left, right}, {right, left}}) {
        const wan::PathSettings settings = rings[at]->path_to(to).settings();
        EXPECT_EQ(settings.streams, 2 + left) << at << to;
        EXPECT_DOUBLE_EQ(settings.pacing_rate, 1e8 * (1 + left)) << at << to;
        EXPECT_DOUBLE_EQ(settings.heartbeat, 0.5 + 0.1 * left) << at << to;
      }
    }
    close_all(rings);
  }
}

// ---- a check --------------------------------------------------------------------------------------------------------

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
    EXPECT_TRUE(says(link.differences[0], i == 0 ? "gravity.theta is 0.5 at site a and 0.4 at site b"
                                                 : "gravity.theta is 0.4 at site b and 0.5 at site a"));
    EXPECT_FALSE(link.waits_to_run);
    EXPECT_GT(link.round_trip, 0);
    EXPECT_LE(std::abs(link.clock_difference), link.round_trip / 2 + 0.01);  // the same clock
    EXPECT_GT(link.rate_out, 1e5);
  }
  EXPECT_EQ(all[0][0].rate_out, all[1][0].rate_in);
  EXPECT_EQ(all[0][0].rate_in, all[1][0].rate_out);
  EXPECT_EQ(all[0][0].clock_difference, -all[1][0].clock_difference);
}

TEST(LinkCheck, WhatIsThereIsFoundWhereOthersAreMissing) {
  Plans plans(3);
  plans.for_all([](RingPlan& plan) { plan.wait_limit = 6; });
  auto other = std::async(std::launch::async, [&] { return check_links(plans[1]); });
  const auto links = check_links(plans[0]);
  other.get();
  ASSERT_EQ(links.size(), 2u);
  EXPECT_EQ(links[0].site, 1);
  EXPECT_TRUE(links[0].reachable) << links[0].error;
  EXPECT_GT(links[0].rate_in, 0);
  EXPECT_EQ(links[1].site, 2);
  EXPECT_FALSE(links[1].reachable);
  EXPECT_TRUE(says(links[1].error, "site c did not come within 6 s"));
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
    auto other = plans.begin(1 - waiting);
    const Rings rings = rings_of(other, run);
    rings[0]->publish(Phase::kSums, 1, pattern(10, 1));
    EXPECT_EQ(rings[1]->receive(1 - waiting, Phase::kSums, 1), pattern(10, 1));
    close_all(rings);
  }
}

// ---- a second job ---------------------------------------------------------------------------------------------------

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
  expect_contains(refusal_of(second_job(plans)),
                  {"site b turns this site away (the run is under way since 20", " UTC with another job of site a)"});
  const std::string line = "a site that calls itself a was turned away: the run is under way since";
  EXPECT_TRUE(comes_true([&] { return plans.quiet.has(line); }));
  const auto links = check_links(second_job(plans));
  ASSERT_EQ(links.size(), 1u);
  EXPECT_FALSE(links[0].reachable);
  EXPECT_TRUE(says(links[0].error, "the run is under way since"));
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
    return !lines.empty() && says(lines.back(), "waiting for site c");
  }));
  EXPECT_TRUE(
      says(refusal_of(second_job(plans)), "site b turns this site away (another job of site a takes part already"));
  EXPECT_TRUE(comes_true([&] { return at_b.has("a site that calls itself a was turned away: another job"); }));
  auto c = plans.begin(2);
  close_all(rings_of(a, b, c));
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
  close_all(rings_of(a, b, c));
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
  EXPECT_TRUE(says(lost, "site a is lost (seen by site b: another job of it has called"));
  rings.clear();
  auto b = plans.begin(1);  // its next job
  close_all(rings_of(waiting, b));
}

}  // namespace
}  // namespace maki::sites
