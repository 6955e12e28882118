// The search for settings, over a link that is only a model: time passes in it as it would.
#include "wan/net/tune/measure.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace {

using namespace maki::wan;

// A line of a rate that loses what is sent above it: streams are held by a window each, and without pacing, or paced above
// the line, a part of the rate is lost again. Streams cost a little each.
struct ModelLink : MeasuredLink {
  double rate_out = 1e8, rate_in = 1e8, round_trip = 0.27, window = 2e6, loss = 0.3;
  bool refuses_bbr = false;
  double time = 0;
  int connections = 0, silences = 0;
  Trial now_used;
  KernelLimits kernel{4u << 20, 4u << 20, 6u << 20, 4u << 20, true, "cubic", {"cubic", "bbr"}};

  double rate(double line, double pacing) const {
    const double by_window = now_used.settings.streams * window / std::max(round_trip, 1e-5);
    double rate = pacing > 0 ? std::min(pacing, by_window) : by_window;
    if (rate > line) rate = line * (1 - loss * (now_used.settings.congestion == "bbr" ? 0.3 : 1));
    return rate * (1 - 2e-4 * now_used.settings.streams);
  }
  double spend(double seconds) { return time += seconds, seconds; }

  void use(const Trial& trial) override {
    if (refuses_bbr && trial.settings.congestion == "bbr") throw Error("no bbr there");
    if (connections == 0 || trial.settings.streams != now_used.settings.streams ||
        trial.settings.window != now_used.settings.window || trial.settings.congestion != now_used.settings.congestion)
      ++connections, spend(4 * round_trip);
    now_used = trial;
  }
  std::vector<double> round_trips(int count) override {
    spend(count * round_trip);
    return std::vector<double>(static_cast<std::size_t>(count), round_trip);
  }
  Timing transfer(Way way, std::size_t bytes) override {
    Timing timing;
    if (way != Way::kIn)
      timing.out = round_trip / 2 + static_cast<double>(bytes) / rate(rate_out, now_used.settings.pacing_rate);
    if (way != Way::kOut) timing.in = round_trip / 2 + static_cast<double>(bytes) / rate(rate_in, now_used.pacing_in);
    spend(timing.slower() + 2 * round_trip);
    return timing;
  }
  void rest(double seconds) override { ++silences, spend(seconds); }
  double now() const override { return time; }
  CpuUse cpu() override { return {time, 2 * time}; }
  const KernelLimits& kernel_here() const override { return kernel; }
  const KernelLimits& kernel_there() const override { return kernel; }
};

TEST(Tuner, FindsStreamsAndPacingOfALongFatLine) {
  ModelLink link;
  TuneOptions options;
  const Tuned tuned = tune(link, options);
  EXPECT_NEAR(tuned.round_trip, 0.27, 1e-9);
  EXPECT_GE(tuned.best.trial.settings.streams, 14);  // 13.5 windows of 2 MB are on the way
  EXPECT_GT(tuned.best.trial.settings.pacing_rate, 0.9e8);
  EXPECT_LE(tuned.best.trial.settings.pacing_rate, 1.0e8);
  EXPECT_GT(tuned.rate_out, 0.9e8);
  EXPECT_LE(link.time, 1.3 * options.seconds);
  EXPECT_GT(tuned.best.after_pause, 0);
  EXPECT_LE(link.connections, 3);              // streams are computed, not tried
  EXPECT_EQ(link.now_used, tuned.best.trial);  // left in use
}

TEST(Tuner, WhereKernelsHoldStreamsBackTheyGetWindows) {
  ModelLink link;
  link.kernel.tcp_rmem_max = link.kernel.tcp_wmem_max = 200'000;  // 256 streams hold 26 MB, twice the way is 54 MB
  const Tuned tuned = tune(link, {});
  EXPECT_EQ(tuned.best.trial.settings.streams, kMaxStreams);
  EXPECT_EQ(tuned.best.trial.settings.window, std::size_t{256} << 10);
}

