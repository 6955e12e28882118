// States of light cones that are read on other numbers of ranks.
#include "src/lightcone/cone_state.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <optional>

#include "kernels/error.hpp"
#include "tests/src/io/io_helpers.hpp"

namespace maki {
namespace {

using test::TempDir;

constexpr int kSpools = 7;

spool::RunningMark mark_of(int rank) {
  spool::RunningMark running;
  running.add(std::vector<ShellParticle>(static_cast<std::size_t>(rank) + 1));
  return running;
}

// A folder with spools of seven ranks, all of which the state of the last rank names: so it comes about where a run has
// changed its number of ranks twice.
class StateOfOtherRanks : public testing::Test {
 protected:
  void SetUp() override {
    if (world_.rank() == 0) own_.emplace();
    folder_ = broadcast_text(world_, own_ ? own_->path() : "");
    ConeState state;
    for (int rank = 0; world_.rank() == world_.size() - 1 && rank < kSpools; ++rank) {
      spool::append(path(rank), std::vector<ShellParticle>(static_cast<std::size_t>(rank) + 1));
      state.spools[spool::name_of(0, rank)] = mark_of(rank).mark();
    }
    state.maps[0] = {0, {1, 2, 3}};
    write_cone_state(folder_, 12, state, world_);
  }
  void TearDown() override { world_.barrier(); }
  std::string path(int rank) const { return folder_ + "/" + spool::name_of(0, rank); }

  Communicator world_ = Communicator::world();
  std::optional<TempDir> own_;
  std::string folder_;
};

TEST_F(StateOfOtherRanks, GivesEachSpoolToTheRankThatSeesToIt) {
  const auto spools = reopen_spools(folder_, read_cone_states(folder_, 12, world_), world_);
  for (int rank = 0; rank < kSpools; ++rank) {
    const auto found = spools.find(spool::name_of(0, rank));
    ASSERT_EQ(found != spools.end(), rank % world_.size() == world_.rank()) << rank;
    if (found == spools.end()) continue;
    EXPECT_EQ(found->second.mark(), mark_of(rank).mark());
  }
  EXPECT_EQ(damage_of_cone(folder_, 12, world_), "");
}

TEST_F(StateOfOtherRanks, IsDamagedWhereASpoolOrAStateIs) {
  EXPECT_NE(damage_of_cone(folder_, 11, world_).find("no state of step 11"), std::string::npos);
  world_.barrier();
  if (world_.rank() == 0) spool::cut(path(3), 100);
  world_.barrier();
  EXPECT_NE(damage_of_cone(folder_, 12, world_).find("conesnap_000.3.spool' has been cut off"), std::string::npos);
  world_.barrier();
  if (world_.rank() == 0) spool::cut(path(3), 0);
  world_.barrier();
  EXPECT_NE(damage_of_cone(folder_, 12, world_).find("conesnap_000.3.spool"), std::string::npos);
}

}  // namespace
}  // namespace maki
