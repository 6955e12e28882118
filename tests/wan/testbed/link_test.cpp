// Emulated links: what the kernels at both ends see of them. Namespaces: what runs inside, and that nothing stays
// behind.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <future>
#include <optional>
#include <thread>

#include "tests/commands.hpp"
#include "tests/testbed/link.hpp"
#include "tests/testbed/namespaces.hpp"
#include "tests/testbed/testbed.hpp"
#include "tests/wan/helpers.hpp"
#include "tests/wan/net/path/raw_peer.hpp"
#include "wan/net/error.hpp"
#include "wan/net/settings.hpp"
#include "wan/net/socket/tcp.hpp"

namespace maki::testbed {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::uint16_t kPort = 7000;
constexpr std::size_t kUdpHeaders = 28;

using wan::seconds_since;

class LinkTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = why_not(); !reason.empty()) GTEST_SKIP() << reason;
  }
};

wan::Socket socket_in(const Testbed& testbed, int site, int type, const std::string& address, std::uint16_t port) {
  const InsideNamespace inside(testbed.site(site).name());
  const wan::Address local = wan::resolve_local({address, port});
  wan::Socket s(socket(local.storage.ss_family, type | SOCK_CLOEXEC, 0));
  EXPECT_EQ(bind(s.descriptor(), reinterpret_cast<const sockaddr*>(&local.storage), local.length), 0)
      << strerror(errno);
  const int room = 4 << 20;
  setsockopt(s.descriptor(), SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
  return s;
}

int connect_to(const wan::Socket& s, const std::string& address, std::uint16_t port) {
  const wan::Address peer = wan::resolve_local({address, port});
  return connect(s.descriptor(), reinterpret_cast<const sockaddr*>(&peer.storage), peer.length);
}

bool readable(const wan::Socket& s, double seconds) {
  return wan::test::ready(s.descriptor(), POLLIN, static_cast<int>(seconds * 1e3));
}

// UDP sockets at sites 0 and 1, connected to each other.
struct Pair {
  wan::Socket a, b;
  explicit Pair(const Testbed& testbed, bool six = false) {
    const auto address = [&](int i) { return six ? testbed.address6(i) : testbed.address(i); };
    a = socket_in(testbed, 0, SOCK_DGRAM, address(0), kPort);
    b = socket_in(testbed, 1, SOCK_DGRAM, address(1), kPort);
    EXPECT_EQ(connect_to(a, address(1), kPort), 0) << strerror(errno);
    EXPECT_EQ(connect_to(b, address(0), kPort), 0) << strerror(errno);
  }
};

// Of so many packets from a to b: what the link has done with them once each is at b or dropped.
LinkCounters all_packets(const Testbed& testbed, const Pair& pair, unsigned sent) {
  LinkCounters counters;
  unsigned arrived = 0;
  EXPECT_TRUE(wan::test::comes_true([&] {
    for (char buffer[2000]; recv(pair.b.descriptor(), buffer, sizeof buffer, MSG_DONTWAIT) > 0;) ++arrived;
    counters = testbed.links().front().link.forth();
    return arrived == counters.packets && arrived + counters.queue_drops + counters.loss_drops == sent;
  })) << arrived;
  return counters;
}

// Of 1000 bytes each, with all headers, from a to b.
void send_packets(const Pair& pair, int packets) {
  const std::vector<char> packet(1000 - kUdpHeaders);
  for (int i = 0; i < packets; ++i) EXPECT_GT(send(pair.a.descriptor(), packet.data(), packet.size(), 0), 0);
}

void receive_packets(const Pair& pair, int packets) {
  char buffer[2000];
  for (int i = 0; i < packets; ++i) {
    ASSERT_TRUE(readable(pair.b, 30)) << i;
    ASSERT_GT(recv(pair.b.descriptor(), buffer, sizeof buffer, 0), 0);
  }
}

bool echoed(const Pair& pair, double patience) {
  char byte = 1;
  if (send(pair.a.descriptor(), &byte, 1, 0) != 1 || !readable(pair.b, patience)) return false;
  if (recv(pair.b.descriptor(), &byte, 1, 0) != 1 || send(pair.b.descriptor(), &byte, 1, 0) != 1) return false;
  return readable(pair.a, patience) && recv(pair.a.descriptor(), &byte, 1, 0) == 1;
}

TestbedSettings fast(double delay) {
  TestbedSettings s;
  s.link.delay = delay;
  s.link.queue = 4e6;
  return s;
}

// The least time that `action` takes, tried until it is at most `limit`: others may want the cores.
double best_of(double limit, const std::function<void()>& action) {
  double best = 1e9;
  EXPECT_TRUE(wan::test::comes_true([&] {
    const auto start = Clock::now();
    action();
    best = std::min(best, seconds_since(start));
    return best <= limit;
  })) << best;
  return best;
}

TEST_F(LinkTest, RoundTripIsTwiceTheDelay) {
  const Testbed testbed(fast(0.02));
  for (const bool six : {false, true}) {
    const Pair pair(testbed, six);
    EXPECT_GE(best_of(0.06, [&] { EXPECT_TRUE(echoed(pair, 30)); }), 0.04);
  }
}

TEST_F(LinkTest, LineTakesItsTimeAndQueueItsBytes) {
  TestbedSettings settings = fast(0.01);
  settings.link.rate = 8e6;     // a packet of 1000 bytes: 1 ms
  settings.link.queue = 100e3;  // a hundred of them
  const Testbed testbed(settings);
  const Pair pair(testbed);
  const auto start = Clock::now();
  send_packets(pair, 1000);
  const LinkCounters counters = all_packets(testbed, pair, 1000);
  EXPECT_GE(seconds_since(start), 1e-3 * static_cast<double>(counters.packets) + 0.01);
  EXPECT_FALSE(readable(pair.b, 0.1));
  EXPECT_EQ(counters.bytes, counters.packets * 1000);
  EXPECT_GE(counters.packets, 100u);
  EXPECT_LE(counters.greatest_queue, 100000u);
  EXPECT_GT(counters.greatest_queue, 99000u);
}

TEST_F(LinkTest, EachLineOfARingMayHaveItsOwnRate) {
  TestbedSettings settings = fast(0.001);
  settings.sites = 3;
  settings.ring = true;
  constexpr int kPackets = 100;  // at 8 Mbit/s 0.1 s
  for (const bool slow : {true, false}) {
    settings.rates = slow ? std::vector{8e6, 0.0, 0.0} : std::vector{0.0, 8e6, 8e6};
    const Testbed testbed(settings);
    const Pair pair(testbed);
    const double best = best_of(slow ? 0.2 : 0.09, [&] {
      send_packets(pair, kPackets);
      receive_packets(pair, kPackets);
    });
    EXPECT_GE(best, slow ? 0.098 : 0.0);
  }
  settings.rates = {1e6, 1e6};
  EXPECT_THROW(Testbed{settings}, wan::Error);
}

TEST_F(LinkTest, LosesItsShareAndTheSameOnesAgain) {
  TestbedSettings settings = fast(0.001);
  settings.link.loss = 0.1;
  constexpr unsigned kPackets = 4000;
  std::uint64_t arrived[2];
  for (std::uint64_t& count : arrived) {
    const Testbed testbed(settings);
    const Pair pair(testbed);
    for (unsigned i = 0; i < kPackets; ++i) ASSERT_EQ(send(pair.a.descriptor(), &i, sizeof i, 0), 4);
    count = all_packets(testbed, pair, kPackets).packets;
  }
  EXPECT_NEAR(static_cast<double>(arrived[0]), 0.9 * kPackets, 5 * std::sqrt(0.09 * kPackets));
  EXPECT_EQ(arrived[0], arrived[1]);
}

// Sends `bytes` over TCP from site 0 to site 1, and compares.
void expect_intact(const Testbed& testbed, bool six, std::size_t bytes) {
  const auto sent = wan::test::pattern(bytes, 3);
  const auto address = [&](int i) { return six ? testbed.address6(i) : testbed.address(i); };
  const wan::Socket listener = socket_in(testbed, 1, SOCK_STREAM, address(1), kPort);
  ASSERT_EQ(listen(listener.descriptor(), 1), 0);
  std::thread sender([&] {
    const wan::Socket s = socket_in(testbed, 0, SOCK_STREAM, address(0), 0);
    ASSERT_EQ(connect_to(s, address(1), kPort), 0) << strerror(errno);
    EXPECT_TRUE(wan::test::put(s, sent));
  });
  const wan::Socket s(accept(listener.descriptor(), nullptr, nullptr));
  EXPECT_TRUE(wan::test::get(s, bytes + 1) == sent);
  sender.join();
}

TEST_F(LinkTest, BytesSurviveLoss) {
  TestbedSettings settings = fast(0.001);
  settings.link.loss = 0.01;
  Testbed testbed(settings);
  for (const bool six : {false, true}) expect_intact(testbed, six, std::size_t{4} << 20);
  EXPECT_GT(testbed.links().front().link.forth().loss_drops, 20u);
}

TEST_F(LinkTest, EndsOfALineDoNotSeeEachOther) {
  TestbedSettings settings = fast(0.001);
  settings.sites = 3;
  const Testbed line(settings);
  const wan::Socket s = socket_in(line, 0, SOCK_DGRAM, line.address(0), kPort);
  EXPECT_EQ(connect_to(s, line.address(1), kPort), 0);
  EXPECT_NE(connect_to(s, line.address(2), kPort), 0);
  settings.ring = true;
  Testbed ring(settings);
  EXPECT_EQ(ring.links().size(), 3u);
  const wan::Socket t = socket_in(ring, 0, SOCK_DGRAM, ring.address(0), kPort);
  EXPECT_EQ(connect_to(t, ring.address(2), kPort), 0);
}

TEST_F(LinkTest, KernelSettingsAreTheSites) {
  TestbedSettings settings = fast(0.001);
  settings.kernel = tcp_limits(6e6, 4e6);
  const Testbed testbed(settings);
  EXPECT_EQ(testbed.site(0).get("net.ipv4.tcp_rmem"), "4096\t131072\t6000000");
  EXPECT_EQ(testbed.site(1).get("net.ipv4.tcp_wmem"), "4096\t16384\t4000000");
  EXPECT_THROW(testbed.site(0).set("net.ipv4.tcp_rmem", "none such"), wan::Error);
}

namespace fs = std::filesystem;

class NamespaceTest : public LinkTest {
 protected:
  static fs::path space_of_thread() { return fs::read_symlink("/proc/thread-self/ns/net"); }
};

TEST_F(NamespaceTest, ThreadsAndProgramsRunInside) {
  const Namespace space(namespace_name("test"));
  const fs::path outside = space_of_thread();
  {
    const InsideNamespace here(space.name());
    const fs::path inside = space_of_thread();
    EXPECT_NE(inside, outside);
    EXPECT_EQ(std::async(std::launch::async, space_of_thread).get(), inside);
    EXPECT_EQ(test::call_shell("readlink /proc/self/ns/net").output, inside.string() + "\n");
  }
  EXPECT_EQ(space_of_thread(), outside);
}

TEST_F(NamespaceTest, EndsWithWhatRunsInside) {
  const wan::test::TemporaryFolder folder;
  std::optional<test::StartedCommand> child;
  std::string name;
  {
    const Namespace space(namespace_name("test"));
    name = space.name();
    EXPECT_TRUE(fs::exists("/run/netns/" + name));
    EXPECT_THROW(Namespace{name}, wan::Error);
    const InsideNamespace here(name);
    child.emplace("trap 'exit 9' TERM; echo inside; sleep 1000 & wait", folder / "said");
    EXPECT_TRUE(wan::test::comes_true([&] { return !child->said().empty(); }));
  }
  EXPECT_EQ(child->wait().code, 9);
  EXPECT_FALSE(fs::exists("/run/netns/" + name));
  EXPECT_THROW(enter_namespace(name), wan::Error);
}

}  // namespace
}  // namespace maki::testbed
