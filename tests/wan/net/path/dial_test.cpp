// Dialling: greeters made by hand, addresses where nobody answers, connections that fail.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/wan/helpers.hpp"
#include "tests/wan/net/secure/service.hpp"
#include "tests/wan/ports.hpp"
#include "wan/net/path/dial.hpp"
#include "wan/net/path/greeter.hpp"
#include "wan/net/relay/admission.hpp"

namespace maki::wan {
namespace {

using namespace test;

struct Dialled {
  std::unique_ptr<Channel> channel;
  Welcome welcome;
  Address peer;
  DialFailure failure = DialFailure::kAgain;
  std::string reason;
};

DialPlan plan_to(const std::vector<Address>& addresses, const Hello& hello = hello_of(0, 1)) {
  DialPlan plan;
  plan.addresses = HostAddresses({}, [addresses](const Endpoint&) { return addresses; });
  plan.host = "127.0.0.1";
  plan.security = SecurityContext::make(insecure());
  plan.hello = hello;
  return plan;
}

// The Dial is deleted inside the callback, as its user may do.
class Caller {
 public:
  // `meanwhile` runs in the loop when the first address has been called, and has not been heard yet.
  explicit Caller(
      const DialPlan& plan, const std::function<void()>& meanwhile = [] {}) {
    loop_.call([&] {
      loop_.post(meanwhile);
      dial_ = std::make_unique<Dial>(
          loop_, plan,
          [this](std::unique_ptr<Channel> channel, const Welcome& welcome) {
            dial_.reset();
            const Address peer = peer_address(channel->descriptor());
            done_.set_value({std::move(channel), welcome, peer, {}, ""});
          },
          [this](DialFailure failure, const std::string& reason) {
            dial_.reset();
            done_.set_value({nullptr, {}, {}, failure, reason});
          });
    });
  }
  ~Caller() { give_up(); }
  Dialled wait() {
    auto done = done_.get_future();
    if (is_over(done)) return done.get();
    ADD_FAILURE() << "it has neither connected nor failed";
    return {};
  }
  void give_up() {
    loop_.call([&] { dial_.reset(); });
  }

