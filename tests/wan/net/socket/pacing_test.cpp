// Bounds of pacing that are given to the kernel.

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "wan/net/error.hpp"
#include "wan/net/socket/tcp.hpp"

namespace maki::wan {
namespace {

// -1: none.
int bound_of(const Socket& socket) {
  int value = 0;
  socklen_t length = sizeof(value);
  EXPECT_EQ(getsockopt(socket.descriptor(), SOL_SOCKET, SO_MAX_PACING_RATE, &value, &length), 0);
  return value;
}

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
  EXPECT_EQ(bound_of(socket), -1);
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

}  // namespace
}  // namespace maki::wan
