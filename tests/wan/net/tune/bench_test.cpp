// A measurement over real paths on this machine.
#include "wan/net/tune/bench.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <future>
#include <thread>

#include "tests/wan/helpers.hpp"
#include "wan/net/listener.hpp"
#include "wan/net/secure/key.hpp"
#include "wan/net/tune/measure.hpp"

namespace {

using namespace maki::wan;

class BenchOverLoopback : public testing::Test {
 protected:
  void SetUp() override {
    key_ = std::filesystem::temp_directory_path() / ("maki_bench_client_" + std::to_string(getpid()) + ".key");
    write_key(Key::make(), key_);
    security_.key_files = {key_};
    std::promise<Endpoint> address;
    service_.local = {"127.0.0.1", 0};
    service_.security = security_;
    service_.listening = [&](const Endpoint& where) { address.set_value(where); };
    service_.stop = [this] { return stop_.load(); };
    server_ = std::thread([this] { serve_bench(service_); });
    address_ = address.get_future().get();
  }
  void TearDown() override {
    stop_ = true;
    server_.join();
    std::filesystem::remove(key_);
  }
  static Trial trial(int streams) {
    Trial trial;
    trial.settings.streams = streams;
    return trial;
  }

  std::string key_;
  Security security_;
  BenchService service_;
  std::atomic<bool> stop_{false};
  std::thread server_;
  Endpoint address_;
};

TEST_F(BenchOverLoopback, TransfersAreTimedAllWays) {
  BenchClient link(address_, security_);
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
  BenchClient link(address_, security_);
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
    BenchClient link(address_, security_);
    Trial wrong = trial(1);
    wrong.settings.congestion = "no-such-control";
    EXPECT_THROW(link.use(wrong), Error);
  }
  BenchClient link(address_, security_);
  link.use(trial(1));
  EXPECT_GT(link.transfer(Way::kOut, 10'000'000).out, 0);  // longer than the clocks of the two ends are apart
}

TEST_F(BenchOverLoopback, APeerThatDoesNotMeasureIsNamed) {
  Listener listener({"127.0.0.1", 0}, security_, trial(1).settings);
  auto leaving = std::async(std::launch::async, [&] { listener.accept().path.close(); });
  BenchClient link(listener.address(), security_);
  const std::string error = maki::wan::test::error_of([&] { link.use(trial(1)); });
  EXPECT_NE(error.find("see that 'maki wan bench --listen' runs there"), std::string::npos) << error;
}

TEST_F(BenchOverLoopback, WholeMeasurement) {
  BenchClient link(address_, security_);
  BenchOptions options;
  options.seconds = 2;
  options.pause = 0.05;
  options.sizes = {100'000, 1'000'000};
  options.bytes_after_pause = 1'000'000;
  const BenchResult result = measure(link, trial(4), options);
  EXPECT_GT(result.latency.count, 0);
  ASSERT_FALSE(result.rows.empty());
  EXPECT_GT(result.rows[0].out, 0);
  EXPECT_GT(result.after_pause.in, 0);
}

}  // namespace
