// A measurement over real paths on this machine; the search for settings, over a link that is only a model; limits of
// kernels.
#include "wan/net/tune/bench.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <future>
#include <limits>
#include <list>

#include "tests/wan/helpers.hpp"
#include "tests/wan/net/proxy.hpp"
#include "wan/net/listener.hpp"
#include "wan/net/tune/measure.hpp"

namespace maki::wan {
namespace {

// A service on a port of this machine, until its end.
class RunningService {
 public:
  explicit RunningService(const Security& security, double longest_silence = 20) {
    service_.local = {"127.0.0.1", 0};
    service_.security = security;
    service_.longest_silence = longest_silence;
    service_.settings.heartbeat = 0.1;
    service_.listening = [this](const Endpoint& where) { listening_.set_value(where); };
    service_.report = [this](const std::string& line) { lines_.add(line); };
    service_.stop = [this] { return stop_.load(); };
    server_ = std::async(std::launch::async, [this] { serve_bench(service_); });
    std::future<Endpoint> address = listening_.get_future();
    if (address.wait_for(std::chrono::minutes(1)) != std::future_status::ready) server_.get();  // throws why
    address_ = address.get();
  }
  ~RunningService() { stop(); }
  void stop() { stop_ = true; }
  void wait() { server_.get(); }
  const Endpoint& address() const { return address_; }
  bool says(const std::string& words) const {
    return test::comes_true([&] { return lines_.has(words); });
  }

 private:
  BenchService service_;
  test::Lines lines_;
  std::promise<Endpoint> listening_;
  Endpoint address_;
  std::atomic<bool> stop_{false};
  std::future<void> server_;  // last: its end waits for the service's
};

class BenchOverLoopback : public testing::Test {
 protected:
  static Trial trial(int streams) { return {.settings = test::streams(streams)}; }