 private:
  EventLoop loop_{"test-dial"};
  std::unique_ptr<Dial> dial_;
  std::promise<Dialled> done_;
};

Dialled answered(const Welcome& welcome, const Hello& hello = hello_of(0, 1)) {
  RawListener listener;
  Caller caller(plan_to({listener.address()}, hello));
  HandMadeStream peer(listener.accept());
  peer.hear();
  peer.send(encode(welcome));
  return caller.wait();
}

TEST(Dial, SaysHelloAndReadsNotOneByteBeyondTheWelcome) {
  RawListener listener;
  Hello hello = hello_of(2, 5);
  hello.name = "caller";
  Caller caller(plan_to({listener.address()}, hello));
  HandMadeStream peer(listener.accept());
  const Hello heard = peer.hear();
  EXPECT_EQ(heard.stream, 2u);
  EXPECT_EQ(heard.epoch, 5u);
  EXPECT_EQ(heard.name, "caller");
  const auto bytes = encode(welcome_of(Answer::kWelcome));
  std::string all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  peer.send(all.substr(0, 100));
  peer.send(all.substr(100) + "frame");
  Dialled outcome = caller.wait();
  ASSERT_TRUE(outcome.channel) << outcome.reason;
  EXPECT_EQ(outcome.welcome.session[3], std::byte{7});
  EXPECT_EQ(outcome.peer.text(), listener.address().text());
  std::string next(5, ' ');
  ASSERT_TRUE(ready(outcome.channel->descriptor(), POLLIN));
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
    expect_contains(outcome.reason, {"because of the test", "127.0.0.1:"});
  }
  Welcome later = welcome_of(Answer::kVersion);
  later.version = kProtocolVersion + 1;
  const Dialled outcome = answered(later);
  EXPECT_EQ(outcome.failure, DialFailure::kFinal);
  EXPECT_TRUE(says(outcome.reason, "version " + std::to_string(later.version)));
}

TEST(Dial, RefusesAnotherSessionThanTheOneAskedFor) {
  SessionId session{};
  session[0] = std::byte{1};
  EXPECT_FALSE(answered(welcome_of(Answer::kWelcome), hello_of(0, 2, session)).channel);
}

TEST(Dial, NonsenseIsFinalForAPathThatNeverStood) {
  for (const bool join : {false, true}) {
    SessionId session{};
    session[0] = std::byte{join};
    RawListener listener;
    Caller caller(plan_to({listener.address()}, hello_of(0, 1, session)));
    HandMadeStream peer(listener.accept());
    peer.send(std::string(kWelcomeBytes, 'x'));
    EXPECT_EQ(caller.wait().failure, join ? DialFailure::kAgain : DialFailure::kFinal);
  }
}

TEST(Dial, OnlyThePeerCanEndAPathThatStands) {
  for (const bool same : {true, false}) {
    RawListener listener;
    DialPlan plan = plan_to({listener.address()}, hello_of(0, 2, SessionId{std::byte{1}}));
    plan.peer = party_of("peer");
    Caller caller(plan);
    HandMadeStream peer(listener.accept());
    Welcome welcome = welcome_of(Answer::kUnknownSession);
    welcome.party = party_of(same ? "peer" : "somebody else");
    peer.send(encode(welcome));
    EXPECT_EQ(caller.wait().failure, same ? DialFailure::kFinal : DialFailure::kAgain);
  }
}

// Whoever is on the way to the relay can say these things, and knows no key.
TEST(Dial, AForgedRefusalOfTheRelayEndsNoPathThatStands) {
  TemporaryFolder folder;
  write_key(Key::make(), folder / "relay.key");
  for (const bool stands : {true, false}) {
    const auto plan = [&](const RawListener& relay) {
      DialPlan by_relay = plan_to({relay.address()}, hello_of(0, 2, SessionId{std::byte{stands}}));
      by_relay.relay = {{}, folder / "relay.key", "amsterdam"};
      return by_relay;
    };
    for (const auto code : {admission::Code::kRefused, admission::Code::kKey, admission::Code::kAdmitted}) {
      RawListener listener;
      Caller caller(plan(listener));
      HandMadeStream forger(listener.accept());
      forger.send(encode(admission::Challenge{}));
      const auto request = forger.read<admission::kRequestBytes>();
      forger.send(encode(admission::Verdict{code, "no such luck"}, request, {}, nullptr));
      const Dialled outcome = caller.wait();
      EXPECT_EQ(outcome.failure, stands ? DialFailure::kAgain : DialFailure::kFinal) << outcome.reason;
    }
    RawListener listener;
    Caller caller(plan(listener));
    HandMadeStream(listener.accept()).send(encode(admission::Challenge{.version = admission::kVersion + 1}));
    EXPECT_EQ(caller.wait().failure, stands ? DialFailure::kAgain : DialFailure::kFinal);
  }
}

TEST(Dial, SaysWhoCallsAndWhetherItMeansItsOwnMachine) {
  for (const bool named : {true, false}) {
    RawListener listener;
    DialPlan plan = plan_to({listener.address()});
    Security security = insecure();
    if (named) security.own_name = "tokyo";
    plan.security = SecurityContext::make(security);
    Caller caller(plan);
    const Hello hello = HandMadeStream(listener.accept()).hear();
    EXPECT_EQ(hello.party, party_of(security.own_name));
    EXPECT_EQ(hello.own_machine, !named);
  }
}

// With keys: the greeter's side is the listener's own.
TEST(Dial, AWrongKeyIsFinal) {
  TemporaryFolder folder;
  const Security right = new_key(folder, "right"), wrong = new_key(folder, "wrong");
  const auto security = SecurityContext::make(right);
  for (const bool good : {true, false}) {
    RawListener listener;
    DialPlan plan = plan_to({listener.address()});
    plan.security = SecurityContext::make(good ? right : wrong);
    Caller caller(plan);
    auto channel = make_channel(security, listener.accept(), Side::kListening);
    EventLoop loop("test-greeter");
    std::unique_ptr<Greeter> greeter;
    std::promise<std::string> done;
    loop.call([&] {
      Greeter::Events events;
      events.decide = [](const Hello&, const Channel&) { return welcome_of(Answer::kWelcome); };
      events.welcomed = [&](Greeter&, std::unique_ptr<Channel> greeted) { done.set_value(greeted->identity()); };
      events.gone = [&](Greeter&, const std::string&) { done.set_value(""); };
      greeter = std::make_unique<Greeter>(loop, std::move(channel), Address{}, 10, std::move(events));
    });
    const Dialled outcome = caller.wait();
    EXPECT_EQ(outcome.channel != nullptr, good) << outcome.reason;
    EXPECT_EQ(done.get_future().get().empty(), !good);
    if (!good) {
      EXPECT_EQ(outcome.failure, DialFailure::kFinal) << outcome.reason;
    }
    loop.call([&] { greeter.reset(); });
  }
}

TEST(Dial, TriesTheNextAddress) {
  const Address nobody = resolve({"127.0.0.1", free_ports(1)[0]}).front();
  const Dialled alone = Caller(plan_to({nobody})).wait();
  EXPECT_EQ(alone.failure, DialFailure::kAgain);
  expect_contains(alone.reason, {nobody.text(), "refused"});

  RawListener listener;
  Caller caller(plan_to({nobody, listener.address()}));
  HandMadeStream peer(listener.accept());
  peer.send(encode(welcome_of(Answer::kWelcome)));
  EXPECT_EQ(caller.wait().peer.text(), listener.address().text());
}

TEST(Dial, DoesNotWaitForASilentAddress) {
  const SilentListener silent;
  RawListener listener;
  Caller caller(plan_to({silent.address(), listener.address()}));  // connect_timeout is 10 s
  HandMadeStream peer(listener.accept());
  peer.send(encode(welcome_of(Answer::kWelcome)));
  EXPECT_TRUE(caller.wait().channel);

  DialPlan plan = plan_to({silent.address()});
  plan.settings.connect_timeout = 0.1;
  const Dialled outcome = Caller(plan).wait();
  EXPECT_EQ(outcome.failure, DialFailure::kAgain);
  EXPECT_TRUE(says(outcome.reason, "no answer in 0.1 s"));
}

TEST(Dial, SilenceAndHangUpsAreForAnotherTime) {
  RawListener listener;
  DialPlan plan = plan_to({listener.address()});
  plan.settings.handshake_timeout = 0.1;
  const Dialled silent = Caller(plan).wait();
  EXPECT_EQ(silent.failure, DialFailure::kAgain);
  EXPECT_TRUE(says(silent.reason, "not over in 0.1 s"));
  listener.accept();

  Caller caller(plan_to({listener.address()}));
  listener.accept();  // and gone
  EXPECT_EQ(caller.wait().failure, DialFailure::kAgain);
  EXPECT_EQ(Caller(plan_to({})).wait().failure, DialFailure::kAgain);
}

TEST(Dial, GivenUpIsSilent) {
  for (int i = 0; i < 3; ++i) {
    RawListener listener;
    Caller caller(plan_to({listener.address()}));
    if (i == 0) {
      caller.give_up();
      continue;
    }
    HandMadeStream peer(listener.accept());
    if (i == 2) peer.hear();
    caller.give_up();
  }
}

// In this thread the kernel has no room for more watched sockets, as where fs.epoll.max_user_watches is reached.
// False where that cannot be had here.
bool watch_no_more() {
  sock_filter rules[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                         BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_epoll_ctl, 0, 3),
                         BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[1])),
                         BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, EPOLL_CTL_ADD, 0, 1),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSPC),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program{std::size(rules), rules};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(Dial, AConnectionThatCannotBeWatchedIsForAnotherTime) {
  RawListener listener;
  bool possible = true;
  Caller caller(plan_to({listener.address()}), [&] { possible = watch_no_more(); });
  HandMadeStream peer(listener.accept());
  peer.send(encode(welcome_of(Answer::kWelcome)));
  const Dialled outcome = caller.wait();
  if (!possible) GTEST_SKIP() << "no system call filters here";
  EXPECT_EQ(outcome.failure, DialFailure::kAgain);
  EXPECT_TRUE(says(outcome.reason, "cannot watch a socket"));
}

