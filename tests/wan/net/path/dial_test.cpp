// Dialling, against greeters made by hand.
#include "wan/net/path/dial.hpp"

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "tests/wan/net/path/pair.hpp"
#include "tests/wan/net/path/raw_peer.hpp"
#include "wan/net/path/greeter.hpp"
#include "wan/net/relay/admission.hpp"

namespace maki::wan {
namespace {

struct Outcome {
  std::unique_ptr<Channel> channel;
  Welcome welcome;
  Address peer;
  DialFailure failure = DialFailure::kAgain;
  std::string reason;
};

DialPlan plan_to(std::vector<Address> addresses, const Hello& hello = test::hello_of(0, 1)) {
  DialPlan plan;
  plan.addresses = std::move(addresses);
  plan.host = "127.0.0.1";
  plan.security = SecurityContext::make(test::insecure());
  plan.hello = hello;
  return plan;
}

// The Dial is deleted inside the callback, as its user may do.
class Caller {
 public:
  explicit Caller(const DialPlan& plan) {
    loop_.call([&] {
      dial_ = std::make_unique<Dial>(
          loop_, plan,
          [this](std::unique_ptr<Channel> channel, const Welcome& welcome, const Address& peer) {
            dial_.reset();
            done_.set_value({std::move(channel), welcome, peer, {}, ""});
          },
          [this](DialFailure failure, const std::string& reason) {
            dial_.reset();
            done_.set_value({nullptr, {}, {}, failure, reason});
          });
    });
  }
  ~Caller() {
    loop_.call([&] { dial_.reset(); });
  }
  Outcome wait() { return done_.get_future().get(); }
  void give_up() {
    loop_.call([&] { dial_.reset(); });
  }

 private:
  EventLoop loop_{"test-dial"};
  std::unique_ptr<Dial> dial_;
  std::promise<Outcome> done_;
};

Welcome welcome_of(Answer answer) {
  Welcome welcome;
  welcome.answer = answer;
  welcome.session[3] = std::byte{7};
  welcome.streams = 3;
  welcome.unmatched_limit = 1 << 20;
  welcome.message_limit = 1 << 20;
  welcome.patience = 5;
  if (answer != Answer::kWelcome) welcome.reason = "because of the test";
  return welcome;
}

Outcome answered(const Welcome& welcome, const Hello& hello = test::hello_of(0, 1)) {
  test::RawListener listener;
  Caller caller(plan_to({listener.address()}, hello));
  test::RawPeer peer = listener.accept();
  EXPECT_TRUE(peer.read_hello().has_value());
  peer.write(encode(welcome));
  return caller.wait();
}

TEST(Dial, SaysHelloAndReadsNotOneByteBeyondTheWelcome) {
  test::RawListener listener;
  Hello hello = test::hello_of(2, 5);
  hello.name = "caller";
  Caller caller(plan_to({listener.address()}, hello));
  test::RawPeer peer = listener.accept();
  const auto heard = peer.read_hello();
  ASSERT_TRUE(heard.has_value());
  EXPECT_EQ(heard->stream, 2u);
  EXPECT_EQ(heard->epoch, 5u);
  EXPECT_EQ(heard->name, "caller");
  const auto bytes = encode(welcome_of(Answer::kWelcome));
  std::string all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  peer.write(all.substr(0, 100));
  peer.write(all.substr(100) + "frame");
  Outcome outcome = caller.wait();
  ASSERT_TRUE(outcome.channel) << outcome.reason;
  EXPECT_EQ(outcome.welcome.streams, 3u);
  EXPECT_EQ(outcome.welcome.session[3], std::byte{7});
  EXPECT_EQ(outcome.peer.text(), listener.address().text());
  std::string next(5, ' ');
  ASSERT_TRUE(test::wait_ready(outcome.channel->descriptor(), POLLIN));
  EXPECT_EQ(outcome.channel->read(std::as_writable_bytes(std::span(next))).bytes, 5u);
  EXPECT_EQ(next, "frame");
}

TEST(Dial, TellsWhatIsFinal) {
  for (const auto& [answer, failure] : {std::pair{Answer::kUnknownSession, DialFailure::kFinal},
                                        {Answer::kBusy, DialFailure::kAgain},
                                        {Answer::kStale, DialFailure::kAgain},
                                        {Answer::kRefused, DialFailure::kFinal}}) {
    const Outcome outcome = answered(welcome_of(answer));
    EXPECT_FALSE(outcome.channel);
    EXPECT_EQ(outcome.failure, failure) << outcome.reason;
    EXPECT_NE(outcome.reason.find("because of the test"), std::string::npos) << outcome.reason;
    EXPECT_NE(outcome.reason.find("127.0.0.1:"), std::string::npos) << outcome.reason;
  }
  Welcome later = welcome_of(Answer::kVersion);
  later.version = kProtocolVersion + 1;
  const Outcome outcome = answered(later);
  EXPECT_EQ(outcome.failure, DialFailure::kFinal);
  EXPECT_NE(outcome.reason.find("version " + std::to_string(later.version)), std::string::npos) << outcome.reason;
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
    test::RawPeer peer = listener.accept();
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
    test::RawPeer peer = listener.accept();
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
      test::RawPeer forger = listener.accept();
      forger.write(encode(admission::Challenge{}));
      admission::RequestBytes request;
      ASSERT_TRUE(forger.read(request));
      forger.write(encode(admission::Verdict{code, "no such luck"}, request, {}, nullptr));
      const Outcome outcome = caller.wait();
      EXPECT_EQ(outcome.failure, stands ? DialFailure::kAgain : DialFailure::kFinal) << outcome.reason;
    }
    test::RawListener listener;
    DialPlan plan = plan_to({listener.address()}, test::hello_of(0, 2, SessionId{std::byte{stands}}));
    by_relay(plan, folder);
    Caller caller(plan);
    listener.accept().write(encode(admission::Challenge{.version = admission::kVersion + 1}));
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
    const auto hello = listener.accept().read_hello();
    ASSERT_TRUE(hello.has_value());
    EXPECT_EQ(hello->party, party_of(security.own_name));
    EXPECT_EQ(hello->own_machine, !named);
  }
}

