// Members of groups are found on whichever rank they are.
#include "src/run/group_files.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace maki {
namespace {

TEST(GroupMembers, AreFoundOnAllRanks) {
  const Communicator ranks = Communicator::world();
  Snapshot own;  // every rank's particles, some ranks without any
  for (std::uint64_t id = 1; id <= 2500000 && ranks.rank() % 3 != 2; ++id)
    if (id % static_cast<std::uint64_t>(ranks.size()) == static_cast<std::uint64_t>(ranks.rank()))
      own.ids.push_back(2500001 - id);
  own.positions.resize(own.ids.size());
  std::vector<std::uint64_t> members;  // more than go at once, in no order
  for (std::uint64_t i = 0; ranks.rank() == 0 && i < 1250000; ++i) members.push_back(i * 7919 % 1250000 * 2);
  const std::vector<bool> found = members_among(SnapshotSource(own), members, ranks);
  ASSERT_EQ(found.size(), own.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    ASSERT_EQ(found[i], own.ids[i] % 2 == 0 && own.ids[i] < 2500000) << own.ids[i];
}

}  // namespace
}  // namespace maki
