// The protocol's states under peers who hold the key and send what they like: nothing may crash, read what was not
// sent, or keep others from being served. make sanitize-wan runs these under sanitizers.
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <list>
#include <map>
#include <memory>
#include <vector>

#include "tests/wan/fuzz/frame_maker.hpp"
#include "tests/wan/helpers.hpp"
#include "tests/wan/net/path/raw_peer.hpp"
#include "tests/wan/net/secure/service.hpp"

namespace maki::wan::fuzz {
namespace {

constexpr std::size_t kLeft = 6, kUses = 40;
constexpr std::uint32_t kNumbers = 4;

// Streams by hand that send what a FrameMaker makes, are cut in the middle of it, and come again.
class Attack {
 public:
  Attack(Random& random, const Security& security) : random_(random), frames_(random), security_(security) {}
  virtual ~Attack() = default;
  // One frame on one stream.
  void act() {
    if (streams_.empty()) return;
    const auto at = std::next(streams_.begin(), static_cast<long>(below(random_, streams_.size())));
    test::HandMadeStream& stream = *at->second;
    ++sent_;
    bool lives = stream.drain();
    if (lives) {
      const FrameMaker::Made made = frames_.next();
      std::span<const std::byte> payload = made.payload;
      if (one_in(random_, 100)) payload = payload.first(below(random_, payload.size() + 1));
      lives = payload.size() == made.frame.length;  // else the next frame would be the rest of this one
      if (made.possible && lives) {
        stream.send(made.frame, payload);
      } else {
        stream.send_unchecked(made.frame);
        stream.send(payload);
      }
    }
    if (!lives) leave(at);
  }
  virtual void open() = 0;  // one more stream, where that can be
  void end() { streams_.clear(), left_.clear(); }
  bool anything() const { return !streams_.empty(); }
  std::uint64_t frames() const { return sent_; }

 protected:
  using Number = std::uint32_t;
  void add(Number number, std::unique_ptr<test::HandMadeStream> stream) {
    if (const auto place = streams_.find(number); place != streams_.end()) leave(place);
    streams_[number] = std::move(stream);
  }
  Random& random_;
  FrameMaker frames_;
  Security security_;

 private:
  using Streams = std::map<Number, std::unique_ptr<test::HandMadeStream>>;
  // Closes it, or leaves it open and silent.
  void leave(Streams::iterator at) {
    if (one_in(random_, 2)) left_.push_back(std::move(at->second));
    if (left_.size() > kLeft) left_.pop_front();
    streams_.erase(at);
  }
  Streams streams_;
  std::list<std::unique_ptr<test::HandMadeStream>> left_;  // replaced, and still open
  std::uint64_t sent_ = 0;
};

class HostileCaller : public Attack {
 public:
  HostileCaller(Random& random, const Security& security, const Endpoint& victim)
      : Attack(random, security), victim_(victim) {}
  void open() override try {
    const auto number = static_cast<Number>(below(random_, kNumbers));
    auto stream = std::make_unique<test::HandMadeStream>(victim_, security_);
    const bool anew = session_ == SessionId{};
    Hello hello = test::hello_of(number, ++epochs_[number], session_);
    if (one_in(random_, 30)) hello.unmatched_limit = hello.message_limit = ~0ull;
    if (one_in(random_, 30)) hello.patience = one_in(random_, 2) ? 1e-300 : 1e300;
    const Welcome welcome = stream->greet(hello);
    if (welcome.answer == Answer::kUnknownSession) session_ = {}, epochs_.clear();
    if (welcome.answer != Answer::kWelcome) return;
    if (anew) frames_.new_session();
    session_ = welcome.session;
    add(number, std::move(stream));
  } catch (const Error&) {  // the victim had no time for it
  }

 private:
  Endpoint victim_;
  SessionId session_{};
  std::map<Number, unsigned> epochs_;
};

class HostileListener : public Attack {
 public:
  using Attack::Attack;
  Endpoint address() const { return listener_.endpoint(); }
  // Takes in who has called.
  void open() override try {
    auto stream = std::make_unique<test::HandMadeStream>(listener_.accept(1), security_);
    const Hello hello = stream->hear();
    if (hello.is_new()) {
      session_.fill(static_cast<std::byte>(1 + below(random_, 200)));
      frames_.new_session();
    }
    std::vector<std::byte> words;
    const auto say = [&](const auto& block) { words.insert(words.end(), block.begin(), block.end()); };
    say(encode(welcome()));
    if (one_in(random_, 50)) words[below(random_, words.size())] = static_cast<std::byte>(random_());
    if (one_in(random_, 3))  // at once with the welcome
      say(encode(Frame{.type = FrameType::kPing, .sequence = random_()}));
    stream->send(words);
    add(hello.stream, std::move(stream));
  } catch (const Error&) {  // nobody called, or the victim thought better of it
  }

 private:
  Welcome welcome() {
    Welcome welcome{.unmatched_limit = one_in(random_, 10) ? ~0ull : 1 << 20,
                    .message_limit = 1 << 20,
                    .patience = 60,
                    .reason = ""};
    welcome.session = session_;
    if (one_in(random_, 20)) welcome.session[0] ^= std::byte{1};
    if (one_in(random_, 40)) welcome.answer = static_cast<Answer>(below(random_, 6));
    return welcome;
  }
  test::RawListener listener_;
  SessionId session_{};
};

// Uses a path in every way, and checks what it is given.
class User {
 public:
  User(Random& random, Path path) : random_(random), path_(std::move(path)) {}
  ~User() { path_.close(0); }
  void act() try {
    uses_.remove_if([&](Use& use) { return settled(use); });
    if (over_) return;
    switch (below(random_, 40)) {
      case 0: path_.status(); break;
      case 1: change(); break;
      case 2: path_.drop_stream(static_cast<int>(below(random_, 6))); break;
      default:
        if (uses_.size() < kUses) start();
    }
  } catch (const PathError&) {
    over_ = true;
  } catch (const Error&) {  // a message is too long for the peer
    if (!uses_.back().request.valid()) uses_.pop_back();
  }
  bool over() const { return over_; }

