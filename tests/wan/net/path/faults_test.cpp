// What a path outlives: streams and whole links that die again and again while messages are on their way.
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <random>
#include <vector>

#include "tests/wan/helpers.hpp"
#include "tests/wan/net/proxy.hpp"
#include "wan/net/error.hpp"

namespace maki::wan {
namespace {

using test::comes_true, test::Linked, test::Meanwhile, test::pattern, test::pause;

struct Transfers {
  int count = 200;               // each way
  std::size_t largest = 300000;  // most are smaller
  int tags = 7;
  unsigned seed = 1;
  double pause = 0;  // seconds between two sends
};

struct Letter {
  Tag tag;
  std::size_t size;
  bool any_size;  // how it is received
};

// What goes one way: the same list for the sender and for the receiver.
std::vector<Letter> letters(const Transfers& plan, unsigned way) {
  std::mt19937 random(plan.seed * 2 + way);
  std::vector<Letter> all;
  for (int i = 0; i < plan.count; ++i) {
    const double share = std::uniform_real_distribution<>(0, 1)(random);
    const auto size = static_cast<std::size_t>(share * share * share * static_cast<double>(plan.largest));
    all.push_back({random() % static_cast<unsigned>(plan.tags), i % 11 == 0 ? 0 : size, random() % 3 == 0});
  }
  return all;
}

unsigned seed_of(const Transfers& plan, unsigned way, std::size_t i) {
  return plan.seed * 100003u + way * 50021u + static_cast<unsigned>(i);
}

void send_all(Path& path, const Transfers& plan, unsigned way) {
  const auto list = letters(plan, way);
  std::vector<std::vector<std::byte>> bytes;
  std::vector<Request> requests;
  for (std::size_t i = 0; i < list.size(); ++i) {
    bytes.push_back(pattern(list[i].size, seed_of(plan, way, i)));
    requests.push_back(path.start_send(list[i].tag, bytes.back()));
    if (plan.pause > 0) test::pause(plan.pause);
  }
  for (Request& request : requests) request.wait();
}

// Receives are posted a window at a time, so that some messages come before they are asked for and some after.
void receive_all(Path& path, const Transfers& plan, unsigned way) {
  const auto list = letters(plan, way);
  constexpr std::size_t kWindow = 30;
  std::vector<std::vector<std::byte>> buffers(list.size());
  std::vector<Request> requests(list.size());
  const auto check = [&](std::size_t i) {
    const auto expected = pattern(list[i].size, seed_of(plan, way, i));
    requests[i].wait();
    ASSERT_EQ(requests[i].size(), expected.size()) << "message " << i;
    if (list[i].any_size) {
      ASSERT_TRUE(std::ranges::equal(requests[i].take().view(), expected)) << "message " << i;
    } else {
      buffers[i].resize(expected.size());
      ASSERT_TRUE(buffers[i] == expected) << "message " << i;
    }
  };
  for (std::size_t i = 0; i < list.size() + kWindow; ++i) {
    if (i < list.size()) {
      buffers[i].resize(list[i].any_size ? 0 : list[i].size);
      requests[i] = list[i].any_size ? path.start_receive_any(list[i].tag, plan.largest)
                                     : path.start_receive(list[i].tag, buffers[i]);
    }
    if (i >= kWindow) check(i - kWindow);
  }
}

// Both ways at once. Throws what any of the calls threw.
void exchange(Path& one, Path& other, const Transfers& plan) {
  std::vector<std::future<void>> all;
  all.push_back(std::async(std::launch::async, [&] { send_all(one, plan, 0); }));
  all.push_back(std::async(std::launch::async, [&] { receive_all(other, plan, 0); }));
  all.push_back(std::async(std::launch::async, [&] { send_all(other, plan, 1); }));
  all.push_back(std::async(std::launch::async, [&] { receive_all(one, plan, 1); }));
  for (auto& future : all) future.wait();
  for (auto& future : all) future.get();
}

PathSettings impatient(int streams) {
  PathSettings settings = test::streams(streams);
  settings.heartbeat = 0.1;
  settings.stream_timeout = 0.3;
  settings.patience = 60;
  settings.connect_timeout = settings.handshake_timeout = 1;
  return settings;
}

class Faults : public test::EncryptedOrPlain {};

// The second half is for make test-full.
INSTANTIATE_TEST_SUITE_P(Plain, Faults, testing::Values(false), test::name_of_mode);
INSTANTIATE_TEST_SUITE_P(Full, Faults, testing::Values(true), test::name_of_mode);

// One stream after the other, or `all` at once, by turns from each side.
void streams_die(const Security& security, int streams, bool all) {
  test::Pair pair(test::streams(streams), security);
  {
    const Meanwhile kill(all ? 0.05 : 0.003, [&](unsigned i) {
      for (int stream = 0; stream < streams; ++stream)
        if (all || stream == static_cast<int>(i / 2) % streams) (i % 2 ? pair.here : pair.there).drop_stream(stream);
    });
    EXPECT_TRUE(comes_true([&] {
      exchange(pair.here, pair.there, {.pause = 0.002});
      return pair.here.status().reconnections >= static_cast<std::uint64_t>(streams);
    }));
  }
}

TEST_P(Faults, StreamsDieAgainAndAgain) {
  for (const auto& [streams, all] : {std::pair(4, true), std::pair(4, false), std::pair(1, true)})
    streams_die(security(), streams, all);
}

TEST(EncryptedFaults, StreamsDieAgainAndAgain) {
  const test::TemporaryFolder folder;
  const test::Log log;
  streams_die(test::new_key(folder), 4, true);
}

TEST_P(Faults, ConnectionsAreCutInTheMiddleOfBytes) {
  Linked link(impatient(4), security());
  {
    const Meanwhile cut(0.03, [&](unsigned) { link.proxy.cut_one(); });
    EXPECT_TRUE(comes_true([&] {
      exchange(link.here, link.there, {.seed = 2, .pause = 0.002});
      return link.proxy.connections() > 8;
    }));
  }
}

TEST_P(Faults, TheLinkBreaks) {
  Linked link(impatient(4), security());
  const Meanwhile cut(0.2, [&](unsigned i) {
    link.proxy.refuse(i % 2 == 0);
    link.proxy.cut();
  });
  exchange(link.here, link.there, {.seed = 3, .pause = 0.004});
}

// Nothing is closed, nothing passes: only the missing heartbeats tell.
TEST_P(Faults, TheLinkGoesSilentAndComesBack) {
  Linked link(impatient(4), security());
  auto silence = std::async(std::launch::async, [&] {
    for (int i = 0; i < 2; ++i) {
      pause(0.1);
      link.proxy.stall(true);
      EXPECT_TRUE(comes_true([&] { return !link.here.status().up; }));
      link.proxy.stall(false);
      EXPECT_TRUE(comes_true([&] { return link.here.status().up; }));
    }
  });
  exchange(link.here, link.there, {.seed = 4, .pause = 0.005});
}

TEST_P(Faults, OneLargeMessageOutlivesItsStreams) {
  Linked link(impatient(3), security());
  const auto sent = test::pattern(60000000, 5);
  std::vector<std::byte> got(sent.size());
  Request receive = link.there.start_receive(1, got);
  Request send = link.here.start_send(1, sent);
  for (int i = 0; i < 6; ++i) {
    const std::uint64_t before = link.proxy.bytes();
    while (!receive.wait_for(0.001) && link.proxy.bytes() < before + 7000000) {
    }
    i % 2 ? link.proxy.cut() : link.proxy.cut_one();
  }
  receive.wait();
  send.wait();
  EXPECT_TRUE(got == sent);
}

TEST_P(Faults, BytesThatTheNetworkAltersAreSentAgain) {
  Linked link(impatient(4), security());
  {
    const Meanwhile alter(0.02, [&](unsigned) { link.proxy.alter_one_byte(); });
    exchange(link.here, link.there, {.seed = 6, .pause = 0.002});
  }
}

TEST_P(Faults, SettingsChangeWhileMessagesAreOnTheirWay) {
  test::Pair pair(test::streams(4), security());
  {
    const Meanwhile change(0.1, [&](unsigned i) {
      PathSettings settings = pair.here.settings();
      settings.send_chunk = i % 2 ? 16 << 10 : 128 << 10;
      settings.receive_chunk = i % 3 ? 64 << 10 : 256 << 10;
      (i / 4 % 2 ? pair.there : pair.here).change(settings);
    });
    exchange(pair.here, pair.there, {.seed = 7, .pause = 0.005});
  }
}

}  // namespace
}  // namespace maki::wan