TEST(Tuner, WaysOfDifferentRatesArePacedApart) {
  ModelLink link;
  link.rate_in = 2.5e7;
  link.round_trip = 0.02;
  link.loss = 0.5;
  const Tuned tuned = tune(link, {});
  const Trial& best = tuned.best.trial;
  EXPECT_GT(best.pacing_in, 2e7);
  EXPECT_LE(best.pacing_in, 2.5e7);
  EXPECT_GT(best.settings.pacing_rate, 2 * best.pacing_in);
}

TEST(Tuner, AShortWayNeedsOneStreamAndNoPacing) {
  ModelLink link;
  link.rate_out = link.rate_in = 1.2e9;
  link.round_trip = 5e-5;
  link.window = 1e9;
  link.loss = 0;
  const Tuned tuned = tune(link, {});
  EXPECT_LE(tuned.best.trial.settings.streams, 16);
  EXPECT_EQ(tuned.best.trial.settings.pacing_rate, 0);
}

TEST(Tuner, ASlowLineIsTriedWithSmallMessages) {
  ModelLink link;
  link.rate_out = link.rate_in = 1.25e6;  // 10 Mbit/s
  link.round_trip = 0.1;
  const Tuned tuned = tune(link, {});
  EXPECT_LT(tuned.best.bytes, 3'000'000u);
  EXPECT_LE(link.time, 120);
}

TEST(Tuner, KeepsWhatItIsToldTo) {
  ModelLink link;
  TuneOptions options;
  options.base.settings.streams = 3;
  options.base.settings.congestion = "cubic";
  options.keep_streams = options.keep_congestion = options.keep_window = options.keep_pacing = true;
  for (const Tried& tried : tune(link, options).tried) {
    EXPECT_EQ(tried.trial.settings.streams, 3);
    EXPECT_EQ(tried.trial.settings.congestion, "cubic");
    EXPECT_EQ(tried.trial.settings.window, 0u);
    EXPECT_EQ(tried.trial.settings.pacing_rate, 0);
  }
}

TEST(Tuner, WhatAKernelRefusesIsPassedOver) {
  ModelLink link;
  link.refuses_bbr = true;
  std::string said;
  TuneOptions options;
  options.progress = [&](const std::string& line) { said += line + "\n"; };
  const Tuned tuned = tune(link, options);
  EXPECT_NE(said.find("no bbr there"), std::string::npos) << said;
  EXPECT_NE(tuned.best.trial.settings.congestion, "bbr");
}

TEST(Tuner, ShortTimeStillGivesAnAnswer) {
  ModelLink link;
  TuneOptions options;
  options.seconds = 5;
  const Tuned tuned = tune(link, options);
  EXPECT_FALSE(tuned.in_time);
  EXPECT_GT(tuned.rate_out, 0);
  EXPECT_LT(link.time, 40);
}

TEST(BenchReport, SizesLatencySilenceAndCpu) {
  ModelLink link;
  link.window = 1e8;
  Trial trial;
  trial.settings.pacing_rate = trial.pacing_in = 0.95e8;
  BenchOptions options;
  options.seconds = 60;
  const BenchResult result = measure(link, trial, options);
  EXPECT_NEAR(result.latency.median, 0.27, 1e-9);
  EXPECT_NEAR(result.latency.percentile_99, 0.27, 1e-9);
  ASSERT_EQ(result.rows.size(), 4u);
  EXPECT_TRUE(result.left_out.empty());
  const double rate = 0.95e8 * (1 - 2e-4 * trial.settings.streams);
  EXPECT_NEAR(result.rows[2].out, 0.135 + 64e6 / rate, 1e-6);
  EXPECT_NEAR(result.rows[3].both, 0.135 + 512e6 / rate, 1e-6);
  EXPECT_EQ(link.silences, 3);
  EXPECT_NEAR(result.cpu_there, 2 * result.cpu_here, 1e-9);

  ModelLink slow;
  slow.rate_out = slow.rate_in = 1.25e6;
  options.seconds = 30;
  const BenchResult of_slow = measure(slow, Trial{}, options);
  EXPECT_FALSE(of_slow.left_out.empty());
  EXPECT_LT(slow.time, 90);
}

}  // namespace
