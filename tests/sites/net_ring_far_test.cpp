// A ring over an emulated link of 270 ms, in namespaces that build/wan_testbed makes around this program.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "tests/sites/net_rings.hpp"

namespace maki::sites {
namespace {

using namespace test;
namespace fs = std::filesystem;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// This thread, and those that it starts, live in a namespace from now on.
void enter(const std::string& space) {
  const int descriptor = open(("/run/netns/" + space).c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(descriptor, 0);
  ASSERT_EQ(setns(descriptor, CLONE_NEWNET), 0);
  close(descriptor);
}

struct Sent {
  Phase phase;
  std::size_t bytes;
};

// Both ends of the link; seconds from the sending of each message until it was received.
std::vector<double> send_all(const std::vector<Sent>& messages) {
  RingPlan plan;
  plan.sites.resize(2);
  for (const int i : {0, 1}) {
    plan.sites[i].name = i == 0 ? "near" : "far";
    plan.sites[i].address = {std::getenv(i == 0 ? "MAKI_ADDR_0" : "MAKI_ADDR_1"), 6000};
  }
  plan.security.insecure = true;
  plan.path.pacing_rate = 93e6;
  std::unique_ptr<NetRing> rings[2];
  std::vector<std::thread> threads;
  for (const int i : {0, 1})
    threads.emplace_back([&, i] {
      enter(std::getenv(i == 0 ? "MAKI_NS_0" : "MAKI_NS_1"));
      RingPlan mine = plan;
      mine.me = i;
      rings[i] = std::make_unique<NetRing>(mine);
    });
  for (std::thread& thread : threads) thread.join();
  std::vector<double> seconds;
  for (std::uint64_t round : {1, 2}) {  // the streams find their pace in the first
    std::vector<std::future<double>> arrivals;
    std::vector<double> sent;
    for (const Sent& message : messages)
      arrivals.push_back(std::async(std::launch::async, [&, message] {
        rings[1]->receive(0, message.phase, round);
        return now();
      }));
    for (const Sent& message : messages) {
      Message bytes(message.bytes);
      sent.push_back(now());
      rings[0]->publish(message.phase, round, std::move(bytes));
      if (sent.size() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(60));
    }
    seconds.clear();
    for (std::size_t i = 0; i < messages.size(); ++i) seconds.push_back(arrivals[i].get() - sent[i]);
  }
  auto closing = std::async(std::launch::async, [&] { rings[1]->close(); });
  rings[0]->close();
  closing.get();
  return seconds;
}

TEST(FullNetRing, ShortMessagesOvertakeLongOnesAtADistance) {
  if (std::getenv("MAKI_NS_1") == nullptr) {
    const fs::path testbed = fs::path(MAKI_BINARY).parent_path() / "wan_testbed";
    if (geteuid() != 0 || !fs::exists("/dev/net/tun")) GTEST_SKIP() << "needs root and /dev/net/tun";
    if (!fs::exists(testbed)) GTEST_SKIP() << "needs " << testbed << ": make " << testbed;
    const auto self = fs::read_symlink("/proc/self/exe").string();
    const std::string command = testbed.string() + " --rtt 270ms --rate 800Mbit --rmem 32MB --wmem 32MB -- " + self +
                                " --gtest_brief=1 --gtest_filter=FullNetRing.ShortMessages*";
    const int status = std::system(command.c_str());
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return;
  }
  const std::vector<Sent> messages = {{Phase::kMesh, 50'000'000},
                                      {Phase::kTrees, 2'000'000},
                                      {Phase::kParticles, 300'000},
                                      {Phase::kSums, 100}};
  const auto seconds = send_all(messages);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    std::printf("  %s of %zu bytes: %.3f s\n", name(messages[i].phase), messages[i].bytes, seconds[i]);
    EXPECT_GE(seconds[i], 0.135);
    if (i > 0) {
      EXPECT_LT(seconds[i], seconds[0]);
    }  // which began before
  }
}

}  // namespace
}  // namespace maki::sites
