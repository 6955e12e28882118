// A listener, and callers made by hand.
#include "wan/net/listener.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>

#include "tests/wan/helpers.hpp"
#include "tests/wan/net/secure/service.hpp"

namespace maki::wan {
namespace {

using test::hello_of, test::HandMadeStream;

class ListenerTest : public testing::Test {
 protected:
  Listener listen(const ListenerLimits& limits = {}, const PathSettings& settings = {}) {
    return Listener({"127.0.0.1", 0}, test::insecure(), settings, limits);
  }
  test::Log log_;
};

TEST_F(ListenerTest, WelcomesANewSessionAndItsStreams) {
  Listener listener = listen();
  HandMadeStream first(listener.address());
  const Welcome welcome = first.greet(hello_of(0, 1));
  EXPECT_EQ(welcome.answer, Answer::kWelcome);
  EXPECT_NE(welcome.session, SessionId{});
  Accepted accepted = listener.accept();
  EXPECT_EQ(accepted.name, "raw");
  EXPECT_EQ(accepted.identity, "");
  HandMadeStream second(listener.address());
  const Welcome joined = second.greet(hello_of(1, 1, welcome.session));
  EXPECT_EQ(joined.answer, Answer::kWelcome);
  EXPECT_EQ(joined.session, welcome.session);
  EXPECT_FALSE(listener.accept_for(0.05).has_value());  // no new path
  first.close();
  second.close();
}

TEST_F(ListenerTest, RefusesWhatCannotBe) {
  Listener listener = listen();
  const auto answer_to = [&](const Hello& hello) { return HandMadeStream(listener.address()).greet(hello).answer; };
  HandMadeStream peer(listener.address());
  const Welcome welcome = peer.greet(hello_of(0, 5));
  EXPECT_EQ(welcome.answer, Answer::kWelcome);
  const Accepted accepted = listener.accept();
  SessionId other = welcome.session;
  other[0] ^= std::byte{1};
  EXPECT_EQ(answer_to(hello_of(0, 6, other)), Answer::kUnknownSession);
  EXPECT_EQ(answer_to(hello_of(0, 5, welcome.session)), Answer::kStale);
  EXPECT_EQ(answer_to(hello_of(0, 4, welcome.session)), Answer::kStale);
  EXPECT_EQ(answer_to(hello_of(4, 1, welcome.session)), Answer::kRefused);
  EXPECT_EQ(answer_to(hello_of(4, 1)), Answer::kRefused);
  Hello later = hello_of(0, 1);
  later.version = kProtocolVersion + 1;
  EXPECT_EQ(answer_to(later), Answer::kVersion);
  EXPECT_EQ(answer_to(hello_of(0, 6, welcome.session)), Answer::kWelcome);
}

// Strangers that come from one address in any number.
std::vector<HandMadeStream> crowd_from(const std::string& address, const Endpoint& listener, int count) {
  PathSettings settings;
  settings.local_address = address;
  std::vector<HandMadeStream> peers;
  for (int i = 0; i < count; ++i) peers.emplace_back(test::connect_now(listener, settings));
  return peers;
}

TEST_F(ListenerTest, ACrowdFromOneAddressCrowdsOutItselfOnly) {
  Listener listener = listen({.half_open = 4});
  HandMadeStream honest(listener.address());  // slow to speak, as over a long way
  std::vector<HandMadeStream> strangers = crowd_from("127.0.0.2", listener.address(), 60);
  for (int i = 0; i < 57; ++i) EXPECT_TRUE(strangers[static_cast<std::size_t>(i)].closed_by_peer());
  EXPECT_EQ(honest.greet(hello_of(0, 1)).answer, Answer::kWelcome);
  EXPECT_EQ(strangers[59].greet(hello_of(0, 1)).answer, Answer::kWelcome);
}

TEST_F(ListenerTest, WhoHasShownItsKeyIsNoStranger) {
  test::TemporaryFolder folder;
  const Security key = test::new_key(folder);
  Listener listener({"127.0.0.1", 0}, key, {}, {.half_open = 4});
  HandMadeStream honest(listener.address(), key);
  HandMadeStream(listener.address(), key).greet(hello_of(0, 1));  // the handshake before it is over there too
  std::vector<HandMadeStream> strangers = crowd_from("127.0.0.1", listener.address(), 60);
  for (int i = 0; i < 56; ++i) EXPECT_TRUE(strangers[static_cast<std::size_t>(i)].closed_by_peer());
  EXPECT_EQ(honest.greet(hello_of(0, 1)).answer, Answer::kWelcome);
}

// Whoever tells of the first refusal waits: it is the thread that shook hands with the stranger.
class HeldRefusal {
 public:
  HeldRefusal() {
    set_log_sink([this](LogLevel, const std::string& line) {
      if (line.find("refused 127.0.0.1") != 0 || told_.exchange(true)) return;
      held_.set_value();
      open_.get_future().wait();
    });
  }
  ~HeldRefusal() {
    let_go();
    set_log_sink({});
  }
  bool comes() { return test::is_over(held_.get_future()); }
  void let_go() {
    if (!gone_.exchange(true)) open_.set_value();
  }