 private:
  struct Use {
    std::vector<std::byte> buffer;
    Request request;
    bool receives = false, any = false;
  };
  void start() {
    const Tag tag = below(random_, kTags);
    const std::size_t sizes[] = {0, 100, 5000, 70000, 200000};
    Use& use = uses_.emplace_back();
    const std::size_t size = any_of(random_, sizes);
    switch (below(random_, 3)) {
      case 0:
        use.receives = use.any = true;
        use.request = path_.start_receive_any(tag, size);
        break;
      case 1:
        use.receives = true;
        use.buffer.resize(size);
        use.request = path_.start_receive(tag, use.buffer);
        break;
      default: use.buffer.resize(size); use.request = path_.start_send(tag, use.buffer);
    }
  }
  void change() {
    PathSettings settings = path_.settings();
    settings.receive_chunk = one_in(random_, 2) ? 4096 : 256 << 10;
    path_.change(settings);
  }
  bool settled(Use& use) {
    const auto right = [](std::byte byte) { return byte == kFilling; };
    try {
      if (!use.request.test()) return false;
      if (!use.receives) return true;
      if (use.any) {
        const Bytes bytes = use.request.take();
        use.buffer.assign(bytes.view().begin(), bytes.view().end());
      }
      EXPECT_TRUE(std::all_of(use.buffer.begin(), use.buffer.begin() + static_cast<long>(use.request.size()), right))
          << "bytes that nobody sent";
    } catch (const PathError&) {
      over_ = true;
    } catch (const Error&) {  // it did not fit
    }
    return true;
  }

  Random& random_;
  std::list<Use> uses_;  // of buffers that the path has until it is closed
  Path path_;
  bool over_ = false;
};

constexpr std::uint64_t kFew = 3000, kMany = 250'000;  // frames of a test; four of them are a million
constexpr std::uint64_t kOfARound = 300;

PathSettings small() {
  PathSettings settings = test::streams(3);
  settings.unmatched_limit = settings.message_limit = kMessageLimit;
  settings.connect_timeout = settings.handshake_timeout = 5;
  settings.patience = 20;
  return settings;
}

class PathStates : public test::EncryptedOrPlain {};

void expect_served(Listener& listener, const Security& security) {
  auto called = std::async(std::launch::async,
                           [&] { return Path::connect(listener.address(), security, test::streams(1), {"honest"}); });
  for (;;) {
    auto accepted = listener.accept_for(20);
    ASSERT_TRUE(accepted) << "nobody else is served";
    if (accepted->name != "honest") continue;
    Path here = called.get();
    here.send(1, std::vector<std::byte>(1000, kFilling));
    EXPECT_EQ(accepted->path.receive_any(1, 1000).size, 1000u);
    return;
  }
}

TEST_P(PathStates, HostileCallers) {
  const Security security = this->security();
  run_rounds("hostile caller, " + mode(), few_or_many(kFew, kMany), [&](std::uint64_t seed) {
    Random random(seed);
    Listener listener({"127.0.0.1", 0}, security, small());
    HostileCaller attack(random, security, listener.address());
    std::list<User> users;
    for (int turns = 0; attack.frames() < kOfARound && turns < 3000; ++turns) {
      if (!attack.anything() || one_in(random, 30)) attack.open();
      while (auto accepted = listener.accept_for(0)) users.emplace_back(random, std::move(accepted->path));
      attack.act();
      for (User& user : users) user.act();
      users.remove_if([](const User& user) { return user.over(); });
    }
    attack.end();
    users.clear();
    expect_served(listener, security);
    return kOfARound;
  });
}

TEST_P(PathStates, HostileListeners) {
  const Security security = this->security();
  run_rounds("hostile listener, " + mode(), few_or_many(kFew, kMany), [&](std::uint64_t seed) {
    Random random(seed);
    HostileListener attack(random, security);
    auto called = std::async(std::launch::async, [&] {
      return Path::connect(attack.address(), security, small(), {.name = "victim", .within = 5});
    });
    while (called.wait_for(std::chrono::seconds(0)) != std::future_status::ready) attack.open();
    std::list<User> users;
    try {
      users.emplace_back(random, called.get());
    } catch (const Error&) {  // refused, or greeted with nonsense
    }
    for (int turns = 0; !users.empty() && turns < 3 * static_cast<int>(kOfARound) && attack.frames() < kOfARound;
         ++turns) {
      if (!attack.anything() || one_in(random, 10)) attack.open();
      attack.act();
      users.front().act();
      users.remove_if([](const User& user) { return user.over(); });
    }
    const std::uint64_t sent = attack.frames();
    attack.end();
    users.clear();
    return sent + 1;
  });
}

INSTANTIATE_TEST_SUITE_P(Fuzz, PathStates, testing::Bool(), test::name_of_mode);
INSTANTIATE_TEST_SUITE_P(Full, PathStates, testing::Bool(), test::name_of_mode);

}  // namespace
}  // namespace maki::wan::fuzz
