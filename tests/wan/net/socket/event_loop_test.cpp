#include "wan/net/socket/event_loop.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <future>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/wan/helpers.hpp"
#include "wan/net/error.hpp"
#include "wan/net/path.hpp"
#include "wan/net/socket/tcp.hpp"

namespace maki::wan {
namespace {

using test::local_pair;

class Calls : public Pollable {
 public:
  explicit Calls(std::function<void(bool, bool)> work) : work_(std::move(work)) {}
  void on_ready(bool readable, bool writable) override { work_(readable, writable); }

 private:
  std::function<void(bool, bool)> work_;
};

TEST(EventLoop, RunsPostsInOrderAndBeforeItEnds) {
  std::vector<int> seen;
  {
    EventLoop loop("test-loop");
    for (int i = 0; i < 1000; ++i) loop.post([&seen, i] { seen.push_back(i); });
    loop.post([&] { loop.post([&seen] { seen.push_back(1000); }); });
  }
  ASSERT_EQ(seen.size(), 1001u);
  for (int i = 0; i <= 1000; ++i) ASSERT_EQ(seen[i], i);
}

TEST(EventLoop, CallWaitsAndThrows) {
  EventLoop loop("a name that is much too long for a thread");
  int value = 0;
  loop.call([&] {
    EXPECT_TRUE(loop.in_loop());
    loop.call([&] { value = 7; });  // at once
    EXPECT_EQ(value, 7);
    char name[32] = "";
    pthread_getname_np(pthread_self(), name, sizeof(name));
    EXPECT_STREQ(name, "a name that is ");
  });
  EXPECT_FALSE(loop.in_loop());
  EXPECT_THROW(loop.call([] { throw std::logic_error("yes"); }), std::logic_error);
}

TEST(EventLoop, SurvivesWorkThatThrows) {
  EventLoop loop("test-loop");
  const test::Log log;
  loop.post([] { throw std::runtime_error("thrown by a test"); });
  bool ran = false;
  loop.call([&] { ran = true; });
  EXPECT_TRUE(ran);
  EXPECT_TRUE(log.has("thrown by a test"));
}

// Those that are to run are set in this order, so that it is right however long the thread takes to set them.
TEST(EventLoop, TimersRunInOrderOfTime) {
  EventLoop loop("test-loop");
  std::vector<int> seen;
  std::promise<void> done;
  loop.call([&] {
    loop.after(1000, [&] { seen.push_back(9); });
    loop.after(0.01, [&] { seen.push_back(1); });
    const auto gone = loop.after(0.015, [&] { seen.push_back(9); });
    loop.after(0.02, [&, gone] {
      seen.push_back(2);
      loop.cancel(gone);  // has been cancelled, harmless
    });
    loop.after(0.03, [&] {
      seen.push_back(3);
      loop.after(0, [&] {
        seen.push_back(4);
        done.set_value();
      });
    });
    loop.cancel(gone);
    loop.cancel(0);
  });
  done.get_future().wait();
  loop.call([&] { EXPECT_EQ(seen, (std::vector<int>{1, 2, 3, 4})); });
}

TEST(EventLoop, TimersNeverRunEarly) {
  EventLoop loop("test-loop");
  for (double seconds : {0.0, 0.0003, 0.004}) {
    std::promise<void> done;
    const auto begin = EventLoop::Clock::now();
    loop.call([&] { loop.after(seconds, [&] { done.set_value(); }); });
    done.get_future().wait();
    EXPECT_GE(seconds_since(begin), seconds);
  }
}

TEST(EventLoop, ReportsReadinessAndHangUp) {
  EventLoop loop("test-loop");
  auto [near, far] = local_pair();
  std::promise<void> closed;
  std::string got;
  Calls reader([&](bool readable, bool writable) {
    EXPECT_TRUE(readable);
    EXPECT_FALSE(writable);
    char text[16];
    const auto size = read(near.descriptor(), text, sizeof(text));
    if (size > 0) got.append(text, static_cast<std::size_t>(size));
    if (size != 0) return;
    loop.forget(near.descriptor());
    closed.set_value();
  });
  loop.call([&] { loop.watch(near.descriptor(), true, false, reader); });
  ASSERT_EQ(write(far.descriptor(), "hello", 5), 5);
  far = Socket();
  closed.get_future().wait();
  EXPECT_EQ(got, "hello");
}

TEST(EventLoop, ChangesWhatIsWatched) {
  EventLoop loop("test-loop");
  auto [near, far] = local_pair();
  std::promise<void> written;
  Calls writer([&](bool, bool writable) {
    EXPECT_TRUE(writable);
    loop.change(near.descriptor(), false, false);
    written.set_value();  // a second call would throw
  });
  loop.call([&] { loop.watch(near.descriptor(), false, false, writer); });
  loop.call([&] { loop.change(near.descriptor(), true, true); });
  written.get_future().wait();
  loop.call([] {});
  loop.call([&] { loop.forget(near.descriptor()); });
}

// Two sockets are ready in one batch; whoever comes first ends the other, and a third takes its descriptor's number.
TEST(EventLoop, ForgottenWithinTheBatchIsNotReported) {
  for (int round = 0; round < 20; ++round) {
    EventLoop loop("test-loop");
    std::array<std::pair<Socket, Socket>, 2> sockets = {local_pair(), local_pair()};
    auto late = local_pair();
    std::array<std::unique_ptr<Calls>, 2> calls;
    std::atomic<int> count{0}, wrong{0};
    Calls third([&](bool, bool) { ++wrong; });
    for (int i : {0, 1}) {
      calls[i] = std::make_unique<Calls>([&, i](bool, bool) {
        ++count;
        const int other = 1 - i, number = sockets[other].first.descriptor();
        loop.forget(number);
        calls[other].reset();
        dup2(late.first.descriptor(), number);  // never ready
        loop.watch(number, true, false, third);
        loop.forget(sockets[i].first.descriptor());
      });
    }
    loop.call([&] {
      for (int i : {0, 1}) {
        loop.watch(sockets[i].first.descriptor(), true, false, *calls[i]);
        EXPECT_EQ(write(sockets[i].second.descriptor(), "x", 1), 1);
      }
    });
    loop.call([] {});
    loop.call([] {});
    EXPECT_EQ(count, 1);
    EXPECT_EQ(wrong, 0);
  }
}

TEST(EventLoop, WritingToAPeerThatIsGoneDoesNotKill) {
  EventLoop loop("test-loop");
  auto [near, far] = local_pair();
  far = Socket();
  loop.call([&, fd = near.descriptor()] {
    EXPECT_EQ(write(fd, "x", 1), -1);
    EXPECT_EQ(errno, EPIPE);
  });
}

// What a timer holds may cancel other timers of the loop when it goes with it.
TEST(EventLoop, EndsWithTimersThatHoldThings) {
  struct Holder {
    EventLoop& loop;
    EventLoop::Timer other;
    ~Holder() { loop.cancel(other); }
  };
  EventLoop loop("test-loop");
  loop.call([&] {
    const auto other = loop.after(1000, [] {});
    loop.after(1000, [held = std::make_shared<Holder>(loop, other)] {});
  });
}

TEST(EventLoop, TakesPostsFromManyThreads) {
  EventLoop loop("test-loop");
  int count = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) loop.post([&] { ++count; });
    });
  }
  for (auto& thread : threads) thread.join();
  loop.call([&] { EXPECT_EQ(count, 4000); });
}

TEST(Context, HandsItsLoopsOutInTurn) {
  Context context(2);
  EventLoop& first = context.next_loop();
  EventLoop& second = context.next_loop();
  EXPECT_NE(&first, &second);
  EXPECT_EQ(&first, &context.next_loop());
  EXPECT_EQ(&Context::shared(), &Context::shared());
  EXPECT_THROW(Context(0), Error);
}

TEST(Context, SharedHasAThreadForEachCore) {
  std::set<EventLoop*> loops;
  for (int i = 0; i < 16; ++i) loops.insert(&Context::shared().next_loop());
  EXPECT_EQ(loops.size(), std::clamp(std::thread::hardware_concurrency(), 1u, 8u));
  EXPECT_FALSE(loops.contains(&Context::shared().handshakes()));
}

}  // namespace
}  // namespace maki::wan