 private:
  std::atomic<bool> told_{false}, gone_{false};
  std::promise<void> held_, open_;
};

// Strangers cost the thread at the handshakes; data goes over others.
TEST_F(ListenerTest, PathsGoOnWhileAStrangerIsRefused) {
  test::TemporaryFolder folder;
  const Security key = test::new_key(folder), wrong = test::new_key(folder, "wrong");
  Context context(1);
  test::Pair pair(test::streams(2), key, context);
  HeldRefusal refusal;
  EXPECT_THROW(HandMadeStream(pair.listener.address(), wrong), Error);
  ASSERT_TRUE(refusal.comes());
  const auto words = test::pattern(3 << 20, 1);
  std::vector<std::byte> heard(words.size());
  Request receiving = pair.there.start_receive(1, heard), sending = pair.here.start_send(1, words);
  EXPECT_TRUE(receiving.wait_for(60));
  EXPECT_TRUE(sending.wait_for(60));
  refusal.let_go();
  receiving.wait();
  sending.wait();
  EXPECT_EQ(heard, words);
}

TEST_F(ListenerTest, ClosesOnThoseWhoTakeTooLong) {
  PathSettings settings;
  settings.handshake_timeout = 0.1;
  Listener listener = listen({}, settings);
  HandMadeStream silent(listener.address()), slow(listener.address());
  const auto hello = encode(hello_of(0, 1));
  slow.send(std::span(hello).first(100));
  EXPECT_TRUE(silent.closed_by_peer());
  EXPECT_TRUE(slow.closed_by_peer());
  EXPECT_TRUE(log_.has("0.1 s"));
}

TEST_F(ListenerTest, NonsenseIsClosedAndDoesNotFloodTheLog) {
  Listener listener = listen();
  const auto begin = WallClock::now();
  for (int i = 0; i < 300; ++i) {
    HandMadeStream peer(listener.address());
    peer.send(std::string(kHelloBytes, static_cast<char>(i)));
    if (static_cast<char>(i) == 0x16) {  // as TLS begins: told that there is none here
      EXPECT_EQ(peer.welcome().answer, Answer::kRefused);
    }
    EXPECT_TRUE(peer.closed_by_peer());
  }
  const auto lines = log_.all();
  const auto count =
      std::count_if(lines.begin(), lines.end(), [](const auto& line) { return line.find("refused 127.0.0.1") == 0; });
  EXPECT_GE(count, 1);
  EXPECT_LE(count, PeerLog::kAMinute * (1 + seconds_since(begin) / 60));
  EXPECT_EQ(HandMadeStream(listener.address()).greet(hello_of(0, 1)).answer, Answer::kWelcome);
}

TEST_F(ListenerTest, OnlyLivingPathsCountAgainstTheLimit) {
  Listener listener = listen({.sessions = 2});
  std::vector<Accepted> accepted;
  std::vector<HandMadeStream> peers;  // end first, so that no path waits for their goodbyes
  const auto call = [&] {
    peers.emplace_back(listener.address());
    return peers.back().greet(hello_of(0, 1)).answer;
  };
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(call(), Answer::kWelcome);
    accepted.push_back(listener.accept());
  }
  EXPECT_EQ(call(), Answer::kBusy);
  peers[0].close();
  EXPECT_TRUE(test::comes_true([&] { return !accepted[0].path.status().up; }));
  accepted[0].path.close(0.1);
  EXPECT_EQ(call(), Answer::kWelcome);
}

TEST_F(ListenerTest, OutOfDescriptorsItWaitsAndGoesOn) {
  Listener listener = listen();
  HandMadeStream peer(listener.address());
  EXPECT_EQ(peer.greet(hello_of(0, 1)).answer, Answer::kWelcome);
  Socket unconnected(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int descriptor = unconnected.descriptor();
  HandMadeStream late(std::move(unconnected));
  const Address target = resolve(listener.address()).front();
  {
    const test::NoDescriptors shortage;
    const auto begin = WallClock::now();
    ASSERT_EQ(connect(descriptor, reinterpret_cast<const sockaddr*>(&target.storage), target.length), 0);
    late.send(encode(hello_of(0, 1)));
    EXPECT_TRUE(late.quiet(500));
    EXPECT_TRUE(test::comes_true([&] { return log_.has("ulimit"); }));
    const auto lines = log_.all();
    EXPECT_LE(lines.size(), 10 + 10 * seconds_since(begin));
  }
  EXPECT_EQ(late.welcome().answer, Answer::kWelcome);
}

TEST_F(ListenerTest, SaysWhyItCannotBeHad) {
  Listener listener = listen();
  EXPECT_THROW(Listener(Endpoint{"127.0.0.1", listener.address().port}, test::insecure(), {}), Error);
  EXPECT_THROW(Listener(Endpoint{"127.0.0.1", 0}, Security{}, {}), SecurityError);
  EXPECT_THROW(listen({}, test::streams(0)), Error);
  EXPECT_THROW(listen({.sessions = 0}), Error);
}

TEST_F(ListenerTest, EndsWithThingsUnderWay) {
  std::vector<HandMadeStream> peers;
  {
    Listener listener = listen();
    for (int i = 0; i < 3; ++i) peers.emplace_back(listener.address());
    peers[0].greet(hello_of(0, 1));
    peers[1].send("half");
  }
  EXPECT_TRUE(peers[1].closed_by_peer());
  EXPECT_TRUE(peers[2].closed_by_peer());
}

}  // namespace
}  // namespace maki::wan
