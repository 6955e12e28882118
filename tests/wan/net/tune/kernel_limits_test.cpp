#include "wan/net/tune/measure.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "wan/net/tune/bench.hpp"

namespace {

using namespace maki::wan;

Words parse(const std::string& text) { return Words::parse(std::as_bytes(std::span(text))); }

TEST(Words, AreReadAsTheyWereWritten) {
  Words words("take");
  words.set("bytes", std::uint64_t{1} << 40).set("rate", 1e8 / 3).set("empty", "").set("name", "cubic,bbr");
  const Words again = parse(words.text());
  EXPECT_EQ(again.order(), "take");
  EXPECT_EQ(again.integer("bytes", ~std::uint64_t{0}), std::uint64_t{1} << 40);
  EXPECT_EQ(again.real("rate", 1e9), 1e8 / 3);
  EXPECT_EQ(again.text("empty"), "");
  EXPECT_EQ(again.text("name"), "cubic,bbr");
  EXPECT_EQ(parse("bye").order(), "bye");
}

TEST(Words, RefuseWhatNoPeerSays) {
  for (const std::string text : {"", " ", "=1", "take bytes", "take  bytes=1", "take by=tes=1", "take\nbytes=1"})
    EXPECT_THROW(parse(text), ProtocolError) << text;
  EXPECT_THROW(parse(std::string(kMaxWords + 1, 'a')), ProtocolError);
  for (const std::string text : {"take bytes=-1", "take bytes=1x", "take bytes=", "take bytes=99", "take bytes=nan"}) {
    EXPECT_THROW(parse(text).integer("bytes", 98), ProtocolError) << text;
    EXPECT_THROW(parse(text).real("bytes", 98), ProtocolError) << text;
  }
  EXPECT_THROW(parse("take").integer("bytes", 98), ProtocolError);
}

std::string all_of(const std::vector<Limit>& limits) {
  std::string text;
  for (const Limit& limit : limits) text += limit.what + " | " + limit.remedy + "\n";
  return text;
}

const KernelLimits kStock{212992, 212992, 6u << 20, 4u << 20, true, "cubic", {"cubic", "reno"}};

TEST(KernelLimits, GoOverTheWayUnchanged) {
  Words words("welcome");
  kStock.write(words);
  const KernelLimits again = KernelLimits::read(parse(words.text()));
  EXPECT_EQ(again.rmem_max, kStock.rmem_max);
  EXPECT_EQ(again.wmem_max, kStock.wmem_max);
  EXPECT_EQ(again.tcp_rmem_max, kStock.tcp_rmem_max);
  EXPECT_EQ(again.tcp_wmem_max, kStock.tcp_wmem_max);
  EXPECT_EQ(again.slow_start_after_idle, true);
  EXPECT_EQ(again.congestion, "cubic");
  EXPECT_EQ(again.congestions, kStock.congestions);
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
