// Crowds in full size: many sessions of one key, and strangers at a high rate while an honest client is far away.
#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <thread>

#include "tests/testbed/link.hpp"
#include "tests/testbed/namespaces.hpp"
#include "tests/wan/helpers.hpp"
#include "tests/wan/net/copy/copy_fixture.hpp"
#include "tests/wan/net/path/raw_peer.hpp"
#include "tests/wan/net/secure/service.hpp"
#include "wan/net/copy/client.hpp"
#include "wan/net/copy/server.hpp"

namespace maki::wan {
namespace {

using Clock = std::chrono::steady_clock;

// One key asks for 1024 sessions and more, again and again; the holder of another one comes in and copies.
TEST(FullCrowds, AThousandSessionsOfOneKey) {
  const test::TemporaryFolder keys;
  const Security one = test::new_key(keys, "one"), other = test::new_key(keys, "other");
  const copy::Scratch scratch;
  const test::Log log;
  copy::write_file(scratch / "file", copy::random_text(50'000'000, 1));
  const copy::RunningServer server(copy::sharing(scratch.path()), test::both_of(one, other), {});
  std::atomic<int> welcomed{0}, busy{0};
  const auto begin = Clock::now();
  std::jthread crowd([&](const std::stop_token& stop) {
    std::deque<test::HandMadeStream> streams;
    while (!stop.stop_requested()) try {
        streams.emplace_back(server.address(), one);
        const Answer answer = streams.back().greet(test::hello_of(0, 1)).answer;
        ++(answer == Answer::kWelcome ? welcomed : busy);
        if (streams.size() > 1024) streams.pop_front();
      } catch (const Error&) {  // refused, in one way or another
      }
  });
  while (welcomed + busy < 1024 && seconds_since(begin) < 60)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  std::printf("  %d sessions welcomed, %d told to wait, in %.1f s\n", welcomed.load(), busy.load(),
              seconds_since(begin));
  EXPECT_GE(welcomed + busy, 1024);
  for (int i = 0; i < 3; ++i) {
    const auto start = Clock::now();
    copy::Client client(Path::connect(server.address(), other, test::streams(4)));
    const double connected = seconds_since(start);
    const std::string got = scratch / ("got " + std::to_string(i));
    EXPECT_TRUE(client.pull({"file"}, got).complete());
    EXPECT_TRUE(copy::read_file(scratch / "file") == copy::read_file(got));
    std::printf("  another key: connected in %.3f s, 50 MB copied in %.3f s\n", connected,
                seconds_since(start) - connected);
    EXPECT_LT(connected, 5);
  }
  crowd.request_stop();
  crowd.join();
  std::printf("  in all %d welcomed, %d told to wait\n", welcomed.load(), busy.load());
}

class FullFarCrowds : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = testbed::why_not(); !reason.empty()) GTEST_SKIP() << reason;
  }

  // Connections that say nothing, from where the calling thread is.
  static void crowd(const Endpoint& to, double rate, const std::stop_token& stop, std::atomic<int>& count) {
    std::deque<Socket> sockets;
    const auto begin = Clock::now();
    const auto address = resolve(to).front();
    while (!stop.stop_requested()) {
      try {
        for (; count < rate * seconds_since(begin); ++count) sockets.push_back(start_connect(address, {}));
      } catch (const Error&) {  // no port just now
      }
      while (sockets.size() > 2000) sockets.pop_front();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  // Paths of one who is 270 ms away while a crowd comes from there as well, or from a place near the listener.
  void come_in(bool same_address) {
    const testbed::Namespace near(testbed::namespace_name("near")), far(testbed::namespace_name("far"));
    const testbed::EmulatedLink link({near.name(), "near", "10.9.0.1", "fd09::1"},
                                     {far.name(), "far", "10.9.0.2", "fd09::2"}, {.delay = 0.135});
    const test::TemporaryFolder keys;
    const test::Log log;
    Security own = test::new_key(keys), key = own;
    own.own_name = "near", key.own_name = "far";  // it is one machine
    std::unique_ptr<Context> here, there;
    std::unique_ptr<Listener> listener;
    near.within([&] {
      here = std::make_unique<Context>(1);
      listener =
          std::make_unique<Listener>(Endpoint{"", 0}, own, PathSettings{}, ListenerLimits{}, RelayRoute{}, *here);
    });
    far.within([&] { there = std::make_unique<Context>(1); });
    const Endpoint address{"10.9.0.1", listener->address().port};
    std::atomic<int> count{0};
    std::jthread strangers([&](const std::stop_token& stop) {
      (same_address ? far : near).within([&] { crowd(address, 700, stop, count); });
    });
    const auto begin = Clock::now();
    std::this_thread::sleep_for(std::chrono::seconds(2));
    std::vector<Path> paths;
    double least = 1e9, most = 0;
    for (int i = 0; i < 10; ++i) {
      const auto start = Clock::now();
      far.within([&] { paths.push_back(Path::connect(address, key, test::streams(1), {.within = 60}, *there)); });
      least = std::min(least, seconds_since(start));
      most = std::max(most, seconds_since(start));
    }
    std::printf("  %.0f strangers a second; 10 paths at 270 ms: each up in %.2f to %.2f s\n",
                count / seconds_since(begin), least, most);
    EXPECT_GT(count / seconds_since(begin), 600);
    EXPECT_LT(most, same_address ? 30 : 5);
    strangers.request_stop();
    strangers.join();
    for (Path& path : paths) path.close(0);
    while (auto accepted = listener->accept_for(0)) accepted->path.close(0);
  }
};

TEST_F(FullFarCrowds, StrangersFromElsewhere) { come_in(false); }
TEST_F(FullFarCrowds, StrangersFromTheSameAddress) { come_in(true); }

}  // namespace
}  // namespace maki::wan
