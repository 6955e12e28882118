// Listeners behind a relay, and whole paths through it: encrypted end to end with a key that the relay does not have.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

#include "tests/wan/helpers.hpp"
#include "tests/wan/net/relay/rig.hpp"
#include "wan/net/relay/connector.hpp"

namespace maki::wan {
namespace {

using namespace test;
using admission::Want;

// A hidden listener whose calls are taken one by one.
class Hidden {
 public:
  explicit Hidden(const RelayRoute& route) {
    const auto arrived = [this](Socket socket, const Address&) {
      std::lock_guard lock(mutex_);
      calls_.push_back(std::move(socket));
      changed_.notify_all();
    };
    listener_ = HiddenListener::start(loop_, route, PathSettings{}, arrived);
  }
  ~Hidden() {
    loop_.call([this] { listener_.reset(); });
  }
  Socket take() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::milliseconds(kPatience), [this] { return !calls_.empty(); }))
      throw Error("nobody calls");
    Socket socket = std::move(calls_.front());
    calls_.pop_front();
    return socket;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Socket> calls_;
  EventLoop loop_{"hidden"};
  std::unique_ptr<HiddenListener> listener_;
};

bool registered(const Rig& rig, int names = 1) {
  return comes_true([&] { return rig.relay->status().names == names; });
}

void expect_joined(const Socket& one, const Socket& other) {
  EXPECT_TRUE(put(one, pattern(100000, 1)));
  EXPECT_EQ(get(other, 100000), pattern(100000, 1));
  EXPECT_TRUE(put(other, pattern(1000, 2)));
  EXPECT_EQ(get(one, 1000), pattern(1000, 2));
}

// The listener takes the call once it has been made.
void expect_joined(const Socket& caller, Hidden& hidden) { expect_joined(caller, hidden.take()); }

TEST(RelayHidden, CallsReachTheListener) {
  StartedRig rig;
  Hidden hidden(rig.route("amsterdam"));
  EXPECT_EQ(rig.relay->status().names, 1);
  std::vector<Socket> callers, answers;
  for (int i = 0; i < 20; ++i) {
    callers.push_back(rig.reach("amsterdam"));
    answers.push_back(hidden.take());
    expect_joined(callers.back(), answers.back());
  }
  EXPECT_EQ(rig.relay->status().sessions, 20);
}

TEST(RelayHidden, TwoListenersAreToldApart) {
  StartedRig rig;
  Hidden amsterdam(rig.route("amsterdam")), tokyo(rig.route("tokyo"));
  const Socket to_tokyo = rig.reach("tokyo"), to_amsterdam = rig.reach("amsterdam");
  expect_joined(to_amsterdam, amsterdam.take());
  expect_joined(to_tokyo, tokyo.take());
}

TEST(RelayHidden, ComesBackAfterTheRelayRestarted) {
  StartedRig rig;
  Hidden hidden(rig.route("amsterdam"));
  for (int i = 0; i < 3; ++i) {
    rig.stop();
    rig.start();
    ASSERT_TRUE(registered(rig));
    expect_joined(rig.reach("amsterdam"), hidden);
  }
}

TEST(RelayHidden, WaitsForARelayThatIsNotThereYet) {
  StartedRig rig;
  rig.stop();
  Hidden hidden(rig.route("amsterdam"));
  rig.start();
  ASSERT_TRUE(registered(rig));
  expect_joined(rig.reach("amsterdam"), hidden);
}

TEST(RelayHidden, IsForgottenWhenItEnds) {
  StartedRig rig;
  { Hidden hidden(rig.route("amsterdam")); }
  EXPECT_TRUE(registered(rig, 0));
  rig.expect_refused_for_now(Want::kConnect, "amsterdam");
}

TEST(RelayHidden, WrongFromTheStartIsAnError) {
  StartedRig rig;
  EXPECT_THROW(Hidden(RelayRoute{rig.at(), rig.folder / "none.key", "amsterdam"}), SecurityError);
  write_key(Key::make(), rig.folder / "other.key");
  EXPECT_THROW(Hidden(RelayRoute{rig.at(), rig.folder / "other.key", "amsterdam"}), SecurityError);
  EXPECT_THROW(Hidden(rig.route("two words")), Error);
  EXPECT_THROW(Hidden(rig.route("server")), Error);  // the relay's own
  RelayRoute nowhere = rig.route("amsterdam");
  nowhere.relay.host = "no-such-host.invalid";
  EXPECT_THROW(Hidden{nowhere}, Error);
}

TEST(RelayHidden, ANameBelongsToItsKeyAndToOneListener) {
  Rig rig;
  const Key other = rig.second_key();
  rig.start();
  Hidden hidden(rig.route("amsterdam"));
  EXPECT_THROW(Hidden(RelayRoute{rig.at(), rig.folder / "second.key", "amsterdam"}), Error);
  EXPECT_TRUE(comes_true([&] {  // a listener without a sign of life for 2.5 s would lose its name, and come back
    RelayAdmission second(rig.key, Want::kListen, "amsterdam");
    return !error_of([&] { admit(rig.at(), second); }).empty() && second.try_again();
  }));
  // Any of the relay's keys may call it.
  expect_joined(reach(rig.at(), other, "amsterdam"), hidden);
}

