// Memory that peers may make a listener hold: what each path was promised is there, and all together keep to the
// limits.
#include "wan/net/path/held_memory.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <numeric>
#include <random>
#include <thread>

#include "tests/wan/helpers.hpp"
#include "tests/wan/net/secure/service.hpp"
#include "wan/net/path/wire.hpp"

namespace maki::wan {
namespace {

using test::comes_true, test::HandMadeStream;

constexpr std::uint64_t kMiB = 1 << 20, kOnePeer = 64 * kMiB;

// Begins when the paths of other tests are gone.
struct Limits {
  explicit Limits(const HeldMemoryLimits& limits = {.one_peer = kOnePeer, .all = 4 * kOnePeer}) {
    EXPECT_TRUE(comes_true([] { return HeldMemory::peers() == 0; }));
    HeldMemory::set_limits(limits);
  }
  ~Limits() { HeldMemory::set_limits({}); }
};

TEST(HeldMemory, EachPeerHasItsPartAndNoMore) {
  const Limits limits({.one_peer = 1000, .all = 3000});
  const auto one = HeldMemory::of("one"), other = HeldMemory::of("other"), third = HeldMemory::of("third");
  EXPECT_EQ(HeldMemory::of("one"), one);
  EXPECT_TRUE(one->take(1000));
  EXPECT_FALSE(one->take(1));
  EXPECT_TRUE(other->take(1000));
  EXPECT_TRUE(third->take(1000));
  const auto late = HeldMemory::of("late");  // there is nothing left, but an equal part is its own
  EXPECT_TRUE(late->take(700));
  EXPECT_FALSE(late->take(100));
  third->give_back(1000);
  EXPECT_TRUE(late->take(100));
  {
    Holding holding;
    EXPECT_TRUE(holding.grow_to(150, third, 100));
    EXPECT_EQ(third->bytes(), 200u);
    EXPECT_TRUE(holding.grow_to(180, third, 100));
    EXPECT_EQ(third->bytes(), 200u);
    EXPECT_FALSE(holding.grow_to(2000, third, 100));
    const Holding moved = std::move(holding);
    EXPECT_EQ(third->bytes(), 200u);
  }
  EXPECT_EQ(third->bytes(), 0u);
  one->give_back(1000);
  other->give_back(1000);
  late->give_back(800);
}

// Paths of one peer belong to several threads, and listeners promise meanwhile.
TEST(HeldMemory, ManyThreadsHaveNoMoreTogether) {
  const Limits limits({.one_peer = 1000, .all = 1500});
  std::array<std::atomic<std::uint64_t>, 2> had{};
  std::atomic<int> times{0};
  const auto take_and_give = [&](unsigned seed) {
    std::mt19937 random(seed);
    for (int i = 0; i < 3000; ++i) {
      const unsigned peer = random() % 2;
      const auto memory = HeldMemory::of(std::to_string(peer));
      const std::uint64_t bytes = 1 + random() % 600;
      EXPECT_LE(memory->room_for_path(bytes, 1), bytes);
      Holding holding;
      if (!holding.grow_to(bytes, memory)) continue;
      ++times;
      EXPECT_LE(had[peer] += bytes, 1000u);
      had[peer] -= bytes;
      if (i % 2 == 0) holding.shrink_to(bytes / 2);
    }
  };
  std::vector<std::jthread> threads;
  for (unsigned seed = 0; seed < 6; ++seed) threads.emplace_back(take_and_give, seed);
  threads.clear();
  EXPECT_GT(times, 0);
  EXPECT_EQ(HeldMemory::peers(), 0u);
  const auto memory = HeldMemory::of("0");
  EXPECT_TRUE(memory->take(1000));  // nothing is left behind
  memory->give_back(1000);
}

TEST(HeldMemory, ManyPathsOfAPeerAreEachPromisedAPart) {
  const Limits limits({.one_peer = std::uint64_t{2} << 30, .all = std::uint64_t{4} << 30});
  const auto one = HeldMemory::of("one");
  std::vector<Holding> promised(129);
  for (std::size_t path = 0; path < 128; ++path) {
    const std::uint64_t room = one->room_for_path(256 * kMiB, 127 - path);
    EXPECT_GE(room, kLeastPromise) << path;
    if (path < 4) {
      EXPECT_EQ(room, 256 * kMiB) << path;
    }
    EXPECT_TRUE(promised[path].grow_to(room, one));
  }
  EXPECT_LE(one->bytes(), (std::uint64_t{2} << 30) / 8 * 7);
  EXPECT_EQ(HeldMemory::of("small")->room_for_path(1000, 127), 1000u);
  promised.clear();
  EXPECT_EQ(one->bytes(), 0u);
}

TEST(HeldMemory, ManyPeersAreEachPromisedAPart) {
  const Limits limits({.one_peer = std::uint64_t{2} << 30, .all = std::uint64_t{4} << 30});
  std::vector<std::shared_ptr<HeldMemory>> peers;
  std::vector<Holding> promised;
  for (int i = 0; i < 1024; ++i) {
    peers.push_back(HeldMemory::of("peer " + std::to_string(i)));
    const std::uint64_t room = peers.back()->room_for_path(256 * kMiB, 127);
    EXPECT_GE(room, kLeastPromise) << i;
    EXPECT_TRUE(promised.emplace_back().grow_to(room, peers.back())) << i;
  }
}

TEST(HeldMemory, AListenerThatPromisesMoreHasRoomForIt) {
  const Limits limits;
  HeldMemory::make_room(100 * kMiB);
  EXPECT_EQ(HeldMemory::of("one")->room_for_path(100 * kMiB, 10), 100 * kMiB);
  HeldMemory::make_room(kMiB);
  EXPECT_EQ(HeldMemory::of("one")->room_for_path(100 * kMiB, 10), 100 * kMiB);
}

// Paths of one key or another, each with one stream made by hand.
class Promised : public testing::Test {
 protected:
  struct OnePath {
    HandMadeStream stream;
    Path path = {};
    Welcome welcome = {};
    std::vector<std::uint64_t> messages = {};
  };
  static PathSettings settings() {
    PathSettings settings = test::patient();
    settings.unmatched_limit = 16 * kMiB;
    return settings;
  }
  Listener listen(const ListenerLimits& limits) {
    return Listener({"127.0.0.1", 0}, test::both_of(one_, other_), settings(), limits);
  }
  Welcome call(Listener& listener, const Security& security) {
    OnePath one{HandMadeStream(listener.address(), security)};
    one.welcome = one.stream.greet(test::hello_of(0, 1));
    const Welcome welcome = one.welcome;
    if (welcome.answer != Answer::kWelcome) return welcome;
    Accepted accepted = listener.accept();
    identity_ = accepted.identity;
    one.path = std::move(accepted.path);
    paths_.push_back(std::move(one));
    return welcome;
  }
  // One message of so many bytes, which nobody has asked for.
  void push(OnePath& one, std::uint64_t bytes) {
    const std::uint64_t n = one.messages.size();
    one.messages.push_back(bytes);
    one.stream.send({.type = FrameType::kData,
                     .length = static_cast<std::uint32_t>(bytes),
                     .sequence = n + 1,
                     .tag = 9,
                     .index = n,
                     .total = bytes},
                    std::span(block_).first(bytes));
  }
  void fill(OnePath& one) {
    for (std::uint64_t left = one.welcome.unmatched_limit; left > kUnmatchedCost;) {
      push(one, std::min(left - kUnmatchedCost, kMiB));
      left -= one.messages.back() + kUnmatchedCost;
    }
  }
  bool has_come(OnePath& one) {
    const std::uint64_t sent = std::accumulate(one.messages.begin(), one.messages.end(), std::uint64_t{0});
    return comes_true([&] { return one.path.status().received >= sent; });
  }
  void take(OnePath& one) {
    for (const std::uint64_t bytes : one.messages) {
      const Bytes got = one.path.receive_any(9, kMiB);
      ASSERT_EQ(got.size, bytes);
      EXPECT_EQ(std::memcmp(got.view().data(), block_.data(), bytes), 0);
    }
  }
  void end_all() {
    for (OnePath& one : paths_) one.stream.close();
    for (OnePath& one : paths_) one.path.close(0);
  }
  ~Promised() override { end_all(); }

