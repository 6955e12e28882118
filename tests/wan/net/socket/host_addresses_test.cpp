#include "wan/net/socket/host_addresses.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

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
  // Asks again until it was asked `times` in all.
  void wait(const HostAddresses& addresses, int times) {
    while (asked < times) {
      addresses.look_up_again();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
};

TEST(HostAddresses, FollowAHostThatMoves) {
  NameServer server;
  const HostAddresses addresses(Endpoint{"gateway", 6000}, server.look_up()), copy = addresses;
  EXPECT_EQ(addresses.now().front().text(), "127.0.0.1:6000");
  server.answer = nullptr;
  server.wait(addresses, 2);
  EXPECT_EQ(addresses.now().front().text(), "127.0.0.1:6000");
  server.answer = "127.0.0.2";
  server.wait(addresses, 3);
  while (copy.now().front().text() != "127.0.0.2:6000") std::this_thread::yield();
  EXPECT_EQ(server.asked, 3);
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
