#include "wan/net/socket/crowd.hpp"

#include <gtest/gtest.h>

#include <array>

#include "wan/net/socket/tcp.hpp"

namespace maki::wan {
namespace {

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

}  // namespace
}  // namespace maki::wan
