// Light cones of a run by its keys: files, restarts, refusals; and what healpy reads of them.
#include "tests/src/cli/program_fixture.hpp"
#include "tests/src/lightcone/cone_reader.hpp"

namespace maki {
namespace {

using namespace test;

constexpr const char* kConeUniverse = R"(
[run]
deterministic = true
progress = "none"
[box]
size = "400 Mpc/h"
[initial]
redshift = 1
particles_per_side = 16
[gravity]
reuse = 1
[time]
max_dlna = 0.02
[output]
power_spectrum = false
image = false
report = false
[lightcone]
observers = [0, 0, 0, 100, 200, 300]
directions = [0, 0, 1, 1, 1, 0]
opening_angle = 60
edges = [0, 0.1, 0.3]
nside = 8
)";

class LightConeOfARun : public Program {
 protected:
  Result run(const std::string& directory, const std::string& settings = "", const std::string& before = "") const {
    return call("run " + config_ + " " + settings + " run.output_directory=" + path(directory), before);
  }
  const std::string config_ = write("cone.toml", kConeUniverse);
};

// Runs one of the scripts in tests/src/lightcone.
Result with_python(const std::string& script, const std::string& argument) {
  return call_shell(python() + " " + source_directory() + "/tests/src/lightcone/" + script + " " + argument);
}

// Both observers, both shells.
void expect_same_cones(const std::string& a, const std::string& b) {
  for (const std::string cone : {"/lightcone_00", "/lightcone_01"}) {
    for (const std::string shell : {"000", "001"}) {
      const auto wanted = read_shell(a + cone + "/conesnap_" + shell + ".hdf5");
      EXPECT_GT(wanted.size(), 200u);
      EXPECT_EQ(read_shell(b + cone + "/conesnap_" + shell + ".hdf5"), wanted) << cone << shell;
      EXPECT_EQ(text_of(b + cone + "/map_" + shell + ".fits"), text_of(a + cone + "/map_" + shell + ".fits"));
    }
  }
}

TEST_F(LightConeOfARun, GoesOnWhereTheRunGoesOnAlsoOnMoreRanks) {
  expect_end(run("whole", "run.restart_steps=4 run.restarts_kept=100"), 0);
  expect_contains(text_of(path("whole/log.txt")), {"Light cone: wrote"});
  const std::vector<std::string> restarts = restarts_in(path("whole"));
  ASSERT_GT(restarts.size(), 4u);
  for (const std::size_t from : {std::size_t{0}, restarts.size() / 2, restarts.size() - 1}) {
    const std::string folder = path("cut" + std::to_string(from));
    fs::copy(path("whole"), folder, fs::copy_options::recursive);
    for (const char* cone : {"/lightcone_00", "/lightcone_01"})
      for (const auto& entry : fs::directory_iterator(folder + cone))
        if (entry.path().extension() == ".fits" && from == 0) fs::remove(entry.path());
    const std::string restart = folder + "/" + fs::path(restarts[from]).filename().string();
    expect_end(call("resume " + restart, from == 0 ? "" : "OMP_NUM_THREADS=1 " + launcher(2)), 0);
    expect_same_cones(path("whole"), folder);
  }
}

TEST_F(LightConeOfARun, GoesOnWhereTheNumberOfRanksChangesTwice) {
  expect_end(run("whole", "run.restarts_kept=100 run.restart_steps=8", "OMP_NUM_THREADS=1 " + launcher(4)), 0);
  const std::string moved = path("moved");
  fs::copy(path("whole"), moved, fs::copy_options::recursive);
  const auto go_on = [&](std::size_t from, int ranks) {
    expect_end(call("resume " + restarts_in(moved)[from], "OMP_NUM_THREADS=1 " + launcher(ranks)), 0);
  };
  go_on(restarts_in(moved).size() / 3, 3);
  go_on(restarts_in(moved).size() - 2, 2);
  expect_same_cones(path("whole"), moved);
}

TEST_F(LightConeOfARun, GoesOnFromTheRestartBeforeWhereASpoolIsDamaged) {
  const std::string first_run = path("run");
  expect_end(run("run", "run.restart_steps=4"), 0);
  as_killed_before_the_end("run");
  fs::copy(first_run, path("copy"), fs::copy_options::recursive);
  const std::vector<std::string> restarts = restarts_in(first_run);
  ASSERT_EQ(restarts.size(), 2u);
  fs::resize_file(first_run + "/lightcone_00/state_" + restarts[1].substr(restarts[1].size() - 6) + ".0.hdf5", 500);
  expect_end(call("resume " + first_run), 0);
  expect_same_cones(path("copy"), first_run);
  expect_contains(text_of(first_run + "/log.txt"), {"damaged", "the one before has to serve"});

  const std::string copy = path("copy");
  std::fstream first(copy + "/lightcone_01/conesnap_000.0.spool", std::ios::in | std::ios::out | std::ios::binary);
  first.put('x');
  first.close();
  fs::remove_all(restarts_in(copy).back());  // that of the end needs no spool
  expect_end(call("resume " + copy), 1,
             {"no restart is whole", "conesnap_000.0.spool' is damaged", "another checksum"});
}

TEST_F(LightConeOfARun, IsWholeAfterARunThatWasKilled) {
  expect_end(run("whole"), 0);
  const std::string killed = path("killed");
  // At the first restart and at what comes a few steps later, in the middle of whatever is being written.
  call_shell("{ " + program() + " run " + config_ + " run.restart_steps=3 run.output_directory=" + killed +
             " & pid=$!; " + "while kill -0 $pid 2>/dev/null && [ ! -e " + killed +
             "/restart_000009/complete.toml ]; do sleep 0.01; done; " + "kill -9 $pid; wait $pid; }");
  expect_end(call("resume " + killed), 0);
  expect_same_cones(path("whole"), killed);
}

// A map is larger than a file may be: first in the states of restarts, and at last by itself.
TEST_F(LightConeOfARun, WhoseStateCannotBeWrittenLeavesTheRunWithoutRestarts) {
  const Result result = expect_end(run("run",
                                       "run.restart_steps=4 lightcone.nside=128 lightcone.write_particles=false "
                                       "'lightcone.edges=[0, 0.3]' run.progress=text",
                                       "ulimit -S -f 1000; "),
                                   1, {"maki: error: cannot write '" + path("run/lightcone_00/map_000.fits")});
  const std::size_t told = times(result.output, "there is no restart of it: cannot write");
  EXPECT_GE(told, 2u) << result.output;
  EXPECT_LE(told, 4u) << "as often as a restart is due\n" << result.output;
  expect_words(result, {"The last one is " + path("run") + "/restart_"});
}

TEST_F(LightConeOfARun, LeavesOutWhatIsNotWanted) {
  expect_end(run("maps", "lightcone.write_particles=false 'lightcone.edges=[0.2, 0.3]' run.restart_steps=5"), 0);
  EXPECT_TRUE(fs::exists(path("maps/lightcone_01/map_000.fits")));
  EXPECT_FALSE(fs::exists(path("maps/lightcone_01/map_001.fits")));
  EXPECT_FALSE(fs::exists(path("maps/lightcone_01/conesnap_000.hdf5")));
  EXPECT_EQ(run("maps").code, 1) << "it holds a run";
  expect_end(call("resume " + path("maps") + " lightcone.nside=16"), 1,
             {"lightcone.nside = 16 would make another run"});
}

TEST_F(LightConeOfARun, IsNoBox) {
  expect_end(run("run", "'lightcone.directions=[1,1,1]' lightcone.opening_angle=20 'lightcone.edges=[0, 0.1]'"), 0);
  const std::string shell = path("run/lightcone_00/conesnap_000.hdf5");  // all of it within the box
  expect_end(call("power " + shell + " -o " + path("p.txt")), 1, {"is a shell of a light cone", "snapshot"});
  const Result info = expect_end(call("info " + shell), 0, {"a shell of a light cone: places from the observer"});
  expect_lacks(info.output, {"rho_crit"});
  const H5Id file = open_hdf5(shell), velocities = open_dataset(file, "PartType1/Velocities");
  EXPECT_EQ(read_text(velocities, "VarDescription"), "Peculiar velocities over the root of Ascale in units of U_V");
}

TEST_F(LightConeOfARun, IsInTheReport) {
  expect_end(run("run"), 0);
  ASSERT_EQ(call("report " + path("run")).code, 0);
  const std::string particles = std::to_string(read_shell(path("run/lightcone_01/conesnap_000.hdf5")).size());
  expect_contains(text_of(path("run/report.html")),
                  {"Light cones", "lightcone_01", "0.1 to 0.3", "NSIDE 8", ">" + particles + "<"});
  fs::remove(path("run/lightcone_00/conesnap_001.hdf5"));
  write("run/lightcone_01/map_000.fits", "no map");
  ASSERT_EQ(call("report " + path("run")).code, 0);
  expect_contains(text_of(path("run/report.html")), {"none written", "lightcone_01/map_000.fits"});
}

TEST_F(LightConeOfARun, WrongKeysAreRefused) {
  const auto refused = [&](const std::string& setting, const std::vector<std::string>& words) {
    expect_end(run("no", "'" + setting + "'"), 1, words);
  };
  refused("lightcone.observers=[1, 2]", {"lightcone.observers has 2 numbers", "three"});
  refused("lightcone.observers=[1, 2, 401]", {"401", "not in the box", "400"});
  refused("lightcone.observers=[]", {"no observer"});
  refused("lightcone.directions=[0, 0, 0]", {"no direction"});
  refused("lightcone.directions=[1, 0, 0, 1]", {"4 numbers", "2 observers"});
  refused("lightcone.edges=[0.1]", {"1 edges", "at least two"});
  refused("lightcone.edges=[]", {"0 edges", "at least two"});
  refused("lightcone.edges=[0.3, 0.1]", {"does not ascend"});
  refused("lightcone.edges=[0.3, 1.1]", {"0.3 to 1.1", "z = 1 to 0"});
  refused("lightcone.nside=12", {"nside = 12", "power of two"});
  refused("box.size=20 Mpc/h", {"lightcone.observers"});
  refused("lightcone.observers=[1,1,1]' 'lightcone.directions=[1,0,0]' 'lightcone.edges=[0,0.9]' 'box.size=20 Mpc/h",
          {"sides of the box away", "nearer edge"});
  EXPECT_FALSE(fs::exists(path("no/lightcone_00")));
}

TEST_F(LightConeOfARun, OpensInHealpy) {
  expect_end(run("sky", "lightcone.opening_angle=180 lightcone.nside=32"), 0);
  const Result opened = with_python("open_with_healpy.py", path("sky/lightcone_00"));
  if (opened.code == 77 || opened.code == 127) GTEST_SKIP() << opened.output;
  expect_end(opened, 0);
}

// The sky of eight observers against Limber's approximation with the run's own P(k), within 3 %
// (tests/src/lightcone/limber.py).
constexpr const char* kLinearUniverse = R"(
[run]
preset = "fast"
progress = "none"
[box]
size = "1200 Mpc/h"
[initial]
redshift = 9
particles_per_side = 128
fixed_amplitudes = true
[output]
redshifts = [0.4, 0.3, 0.2]
image = false
[time]
end_redshift = 0.1
[lightcone]
observers = [0, 0, 0, 600, 0, 0, 0, 600, 0, 0, 0, 600, 600, 600, 0, 600, 0, 600, 0, 600, 600, 600, 600, 600]
edges = [0.1, 0.4]
write_particles = false
nside = 256
)";

using FullLightCone = Program;

TEST_F(FullLightCone, HasLimbersSpectrum) {
  expect_end(call("run " + write("sky.toml", kLinearUniverse) + " run.output_directory=" + path("sky")), 0);
  const Result compared = with_python("limber.py", path("sky"));
  if (compared.code == 77 || compared.code == 127) GTEST_SKIP() << compared.output;
  expect_end(compared, 0);
  std::printf("%s", compared.output.c_str());
}

}  // namespace
}  // namespace maki
