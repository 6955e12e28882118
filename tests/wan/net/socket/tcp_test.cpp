// Sockets, crowds of strangers, pacing, and addresses of hosts that move.
#include "wan/net/socket/tcp.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <latch>
#include <set>
#include <thread>
#include <vector>

#include "tests/wan/helpers.hpp"
#include "tests/wan/net/path/raw_peer.hpp"
#include "tests/wan/ports.hpp"
#include "wan/net/error.hpp"

namespace maki::wan {
namespace {

using test::ready, test::says;

Address address_of(const Socket& listener, const std::string& host = "127.0.0.1") {
  return resolve({host, local_address(listener.descriptor()).port()}).front();
}

int option(int descriptor, int level, int name) {
  int value = 0;
  socklen_t length = sizeof(value);
  EXPECT_EQ(getsockopt(descriptor, level, name, &value, &length), 0);
  return value;
}

bool have_ipv6() {
  const Socket socket(::socket(AF_INET6, SOCK_STREAM, 0));
  const Address loopback = resolve({"::1", 0}).front();
  return socket.open() &&
         bind(socket.descriptor(), reinterpret_cast<const sockaddr*>(&loopback.storage), loopback.length) == 0;
}

TEST(Tcp, NamesAddresses) {
  EXPECT_EQ(resolve({"1.2.3.4", 80}).front().text(), "1.2.3.4:80");
  EXPECT_EQ(resolve({"::1", 80}).front().text(), "[::1]:80");
  EXPECT_EQ(resolve({"::ffff:1.2.3.4", 80}).front().host(), "1.2.3.4");
  EXPECT_EQ(resolve_local({"127.0.0.1", 5}).text(), "127.0.0.1:5");
  EXPECT_THROW(resolve({"no-such-host.invalid", 80}), Error);
  EXPECT_THROW(resolve({"", 80}), Error);
  for (const Address& address : resolve({"localhost", 1}))
    EXPECT_TRUE(address.host() == "127.0.0.1" || address.host() == "::1");
}

TEST(Tcp, ConnectsAndAccepts) {
  PathSettings settings;
  Socket listener = listen_on({"127.0.0.1", 0}, settings);
  Address peer;
  EXPECT_FALSE(accept_from(listener.descriptor(), peer).open());
  Socket near = start_connect(address_of(listener), settings);
  ASSERT_TRUE(ready(near.descriptor(), POLLOUT));
  EXPECT_EQ(connect_error(near.descriptor()), 0);
  ASSERT_TRUE(ready(listener.descriptor(), POLLIN));
  Socket far = accept_from(listener.descriptor(), peer);
  ASSERT_TRUE(far.open());
  EXPECT_EQ(peer.text(), local_address(near.descriptor()).text());
  EXPECT_EQ(peer_address(near.descriptor()).text(), local_address(listener.descriptor()).text());
  char byte = 0;
  EXPECT_EQ(read(far.descriptor(), &byte, 1), -1);  // does not block
  EXPECT_EQ(errno, EAGAIN);
}

TEST(Tcp, WildcardTakesBothFamilies) {
  PathSettings settings;
  Socket listener = listen_on({"", 0}, settings);
  Address peer;
  for (const std::string host : {"127.0.0.1", "::1"}) {
    if (host == "::1" && !have_ipv6()) continue;
    Socket near = start_connect(address_of(listener, host), settings);
    ASSERT_TRUE(ready(listener.descriptor(), POLLIN));
    EXPECT_TRUE(accept_from(listener.descriptor(), peer).open());
    EXPECT_EQ(peer.host(), host);
  }
}

TEST(Tcp, RefusedAndTakenPortsAreTold) {
  PathSettings settings;
  Address nobody;
  {
    Socket listener = listen_on({"127.0.0.1", 0}, settings);
    nobody = address_of(listener);
    EXPECT_TRUE(says(test::error_of([&] {
                       listen_on({"127.0.0.1", nobody.port()}, settings);
                     }),
                     std::to_string(nobody.port())));
  }
  Socket near = start_connect(nobody, settings);
  ASSERT_TRUE(ready(near.descriptor(), POLLOUT));
  EXPECT_EQ(connect_error(near.descriptor()), ECONNREFUSED);
  EXPECT_THROW(listen_on({"192.0.2.1", 0}, settings), Error);  // not ours
}

// A port that asks for itself and is given itself: TCP's simultaneous open with one party.
TEST(Tcp, ConnectionToItselfIsRefused) {
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const Address any = resolve_local({"127.0.0.1", 0});
  ASSERT_EQ(bind(socket.descriptor(), reinterpret_cast<const sockaddr*>(&any.storage), any.length), 0);
  const Address itself = local_address(socket.descriptor());
  if (connect(socket.descriptor(), reinterpret_cast<const sockaddr*>(&itself.storage), itself.length) != 0) {
    GTEST_SKIP() << "this system does not connect a socket to itself";
  }
  EXPECT_EQ(connect_error(socket.descriptor()), ECONNREFUSED);
}

TEST(Tcp, OptionsAreSet) {
  PathSettings settings;
  settings.window = 64 << 10;
  settings.congestion = "reno";  // of every kernel
  Socket listener = listen_on({"127.0.0.1", 0}, settings);
  Socket near = start_connect(address_of(listener), settings);
  const int descriptor = near.descriptor();
  EXPECT_NE(option(descriptor, IPPROTO_TCP, TCP_NODELAY), 0);
  EXPECT_NE(option(descriptor, SOL_SOCKET, SO_KEEPALIVE), 0);
  EXPECT_GE(option(descriptor, SOL_SOCKET, SO_SNDBUF), 64 << 10);
  EXPECT_GE(option(descriptor, SOL_SOCKET, SO_RCVBUF), 64 << 10);
  EXPECT_EQ(option(descriptor, IPPROTO_TCP, TCP_NOTSENT_LOWAT), 64 << 10);
  settings.streams = 1;
  apply_options(descriptor, settings);
  EXPECT_EQ(option(descriptor, IPPROTO_TCP, TCP_NOTSENT_LOWAT), 0);
  settings.congestion = "nosuch";
  EXPECT_TRUE(says(test::error_of([&] { apply_options(descriptor, settings); }), "cubic"));
}

TEST(Tcp, ConnectsFromGivenAddressAndPorts) {
  PathSettings settings;
  Socket listener = listen_on({"127.0.0.1", 0}, settings);
  const Address target = address_of(listener);
  const auto first = static_cast<std::uint16_t>(test::free_base({0, 1}));
  settings.local_address = "127.0.0.1";
  settings.local_port_first = first;
  settings.local_port_last = first + 1;
  const Socket a = start_connect(target, settings), b = start_connect(target, settings);
  const std::set<int> used = {local_address(a.descriptor()).port(), local_address(b.descriptor()).port()};
  EXPECT_EQ(used, (std::set<int>{first, first + 1}));
  EXPECT_THROW(start_connect(target, settings), Error);  // both are taken
  settings.local_port_first = settings.local_port_last = 0;
  const Socket c = start_connect(target, settings);
  EXPECT_EQ(local_address(c.descriptor()).host(), "127.0.0.1");
  settings.local_address = "192.0.2.1";
  EXPECT_THROW(start_connect(target, settings), Error);
  settings.local_address = "::1";
  EXPECT_THROW(start_connect(target, settings), Error);
}

// The kernel refuses the port to both where they ask at the same moment (8 of 20,000 times when this was written).
TEST(Tcp, OfTwoThatListenAtTheSameMomentOneGetsThePort) {
  const Endpoint place{"", test::free_ports(1)[0]};
  for (int trial = 0; trial < 5000; ++trial) {
    std::latch together(2);
    std::vector<Socket> listening(2);
    const auto ask = [&](Socket& socket) {
      together.arrive_and_wait();
      try {
        socket = listen_on(place, {});
      } catch (const Error&) {
        // the other one has it
      }
    };
    std::jthread other(ask, std::ref(listening[1]));
    ask(listening[0]);
    other.join();
    if (listening[0].open() || listening[1].open()) {
      EXPECT_FALSE(listening[0].open() && listening[1].open());
      continue;
    }
    EXPECT_THROW(listen_on(place, {}), Error) << "port " << place.port << " was free and nobody got it";
  }
}

// ---- crowds ----

TEST(Crowd, GivesUpTheFirstOfTheMostNumerousOrigin) {
  std::array<int, 6> members{};
  Crowd<int> crowd;
  crowd.enter("honest", members[0]);
  for (int i = 1; i < 5; ++i) crowd.enter("many", members[static_cast<std::size_t>(i)]);
  for (int i = 1; i < 5; ++i) {
    EXPECT_EQ(&crowd.surplus(),
              i < 4 ? &members[static_cast<std::size_t>(i)] : &members[0]);  // one each: the very first
    crowd.leave(members[static_cast<std::size_t>(i)]);
  }
  EXPECT_EQ(crowd.size(), 1u);
}

TEST(Crowd, EnteringAgainIsNewAndLeavingTwiceHarmless) {
  int one = 0, other = 0;
  Crowd<int> crowd;
  crowd.enter("a", one);
  crowd.enter("a", other);
  crowd.enter("a", one);
  EXPECT_EQ(crowd.size(), 2u);
  EXPECT_EQ(&crowd.surplus(), &other);
  crowd.leave(other);
  crowd.leave(other);
  EXPECT_EQ(&crowd.surplus(), &one);
}

TEST(Crowd, NetworksOfAddresses) {
  const auto network = [](const std::string& host) { return resolve({host, 80}).front().network(); };
  EXPECT_EQ(network("192.0.2.1"), "192.0.2.1");
  EXPECT_EQ(network("::ffff:192.0.2.1"), "192.0.2.1");
  EXPECT_EQ(network("2001:db8:1:2:3:4:5:6"), network("2001:db8:1:2::9"));
  EXPECT_NE(network("2001:db8:1:2::9"), network("2001:db8:1:3::9"));
}

// -1: none.
int bound_of(const Socket& socket) { return option(socket.descriptor(), SOL_SOCKET, SO_MAX_PACING_RATE); }

Socket with(const std::string& congestion) {
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  PathSettings settings;
  settings.pacing_rate = 5e6;
  settings.congestion = congestion;
  apply_options(socket.descriptor(), settings);
  return socket;
}

TEST(Pacing, AStreamHasNoBoundUntilItIsGivenOne) {
  const Socket socket = with("reno");
  EXPECT_FALSE(is_paced(socket.descriptor()));
  EXPECT_EQ(bound_of(socket), -1) << "a bound would make the kernel pace it";
  bound_pacing(socket.descriptor(), 7e6);
  EXPECT_EQ(bound_of(socket), 7000000);
  bound_pacing(socket.descriptor(), 0);
  EXPECT_EQ(bound_of(socket), -1);
}

TEST(Pacing, BbrHasOneFromTheStart) {
  try {
    const Socket socket = with("bbr");
    EXPECT_TRUE(is_paced(socket.descriptor()));
    EXPECT_EQ(bound_of(socket), 5000000);
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
}

// A name server whose answer changes, and which may be away.
struct NameServer {
  std::atomic<int> asked{0};
  std::atomic<const char*> answer{"127.0.0.1"};  // null: away

  HostAddresses::LookUp look_up() {
    return [this](const Endpoint& endpoint) {
      ++asked;
      const char* const host = answer;
      if (!host) throw Error("cannot find '" + endpoint.host + "'");
      return resolve(Endpoint{host, endpoint.port});
    };
  }
};

TEST(HostAddresses, FollowAHostThatMoves) {
  NameServer server;
  const auto begin = WallClock::now();
  const HostAddresses addresses(Endpoint{"gateway", 6000}, server.look_up()), copy = addresses;
  EXPECT_EQ(addresses.now().front().text(), "127.0.0.1:6000");
  server.answer = nullptr;
  EXPECT_TRUE(test::comes_true([&] {
    addresses.look_up_again();
    return server.asked >= 2;
  }));
  EXPECT_EQ(addresses.now().front().text(), "127.0.0.1:6000");
  server.answer = "127.0.0.2";
  EXPECT_TRUE(test::comes_true([&] {
    if (copy.now().front().text() == "127.0.0.2:6000") return true;  // and nobody asks the server any more
    addresses.look_up_again();
    return false;
  }));
  EXPECT_LE(server.asked - 2, seconds_since(begin));  // one a second
}

TEST(HostAddresses, OfAnUnknownHostAreAnError) {
  NameServer server;
  server.answer = nullptr;
  EXPECT_THROW(HostAddresses(Endpoint{"gateway", 6000}, server.look_up()), Error);
  EXPECT_TRUE(HostAddresses().now().empty());
  HostAddresses().look_up_again();
}

}  // namespace
}  // namespace maki::wan