// Where the relay has several keys, none takes all names.
TEST(RelayHidden, AKeyHasHalfOfTheNames) {
  Rig rig;
  rig.second_key();
  rig.settings.names = 4;
  rig.start();
  Hidden amsterdam(rig.route("amsterdam")), tokyo(rig.route("tokyo"));
  rig.expect_refused_for_now(Want::kListen, "helsinki");
  Hidden helsinki(RelayRoute{rig.at(), rig.folder / "second.key", "helsinki"});
  EXPECT_EQ(rig.relay->status().names, 3);
}

// A listener that says nothing any more is replaced, and its callers are told.
TEST(FullRelayHidden, SilentListenerLosesItsName) {
  Rig rig;
  rig.settings.answer_timeout = 0.3;
  rig.start();
  const Socket silent = admit(rig.at(), RelayAdmission(rig.key, Want::kListen, "amsterdam"));
  ASSERT_TRUE(registered(rig));
  rig.expect_refused_for_now(Want::kConnect, "amsterdam");
  Hidden hidden(rig.route("amsterdam"));
  EXPECT_TRUE(comes_true([&] {
    try {
      return rig.reach("amsterdam").open();
    } catch (const Error&) {
      return false;
    }
  }));
}

// Of the call that comes over a control connection, after signs of life perhaps.
std::string token_of_call(const Socket& control) {
  std::array<std::byte, kTokenBytes> frame;
  for (int frames = 0; frames < 1000; ++frames) {
    const auto heard = get(control, frame.size());
    if (heard.size() < frame.size()) throw Error("the relay is gone");
    std::ranges::copy(heard, frame.begin());
    if (const std::string token = decode_control(frame); !token.empty()) return token;
  }
  throw Error("no call has come");
}

// A token is good once, and only for the key of the listener that was called.
TEST(RelayHidden, TokensServeOnlyTheOneThatWasCalled) {
  Rig rig;
  const Key other = rig.second_key();
  rig.start();
  const Socket control = admit(rig.at(), RelayAdmission(rig.key, Want::kListen, "amsterdam"));
  ASSERT_TRUE(registered(rig));
  auto calling = std::async(std::launch::async, [&] { return rig.reach("amsterdam"); });
  const std::string token = token_of_call(control);
  EXPECT_THROW(admit(rig.at(), RelayAdmission(other, Want::kAnswer, token)), Error);
  EXPECT_THROW(admit(rig.at(), RelayAdmission(rig.key, Want::kAnswer, make_token())), Error);
  const Socket answer = admit(rig.at(), RelayAdmission(rig.key, Want::kAnswer, token));
  expect_joined(calling.get(), answer);
  EXPECT_THROW(admit(rig.at(), RelayAdmission(rig.key, Want::kAnswer, token)), Error);
}

// The relay's side of an admission.
void admit_by_hand(const Socket& peer, const Key& key) {
  KeyRing keys;
  keys.add(key);
  AdmissionCheck check(keys);
  const auto finish = [&](const std::function<IoStatus()>& step) {
    for (IoStatus status = step(); status != IoStatus::kDone; status = step())
      if (status == IoStatus::kClosed || !ready(peer.descriptor(), status == IoStatus::kWantRead ? POLLIN : POLLOUT))
        throw Error("the listener does not register");
  };
  finish([&] { return check.receive(peer.descriptor()); });
  check.decide({});
  finish([&] { return check.send_verdict(peer.descriptor()); });
}

// Each call may take several sockets: so many calls at once wait for one another, and none is lost.
TEST(RelayHidden, ManyCallsAreAnsweredAFewAtATime) {
  Rig rig;
  const RelayRoute route{rig.server.endpoint(), rig.folder / "relay.key", "amsterdam"};
  auto starting = std::async(std::launch::async, [&] { return std::make_unique<Hidden>(route); });
  const Socket control = rig.server.accept();
  admit_by_hand(control, rig.key);
  const auto hidden = starting.get();
  constexpr std::size_t kCalls = 400, kAtOnce = 512 / Connector::kAtOnce;
  for (std::size_t i = 0; i < kCalls; ++i) put(control, encode_control(make_token()));
  for (std::size_t left = kCalls; left > 0;) {
    put(control, encode_control(""));  // a sign of life
    std::vector<Socket> answers;
    while (answers.size() < std::min(left, kAtOnce)) answers.push_back(rig.server.accept());
    ASSERT_FALSE(ready(rig.server.descriptor(), POLLIN, 300));
    left -= answers.size();
  }
}