TEST(Dial, TriesTheNextAddress) {
  Address nobody;
  {
    test::RawListener gone;
    nobody = gone.address();
  }
  const Outcome alone = Caller(plan_to({nobody})).wait();
  EXPECT_EQ(alone.failure, DialFailure::kAgain);
  EXPECT_NE(alone.reason.find(nobody.text()), std::string::npos) << alone.reason;
  EXPECT_NE(alone.reason.find("refused"), std::string::npos) << alone.reason;

  test::RawListener listener;
  Caller caller(plan_to({nobody, listener.address()}));
  test::RawPeer peer = listener.accept();
  peer.write(encode(welcome_of(Answer::kWelcome)));
  EXPECT_EQ(caller.wait().peer.text(), listener.address().text());
}

// A listener whose queue is full answers no one: a stand-in for an address into the void.
TEST(Dial, DoesNotWaitForASilentAddress) {
  Socket silent = listen_on({"127.0.0.1", 0}, {}, 0);
  std::vector<Socket> fill;
  for (int i = 0; i < 4; ++i) fill.push_back(start_connect(local_address(silent.descriptor()), {}));
  test::RawListener listener;
  Caller caller(plan_to({local_address(silent.descriptor()), listener.address()}));  // connect_timeout is 10 s
  test::RawPeer peer = listener.accept();
  peer.write(encode(welcome_of(Answer::kWelcome)));
  EXPECT_TRUE(caller.wait().channel);

  DialPlan plan = plan_to({local_address(silent.descriptor())});
  plan.settings.connect_timeout = 0.1;
  const Outcome outcome = Caller(plan).wait();
  EXPECT_EQ(outcome.failure, DialFailure::kAgain);
  EXPECT_NE(outcome.reason.find("no answer in 0.1 s"), std::string::npos) << outcome.reason;
}

TEST(Dial, SilenceAndHangUpsAreForAnotherTime) {
  test::RawListener listener;
  DialPlan plan = plan_to({listener.address()});
  plan.settings.handshake_timeout = 0.1;
  const Outcome silent = Caller(plan).wait();
  EXPECT_EQ(silent.failure, DialFailure::kAgain);
  EXPECT_NE(silent.reason.find("not over in 0.1 s"), std::string::npos) << silent.reason;
  listener.accept();

  Caller caller(plan_to({listener.address()}));
  listener.accept();  // and gone
  EXPECT_EQ(caller.wait().failure, DialFailure::kAgain);
  EXPECT_EQ(Caller(plan_to({})).wait().failure, DialFailure::kAgain);
}

TEST(Dial, GivenUpIsSilent) {
  for (int i = 0; i < 3; ++i) {
    test::RawListener listener;
    Caller caller(plan_to({listener.address()}));
    if (i == 0) {
      caller.give_up();
      continue;
    }
    test::RawPeer peer = listener.accept();
    if (i == 2) {
      EXPECT_TRUE(peer.read_hello().has_value());
    }
    caller.give_up();
  }
}

TEST(Dial, AWrongLocalAddressIsTold) {
  test::RawListener listener;
  DialPlan plan = plan_to({listener.address()});
  plan.settings.local_address = "192.0.2.1";
  EXPECT_NE(Caller(plan).wait().reason.find("192.0.2.1"), std::string::npos);
}

// The queue of a listener gets room when the first question has long been asked: the next one is heard soon.
TEST(FullDial, AsksAgainWhereTheNetworkWasDown) {
  Socket busy = listen_on({"127.0.0.1", 0}, {}, 0);
  std::vector<Socket> fill;
  for (int i = 0; i < 4; ++i) fill.push_back(start_connect(local_address(busy.descriptor()), {}));
  DialPlan plan = plan_to({local_address(busy.descriptor())});
  plan.settings.connect_timeout = 30;
  Caller caller(plan);
  std::this_thread::sleep_for(std::chrono::milliseconds(7300));  // the system's next question comes at 15 s
  fill.clear();
  Address peer;
  const auto begin = EventLoop::Clock::now();
  for (bool greeted = false; !greeted;) {
    Socket next = accept_from(busy.descriptor(), peer);
    if (!next.open()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      continue;
    }
    test::RawPeer taken(std::move(next));
    greeted = taken.read_hello().has_value();
    if (greeted) taken.write(encode(welcome_of(Answer::kWelcome)));
  }
  EXPECT_LT(EventLoop::Clock::now() - begin, std::chrono::seconds(6));
  EXPECT_TRUE(caller.wait().channel);
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
    test::RawPeer peer = listener.accept();
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
    const Outcome outcome = caller.wait();
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
