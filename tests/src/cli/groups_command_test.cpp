// `maki groups`, as a user calls it.
#include <algorithm>
#include <random>

#include "src/io/snapshot_io.hpp"
#include "tests/src/cli/program_fixture.hpp"
#include "tests/src/io/io_helpers.hpp"

namespace {

using namespace maki;
using namespace maki::test;

// Three clumps of 400, 200 and 40 particles, one across the border, and 3456 in the field: 4096.
Snapshot clumps() {
  Snapshot s = make_snapshot(4096);
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> u(0, 50);
  for (std::size_t i = 0; i < s.size(); ++i) {
    const double centre = i < 400 ? 0 : i < 600 ? 20 : 35;
    for (double& x : s.positions[i]) {
      x = i < 640 ? centre + 0.12 * normal(random) : u(random);
      x -= 50 * std::floor(x / 50);
    }
  }
  return s;
}

class GroupsCommand : public Program {
 protected:
  GroupsCommand() { write_snapshot(path("snapshot_007.hdf5"), clumps(), make_provenance()); }
};

std::vector<double> lengths_in(const std::string& path) { return numbers_in(path, "Group/GroupLen"); }

// Linking lengths are in mean distances of all particles, and forces and masses of spheres are of all.
TEST_F(GroupsCommand, APartOfARunIsRefused) {
  const std::string run = tiny() + " output.subset=0.5 output.image=false";
  ASSERT_EQ(call("run " + run + " run.output_directory=" + path("run")).code, 0);
  const std::string part = path("run/snapshot_001.hdf5");
  expect_end(call("groups " + part), 1,
             {"groups cannot be found in", "of the 4096 particles of its run", "has all particles"});
  expect_end(call("forces " + part + " -o " + path("f.hdf5")), 1, {"no forces of the run", "has all particles"});
  EXPECT_FALSE(fs::exists(path("run/groups_001.hdf5")));
  EXPECT_EQ(call("power " + part + " -o " + path("p.txt")).code, 0) << "of a part is a measure too";
}

TEST_F(GroupsCommand, AColourScaleUpsideDownIsRefused) {
  expect_end(call("image " + path("snapshot_007.hdf5") + " -o " + path("i.png") + " --low 5 --high 1"), 1,
             {"--low 5 is not below --high 1"});
  EXPECT_FALSE(fs::exists(path("i.png")));
}

TEST_F(GroupsCommand, WritesACatalogueBesideTheSnapshot) {
  expect_end(call("groups " + path("snapshot_007.hdf5")), 0,
             {"groups of 32 particles or more hold", "of 4096", "wrote " + path("groups_007.hdf5"),
              "wrote " + path("groups_007_mass_function.txt"), "--config"});
  const std::vector<double> lengths = lengths_in(path("groups_007.hdf5"));
  ASSERT_EQ(lengths.size(), 3u);
  EXPECT_NEAR(lengths[0], 400, 8);
  EXPECT_NEAR(lengths[1], 200, 8);
  EXPECT_NEAR(lengths[2], 40, 4);
  expect_contains(text_of(path("groups_007_mass_function.txt")), {"# Groups 3", "spectrum is not known"});

  expect_end(call("groups " + path("snapshot_007.hdf5")), 1, {"groups_007.hdf5' exists", "--overwrite"});
  expect_end(call("groups " + path("snapshot_007.hdf5") + " --overwrite --minimum 100"), 0);
  EXPECT_EQ(lengths_in(path("groups_007.hdf5")).size(), 2u);
}

TEST_F(GroupsCommand, TakesTheSpectrumOfAConfigurationAndItsOutputs) {
  const std::string config = write("c.toml", kTinyUniverse);
  const std::string line = "groups " + path("snapshot_007.hdf5") + " --linking-length 0.03 -o " + path("short.hdf5");
  const Result result = expect_end(call(line + " --config " + config), 0);
  expect_lacks(result.output, {"--config"});
  expect_contains(text_of(path("short_mass_function.txt")),
                  {"# LinkingLength 0.03", "Tinker et al. 2008, from the linear power spectrum"});
  EXPECT_LT(lengths_in(path("short.hdf5")).at(0), 400);
}

// A snapshot of Maki's own initial conditions holds the configuration that made them. Before anything collapses there
// is no group, and the files say so.
TEST_F(GroupsCommand, KnowsTheSpectrumOfItsOwnInitialConditions) {
  const std::string config = write("c.toml", kTinyUniverse);
  ASSERT_EQ(call("ic " + config + " -o " + path("ic.hdf5")).code, 0);
  expect_end(call("groups " + path("ic.hdf5")), 0, {"0 groups of 32 particles or more hold 0 of 4096"});
  EXPECT_TRUE(lengths_in(path("groups_ic.hdf5")).empty());
  expect_contains(text_of(path("groups_ic_mass_function.txt")), {"# Groups 0", "from the linear power spectrum"});
}

// Light particles lie closer than the mean distance: the program says which linking length fits them.
TEST_F(GroupsCommand, TellsOfALinkingLengthForLightParticles) {
  Snapshot zoom = clumps();
  for (std::size_t i = 0; i < zoom.size(); ++i) zoom.masses[i] *= i < 2048 ? 2.0f / 65 : 2 * 64.0f / 65;
  write_snapshot(path("zoom.hdf5"), zoom, make_provenance());
  expect_end(call("groups " + path("zoom.hdf5")), 0, {"masses differ", "--linking-length 0.063'"});
  const std::string equal = call("groups " + path("snapshot_007.hdf5")).output;
  expect_lacks(equal, {"masses differ"});
}

// The expectation is nice to have, unless it was asked for: then it is looked for before anything is done.
TEST_F(GroupsCommand, GoesOnWithoutASpectrumThatIsElsewhere) {
  Provenance provenance = make_provenance();
  provenance.configuration = "[cosmology]\ntransfer = \"table\"\ntransfer_table = \"gone.txt\"\n";
  write_snapshot(path("table.hdf5"), clumps(), provenance);
  expect_end(call("groups " + path("table.hdf5")), 0, {"gone.txt", "no Tinker08", "--config"});
  expect_contains(text_of(path("groups_table_mass_function.txt")), {"# Groups 3", "spectrum is not known"});
  const std::string sphere = write("sphere.toml", "[run]\nkind = \"isolated\"\n");
  for (const std::string& config : {path("gone.toml"), sphere}) {
    expect_end(call("groups " + path("snapshot_007.hdf5") + " --config " + config), 1, {config});
    EXPECT_FALSE(fs::exists(path("groups_007.hdf5")));
  }
}

// The same groups as in the snapshot of that output. Files in SWIFT's layout have no h: the catalogue lies in the box of
// its snapshot.
TEST_F(GroupsCommand, AreFoundAtTheOutputsOfARunInTheUnitsOfItsSnapshots) {
  const std::string config =
      write("c.toml", "[gravity]\nsoftening = \"100 kpc/h\"\n[output]\ngroups = true\nimage = false\n");
  expect_end(call("run " + config + " initial.kind=file initial.file=" + path("snapshot_007.hdf5") +
                  " output.layout=swift output_directory=" + path("run") +
                  " output.redshifts=[3] time.end_redshift=2.99"),
             0, {"groups of 32 particles or more hold", "of 4096"});
  const std::string snapshot = path("run/snapshot_000.hdf5"), groups = path("run/groups_000.hdf5");
  const std::vector<double> places = numbers_in(snapshot, "PartType1/Coordinates"),
                            ids = numbers_in(snapshot, "PartType1/ParticleIDs"),
                            deepest = numbers_in(groups, "Group/GroupIDDeepest"),
                            centres = numbers_in(groups, "Group/GroupPos");
  ASSERT_EQ(deepest.size(), 3u);
  for (std::size_t g = 0; g < 3; ++g) {
    const auto i = static_cast<std::size_t>(std::find(ids.begin(), ids.end(), deepest[g]) - ids.begin());
    for (std::size_t axis = 0; axis < 3; ++axis)
      EXPECT_NEAR(centres.at(3 * g + axis), places.at(3 * i + axis), 1e-5) << g;
  }
  ASSERT_EQ(call("groups " + snapshot + " -o " + path("later.hdf5")).code, 0);
  EXPECT_EQ(lengths_in(groups), lengths_in(path("later.hdf5")));
  EXPECT_TRUE(fs::exists(path("run/groups_001_mass_function.txt")));
  for (const char* column : {"GroupMass", "GroupPos", "GroupCM", "GroupCMOffset", "GroupVel", "GroupVelDisp",
                             "Group_M_Mean200", "Group_R_Crit200", "GroupVmax", "GroupVmaxRad", "GroupSpin"}) {
    const std::string name = std::string("Group/") + column;
    const std::vector<double> here = numbers_in(groups, name), there = numbers_in(path("later.hdf5"), name);
    ASSERT_EQ(here.size(), there.size());
    for (std::size_t i = 0; i < here.size(); ++i)
      EXPECT_NEAR(here[i], there[i], 2e-4 * std::abs(there[i]) + 1e-4) << name << " " << i;
  }
  expect_contains(call("info " + groups).output, {"73."});  // 50 Mpc/h
  // Catalogues of one box in different units are linked.
  ASSERT_EQ(call("groups " + path("run/snapshot_001.hdf5") + " -o " + path("end.hdf5")).code, 0);
  expect_end(call("links " + groups + " " + path("end.hdf5")), 0, {"3 of 3 groups at z = 3 live on in 3 of 3"});
  ASSERT_EQ(call("groups " + path("snapshot_007.hdf5") + " -o " + path("start.hdf5")).code, 0);
  expect_end(call("links " + path("start.hdf5") + " " + path("end.hdf5") + " --overwrite"), 0, {"3 of 3"});
}

TEST_F(GroupsCommand, SaysWhatIsWrong) {
  const std::string snapshot = path("snapshot_007.hdf5");
  expect_words(call("groups " + path("missing.hdf5")), {"maki: error: ", "missing.hdf5", "no such file"});
  expect_words(call("groups " + snapshot + " --linking-length 9"),
               {"maki: error: ", "linking length", "below half the box"});
  EXPECT_EQ(call("groups " + snapshot + " --linking-length 0").code, 2);
  EXPECT_EQ(call("groups " + snapshot + " --minimum 0").code, 2);
  EXPECT_EQ(call("groups").code, 2);
  expect_words(call("groups " + snapshot + " -o " + path("no/g.hdf5")), {"maki: error: cannot write", "no/g.hdf5"});
  Snapshot isolated = make_snapshot(100);
  isolated.header.comoving = false;
  isolated.header.time = isolated.header.redshift = 0;
  write_snapshot(path("isolated.hdf5"), isolated, make_provenance());
  const Result refused = call("groups " + path("isolated.hdf5"));
  expect_end(refused, 1, {"isolated set", "mean distances of a periodic box"});
  EXPECT_EQ(refused.output.find("Tinker08"), std::string::npos) << refused.output;
  EXPECT_FALSE(fs::exists(path("groups_007.hdf5")) || fs::exists(path("groups_isolated.hdf5")));
}

// The columns and members are the same; files differ in what they say of the device.
TEST_F(GroupsCommand, IsTheSameOverRanks) {
  const std::string line = "groups " + path("snapshot_007.hdf5") + " -o ";
  ASSERT_EQ(call(line + path("one.hdf5")).code, 0);
  expect_end(call(line + path("ranks.hdf5"), "OMP_NUM_THREADS=1 timeout -k 5 300 " + launcher(3)), 0);
  for (const char* column : {"Group/GroupPos", "Group/GroupVel", "Group/GroupSpin", "Group/GroupVmax",
                             "Group/Group_M_TopHat200", "Group/Group_R_Mean200", "Group/GroupCMOffset", "IDs/ID"})
    EXPECT_TRUE(numbers_in(path("one.hdf5"), column) == numbers_in(path("ranks.hdf5"), column)) << column;
}

// Snapshots of the members of groups alone hold all of them.
TEST_F(GroupsCommand, ARunOverRanksKeepsAllMembers) {
  const std::string config = write("clumps.toml", R"(
[run]
name = "clumps"
[initial]
kind = "file"
file = ")" + path("snapshot_007.hdf5") + R"("
[time]
end_redshift = 2.9999
[output]
groups = true
groups_only = true
image = false
power_spectrum = false
)");
  std::vector<double> members[2];
  for (const int ranks : {1, 3}) {
    const std::string run = path("run" + std::to_string(ranks));
    expect_end(call("run " + config + " run.output_directory=" + run,
                    "OMP_NUM_THREADS=1 timeout -k 5 300 " + (ranks > 1 ? launcher(ranks) : "")),
               0);
    std::vector<double>& found = members[ranks / 3];
    found = numbers_in(run + "/snapshot_000.hdf5", "PartType1/ParticleIDs");
    std::ranges::sort(found);
    EXPECT_EQ(found.size(), numbers_in(run + "/groups_000.hdf5", "IDs/ID").size());
  }
  EXPECT_GT(members[0].size(), 600u);
  EXPECT_TRUE(members[0] == members[1]);
}

}  // namespace
