// What a check of sites says, from what was found.
#include "wan/sites/link_check.hpp"

#include <gtest/gtest.h>

#include "build_info.hpp"
#include "git_hash.hpp"
#include "kernels/error.hpp"
#include "src/config/parse.hpp"
#include "src/run/over_sites.hpp"
#include "tests/messages.hpp"
#include "wan/sites/ring_plan.hpp"

namespace maki {
namespace {

using namespace test;

sites::RingPlan plan_of(const std::vector<std::string>& settings = {}, int me = 0) {
  const Config config = parse_config(R"(
[sites]
ring = ["amsterdam", "tokyo", "oslo"]
key = "our.key"
[sites.amsterdam]
address = "ams.example:6000"
listen = "10.0.0.5:6001"
[sites.tokyo]
relay = "gate.example:7000"
relay_key = "gate.key"
relay_target = "tokyo"
[sites.path]
streams = 32
pacing = "800 Mbit/s"
)",
                                     "t", settings);
  return make_ring_plan(config, {config.sites.ring[static_cast<std::size_t>(me)], me, 3}, "maki run");
}

// Of a machine with these limits, at one end of the links.
std::string limits(const std::vector<sites::LinkCheck>& links, const wan::KernelLimits& kernel,
                   std::size_t files = 4096, const sites::RingPlan& plan = plan_of()) {
  std::string text;
  for (const wan::Limit& limit : limits_here(plan, links, kernel, files))
    text += limit.what + "\n" + limit.remedy + "\n";
  return text;
}

sites::LinkCheck good_link(int site) {
  sites::LinkCheck link;
  link.site = site;
  link.reachable = true;
  link.round_trip = 0.27;
  link.rate_in = link.rate_out = 9e7;
  return link;
}

wan::KernelLimits good_kernel() {
  wan::KernelLimits kernel;
  kernel.rmem_max = kernel.wmem_max = kernel.tcp_rmem_max = kernel.tcp_wmem_max = 1 << 28;
  kernel.congestion = "cubic";
  kernel.congestions = {"cubic", "bbr"};
  return kernel;
}

TEST(RingPlan, IsWhatTheConfigurationSays) {
  const sites::RingPlan plan = plan_of();
  EXPECT_EQ(plan.sites.size(), 3u);
  EXPECT_EQ(plan.sites[0].address, (wan::Endpoint{"ams.example", 6000}));
  EXPECT_EQ(plan.sites[0].listen, (wan::Endpoint{"10.0.0.5", 6001}));
  EXPECT_EQ(plan.sites[1].relay.target, "tokyo");
  EXPECT_EQ(plan.sites[1].relay.relay, (wan::Endpoint{"gate.example", 7000}));
  EXPECT_FALSE(plan.sites[2].callable());
  EXPECT_EQ(link_to(plan, 1).path.streams, 32);
  EXPECT_EQ(link_to(plan, 1).security.key_files, std::vector<std::string>{"our.key"});
  expect_contains(plan.agreement, {"what is to do = maki run\n", "cosmology.sigma8 = 0.829\n"});
  expect_lacks(plan.agreement, {"our.key"});
  EXPECT_EQ(plan.agreement, plan_of({"sites.key=x", "sites.amsterdam.listen=", "run.threads=2"}, 1).agreement);
  EXPECT_EQ(plan.version, MAKI_VERSION " (" MAKI_GIT_HASH ")");
}

// The link between two sites is that of the one on the left, at both ends; keys of other links need not be known.
TEST(RingPlan, BothEndsOfALinkHaveTheSame) {
  const std::vector<std::string> settings = {"sites.key=", "sites.amsterdam.key=a", "sites.tokyo.key=t",
                                             "sites.tokyo.path.pacing=96 Mbit/s", "sites.tokyo.path.streams=4"};
  const auto at_tokyo = link_to(plan_of({settings.begin(), settings.end()}, 1), 2);
  EXPECT_EQ(at_tokyo.path.streams, 4);
  EXPECT_DOUBLE_EQ(at_tokyo.path.pacing_rate, 12e6);
  EXPECT_EQ(at_tokyo.security.key_files, std::vector<std::string>{"t"});
  auto with_oslo = settings;
  with_oslo.push_back("sites.oslo.key=o");
  const sites::RingPlan oslo = plan_of(with_oslo, 2);
  EXPECT_EQ(link_to(oslo, 1).path, at_tokyo.path);
  EXPECT_EQ(link_to(oslo, 1).security.key_files, std::vector<std::string>{"t"});
  EXPECT_EQ(link_to(oslo, 0).security.key_files, std::vector<std::string>{"o"});
  EXPECT_EQ(link_to(oslo, 0).path.streams, 32);
  expect_error([&] { plan_of(settings, 0); }, {"neither sites.oslo.key nor sites.key is set"});
}

TEST(RingPlan, NeighboursThatCannotMeetAreRefused) {
  EXPECT_THROW(plan_of({"sites.tokyo.relay=", "sites.tokyo.relay_key=", "sites.tokyo.relay_target="}), Error);
  EXPECT_THROW(plan_of({"sites.key="}), Error);
}

TEST(CheckReport, NothingIsWrongWithWhatIsGood) {
  const auto links = std::vector{good_link(1), good_link(2)};
  EXPECT_TRUE(problems_of(plan_of(), links).empty());
  EXPECT_TRUE(notes_on(plan_of(), links).empty());
  EXPECT_EQ(limits(links, good_kernel()), "");
  expect_contains(link_table(plan_of({"sites.oslo.path.pacing=96 Mbit/s"}), links),
                  {"tokyo", "oslo", "the same", "270 ms", "720 Mbit/s", " 800 Mbit/s", " 96 Mbit/s"});
}

TEST(CheckReport, WhatIsWrongIsNamed) {
  auto links = std::vector{good_link(1), good_link(2)};
  links[0].differences = {"gravity.theta is 0.5 at site amsterdam and 0.4 at site tokyo"};
  links[1] = {};
  links[1].site = 2;
  links[1].error = "nobody called";
  expect_contains(text_of(problems_of(plan_of(), links)),
                  {"gravity.theta is 0.5", "oslo was not reached: nobody called"});
  expect_contains(link_table(plan_of(), links), {"DIFFERENT", "NOT REACHED"});
  links[1].reachable = true;  // but not measured
  EXPECT_EQ(times(link_table(plan_of(), links), "+0.000 s"), 1u);
}

TEST(CheckReport, ClocksAndWaitingSitesAreNotes) {
  auto links = std::vector{good_link(1), good_link(2)};
  links[0].clock_difference = -3600;
  links[1].waits_to_run = true;
  EXPECT_TRUE(problems_of(plan_of(), links).empty());
  expect_contains(text_of(notes_on(plan_of(), links)), {"tokyo is 3600 s behind", "oslo waits to run"});
}

TEST(CheckReport, SettingsThatHurtComeWithTheirRemedy) {
  const auto links = std::vector{good_link(1), good_link(2)};
  wan::KernelLimits kernel = good_kernel();
  kernel.slow_start_after_idle = true;
  kernel.tcp_rmem_max = kernel.tcp_wmem_max = 1 << 20;
  kernel.rmem_max = 212992;
  const std::string slow = limits(links, kernel);
  expect_contains(slow, {"sysctl -w net.ipv4.tcp_slow_start_after_idle=0",
                         "sysctl -w net.ipv4.tcp_rmem=", "sysctl -w net.ipv4.tcp_wmem="});
  EXPECT_EQ(slow.find("net.core"), std::string::npos) << "without a window of its own no bound of it counts";
  EXPECT_EQ(slow.find("tcp_slow_start", slow.find("tcp_slow_start") + 1), std::string::npos) << "said once";
  expect_contains(limits(links, kernel, 4096, plan_of({"sites.path.window=4 MB"})),
                  {"sysctl -w net.core.rmem_max=4194304"});
  expect_contains(limits(links, good_kernel(), 200), {"200 files", "ulimit -n 4096"});
  // A key's streams may take a quarter of all files: both neighbours call this site with the same one, or each with its
  // own.
  const auto own = plan_of({"sites.path.streams=256", "sites.amsterdam.key=another.key"});
  EXPECT_EQ(limits(links, good_kernel(), 1500, own), "");
  expect_contains(limits(links, good_kernel(), 1500, plan_of({"sites.path.streams=256"})),
                  {"1500 files", "need up to 2048", "ulimit -n 4096"});
  // Unmeasured: as if far away.
  expect_contains(limits({}, kernel), {"tcp_slow_start_after_idle=0"});
  auto near = std::vector{good_link(1), good_link(2)};
  near[0].round_trip = near[1].round_trip = 1e-4;
  EXPECT_EQ(limits(near, kernel), "");
  near[1] = {};
  near[1].site = 2;
  expect_contains(limits(near, kernel), {"tcp_slow_start_after_idle=0"});
}

}  // namespace
}  // namespace maki
