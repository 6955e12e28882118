#include "wan/net/tune/measure.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <limits>

#include "wan/net/tune/bench.hpp"

namespace {

using namespace maki::wan;

std::string all_of(const std::vector<Limit>& limits) {
  std::string text;
  for (const Limit& limit : limits) text += limit.what + " | " + limit.remedy + "\n";
  return text;
}

const KernelLimits kStock{212992, 212992, 6u << 20, 4u << 20, true, "cubic", {"cubic", "reno"}};

TEST(KernelLimits, GoOverTheWayUnchanged) {
  EXPECT_EQ(decode_bench_reply(encode(BenchReply{.kernel = kStock})).kernel, kStock);
}

TEST(BenchMessages, RefuseWhatNoPeerSays) {
  using Action = BenchOrder::Action;
  const auto refused = [](const BenchOrder& order) { EXPECT_THROW(decode_bench_order(encode(order)), ProtocolError); };
  refused({.action = static_cast<Action>(77)});
  refused({.action = Action::kTake, .transfer = {.bytes = kLargestTransfer + 1}});
  refused({.action = Action::kTake, .transfer = {.bytes = kLargestTransfer, .flight = 2}});
  refused({.action = Action::kTake, .transfer = {.flight = 0}});
  refused({.action = Action::kHello, .congestion = "a\x1b[2J"});
  refused({.action = Action::kHello, .pacing = -1});
  refused({.action = Action::kHello, .pacing = std::numeric_limits<double>::quiet_NaN()});
  auto bytes = encode(BenchOrder{.action = Action::kCpu});
  EXPECT_NO_THROW(decode_bench_order(bytes));
  bytes.push_back(std::byte{0});
  EXPECT_THROW(decode_bench_order(bytes), ProtocolError);
  EXPECT_THROW(decode_bench_order({}), ProtocolError);
}

TEST(KernelLimits, ThisMachineIsRead) {
  if (!std::filesystem::exists("/proc/sys/net/ipv4/tcp_rmem")) GTEST_SKIP() << "no /proc/sys/net here";
  const KernelLimits limits = KernelLimits::of_this_machine();
  EXPECT_GT(limits.tcp_rmem_max, 0u);
  EXPECT_GT(limits.tcp_wmem_max, 0u);
  EXPECT_FALSE(limits.congestion.empty());
  EXPECT_FALSE(limits.congestions.empty());
}

// 100 MB/s over 270 ms are 27 MB on the way: one stream of a stock kernel holds 3 MB of them, 64 hold them all.
TEST(KernelLimits, StandInTheWayOfFewStreamsOnly) {
  PathSettings settings;
  settings.streams = 1;
  const std::string one = all_of(limits_of(kStock, settings, 1e8, 0.27));
  EXPECT_NE(one.find("sysctl -w net.ipv4.tcp_rmem=\"4096 131072 134217728\""), std::string::npos) << one;
  EXPECT_NE(one.find("tcp_wmem"), std::string::npos) << one;
  settings.streams = 64;
  EXPECT_EQ(all_of(limits_of(kStock, settings, 1e8, 0.27)).find("mem"), std::string::npos);
  settings.streams = 1;
  EXPECT_EQ(all_of(limits_of(kStock, settings, 1e8, 1e-4)), "");
}

TEST(KernelLimits, WindowsAreCutAndCubicForgets) {
  PathSettings settings;
  settings.window = 4u << 20;
  settings.streams = 64;
  const std::string cubic = all_of(limits_of(kStock, settings, 1e8, 0.27));
  EXPECT_NE(cubic.find("sysctl -w net.core.rmem_max=4194304"), std::string::npos) << cubic;
  EXPECT_NE(cubic.find("sysctl -w net.core.wmem_max=4194304"), std::string::npos) << cubic;
  EXPECT_NE(cubic.find("tcp_slow_start_after_idle=0"), std::string::npos) << cubic;
  EXPECT_NE(cubic.find("tcp_bbr"), std::string::npos) << cubic;
  KernelLimits open = kStock;
  open.rmem_max = open.wmem_max = 4u << 20;
  open.congestions = {"cubic", "bbr"};
  settings.congestion = "bbr";
  EXPECT_EQ(all_of(limits_of(open, settings, 1e8, 0.27)), "");
}

}  // namespace
