// A listener, and callers made by hand.
#include "wan/net/listener.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>

#include "tests/wan/helpers.hpp"
#include "tests/wan/net/path/raw_peer.hpp"
#include "tests/wan/net/secure/service.hpp"

namespace maki::wan {
namespace {

using test::hello_of, test::RawPeer;

class ListenerTest : public testing::Test {
 protected:
  Listener listen(const ListenerLimits& limits = {}, const PathSettings& settings = {}) {
    return Listener({"127.0.0.1", 0}, test::insecure(), settings, limits);
  }
  test::Log log_;
};

TEST_F(ListenerTest, WelcomesANewSessionAndItsStreams) {
  Listener listener = listen();
  RawPeer first(listener.address());
  const auto welcome = first.greet(hello_of(0, 1));
  ASSERT_TRUE(welcome.has_value());
  EXPECT_EQ(welcome->answer, Answer::kWelcome);
  EXPECT_NE(welcome->session, SessionId{});
  Accepted accepted = listener.accept();
  EXPECT_EQ(accepted.name, "raw");
  EXPECT_EQ(accepted.identity, "");
  RawPeer second(listener.address());
  const auto joined = second.greet(hello_of(1, 1, welcome->session));
  ASSERT_TRUE(joined.has_value());
  EXPECT_EQ(joined->answer, Answer::kWelcome);
  EXPECT_EQ(joined->session, welcome->session);
  EXPECT_FALSE(listener.accept_for(0.05).has_value());  // no new path
  first.close();
  second.close();
}

TEST_F(ListenerTest, SessionsDiffer) {
  Listener listener = listen();
  std::vector<RawPeer> peers;
  std::vector<SessionId> sessions;
  for (int i = 0; i < 5; ++i) {
    peers.emplace_back(listener.address());
    sessions.push_back(peers.back().greet(hello_of(0, 1)).value().session);
  }
  std::sort(sessions.begin(), sessions.end());
  EXPECT_EQ(std::adjacent_find(sessions.begin(), sessions.end()), sessions.end());
}

TEST_F(ListenerTest, RefusesWhatCannotBe) {
  Listener listener = listen();
  const auto answer_to = [&](const Hello& hello) { return RawPeer(listener.address()).greet(hello).value().answer; };
  RawPeer peer(listener.address());
  const Welcome welcome = peer.greet(hello_of(0, 5)).value();
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

TEST_F(ListenerTest, DropsTheOldestOfTooManyWhoSayNothing) {
  Listener listener = listen({.half_open = 4});
  std::vector<RawPeer> silent;
  for (int i = 0; i < 6; ++i) silent.emplace_back(listener.address());
  EXPECT_TRUE(silent[0].closed());
  EXPECT_TRUE(silent[1].closed());
  EXPECT_TRUE(silent[5].quiet(50));
  EXPECT_EQ(silent[5].greet(hello_of(0, 1)).value().answer, Answer::kWelcome);
  EXPECT_EQ(RawPeer(listener.address()).greet(hello_of(0, 1)).value().answer, Answer::kWelcome);
}

// Strangers that come from one address in any number.
std::vector<RawPeer> crowd_from(const std::string& address, const Endpoint& listener, int count) {
  PathSettings settings;
  settings.local_address = address;
  std::vector<RawPeer> peers;
  for (int i = 0; i < count; ++i) peers.emplace_back(test::connect_now(listener, settings));
  return peers;
}

TEST_F(ListenerTest, ACrowdFromOneAddressCrowdsOutItselfOnly) {
  Listener listener = listen({.half_open = 4});
  RawPeer honest(listener.address());  // slow to speak, as over a long way
  std::vector<RawPeer> strangers = crowd_from("127.0.0.2", listener.address(), 60);
  for (int i = 0; i < 57; ++i) EXPECT_TRUE(strangers[static_cast<std::size_t>(i)].closed());
  EXPECT_EQ(honest.greet(hello_of(0, 1)).value().answer, Answer::kWelcome);
  EXPECT_EQ(strangers[59].greet(hello_of(0, 1)).value().answer, Answer::kWelcome);
}

TEST_F(ListenerTest, WhoHasShownItsKeyIsNoStranger) {
  test::TemporaryFolder folder;
  const Security key = test::new_key(folder);
  Listener listener({"127.0.0.1", 0}, key, {}, {.half_open = 4});
  test::HandMadeStream honest(listener.address(), key);
  test::HandMadeStream(listener.address(), key).greet(hello_of(0, 1));  // the handshake before it is over there too
  std::vector<RawPeer> strangers = crowd_from("127.0.0.1", listener.address(), 60);
  for (int i = 0; i < 56; ++i) EXPECT_TRUE(strangers[static_cast<std::size_t>(i)].closed());
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
  bool comes() { return held_.get_future().wait_for(std::chrono::seconds(60)) == std::future_status::ready; }
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
  EXPECT_THROW(test::HandMadeStream(pair.listener.address(), wrong), Error);
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
  RawPeer silent(listener.address()), slow(listener.address());
  const auto hello = encode(hello_of(0, 1));
  slow.write(std::span(hello).first(100));
  EXPECT_TRUE(silent.closed());
  EXPECT_TRUE(slow.closed());
  EXPECT_TRUE(log_.has("0.1 s"));
}

TEST_F(ListenerTest, NonsenseIsClosedAndDoesNotFloodTheLog) {
  Listener listener = listen();
  for (int i = 0; i < 300; ++i) {
    RawPeer peer(listener.address());
    peer.write(std::string(kHelloBytes, static_cast<char>(i)));
    if (static_cast<char>(i) == 0x16) {  // as TLS begins: told that there is none here
      EXPECT_EQ(peer.read_welcome().value().answer, Answer::kRefused);
    }
    EXPECT_TRUE(peer.closed());
  }
  const auto lines = log_.all();
  const auto count =
      std::count_if(lines.begin(), lines.end(), [](const auto& line) { return line.find("refused 127.0.0.1") == 0; });
  EXPECT_GE(count, 1);
  EXPECT_LE(count, 60);  // a second each, on a very slow machine
  EXPECT_EQ(RawPeer(listener.address()).greet(hello_of(0, 1)).value().answer, Answer::kWelcome);
}

TEST_F(ListenerTest, OnlyLivingPathsCountAgainstTheLimit) {
  Listener listener = listen({.sessions = 2});
  std::vector<Accepted> accepted;
  std::vector<RawPeer> peers;  // end first, so that no path waits for their goodbyes
  const auto call = [&] {
    peers.emplace_back(listener.address());
    return peers.back().greet(hello_of(0, 1)).value().answer;
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
  RawPeer peer(listener.address());
  const auto before_it = peer.greet(hello_of(0, 1));
  ASSERT_TRUE(before_it.has_value());
  Socket ready(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const Address target = resolve(listener.address()).front();
  RawPeer late{Socket()};
  {
    const test::NoDescriptors shortage;
    ASSERT_EQ(connect(ready.descriptor(), reinterpret_cast<const sockaddr*>(&target.storage), target.length), 0);
    late = RawPeer(std::move(ready));
    late.write(encode(hello_of(0, 1)));
    EXPECT_TRUE(late.quiet(500));
    EXPECT_TRUE(log_.has("ulimit"));
    EXPECT_LE(log_.all().size(), 20u);
  }
  EXPECT_EQ(late.read_welcome().value().answer, Answer::kWelcome);
}

TEST_F(ListenerTest, SaysWhyItCannotBeHad) {
  Listener listener = listen();
  EXPECT_THROW(Listener(Endpoint{"127.0.0.1", listener.address().port}, test::insecure(), {}), Error);
  EXPECT_THROW(Listener(Endpoint{"127.0.0.1", 0}, Security{}, {}), SecurityError);
  EXPECT_THROW(listen({}, test::streams(0)), Error);
  EXPECT_THROW(listen({.sessions = 0}), Error);
}

TEST_F(ListenerTest, EndsWithThingsUnderWay) {
  std::vector<RawPeer> peers;
  {
    Listener listener = listen();
    for (int i = 0; i < 3; ++i) peers.emplace_back(listener.address());
    peers[0].greet(hello_of(0, 1));
    peers[1].write("half");
  }
  EXPECT_TRUE(peers[1].closed());
  EXPECT_TRUE(peers[2].closed());
}

}  // namespace
}  // namespace maki::wan
