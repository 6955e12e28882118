// Peers that hold the key and mean harm: what they do ends their own path at most.
#include <gtest/gtest.h>

#include <future>

#include "tests/wan/helpers.hpp"
#include "tests/wan/net/path/raw_peer.hpp"
#include "tests/wan/net/secure/service.hpp"

namespace maki::wan {
namespace {

using test::comes_true, test::HandMadeStream;

class Hostile : public test::EncryptedOrPlain {
 protected:
  Security key(const std::string& name) { return test::new_key(folder_, name); }
  // Streams made by hand give no sign of life.
  static PathSettings patient() {
    PathSettings settings;
    settings.stream_timeout = 300;
    return settings;
  }
};

INSTANTIATE_TEST_SUITE_P(Peers, Hostile, testing::Bool(), test::name_of_mode);

TEST_P(Hostile, AStreamThatIsReplacedAgainAndAgain) {
  const Security security = this->security();
  Listener listener({"127.0.0.1", 0}, security, patient());
  HandMadeStream first(listener.address(), security);
  const Welcome welcome = first.greet(test::hello_of(0, 1));
  Path path = std::move(listener.accept().path);
  std::vector<HandMadeStream> replaced;
  for (unsigned epoch = 1; epoch <= 300; ++epoch) {
    replaced.emplace_back(listener.address(), security);
    ASSERT_EQ(replaced.back().greet(test::hello_of(1, epoch, welcome.session)).answer, Answer::kWelcome);
    if (epoch % 2 == 0) replaced.erase(replaced.begin(), replaced.end() - 1);  // ends while its place is being taken
    replaced.back().send({.type = FrameType::kPing});
  }
  EXPECT_TRUE(comes_true([&] { return path.status().reconnections == 299 && path.status().streams_up == 2; }));
  first.send({.type = FrameType::kData, .length = 3, .sequence = 1, .tag = 1, .total = 3}, test::pattern(3, 1));
  EXPECT_EQ(path.receive_any(1, 10).size, 3u);
  path.close(0);
}

// The buffer of a message holds what memory held before: none of it may be told.
TEST_P(Hostile, ChunksThatOverlapAndLeaveGapsMakeNoMessage) {
  const Security security = this->security();
  Listener listener({"127.0.0.1", 0}, security, patient());
  HandMadeStream good(listener.address(), security);
  const Welcome welcome = good.greet(test::hello_of(0, 1));
  Path path = std::move(listener.accept().path);
  const auto bytes = test::pattern(100'000, 3);
  Request request = path.start_receive_any(1, 200'000);
  Frame frame{.type = FrameType::kData, .length = 50'000, .sequence = 1, .tag = 1, .total = 100'000};
  good.send(frame, std::span(bytes).first(50'000));
  for (std::uint64_t offset = 0; offset < 50'000; offset += 10'000) {
    HandMadeStream bad(listener.address(), security);
    ASSERT_EQ(bad.greet(test::hello_of(1, static_cast<unsigned>(1 + offset), welcome.session)).answer,
              Answer::kWelcome);
    Frame overlapping = frame;
    overlapping.sequence = 5 + offset;
    overlapping.offset = offset;
    bad.send(overlapping, std::span(bytes).first(50'000));
    EXPECT_TRUE(bad.closed_by_peer());
    EXPECT_FALSE(request.test());
  }
  frame.sequence = 2;
  frame.offset = 50'000;
  good.send(frame, std::span(bytes).subspan(50'000));
  const Bytes whole = (request.wait(), request.take());
  EXPECT_TRUE(test::same(bytes, whole.view()));
  path.close(0);
}

TEST_F(Hostile, OneKeyDoesNotTakeAllSessions) {
  const Security one = key("one"), other = key("other");
  Listener listener({"127.0.0.1", 0}, test::both_of(one, other), {}, {.sessions = 20, .sessions_per_peer = 3});
  std::vector<HandMadeStream> streams;
  const auto call = [&](const Security& security) {
    streams.emplace_back(listener.address(), security);
    return streams.back().greet(test::hello_of(0, 1));
  };
  for (int i = 0; i < 3; ++i) EXPECT_EQ(call(one).answer, Answer::kWelcome);
  const Welcome refused = call(one);
  EXPECT_EQ(refused.answer, Answer::kBusy);
  EXPECT_TRUE(test::says(refused.reason, "at most 3 paths"));
  EXPECT_EQ(call(other).answer, Answer::kWelcome);
  listener.accept().path.close(0);
  EXPECT_EQ(call(one).answer, Answer::kWelcome);
  const ListenerLimits usual;
  EXPECT_LE(usual.sessions_per_peer, usual.sessions / 8);
}

TEST_F(Hostile, OneKeyDoesNotTakeAllDescriptors) {
  const Security one = key("one"), other = key("other");
  Listener listener({"127.0.0.1", 0}, test::both_of(one, other), {}, {.streams_per_peer = 6});
  std::vector<Path> paths;
  const auto call = [&](const Security& security) {
    auto called =
        std::async(std::launch::async, [&] { return Path::connect(listener.address(), security, test::streams(4)); });
    paths.push_back(std::move(listener.accept().path));
    paths.push_back(called.get());
  };
  call(one);
  EXPECT_TRUE(comes_true([&] { return paths[0].status().streams_up == 4; }));
  call(one);  // gets two, and asks for the others again and again
  EXPECT_TRUE(comes_true([&] { return paths[2].status().streams_up == 2; }));
  call(other);
  EXPECT_TRUE(comes_true([&] { return paths[4].status().streams_up == 4; }));
  EXPECT_EQ(paths[2].status().streams_up, 2);
  paths[1].close(1);
  EXPECT_TRUE(comes_true([&] { return paths[2].status().streams_up == 4; }));
  while (!paths.empty()) paths.pop_back();
}

TEST_F(Hostile, ASessionThatIsNeverUsedIsNotKept) {
  PathSettings settings;
  settings.heartbeat = 0.03;
  settings.stream_timeout = 0.1;
  Listener listener({"127.0.0.1", 0}, test::insecure(), settings, {.sessions_per_peer = 1});
  HandMadeStream silent(listener.address(), test::insecure());
  ASSERT_EQ(silent.greet(test::hello_of(0, 1)).answer, Answer::kWelcome);
  const Accepted accepted = listener.accept();
  EXPECT_TRUE(comes_true([&] {
    return HandMadeStream(listener.address(), test::insecure()).greet(test::hello_of(0, 1)).answer == Answer::kWelcome;
  }));
}

}  // namespace
}  // namespace maki::wan
