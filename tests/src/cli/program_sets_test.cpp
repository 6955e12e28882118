// The program on sets of few particles and on those that other codes write: forces, warnings, energies.
#include <cmath>
#include <string>
#include <vector>

#include "src/io/snapshot_io.hpp"
#include "tests/src/cli/program_fixture.hpp"
#include "tests/src/io/io_helpers.hpp"

namespace {

using namespace maki;
using namespace maki::test;

// rms of the difference over rms of what is expected.
double relative_difference(const std::string& file, const std::string& of, const std::string& name) {
  const auto found = read_extra_dataset(file, name), expected = read_extra_dataset(of, name);
  EXPECT_EQ(found.size(), expected.size());
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference += (found[i] - expected[i]) * (found[i] - expected[i]);
    size += expected[i] * expected[i];
  }
  EXPECT_GT(size, 0);
  return std::sqrt(difference / size);
}

TEST_F(Program, ForcesOfTheTreeAndOfThePairsAgree) {
  const std::string config = write("plummer.toml", R"(
[run]
kind = "isolated"
[initial]
kind = "plummer"
particles = 500
truncation_radius = 5
[gravity]
softening = 0.02
)");
  ASSERT_EQ(call("ic " + config + " -o " + path("ic.hdf5")).code, 0);
  ASSERT_EQ(call("forces " + path("ic.hdf5") + " -o " + path("a.hdf5") + " softening=0.02 theta=0.2").code, 0);
  ASSERT_EQ(call("forces " + path("ic.hdf5") + " -o " + path("b.hdf5") + " softening=0.02 --direct").code, 0);
  EXPECT_LT(relative_difference(path("a.hdf5"), path("b.hdf5"), "Acceleration"), 1e-3);
  EXPECT_EQ(call("forces " + path("ic.hdf5") + " -o " + path("c.hdf5")).code, 1);  // no softening
}

// What other codes write: two particles at one place, and positions outside of the box. Said by all that reads them.
TEST_F(Program, SetsThatNeedRepairRun) {
  Snapshot set = make_snapshot(512);
  set.positions[300] = set.positions[301] = set.positions[12];
  set.positions[5][0] = -1e-6;
  set.positions[77][2] = -2.5;
  write_snapshot(path("set.hdf5"), set, {}, {});
  const std::vector<std::string> warnings = {"Warning: 2 particles outside of the box of 50", "by up to 2.5",
                                             "Warning: 3 particles share their point with others"};
  const std::string run = "run " + write("set.toml", "[initial]\nkind = \"file\"\n") +
                          " initial.file=" + path("set.hdf5") + " output_directory=" + path("out");
  expect_end(call(run + " end_redshift=2 output.image=false"), 0, warnings);
  expect_end(call("power " + path("set.hdf5") + " -o " + path("power.txt")), 0, warnings);
  expect_end(call("forces " + path("set.hdf5") + " -o " + path("a.hdf5") + " preset=precise"), 0, warnings);
  ASSERT_EQ(call("forces " + path("set.hdf5") + " -o " + path("b.hdf5") + " preset=precise --ewald").code, 0);
  for (const std::string name : {"Acceleration", "Potential"})
    EXPECT_LT(relative_difference(path("a.hdf5"), path("b.hdf5"), name), 0.01) << name;
}

// A leaf cannot divide them, nor does a list or a group depend on their number.
TEST_F(Program, ManyParticlesAtOnePlaceRun) {
  Snapshot set = make_snapshot(3000);
  set.header = {};
  set.header.comoving = false;
  set.header.time = 0;
  for (std::size_t i = 1000; i < 2000; ++i) set.positions[i] = set.positions[1000];
  write_snapshot(path("set.hdf5"), set, {}, {});
  const std::string one_place = "Warning: 1000 particles share their point with others";
  const std::string settings = " softening=0.5 theta=0.2";
  expect_end(call("forces " + path("set.hdf5") + " -o " + path("a.hdf5") + settings), 0, {one_place});
  ASSERT_EQ(call("forces " + path("set.hdf5") + " -o " + path("b.hdf5") + settings + " --direct").code, 0);
  ASSERT_EQ(call("forces " + path("set.hdf5") + " -o " + path("c.hdf5") + settings + " gravity.method=direct").code, 0);
  for (const std::string name : {"Acceleration", "Potential"}) {
    EXPECT_LT(relative_difference(path("a.hdf5"), path("b.hdf5"), name), 1e-3) << name;
    EXPECT_LT(relative_difference(path("c.hdf5"), path("b.hdf5"), name), 1e-4) << name;
  }
  expect_end(call("run " + write("set.toml", "[run]\nkind = \"isolated\"\n[initial]\nkind = \"file\"\n") +
                  " initial.file=" + path("set.hdf5") + " output_directory=" + path("out") +
                  " softening=0.5 end_time=0.001 output.image=false"),
             0, {one_place});
}

// Passages of single pairs, which hold a good part of the energy of 64 particles and none of that of many.
TEST_F(Program, AFewParticlesKeepTheirEnergy) {
  const std::string run = "run " + write("few.toml", "[initial]\nparticles_per_side = 4\n") +
                          " output_directory=" + path("few") +
                          " run.overwrite=true output.image=false output.power_spectrum=false ";
  for (const std::string set : {"box.size=50 seed=1", "box.size=5 seed=1", "box.size=5 seed=5"}) {
    const Result result = call(run + set);
    const std::string words = "Largest energy error ";
    const std::size_t at = result.output.find(words);
    ASSERT_NE(at, std::string::npos) << result.output;
    EXPECT_LT(std::stod(result.output.substr(at + words.size())), 0.01) << set;
    EXPECT_EQ(result.output.find("Warning"), std::string::npos) << result.output;
  }
  expect_words(call(run + "box.size=50 eta=0.4 end_redshift=48"),
               {"Warning: time.eta = 0.4 is long for 64 particles", "33 %", "leave time.eta out"});
}

}  // namespace