TEST(RelayHidden, RubbishOnTheControlConnectionEndsIt) {
  StartedRig rig;
  const Socket control = admit(rig.at(), RelayAdmission(rig.key, Want::kListen, "amsterdam"));
  ASSERT_TRUE(registered(rig));
  put(control, pattern(kTokenBytes, 1));
  EXPECT_TRUE(registered(rig, 0));
}

TEST(RelayHidden, ACallerThatLeavesIsForgotten) {
  StartedRig rig;
  const Socket control = admit(rig.at(), RelayAdmission(rig.key, Want::kListen, "amsterdam"));
  {
    RelayAdmission admission(rig.key, Want::kConnect, "amsterdam");
    const Socket caller = connect_now(rig.at());
    ASSERT_TRUE(ready(caller.descriptor(), POLLIN));
    EXPECT_EQ(admission.progress(caller.descriptor()), IoStatus::kWantRead);
    token_of_call(control);
  }
  EXPECT_TRUE(comes_true([&] { return rig.relay->status().refused == 1; }));
}

struct PathRig : Rig {
  Security security = new_key(folder, "path.key");
  PathSettings paths = streams(4);
  Security callers = security;  // of another name: a relay could return a call to the machine it comes from

  PathRig() {
    paths.patience = 30;
    callers.own_name = "caller";
  }

  // A listener registered at the relay as `name`.
  Listener hide(const std::string& name) { return Listener({}, security, paths, {}, route(name)); }
  Path call(const std::string& name) { return Path::connect({name, 1}, callers, paths, {"caller", route(name)}); }
};

struct StartedPathRig : PathRig {
  StartedPathRig() { start(); }
};

struct Ends {
  Path here, there;
  ~Ends() { close_both(here, there); }
};

Ends join(PathRig& rig, Listener& listener, const std::string& name) {
  Path here = rig.call(name);
  return {std::move(here), std::move(listener.accept().path)};
}

void expect_exchange(Ends& ends, std::size_t size, unsigned seed) {
  const auto one = pattern(size, seed), other = pattern(size + 1, seed + 1);
  std::vector<std::byte> here(size + 1), there(size);
  Request out = ends.here.start_send(seed, one), back = ends.there.start_send(seed, other);
  EXPECT_EQ(ends.there.receive(seed, there), size);
  EXPECT_EQ(ends.here.receive(seed, here), size + 1);
  out.wait();
  back.wait();
  EXPECT_EQ(here, other);
  EXPECT_EQ(there, one);
}

TEST(RelayPath, HiddenListenerTakesAnEncryptedPath) {
  StartedPathRig rig;
  Listener listener = rig.hide("amsterdam");
  Ends ends = join(rig, listener, "amsterdam");
  expect_exchange(ends, 20 << 20, 1);
  EXPECT_TRUE(comes_true([&] { return ends.here.status().streams_up == 4; }));
  EXPECT_EQ(ends.here.status().identity, read_key(rig.folder / "path.key").id);
  EXPECT_EQ(rig.relay->status().sessions, 4);
}

TEST(RelayPath, DestinationOfTheRelayTakesAPath) {
  PathRig rig;
  Listener listener({"127.0.0.1", 0}, rig.security, rig.paths);
  rig.settings.destinations["tokyo"] = listener.address();
  rig.start();
  Ends ends = join(rig, listener, "tokyo");
  expect_exchange(ends, 5 << 20, 1);
}

// A relay on the caller's own machine too: behind it may be anyone.
TEST(RelayPath, ACallThatARelayLeadsBackIsRefused) {
  StartedPathRig rig;
  Listener listener = rig.hide("amsterdam");
  const std::string error = error_of<PathError>([&] {
    Path::connect({"amsterdam", 1}, rig.security, rig.paths, {"caller", rig.route("amsterdam")});
  });
  EXPECT_TRUE(says(error, "came back to its own caller"));
}

TEST(RelayPath, OutlivesARestartOfTheRelay) {
  StartedPathRig rig;
  Listener listener = rig.hide("amsterdam");
  Ends ends = join(rig, listener, "amsterdam");
  expect_exchange(ends, 1 << 20, 1);
  const auto words = pattern(30 << 20, 5);
  std::vector<std::byte> heard(words.size());
  Request receiving = ends.there.start_receive(7, heard), sending = ends.here.start_send(7, words);
  rig.stop();
  pause(0.3);
  rig.start();
  receiving.wait();
  sending.wait();
  EXPECT_EQ(heard, words);
  EXPECT_TRUE(comes_true([&] {
    const PathStatus status = ends.here.status();
    return status.reconnections > 0 && status.streams_up == 4;
  }));
}

TEST(RelayPath, RelayKeyAloneOpensNoPath) {
  StartedPathRig rig;
  Listener listener = rig.hide("amsterdam");
  for (const Security& other : {new_key(rig.folder, "other.key"), Security{.key_files = {rig.folder / "relay.key"}}})
    EXPECT_THROW(Path::connect({"amsterdam", 1}, other, rig.paths, {"caller", rig.route("amsterdam")}), PathError);
}

}  // namespace
}  // namespace maki::wan