TEST(Dial, AWrongLocalAddressIsTold) {
  RawListener listener;
  DialPlan plan = plan_to({listener.address()});
  plan.settings.local_address = "192.0.2.1";
  EXPECT_TRUE(says(Caller(plan).wait().reason, "192.0.2.1"));
}

// The queue of a listener gets room when the first question has long been asked: the next one is heard soon.
TEST(FullDial, AsksAgainWhereTheNetworkWasDown) {
  SilentListener busy;
  DialPlan plan = plan_to({busy.address()});
  plan.settings.connect_timeout = 30;
  Caller caller(plan);
  pause(7.3);  // the system's next question comes at 15 s
  busy.make_room();
  Address peer;
  const auto begin = EventLoop::Clock::now();
  for (bool greeted = false; !greeted;) {
    Socket next = accept_from(busy.descriptor(), peer);
    if (!next.open()) {
      pause(0.005);
      continue;
    }
    HandMadeStream taken(std::move(next));
    try {
      taken.hear();
      greeted = true;
      taken.send(encode(welcome_of(Answer::kWelcome)));
    } catch (const Error&) {  // a connection that fills the queue
    }
  }
  EXPECT_LT(EventLoop::Clock::now() - begin, std::chrono::seconds(6));
  EXPECT_TRUE(caller.wait().channel);
}

}  // namespace
}  // namespace maki::wan
