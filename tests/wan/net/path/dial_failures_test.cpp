// Dialling: addresses where nobody answers, connections that fail.
#include "wan/net/path/dial.hpp"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cstddef>

#include "tests/wan/net/path/dialled.hpp"

namespace maki::wan {
namespace {

using test::Caller, test::Dialled, test::plan_to, test::welcome_of;

TEST(Dial, TriesTheNextAddress) {
  Address nobody;
  {
    test::RawListener gone;
    nobody = gone.address();
  }
  const Dialled alone = Caller(plan_to({nobody})).wait();
  EXPECT_EQ(alone.failure, DialFailure::kAgain);
  EXPECT_TRUE(test::says(alone.reason, nobody.text()));
  EXPECT_TRUE(test::says(alone.reason, "refused"));

  test::RawListener listener;
  Caller caller(plan_to({nobody, listener.address()}));
  test::RawPeer peer(listener.accept());
  peer.write(encode(welcome_of(Answer::kWelcome)));
  EXPECT_EQ(caller.wait().peer.text(), listener.address().text());
}

TEST(Dial, DoesNotWaitForASilentAddress) {
  const test::SilentListener silent;
  test::RawListener listener;
  Caller caller(plan_to({silent.address(), listener.address()}));  // connect_timeout is 10 s
  test::RawPeer peer(listener.accept());
  peer.write(encode(welcome_of(Answer::kWelcome)));
  EXPECT_TRUE(caller.wait().channel);

  DialPlan plan = plan_to({silent.address()});
  plan.settings.connect_timeout = 0.1;
  const Dialled outcome = Caller(plan).wait();
  EXPECT_EQ(outcome.failure, DialFailure::kAgain);
  EXPECT_TRUE(test::says(outcome.reason, "no answer in 0.1 s"));
}

TEST(Dial, SilenceAndHangUpsAreForAnotherTime) {
  test::RawListener listener;
  DialPlan plan = plan_to({listener.address()});
  plan.settings.handshake_timeout = 0.1;
  const Dialled silent = Caller(plan).wait();
  EXPECT_EQ(silent.failure, DialFailure::kAgain);
  EXPECT_TRUE(test::says(silent.reason, "not over in 0.1 s"));
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
    test::RawPeer peer(listener.accept());
    if (i == 2) {
      EXPECT_TRUE(peer.read_hello().has_value());
    }
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
  test::RawListener listener;
  bool possible = true;
  Caller caller(plan_to({listener.address()}), [&] { possible = watch_no_more(); });
  test::RawPeer peer(listener.accept());
  peer.write(encode(welcome_of(Answer::kWelcome)));
  const Dialled outcome = caller.wait();
  if (!possible) GTEST_SKIP() << "no system call filters here";
  EXPECT_EQ(outcome.failure, DialFailure::kAgain);
  EXPECT_TRUE(test::says(outcome.reason, "cannot watch a socket"));
}

TEST(Dial, AWrongLocalAddressIsTold) {
  test::RawListener listener;
  DialPlan plan = plan_to({listener.address()});
  plan.settings.local_address = "192.0.2.1";
  EXPECT_NE(Caller(plan).wait().reason.find("192.0.2.1"), std::string::npos);
}

// The queue of a listener gets room when the first question has long been asked: the next one is heard soon.
TEST(FullDial, AsksAgainWhereTheNetworkWasDown) {
  test::SilentListener busy;
  DialPlan plan = plan_to({busy.address()});
  plan.settings.connect_timeout = 30;
  Caller caller(plan);
  test::pause(7.3);  // the system's next question comes at 15 s
  busy.make_room();
  Address peer;
  const auto begin = EventLoop::Clock::now();
  for (bool greeted = false; !greeted;) {
    Socket next = accept_from(busy.descriptor(), peer);
    if (!next.open()) {
      test::pause(0.005);
      continue;
    }
    test::RawPeer taken(std::move(next));
    greeted = taken.read_hello().has_value();
    if (greeted) taken.write(encode(welcome_of(Answer::kWelcome)));
  }
  EXPECT_LT(EventLoop::Clock::now() - begin, std::chrono::seconds(6));
  EXPECT_TRUE(caller.wait().channel);
}

}  // namespace
}  // namespace maki::wan