  Limits limits_;
  test::TemporaryFolder folder_;
  test::Log log_;
  Security one_ = test::new_key(folder_, "one"), other_ = test::new_key(folder_, "other");
  std::vector<std::byte> block_ = test::pattern(kMiB, 1);
  std::string identity_;
  std::vector<OnePath> paths_;
};

TEST_F(Promised, AllPathsOfAKeyFillWhatTheyWerePromisedAtOnce) {
  Listener listener = listen({.sessions_per_peer = 10});
  for (int i = 0; i < 10; ++i) ASSERT_EQ(call(listener, one_).answer, Answer::kWelcome);
  EXPECT_EQ(paths_[0].welcome.unmatched_limit, 14 * kMiB);
  const auto memory = HeldMemory::of(identity_);
  for (OnePath& one : paths_) {
    EXPECT_GE(one.welcome.unmatched_limit, kLeastPromise);
    EXPECT_EQ(one.path.settings().unmatched_limit, one.welcome.unmatched_limit);
    fill(one);
  }
  for (OnePath& one : paths_) EXPECT_TRUE(has_come(one));
  EXPECT_LE(memory->bytes(), kOnePeer);
  push(paths_[3], 100);  // more than it was promised: its connection ends, and no other
  EXPECT_TRUE(paths_[3].stream.closed_by_peer());
  paths_[3].messages.pop_back();
  ASSERT_EQ(call(listener, other_).answer, Answer::kWelcome);
  fill(paths_.back());
  for (OnePath& one : paths_) take(one);
  end_all();
  EXPECT_EQ(memory->bytes(), 0u);
}

// What is complete outlives the path, and is counted until it is taken.
TEST_F(Promised, OfAPathThatIsOverOnlyWhatItStillHoldsIsCounted) {
  Listener listener = listen({});
  ASSERT_EQ(call(listener, one_).answer, Answer::kWelcome);
  const auto memory = HeldMemory::of(identity_);
  OnePath& one = paths_[0];
  EXPECT_EQ(memory->bytes(), one.welcome.unmatched_limit);
  for (int i = 0; i < 3; ++i) push(one, 1000);
  EXPECT_TRUE(has_come(one));
  one.path.close(0);
  EXPECT_EQ(memory->bytes(), 3 * (1000 + kUnmatchedCost));
  take(one);
  EXPECT_EQ(memory->bytes(), 0u);
}

TEST_F(Promised, WhereNoMemoryIsLeftAPathIsToldSo) {
  Listener listener = listen({.sessions_per_peer = 100});
  Welcome last;
  while ((last = call(listener, one_)).answer == Answer::kWelcome) ASSERT_LT(paths_.size(), 50u);
  EXPECT_EQ(last.answer, Answer::kBusy);
  EXPECT_EQ(last.reason, std::to_string(paths_.size()) + " paths of this key have all the memory that there is for it");
  EXPECT_LE(HeldMemory::of(identity_)->bytes(), kOnePeer);
  EXPECT_EQ(call(listener, other_).answer, Answer::kWelcome);
  paths_[0].path.close(0);
  EXPECT_EQ(call(listener, one_).answer, Answer::kWelcome);
}

TEST_F(Promised, APathWhoseStreamsComeAgainKeepsItsPromise) {
  Listener listener = listen({.streams_per_peer = 2});
  const Welcome first = call(listener, one_);
  OnePath& one = paths_[0];
  const auto memory = HeldMemory::of(identity_);
  const std::uint64_t bytes = memory->bytes();
  fill(one);
  EXPECT_TRUE(has_come(one));
  HandMadeStream second(listener.address(), one_);
  EXPECT_EQ(second.greet(test::hello_of(1, 1, first.session)).answer, Answer::kWelcome);
  HandMadeStream third(listener.address(), one_);
  EXPECT_EQ(third.greet(test::hello_of(2, 1, first.session)).answer, Answer::kBusy);
  for (unsigned epoch = 2; epoch < 6; ++epoch) {  // the last one is not known to be lost
    one.stream = HandMadeStream(listener.address(), one_);
    const Welcome again = one.stream.greet(test::hello_of(0, epoch, first.session));
    EXPECT_EQ(again.answer, Answer::kWelcome) << again.reason;
    EXPECT_EQ(again.unmatched_limit, first.unmatched_limit);
    EXPECT_EQ(memory->bytes(), bytes);
  }
  second = HandMadeStream(listener.address(), one_);
  EXPECT_EQ(second.greet(test::hello_of(1, 2, first.session)).answer, Answer::kWelcome);
  EXPECT_TRUE(comes_true([&] { return one.path.status().streams_up == 2; }));
  take(one);
  EXPECT_EQ(memory->bytes(), bytes);
}

// The library at both ends: more than is promised waits at the sender.
TEST_F(Promised, PathsThatSendMoreThanAllMayHoldGoOn) {
  Listener listener = listen({.sessions_per_peer = 12});
  constexpr int kPaths = 12, kMessages = 20;
  std::vector<Path> here, there;
  std::vector<Request> requests;
  for (int i = 0; i < kPaths; ++i) {
    here.push_back(Path::connect(listener.address(), one_, test::streams(2)));
    there.push_back(std::move(listener.accept().path));
    identity_ = there.back().status().identity;
    for (int n = 0; n < kMessages; ++n) requests.push_back(here.back().start_send(9, block_));
  }
  const auto arrived = [&] {
    return std::accumulate(there.begin(), there.end(), std::uint64_t{0},
                           [](std::uint64_t sum, Path& path) { return sum + path.status().received; });
  };
  EXPECT_TRUE(comes_true([&] { return arrived() > 45 * kMiB; }));
  here[1].drop_stream(0);
  EXPECT_LE(HeldMemory::of(identity_)->bytes(), kOnePeer);
  for (Path& path : there)
    for (int n = 0; n < kMessages; ++n) EXPECT_EQ(path.receive_any(9, kMiB).size, kMiB);
  for (Request& request : requests) request.wait();
  for (Path& path : here) path.close(0);
}

}  // namespace
}  // namespace maki::wan