  test::TemporaryFolder folder_;
  const Security security_ = test::new_key(folder_);
  RunningService service_{security_};
};

TEST_F(BenchOverLoopback, TransfersAreTimedAllWays) {
  BenchClient link(service_.address(), security_);
  link.use(trial(3));
  EXPECT_EQ(link.status().streams_up, 3);
  const std::vector<double> times = link.round_trips(20);
  ASSERT_EQ(times.size(), 20u);
  EXPECT_GT(*std::min_element(times.begin(), times.end()), 0);
  const double begin = link.now();
  const Timing out = link.transfer(Way::kOut, 5'000'000);
  const Timing in = link.transfer(Way::kIn, 5'000'000);
  const Timing both = link.transfer(Way::kBoth, 5'000'000);
  const double elapsed = link.now() - begin;
  EXPECT_GT(out.out, 0);
  EXPECT_EQ(out.in, 0);
  EXPECT_GT(in.in, 0);
  EXPECT_EQ(in.out, 0);
  EXPECT_GT(both.out, 0);
  EXPECT_GT(both.in, 0);
  EXPECT_LE(out.out + in.in + both.slower(), elapsed);  // one clock here: no transfer can take longer than it took
  EXPECT_GT(link.send_many({100'000, 50, 4}), 0);
  EXPECT_GT(link.cpu().there, 0);
  EXPECT_FALSE(link.kernel_there().congestion.empty());
}

TEST_F(BenchOverLoopback, SettingsChangeWithAndWithoutNewSockets) {
  BenchClient link(service_.address(), security_);
  link.use(trial(2));
  Trial other = trial(2);
  other.settings.send_chunk = 100'000;
  other.settings.pacing_rate = other.pacing_in = 1e9;
  link.use(other);
  EXPECT_EQ(link.status().reconnections, 0u);
  EXPECT_GT(link.transfer(Way::kBoth, 2'000'000).slower(), 0);
  other.settings.window = 256 << 10;  // a new listener there
  other.settings.streams = 5;
  link.use(other);
  EXPECT_EQ(link.status().streams_up, 5);
  EXPECT_GT(link.transfer(Way::kBoth, 2'000'000).slower(), 0);
}

TEST_F(BenchOverLoopback, AnUnusableCongestionControlIsAnErrorAndTheServerStays) {
  {
    BenchClient link(service_.address(), security_);
    Trial wrong = trial(1);
    wrong.settings.congestion = "no-such-control";
    EXPECT_THROW(link.use(wrong), Error);
  }
  BenchClient link(service_.address(), security_);
  link.use(trial(1));
  EXPECT_EQ(link.round_trips(3).size(), 3u);
}

TEST_F(BenchOverLoopback, APeerThatDoesNotMeasureIsNamed) {
  Listener listener({"127.0.0.1", 0}, security_, trial(1).settings);
  auto leaving = std::async(std::launch::async, [&] { listener.accept().path.close(); });
  BenchClient link(listener.address(), security_);
  EXPECT_TRUE(test::says(test::error_of([&] { link.use(trial(1)); }), "see that 'maki wan bench --listen' runs there"));
}

TEST_F(BenchOverLoopback, EndsWhenAskedWhoeverIsThere) {
  BenchClient link(service_.address(), security_);
  link.use(trial(1));
  service_.stop();
  service_.wait();
  EXPECT_THROW(link.cpu(), PathError);
}

// A service, and a caller of it that has been welcomed and then does only what the test does.
class Visit {
 public:
  Visit(const Security& security, double longest_silence) : service_(security, longest_silence) {
    PathSettings settings = test::streams(1);
    settings.heartbeat = 0.1;
    settings.unmatched_limit = 1 << 20;
    caller_ = Path::connect(proxy_.address(), security, settings);
    order({.action = BenchOrder::Action::kHello,
           .send_chunk = settings.send_chunk,
           .receive_chunk = settings.receive_chunk});
    EXPECT_EQ(decode_bench_reply(caller_.receive_any(kReplies, kMaxBenchMessage).view()).what,
              BenchReply::What::kWelcome);
  }
  ~Visit() { caller_.close(0); }
  void order(const BenchOrder& order) { caller_.send(kOrders, encode(order)); }
  void vanish() {
    proxy_.refuse(true);
    proxy_.cut();
  }
  RunningService& service() { return service_; }

 private:
  RunningService service_;
  test::Proxy proxy_{service_.address()};
  Path caller_;
};

// Callers for whom others wait have a few seconds.
constexpr double kSilence = 4;

// Ctrl-C at the calling side says no goodbye.
TEST_F(BenchOverLoopback, ACallerThatVanishesIsGivenUp) {
  Visit visit(security_, kSilence);
  visit.vanish();
  EXPECT_TRUE(visit.service().says("is lost"));
}

// Visits of callers that order nothing (a terminal is stopped, say), or a transfer and do not do their part of it.
std::list<Visit> idle_visits(const Security& security, double longest_silence) {
  using Action = BenchOrder::Action;
  std::list<Visit> visits;
  visits.emplace_back(security, longest_silence);
  for (const BenchOrder& order : {BenchOrder{.action = Action::kEcho, .transfer = {.count = 3}},
                                  {.action = Action::kMove, .transfer = {.bytes = 1000, .count = 5}},
                                  {.action = Action::kMove, .transfer = {.count = 0}, .back = 64 << 20},
                                  {.action = Action::kMove, .transfer = {.bytes = 1000}, .back = 1000}})
    visits.emplace_back(security, longest_silence).order(order);
  return visits;
}

TEST_F(BenchOverLoopback, CallersThatDoNothingAreGivenUp) {
  std::list<Visit> visits = idle_visits(security_, kSilence);
  EXPECT_TRUE(visits.front().service().says("it orders nothing, and others may wait"));
  visits.pop_front();
  for (Visit& visit : visits) EXPECT_TRUE(visit.service().says("nothing moves, and others may wait"));
}

TEST_F(BenchOverLoopback, EndsWhenAskedAmidTransfers) {
  std::list<Visit> visits = idle_visits(security_, 1000);
  visits.emplace_back(security_, 1000)
      .order({.action = BenchOrder::Action::kMove, .back = 1000, .at = ~std::uint64_t{0}});
  test::pause(0.3);  // until they have begun
  for (Visit& visit : visits) visit.service().stop();
  for (Visit& visit : visits) EXPECT_TRUE(visit.service().says("was ended here"));
}

// A line of a rate that loses what is sent above it: streams are held by a window each, and without pacing, or paced
// above the line, a part of the rate is lost again. Streams cost a little each.
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
  EXPECT_TRUE(test::says(said, "no bbr there"));
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
  const BenchResult result = measure(link, trial, {.seconds = 60});
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
  const BenchResult of_slow = measure(slow, Trial{}, {.seconds = 30});
  EXPECT_FALSE(of_slow.left_out.empty());
  EXPECT_LT(slow.time, 90);
}

std::string all_of(const std::vector<Limit>& limits) {
  std::string text;
  for (const Limit& limit : limits) text += limit.what + " | " + limit.remedy + "\n";
  return text;
}

const KernelLimits kStock{212992, 212992, 6u << 20, 4u << 20, true, "cubic", {"cubic", "reno"}};

TEST(BenchMessages, RefuseWhatNoPeerSays) {
  using Action = BenchOrder::Action;
  const auto refused = [](const BenchOrder& order) { EXPECT_THROW(decode_bench_order(encode(order)), ProtocolError); };
  refused({.action = static_cast<Action>(77)});
  refused({.action = Action::kMove, .transfer = {.bytes = kLargestTransfer + 1}});
  refused({.action = Action::kMove, .transfer = {.bytes = kLargestTransfer, .flight = 2}});
  refused({.action = Action::kMove, .transfer = {.flight = 0}});
  refused({.action = Action::kMove, .back = kLargestTransfer + 1});
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
  test::expect_contains(all_of(limits_of(kStock, settings, 1e8, 0.27)),
                        {"sysctl -w net.ipv4.tcp_rmem=\"4096 131072 134217728\"", "tcp_wmem"});
  settings.streams = 64;
  EXPECT_EQ(all_of(limits_of(kStock, settings, 1e8, 0.27)).find("mem"), std::string::npos);
  settings.streams = 1;
  EXPECT_EQ(all_of(limits_of(kStock, settings, 1e8, 1e-4)), "");
}

TEST(KernelLimits, WindowsAreCutAndCubicForgets) {
  PathSettings settings;
  settings.window = 4u << 20;
  settings.streams = 64;
  test::expect_contains(all_of(limits_of(kStock, settings, 1e8, 0.27)),
                        {"sysctl -w net.core.rmem_max=4194304", "sysctl -w net.core.wmem_max=4194304",
                         "tcp_slow_start_after_idle=0", "tcp_bbr"});
  KernelLimits open = kStock;
  open.rmem_max = open.wmem_max = 4u << 20;
  open.congestions = {"cubic", "bbr"};
  settings.congestion = "bbr";
  EXPECT_EQ(all_of(limits_of(open, settings, 1e8, 0.27)), "");
}

}  // namespace
}  // namespace maki::wan
