// What all ranks make of one configuration, and where they find members of groups.
#include "src/run/initial_sets.hpp"
#include "src/run/setup.hpp"

#include <gtest/gtest.h>

#include "src/config/parse.hpp"
#include "src/io/snapshot_io.hpp"
#include "src/run/products.hpp"
#include "tests/src/io/io_helpers.hpp"

namespace maki {
namespace {

using SetupRanks = test::InSharedDir;
using GroupMembers = test::ManyRanks;

void expect_same_run(const std::string& text, const std::vector<std::string>& settings) {
  const auto world = Communicator::world();
  const Prepared alone = prepare(parse_config(text, "t", settings), true, Communicator::self());
  const Prepared run = prepare(parse_config(text, "t", settings), true, world);
  EXPECT_EQ(run.particles, alone.initial.size());
  EXPECT_EQ(run.side, alone.side);
  EXPECT_EQ(run.centre, alone.centre);
  EXPECT_EQ(to_toml(run.config), to_toml(alone.config));
  EXPECT_EQ(run.notes, alone.notes);
  EXPECT_EQ(run.initial.header.gravitational_constant, alone.initial.header.gravitational_constant);
  test::expect_shares_of(alone.initial, run.initial, world);
}

TEST_F(SetupRanks, EveryInitialConditionIsTheSame) {
  const std::string cosmological = "[box]\nsize = \"50 Mpc/h\"\n[initial]\nparticles_per_side = 8\n";
  for (const std::string kind : {"lpt", "pancake"}) expect_same_run(cosmological, {"initial.kind=" + kind});
  const std::string isolated = "[run]\nkind = \"isolated\"\n[gravity]\nsoftening = 0.01\n";
  for (const std::string kind : {"plummer", "cold_sphere", "kepler_disk", "two_body"}) {
    for (const std::string particles : {"5", "1001"}) {
      std::vector<std::string> settings = {"initial.kind=" + kind, "gravitational_constant=4"};
      if (kind != "two_body") settings.push_back("initial.particles=" + particles);
      if (kind == "plummer") settings.push_back("initial.truncation_radius=3");
      if (kind == "cold_sphere") settings.push_back("initial.virial_ratio=0.5");
      expect_same_run(isolated, settings);
    }
  }
}

// All ranks write the initial conditions to one file, as `maki ic` does, and read it again.
TEST_F(SetupRanks, FilesOfInitialConditions) {
  const std::string text = "[box]\nsize = \"50 Mpc/h\"\n[initial]\nparticles_per_side = 8\n";
  const Prepared run = prepare(parse_config(text, "t"), true, world);
  write_snapshot(dir / "shares.hdf5", run.initial, {}, {.deflate = 0}, {}, world);
  if (world.rank() == 0) {
    const Prepared alone = prepare(parse_config(text, "t"), true, Communicator::self());
    write_snapshot(dir / "alone.hdf5", alone.initial, {}, {.deflate = 0});
    EXPECT_EQ(test::text_of(dir / "shares.hdf5"), test::text_of(dir / "alone.hdf5"));
  }
  world.barrier();
  expect_same_run("[initial]\nkind = \"file\"\n", {"initial.file=" + (dir / "shares.hdf5")});
}

TEST_F(SetupRanks, TheBoxHoldsTheSetsOfAllRanks) {
  Snapshot share;  // only the first rank and the last hold anything
  if (world.rank() == 0) share.positions = {{-2.9, 0.5, 0}};
  if (world.rank() + 1 == world.size()) share.positions.push_back({1.9, -1, 0.1});
  const IsolatedBox box = isolated_box(share, world);
  EXPECT_EQ(box.side, 16);
  EXPECT_EQ(box.centre, (std::array<double, 3>{0, 0, 0}));
}

// Members of groups are found on whichever rank they are.

TEST_F(GroupMembers, AreFoundOnAllRanks) {
  Snapshot own;  // every rank's particles, some ranks without any
  for (std::uint64_t id = 1; id <= 2500000 && world.rank() % 3 != 2; ++id)
    if (id % static_cast<std::uint64_t>(world.size()) == static_cast<std::uint64_t>(world.rank()))
      own.ids.push_back(2500001 - id);
  own.positions.resize(own.ids.size());
  std::vector<std::uint64_t> members;  // in no order, shared out among the ranks
  const Share share = share_of(1250000, world.rank(), world.size());
  for (std::uint64_t i = share.first; i < share.end; ++i) members.push_back(i * 7919 % 1250000 * 2);
  const std::vector<bool> found = members_among(SnapshotSource(own), members, world);
  ASSERT_EQ(found.size(), own.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    ASSERT_EQ(found[i], own.ids[i] % 2 == 0 && own.ids[i] < 2500000) << own.ids[i];
}

}  // namespace
}  // namespace maki
