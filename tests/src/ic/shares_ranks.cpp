#include "tests/src/ic/shares_ranks.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "host/comm/communicator.hpp"

namespace maki {

namespace {

template <class T>
bool same_bits(const std::vector<T>& whole, const std::vector<T>& part, std::uint64_t first) {
  return part.empty() || std::memcmp(whole.data() + first, part.data(), part.size() * sizeof(T)) == 0;
}

}  // namespace

void expect_shares_of(const Snapshot& whole, const Snapshot& share, const Communicator& ranks) {
  const Share rows = share_of(whole.size(), ranks.rank(), ranks.size());
  ASSERT_EQ(share.positions.size(), rows.size());
  ASSERT_EQ(share.velocities.size(), rows.size());
  ASSERT_EQ(share.masses.size(), rows.size());
  ASSERT_EQ(share.ids.size(), rows.size());
  EXPECT_TRUE(same_bits(whole.positions, share.positions, rows.first));
  EXPECT_TRUE(same_bits(whole.velocities, share.velocities, rows.first));
  EXPECT_TRUE(same_bits(whole.masses, share.masses, rows.first));
  EXPECT_TRUE(same_bits(whole.ids, share.ids, rows.first));
  EXPECT_EQ(share.header.comoving, whole.header.comoving);
  EXPECT_EQ(share.header.time, whole.header.time);
  EXPECT_EQ(share.header.redshift, whole.header.redshift);
  EXPECT_EQ(share.header.box_size, whole.header.box_size);
  EXPECT_EQ(share.header.omega0, whole.header.omega0);
}

}  // namespace maki
