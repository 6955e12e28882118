// Peers that hold the key and mean harm: what they do ends their own path at most.
#include <gtest/gtest.h>

#include "tests/wan/helpers.hpp"
#include "tests/wan/net/path/raw_peer.hpp"
#include "tests/wan/net/secure/service.hpp"

namespace maki::wan {
namespace {

using test::comes_true, test::HandMadeStream;

class Hostile : public test::EncryptedOrPlain {
 protected:
  Security key(const std::string& name) { return test::new_key(folder_, name); }
};

INSTANTIATE_TEST_SUITE_P(Peers, Hostile, testing::Bool(), test::name_of_mode);

TEST_P(Hostile, AStreamThatIsReplacedAgainAndAgain) {
  const Security security = this->security();
  Listener listener({"127.0.0.1", 0}, security, test::patient());
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
    Path caller = Path::connect(listener.address(), security, test::streams(4));
    paths.push_back(std::move(listener.accept().path));
    paths.push_back(std::move(caller));
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
