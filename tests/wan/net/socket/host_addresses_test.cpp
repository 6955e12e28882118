#include "wan/net/socket/tcp.hpp"

#include <gtest/gtest.h>

#include <atomic>

#include "tests/wan/helpers.hpp"
#include "wan/net/error.hpp"

namespace maki::wan {
namespace {

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
