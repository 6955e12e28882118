// A relay; and connections being made: what they hold meanwhile.
#include "wan/net/relay/relay.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <future>
#include <optional>

#include "tests/wan/net/relay/rig.hpp"
#include "wan/net/relay/connector.hpp"

namespace maki::wan {
namespace {

using namespace test;
using admission::Want;

void reset(Socket& socket) {
  const linger hard{1, 0};
  setsockopt(socket.descriptor(), SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
  socket = Socket();
}

TEST(Relay, NeedsAKeyAndSensibleSettings) {
  Rig rig;
  RelaySettings settings = rig.settings;
  settings.key_files.clear();
  EXPECT_THROW(Relay{settings}, SecurityError);
  settings = rig.settings;
  settings.destinations["two words"] = {"127.0.0.1", 1};
  EXPECT_THROW(Relay{settings}, Error);
  settings = rig.settings;
  settings.destinations["a"] = {"no-such-host.invalid", 1};
  EXPECT_THROW(Relay{settings}, Error);
  settings = rig.settings;
  settings.half_open = 0;
  EXPECT_THROW(Relay{settings}, Error);
}

TEST(Relay, BindsToTheConfiguredAddressOnly) {
  Rig rig;
  rig.settings.listen.port = 0;
  rig.start();
  EXPECT_EQ(rig.at().host, "127.0.0.1");
  EXPECT_NE(rig.at().port, 0);
  EXPECT_THROW(connect_now({"127.0.0.2", rig.at().port}), Error);
  rig.settings.listen = rig.at();
  EXPECT_THROW(Relay{rig.settings}, Error);  // the port is taken
}

TEST(Relay, PassesBytesBothWaysInManySessionsAtOnce) {
  StartedRig rig;
  constexpr int kSessions = 8;
  constexpr std::size_t kBytes = 12 << 20;
  std::vector<Joined> sessions;
  for (int i = 0; i < kSessions; ++i) sessions.push_back(join(rig));
  const auto exchange = [](const Socket& socket, unsigned mine, unsigned theirs) {
    auto sending =
        std::async(std::launch::async, [&socket, mine] { return put(socket, pattern(kBytes + mine, mine)); });
    const bool same = get(socket, kBytes + theirs) == pattern(kBytes + theirs, theirs);
    return sending.get() && same;
  };
  std::vector<std::future<bool>> sides;
  for (int i = 0; i < kSessions; ++i) {
    const auto number = static_cast<unsigned>(i);
    const Joined& one = sessions[number];
    sides.push_back(std::async(std::launch::async, exchange, std::cref(one.here), 2 * number, 2 * number + 1));
    sides.push_back(std::async(std::launch::async, exchange, std::cref(one.there), 2 * number + 1, 2 * number));
  }
  for (auto& side : sides) EXPECT_TRUE(side.get());
  EXPECT_EQ(rig.relay->status().sessions, kSessions);
  EXPECT_GE(rig.relay->status().bytes, 2 * kSessions * kBytes);
  sessions.clear();
  EXPECT_TRUE(rig.has_sessions(0));
}

TEST(Relay, PassesOnTheEndOfOneDirection) {
  StartedRig rig;
  Joined one = join(rig);
  const auto question = pattern(3 << 20, 1), answer = pattern(5 << 20, 2);
  auto asking = std::async(std::launch::async, [&] {
    put(one.here, question);
    shutdown(one.here.descriptor(), SHUT_WR);
  });
  EXPECT_EQ(get(one.there, question.size() + 1), question);  // and then its end
  auto answering = std::async(std::launch::async, [&] {
    put(one.there, answer);
    shutdown(one.there.descriptor(), SHUT_WR);
  });
  EXPECT_EQ(get(one.here, answer.size() + 1), answer);
  EXPECT_TRUE(rig.has_sessions(0));
}

TEST(Relay, TellsTheOtherSideWhenOneDies) {
  StartedRig rig;
  for (const bool caller_dies : {true, false}) {
    Joined one = join(rig);
    Socket& dying = caller_dies ? one.here : one.there;
    Socket& other = caller_dies ? one.there : one.here;
    const auto last = pattern(1000, 3);
    put(dying, last);
    put(other, pattern(1000, 4));
    EXPECT_EQ(get(other, last.size()), last);
    reset(dying);
    EXPECT_TRUE(ended(other));
    EXPECT_TRUE(rig.has_sessions(0));
  }
}

// What was said before the end arrives, though the one who said it is gone and the other was slow to read.
TEST(Relay, DeliversWhatWasSentBeforeAnEnd) {
  StartedRig rig;
  Joined one = join(rig);
  const auto words = pattern(8 << 20, 5);
  auto saying = std::async(std::launch::async, [&] {
    put(one.here, words);
    one.here = Socket();
  });
  pause(0.05);
  EXPECT_EQ(get(one.there, words.size() + 1), words);
  saying.get();
}

TEST(Relay, HoldsBackASenderWhoseReaderIsSlow) {
  Rig rig;
  rig.settings.socket.window = 64 << 10;
  rig.start();
  Joined one = join(rig);
  std::atomic<std::size_t> written{0};
  const auto words = pattern(64 << 20, 6);
  auto saying = std::async(std::launch::async, [&] {
    for (std::size_t at = 0; at < words.size(); at += 1 << 16) {
      if (!put(one.here, std::span(words).subspan(at, 1 << 16))) return false;
      written += 1 << 16;
    }
    return true;
  });
  std::size_t before = 1;
  EXPECT_TRUE(comes_true([&] {  // it comes to a stand
    pause(0.2);
    return std::exchange(before, written.load()) == written.load();
  }));
  // Kernel buffers of the two ends without a bound of their own, and the relay's share.
  EXPECT_LT(written.load(), 40u << 20);
  EXPECT_EQ(get(one.there, words.size()), words);
  EXPECT_TRUE(saying.get());
}

TEST(Relay, RefusesUnknownTargetsAndKeys) {
  StartedRig rig;
  rig.expect_refused_for_now(Want::kConnect, "nobody");
  // An address is only a name, and nobody has it.
  EXPECT_THROW(reach(rig.at(), rig.key, rig.server.endpoint().text()), Error);
  EXPECT_THROW(reach(rig.at(), Key::make(), "server"), SecurityError);
  EXPECT_EQ(rig.relay->status().sessions_ever, 0u);
  EXPECT_EQ(rig.relay->status().refused, 3u);
}

TEST(Relay, SaysWhenADestinationCannotBeReached) {
  Rig rig;
  rig.settings.destinations["gone"] = {"127.0.0.1", free_ports(1)[0]};
  rig.start();
  rig.expect_refused_for_now(Want::kConnect, "gone");
}

TEST(Relay, AdmitsEachOfSeveralKeysAndBoundsTheirSessions) {
  Rig rig;
  const Key second = rig.second_key();
  rig.settings.sessions_per_key = 2;
  rig.settings.sessions = 3;
  rig.start();
  const Socket a = rig.reach("server"), b = rig.reach("server");
  rig.expect_refused_for_now(Want::kConnect, "server");
  const Socket c = reach(rig.at(), second, "server");
  EXPECT_THROW(reach(rig.at(), second, "server"), Error);  // three in all
}

TEST(Relay, OneOfSeveralKeysLeavesHalfOfTheSessionsToOthers) {
  Rig rig;
  const Key second = rig.second_key();
  rig.settings.sessions = 4;
  rig.start();
  const Socket a = rig.reach("server"), b = rig.reach("server");
  RelayAdmission third(rig.key, Want::kConnect, "server");
  EXPECT_TRUE(says(error_of([&] { admit(rig.at(), third); }), "this key has its 2 sessions already"));
  EXPECT_TRUE(third.try_again());
  const Socket c = reach(rig.at(), second, "server"), d = reach(rig.at(), second, "server");
}

TEST(Relay, TheOnlyKeyMayHaveAllSessions) {
  Rig rig;
  rig.settings.sessions = 3;
  rig.start();
  const Socket a = rig.reach("server"), b = rig.reach("server"), c = rig.reach("server");
}

TEST(Relay, SilentAndSlowPeersAreDropped) {
  Rig rig;
  rig.settings.admission_timeout = 0.3;
  rig.start();
  const Socket silent = connect_now(rig.at()), slow = connect_now(rig.at());
  auto trickle = std::async(std::launch::async, [&] {
    for (int i = 0; i < 100 && put(slow, pattern(1, 1)); ++i) pause(0.05);
  });
  EXPECT_EQ(get(silent, 1000).size(), 48u);  // its question, then the end
  EXPECT_EQ(get(slow, 1000).size(), 48u);
  trickle.get();
  EXPECT_TRUE(comes_true([&] { return rig.relay->status().half_open == 0; }));
}

TEST(Relay, ACrowdFromOneAddressCrowdsOutItselfOnly) {
  Rig rig;
  rig.settings.half_open = 4;
  rig.start();
  const Socket honest = connect_now(rig.at());
  PathSettings elsewhere;
  elsewhere.local_address = "127.0.0.2";
  std::vector<Socket> strangers;
  for (int i = 0; i < 20; ++i) strangers.push_back(connect_now(rig.at(), elsewhere));
  EXPECT_TRUE(comes_true([&] { return rig.relay->status().refused == 17; }));
  EXPECT_LE(get(strangers[0], 1000).size(), 48u);  // then its end
  RelayAdmission admission(rig.key, Want::kConnect, "server");
  EXPECT_EQ(finish(admission, honest.descriptor()), IoStatus::kDone);
}

TEST(Relay, IdleSessionsEnd) {
  Rig rig;
  rig.settings.idle_timeout = 0.2;
  rig.start();
  const Joined one = join(rig);
  EXPECT_TRUE(ended(one.here));
  EXPECT_TRUE(ended(one.there));
}

// Says so much, in bytes, that some of it stays in the relay, as the other end does not read. None stay at `here`. The
// relay has one thread: it was not just put aside where it has passed on what `other` says twice.
std::size_t fill(const Rig& rig, const Socket& here, const Joined& other) {
  constexpr std::size_t kPart = 16 << 10;
  const std::uint64_t before = rig.relay->status().bytes;
  std::size_t said = 0, said_by_other = 0;
  const auto all_passed = [&](double seconds) {
    return comes_true([&] { return rig.relay->status().bytes >= before + said + said_by_other; }, seconds);
  };
  for (;;) {
    EXPECT_TRUE(put(here, pattern(kPart, 1)));
    said += kPart;
    if (all_passed(0.5)) continue;
    for (int i = 0; i < 2; ++i, ++said_by_other) {
      EXPECT_TRUE(put(other.here, pattern(1, 1)));
      EXPECT_EQ(get(other.there, 1).size(), 1u);
    }
    if (!all_passed(4)) return said;
  }
}

// What was said before an orderly end waits for its reader all the same.
TEST(Relay, BrokenSessionsEndThoughTheOtherSideDoesNotRead) {
  Rig rig;
  rig.settings.socket.window = 64 << 10;
  rig.settings.threads = 1;
  rig.start();
  Joined broken = join(rig), orderly = join(rig);
  const Joined other = join(rig);
  shutdown(orderly.there.descriptor(), SHUT_WR);
  EXPECT_TRUE(ended(orderly.here));
  const std::size_t said = fill(rig, orderly.here, other);
  fill(rig, broken.here, other);
  orderly.here = Socket();
  reset(broken.here);
  EXPECT_TRUE(rig.has_sessions(2));
  EXPECT_TRUE(rig.log.has("reset, and the other side does not read"));
  EXPECT_EQ(get(orderly.there, said + 1).size(), said);
  EXPECT_TRUE(rig.has_sessions(1));
}

TEST(Relay, EndingItEndsItsSessions) {
  StartedRig rig;
  const Joined one = join(rig);
  rig.stop();
  EXPECT_TRUE(ended(one.here));
  EXPECT_TRUE(ended(one.there));
}

TEST(Relay, SessionsOutliveAShortageOfDescriptors) {
  Rig rig;
  rig.settings.threads = 1;
  rig.start();
  Joined one = join(rig), other = join(rig);
  {
    const NoDescriptors shortage;
    for (const Socket* socket : {&one.here, &one.there, &other.here}) EXPECT_TRUE(put(*socket, pattern(1000, 1)));
    other.here = Socket();
    for (const Socket* socket : {&one.here, &one.there, &other.there})
      EXPECT_FALSE(ready(socket->descriptor(), POLLIN, 100));
    EXPECT_EQ(rig.relay->status().sessions, 2);
  }
  for (const Socket* socket : {&one.here, &one.there}) EXPECT_EQ(get(*socket, 1000), pattern(1000, 1));
  EXPECT_EQ(get(other.there, 1001), pattern(1000, 1));  // and then its end
  EXPECT_TRUE(put(one.here, pattern(1000, 2)));
  EXPECT_EQ(get(one.there, 1000), pattern(1000, 2));
}

struct Outcome {
  std::string peer, reason;  // of the one that answered; why none did
  std::size_t sockets = 0;   // most at once
};

Outcome connect(const std::vector<Address>& addresses, const PathSettings& settings) {
  std::size_t most = 0;
  std::function<void()> look;  // again and again, by the thread that connects
  EventLoop loop("test-connect");
  std::promise<Outcome> promise;
  std::optional<Connector> connector;
  const std::size_t before = open_descriptors();
  look = [&] {
    most = std::max(most, open_descriptors() - before);
    loop.after(0.01, look);
  };
  loop.call([&] {
    connector.emplace(
        loop, addresses, settings, std::nullopt,
        [&](Socket, const Address& peer) {
          promise.set_value({peer.text(), "", most});
        },
        [&](Connector::Failure, const std::string& reason) {
          promise.set_value({"", reason, most});
        });
    look();
  });
  Outcome outcome = promise.get_future().get();
  loop.call([&] { connector.reset(); });
  return outcome;
}

TEST(Connector, HoldsFewSocketsHoweverManyAddressesAreSilent) {
  const SilentListener silent;
  const RawListener server;
  std::vector<Address> addresses(6, silent.address());
  addresses.push_back(server.address());
  const Outcome outcome = connect(addresses, {});
  EXPECT_EQ(outcome.peer, addresses.back().text()) << outcome.reason;
  EXPECT_EQ(outcome.sockets, Connector::kAtOnce);
}

TEST(Connector, NamesTheAddressesThatMadeRoom) {
  const SilentListener silent[5];
  std::vector<Address> addresses;
  for (const SilentListener& one : silent) addresses.push_back(one.address());
  PathSettings settings;
  settings.connect_timeout = 1.5;
  const Outcome outcome = connect(addresses, settings);
  EXPECT_EQ(outcome.peer, "");
  for (const Address& one : addresses) EXPECT_TRUE(says(outcome.reason, one.text() + ": no answer"));
}

TEST(FullConnector, HoldsFewSocketsHoweverLongItAsks) {
  const SilentListener silent;
  PathSettings settings;
  settings.connect_timeout = 10;
  const Outcome outcome = connect({silent.address()}, settings);
  EXPECT_EQ(outcome.reason, silent.address().text() + ": no answer in 10 s");
  EXPECT_EQ(outcome.sockets, Connector::kAtOnce);
}

}  // namespace
}  // namespace maki::wan
