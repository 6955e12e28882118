// Dialling, against greeters made by hand.
#include "wan/net/path/dial.hpp"

#include <gtest/gtest.h>

#include <future>

#include "tests/wan/net/path/dialled.hpp"
#include "wan/net/path/greeter.hpp"
#include "wan/net/relay/admission.hpp"

namespace maki::wan {
namespace {

using test::Caller, test::Dialled, test::plan_to, test::welcome_of;

Dialled answered(const Welcome& welcome, const Hello& hello = test::hello_of(0, 1)) {
  test::RawListener listener;
  Caller caller(plan_to({listener.address()}, hello));
  test::RawPeer peer(listener.accept());
  EXPECT_TRUE(peer.read_hello().has_value());
  peer.write(encode(welcome));
  return caller.wait();
}

TEST(Dial, SaysHelloAndReadsNotOneByteBeyondTheWelcome) {
  test::RawListener listener;
  Hello hello = test::hello_of(2, 5);
  hello.name = "caller";
  Caller caller(plan_to({listener.address()}, hello));
  test::RawPeer peer(listener.accept());
  const auto heard = peer.read_hello();
  ASSERT_TRUE(heard.has_value());
  EXPECT_EQ(heard->stream, 2u);
  EXPECT_EQ(heard->epoch, 5u);
  EXPECT_EQ(heard->name, "caller");
  const auto bytes = encode(welcome_of(Answer::kWelcome));
  std::string all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  peer.write(all.substr(0, 100));
  peer.write(all.substr(100) + "frame");
  Dialled outcome = caller.wait();
  ASSERT_TRUE(outcome.channel) << outcome.reason;
  EXPECT_EQ(outcome.welcome.session[3], std::byte{7});
  EXPECT_EQ(outcome.peer.text(), listener.address().text());
  std::string next(5, ' ');
  ASSERT_TRUE(test::ready(outcome.channel->descriptor(), POLLIN));
  EXPECT_EQ(outcome.channel->read(std::as_writable_bytes(std::span(next))).bytes, 5u);
  EXPECT_EQ(next, "frame");
}

TEST(Dial, TellsWhatIsFinal) {
  for (const auto& [answer, failure] : {std::pair{Answer::kUnknownSession, DialFailure::kFinal},
                                        {Answer::kBusy, DialFailure::kAgain},
                                        {Answer::kStale, DialFailure::kAgain},
                                        {Answer::kRefused, DialFailure::kFinal}}) {
    const Dialled outcome = answered(welcome_of(answer));
    EXPECT_FALSE(outcome.channel);
    EXPECT_EQ(outcome.failure, failure) << outcome.reason;
    EXPECT_TRUE(test::says(outcome.reason, "because of the test"));
    EXPECT_TRUE(test::says(outcome.reason, "127.0.0.1:"));
  }
  Welcome later = welcome_of(Answer::kVersion);
  later.version = kProtocolVersion + 1;
  const Dialled outcome = answered(later);
  EXPECT_EQ(outcome.failure, DialFailure::kFinal);
  EXPECT_TRUE(test::says(outcome.reason, "version " + std::to_string(later.version)));
}

TEST(Dial, RefusesAnotherSessionThanTheOneAskedFor) {
  SessionId session{};
  session[0] = std::byte{1};
  EXPECT_FALSE(answered(welcome_of(Answer::kWelcome), test::hello_of(0, 2, session)).channel);
}

TEST(Dial, NonsenseIsFinalForAPathThatNeverStood) {
  for (const bool join : {false, true}) {
    SessionId session{};
    session[0] = std::byte{join};
    test::RawListener listener;
    Caller caller(plan_to({listener.address()}, test::hello_of(0, 1, session)));
    test::RawPeer peer(listener.accept());
    peer.write(std::string(kWelcomeBytes, 'x'));
    EXPECT_EQ(caller.wait().failure, join ? DialFailure::kAgain : DialFailure::kFinal);
  }
}

TEST(Dial, OnlyThePeerCanEndAPathThatStands) {
  for (const bool same : {true, false}) {
    test::RawListener listener;
    DialPlan plan = plan_to({listener.address()}, test::hello_of(0, 2, SessionId{std::byte{1}}));
    plan.peer = party_of("peer");
    Caller caller(plan);
    test::RawPeer peer(listener.accept());
    Welcome welcome = welcome_of(Answer::kUnknownSession);
    welcome.party = party_of(same ? "peer" : "somebody else");
    peer.write(encode(welcome));
    EXPECT_EQ(caller.wait().failure, same ? DialFailure::kFinal : DialFailure::kAgain);
  }
}

void by_relay(DialPlan& plan, const test::TemporaryFolder& folder) {
  plan.relay.key_file = folder / "relay.key";
  plan.relay.target = "amsterdam";
}

// Whoever is on the way to the relay can say these things, and knows no key.
TEST(Dial, AForgedRefusalOfTheRelayEndsNoPathThatStands) {
  test::TemporaryFolder folder;
  write_key(Key::make(), folder / "relay.key");
  for (const bool stands : {true, false}) {
    for (const auto code : {admission::Code::kRefused, admission::Code::kKey, admission::Code::kAdmitted}) {
      test::RawListener listener;
      DialPlan plan = plan_to({listener.address()}, test::hello_of(0, 2, SessionId{std::byte{stands}}));
      by_relay(plan, folder);
      Caller caller(plan);
      test::RawPeer forger(listener.accept());
      forger.write(encode(admission::Challenge{}));
      const auto request = forger.read<admission::kRequestBytes>();
      ASSERT_TRUE(request);
      forger.write(encode(admission::Verdict{code, "no such luck"}, *request, {}, nullptr));
      const Dialled outcome = caller.wait();
      EXPECT_EQ(outcome.failure, stands ? DialFailure::kAgain : DialFailure::kFinal) << outcome.reason;
    }
    test::RawListener listener;
    DialPlan plan = plan_to({listener.address()}, test::hello_of(0, 2, SessionId{std::byte{stands}}));
    by_relay(plan, folder);
    Caller caller(plan);
    test::RawPeer(listener.accept()).write(encode(admission::Challenge{.version = admission::kVersion + 1}));
    EXPECT_EQ(caller.wait().failure, stands ? DialFailure::kAgain : DialFailure::kFinal);
  }
}

TEST(Dial, SaysWhoCallsAndWhetherItMeansItsOwnMachine) {
  for (const bool named : {true, false}) {
    test::RawListener listener;
    DialPlan plan = plan_to({listener.address()});
    Security security = test::insecure();
    if (named) security.own_name = "tokyo";
    plan.security = SecurityContext::make(security);
    Caller caller(plan);
    const auto hello = test::RawPeer(listener.accept()).read_hello();
    ASSERT_TRUE(hello.has_value());
    EXPECT_EQ(hello->party, party_of(security.own_name));
    EXPECT_EQ(hello->own_machine, !named);
  }
}

// With keys: the greeter's side is the listener's own.
TEST(Dial, AWrongKeyIsFinal) {
  test::TemporaryFolder folder;
  const Security right = test::new_key(folder, "right"), wrong = test::new_key(folder, "wrong");
  const auto security = SecurityContext::make(right);
  for (const bool good : {true, false}) {
    test::RawListener listener;
    DialPlan plan = plan_to({listener.address()});
    plan.security = SecurityContext::make(good ? right : wrong);
    Caller caller(plan);
    test::RawPeer peer(listener.accept());
    EventLoop loop("test-greeter");
    std::unique_ptr<Greeter> greeter;
    std::promise<std::string> done;
    loop.call([&] {
      Greeter::Events events;
      events.decide = [](const Hello&, const Channel&) { return welcome_of(Answer::kWelcome); };
      events.welcomed = [&](Greeter&, std::unique_ptr<Channel> channel) { done.set_value(channel->identity()); };
      events.gone = [&](Greeter&, const std::string&) { done.set_value(""); };
      greeter =
          std::make_unique<Greeter>(loop, make_channel(security, Socket(dup(peer.descriptor())), Side::kListening),
                                    Address{}, 10, std::move(events));
    });
    peer.close();
    const Dialled outcome = caller.wait();
    EXPECT_EQ(outcome.channel != nullptr, good) << outcome.reason;
    EXPECT_EQ(done.get_future().get().empty(), !good);
    if (!good) {
      EXPECT_EQ(outcome.failure, DialFailure::kFinal) << outcome.reason;
    }
    loop.call([&] { greeter.reset(); });
  }
}

}  // namespace
}  // namespace maki::wan
