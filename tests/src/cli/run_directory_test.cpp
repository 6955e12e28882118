// A run in the directory of an earlier one; restarts that lie where they do not belong, of which a bit has flipped or
// the end is missing.
#include "src/io/run_directory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "src/io/snapshot_io.hpp"
#include "src/simulation/step_log.hpp"
#include "tests/small_disk.hpp"
#include "tests/src/cli/program_fixture.hpp"
#include "tests/src/io/io_helpers.hpp"

namespace maki::test {
namespace {

class RunDirectory : public Program {
 protected:
  // Into the folder `name`: with a restart every second step, or stopped after the first long one.
  Result run(const std::string& name, const std::string& settings) const {
    return call("run " + tiny() + " output_directory=" + path(name) + " gravity.reuse=1 output.image=false " +
                settings);
  }
  // Names of its restarts.
  std::vector<std::string> restarts(const std::string& name) const {
    std::vector<std::string> names;
    for (const fs::path restart : restarts_in(path(name))) names.push_back(restart.filename());
    return names;
  }
  const std::string whole_ = "restart_steps=2 ", stopped_ = "time_limit=\"0.001 s\" ";
};

TEST_F(RunDirectory, NamesOfARunAreKnown) {
  for (const char* name : {"log.txt", "metrics.jsonl", "snapshot_003.hdf5", "snapshot_1000.2.hdf5", "stopped.hdf5",
                           "stopped.0.hdf5", "power_003.txt", "image_012.png", "restart_000100", "sites_report.txt",
                           "groups_003.hdf5", "groups_003_mass_function.txt", "links_003.hdf5", "film_00012.png",
                           "report.html", ".snapshot_003.hdf5.123.0.partial"})
    EXPECT_TRUE(is_of_a_run(name)) << name;
  for (const char* name : {"notes.txt", "snapshot_003.hdf5.bak", "my_snapshot_003.hdf5", "restart_old", "done",
                           ".notes.txt.123.0.partial", "slurm-123.out", "power.txt"})
    EXPECT_FALSE(is_of_a_run(name)) << name;
}

TEST_F(RunDirectory, TheCommandThatGoesOnIsForAShell) {
  EXPECT_EQ(resume_command("output/a-1"), "maki resume output/a-1");
  EXPECT_EQ(resume_command("a b's"), "maki resume 'a b'\\''s'");
  EXPECT_EQ(resume_command("a b", "tokyo"), "maki resume 'a b' --site tokyo");
}

TEST_F(RunDirectory, OverwritingLeavesNothingOfTheEarlierRun) {
  expect_end(run("one", whole_ + "initial.seed=1"), 0);
  write("one/notes.txt", "mine");
  const std::vector<std::string> earlier = restarts("one");
  ASSERT_FALSE(earlier.empty());
  expect_end(run("one", stopped_ + "initial.seed=2 overwrite=true"), 3, {"stopped.hdf5", "maki resume " + path("one")});
  ASSERT_EQ(restarts("one").size(), 1u);
  EXPECT_LT(restarts("one").back(), earlier.back());
  EXPECT_FALSE(fs::exists(path("one/snapshot_002.hdf5")));
  EXPECT_TRUE(fs::exists(path("one/notes.txt")));

  ASSERT_EQ(call("resume " + path("one") + " time_limit=\"1 h\"").code, 0);
  ASSERT_EQ(run("two", "initial.seed=2").code, 0);
  const Snapshot resumed = read_snapshot(path("one/snapshot_002.hdf5")),
                 whole = read_snapshot(path("two/snapshot_002.hdf5"));
  ASSERT_EQ(resumed.size(), whole.size());
  for (std::size_t i = 0; i < whole.size(); ++i)
    for (std::size_t axis = 0; axis < 3; ++axis)  // transforms may be planned in other roundings
      ASSERT_NEAR(resumed.positions[i][axis], whole.positions[i][axis], 1e-4);
}

TEST_F(RunDirectory, ARunThatIsRefusedLeavesTheEarlierOneAlone) {
  ASSERT_EQ(run("one", whole_).code, 0);
  const std::vector<std::string> before = files_of_a_run(path("one"));
  EXPECT_EQ(run("one", "").code, 1);
  EXPECT_EQ(run("one", "overwrite=true end_redshift=60").code, 1);
  EXPECT_EQ(run("one", "overwrite=true softening=1e-6").code, 1);
  EXPECT_EQ(files_of_a_run(path("one")), before);
}

TEST_F(RunDirectory, TheFileThatARunBeginsWithIsNotRemoved) {
  ASSERT_EQ(run("one", stopped_).code, 3);
  fs::create_symlink(path("one/stopped.hdf5"), path("link.hdf5"));
  const std::string begin = "overwrite=true initial.kind=file initial.file=";
  expect_end(run("one", begin + path("one/stopped.hdf5")), 1,
             {"stopped.hdf5' would be removed", "run.output_directory"});
  expect_end(run("one", begin + path("link.hdf5")), 1, {"would be removed"});
  EXPECT_TRUE(fs::exists(path("one/stopped.hdf5")));
}

TEST_F(RunDirectory, ARunGoesOnWhereItsRestartsAre) {
  ASSERT_EQ(run("one", whole_).code, 0);
  expect_end(call("resume " + path("one") + " output_directory=" + path("two")), 1,
             {"run.output_directory", "is not where the run is", path("one")});
  EXPECT_FALSE(fs::exists(path("two")));
  expect_end(call("resume " + path("one") + " run.output_directory=" + path("one/../one/")), 0);
  const std::vector<std::string> before = files_of_a_run(path("one"));
  for (const Result& ended : {run("one", "--resume"), call("resume " + path("one")), run("one/", "--resume"),
                              call("resume " + path("one/")), call("resume " + path("one/./"))})
    expect_end(ended, 0, {"has come to its end", "a later end"});
  EXPECT_EQ(files_of_a_run(path("one")), before);
  EXPECT_EQ(run("one", "end_redshift=39.9 --resume").code, 0) << "the directory is among its settings";
  expect_end(call_shell("cd " + path("one") + " && " + program() + " resume " + restarts("one").back()), 0);
}

TEST_F(RunDirectory, ARunTellsWhatItDoesNotTakeOverFromAFileThatHasChanged) {
  expect_end(run("one", stopped_ + "gravity.theta=0.7"), 3);
  std::string file = kTinyUniverse;
  file.insert(file.find("softening"), "theta = 0.5\nreuse = 1\n");
  const Result more = call("run " + write("changed.toml", file) + " output_directory=" + path("one") +
                           " output.image=false time_limit=auto --resume");
  expect_end(more, 0, {"gravity.theta = 0.7, not 0.5. What", "behind the file as key=value", "Resumed from"});
  expect_lacks(more.output, {"output.image"});
}

// What Maki chooses is what it chose for the run, not a default; a file may be named by another path.
TEST_F(RunDirectory, AutomaticSettingsOfAResumedRunAreThoseOfTheRun) {
  ASSERT_EQ(run("one", whole_ + " cosmology.omega0=0.25 cosmology.hubble_param=0.73").code, 0);
  const std::string given = " end_redshift=39 cosmology.omega0=auto cosmology.hubble_param=auto box.size=auto";
  ASSERT_EQ(call("resume " + path("one") + given).code, 0);
  const SnapshotHeader header = read_snapshot(path("one/snapshot_001.hdf5")).header;
  EXPECT_EQ(header.omega0, 0.25);
  EXPECT_EQ(header.hubble, 0.73);
}

// A run that was killed when it had removed the restarts of the one before, and no more.
TEST_F(RunDirectory, ARunKilledAsItBeganAnewBegins) {
  ASSERT_EQ(run("one", whole_ + " restart_steps=2 restarts_kept=1").code, 0);
  for (const std::string& restart : restarts_in(path("one"))) fs::remove_all(restart);
  std::ofstream(path("one/metrics.jsonl"), std::ios::app) << "{\"restart\": 4}\n";
  expect_end(run("one", "overwrite=true --resume"), 1, {"restarts", "are gone"});
  note_overwriting(path("one"));
  // Where the run went on all the same, what it lost later is lost.
  const std::string metrics = text_of(path("one/metrics.jsonl"));
  std::ofstream(path("one/metrics.jsonl"), std::ios::app)
      << metrics.substr(0, metrics.find('\n') + 1) << "{\"restart\": 6}\n";
  expect_end(run("one", "overwrite=true --resume"), 1, {"restarts", "are gone"});
  note_overwriting(path("one"));
  write("one/stopped.hdf5", "");
  expect_end(run("one", "overwrite=true --resume"), 0, {"z = 49 to"});
  EXPECT_FALSE(fs::exists(path("one/stopped.hdf5")));
}

// metrics.jsonl, which tells of the overwriting, is the last file that goes.
TEST_F(RunDirectory, OverwritingRemovesTheRecordsLast) {
  {
    const SmallDisk disk(path("one/stopped.hdf5"));
    if (!disk) GTEST_SKIP() << "what cannot be removed is made by a mount, which needs root";
    for (const char* name : {"log.txt", "metrics.jsonl", "snapshot_000.hdf5"}) write(std::string("one/") + name, "");
    EXPECT_THROW(remove_files_of_a_run(path("one")), Error);
    EXPECT_TRUE(fs::exists(path("one/metrics.jsonl")));
    EXPECT_FALSE(fs::exists(path("one/snapshot_000.hdf5")));
  }
  EXPECT_NO_THROW(remove_files_of_a_run(path("one")));
  EXPECT_FALSE(fs::exists(path("one/metrics.jsonl")));
}

// Nor does a list that leaves out what has been written.
TEST_F(RunDirectory, ALaterEndTakesTheNumberOfNoOutput) {
  ASSERT_EQ(run("one", whole_ + "end_redshift=41 output.redshifts=[45]").code, 0);
  ASSERT_EQ(run("one", "end_redshift=39.9 output.redshifts=[45] --resume").code, 0);
  expect_end(run("one", "end_redshift=39.9 output.redshifts=[45] --resume"), 0, {"has come to its end"});
  ASSERT_EQ(call("resume " + path("one") + " end_redshift=39 output.redshifts=[45,39.5]").code, 0);
  ASSERT_EQ(call("resume " + path("one") + " end_redshift=38.5 output.redshifts=[38.7]").code, 0);
  int number = 0;
  for (const double z : {45.0, 41.0, 39.9, 39.5, 39.0, 38.7, 38.5})
    EXPECT_NEAR(read_snapshot(path(fmt::format("one/snapshot_{:03}.hdf5", number++))).header.redshift, z, 1e-6);
}

// Also what was the end of the run before; those that are asked for are refused.
TEST_F(RunDirectory, OutputsAfterAnEarlierEndAreLeftOut) {
  ASSERT_EQ(run("one", "restart_steps=1 restarts_kept=9 output.redshifts=[49,41]").code, 0);
  const std::string earlier = "resume " + path("one/" + restarts("one").front()) + " end_redshift=42";
  expect_end(call(earlier + " output.redshifts=[49,41.5]"), 1, {"output.redshifts holds 41.5"});
  expect_end(call(earlier), 0, {"its outputs after the new end are left out, output.redshifts = [41"});
}

// Such as a run that is shorter than run.restart_interval.
TEST_F(RunDirectory, ARunWithoutOtherRestartsGoesOnToALaterEnd) {
  ASSERT_EQ(run("one", "").code, 0);
  ASSERT_EQ(restarts("one").size(), 1u);
  expect_end(call("resume " + path("one") + " end_redshift=39"), 0,
             {"Resumed from " + restarts_in(path("one")).front()});
  ASSERT_EQ(restarts("one").size(), 2u);
  expect_end(call("resume " + path("one")), 0,
             {"nothing is to be done", restarts("one").front() + " makes what follows"});
}

TEST_F(RunDirectory, ALaterEndWithoutARestartIsRefused) {
  ASSERT_EQ(run("one", "restarts_kept=0").code, 0);
  EXPECT_TRUE(restarts("one").empty());
  for (const char* way : {"run", "resume"}) {
    const auto again = [&](const std::string& settings) {
      return way == std::string("run") ? run("one", settings + " --resume") : call("resume " + path("one") + settings);
    };
    expect_end(again(""), 0, {"has come to its end"});
    expect_end(again(" end_redshift=39"), 1, {"cannot go on", "initial.file=" + path("one/snapshot_002.hdf5")});
  }
}

TEST_F(RunDirectory, ARunWhoseRestartsAreGoneIsNotBegunAnewUnasked) {
  ASSERT_EQ(run("one", stopped_).code, 3);
  for (const std::string& restart : restarts_in(path("one"))) fs::remove_all(restart);
  expect_end(run("one", "overwrite=true --resume"), 1, {"a stopped run without a restart"});
  fs::remove(path("one/stopped.hdf5"));
  expect_end(run("one", "overwrite=true --resume"), 1, {"restarts of the run in", "are gone"});
  EXPECT_EQ(run("one", "overwrite=true").code, 0);
}

// A picture, for example, for which the disk has no room.
TEST_F(RunDirectory, ARunGoesOnWithoutAProductThatCannotBeWritten) {
  ASSERT_EQ(run("one", stopped_ + "output.power_spectrum=true").code, 3);
  fs::create_directories(path("one/power_002.txt"));
  expect_end(call("resume " + path("one") + " time_limit=\"1 h\""), 0, {"power_002.txt", "goes on without it"});
}

TEST_F(RunDirectory, SettingsThatAreRefusedLeaveLaterRestarts) {
  ASSERT_EQ(run("one", "restart_steps=1").code, 0);
  const std::vector<std::string> before = restarts("one");
  ASSERT_EQ(before.size(), 2u);
  expect_end(call("resume " + path("one/" + before.front()) + " output.redshifts=[48.9,41]"), 1,
             {"the outputs before the restart are no longer what they were",
              "holds 48.9, and the run so far has [49.0"});
  EXPECT_EQ(restarts("one"), before);
}

TEST_F(RunDirectory, ARunThatGoesOnRemovesWhatALostOneHadBegun) {
  ASSERT_EQ(run("one", stopped_).code, 3);
  fs::create_directory(path("one/lightcone_00"));
  for (const char* name : {"one/.snapshot_001.hdf5.12.0.partial", "one/lightcone_00/.state_000001.0.hdf5.12.0.partial",
                           "one/.notes.txt.12.0.partial", "one/lightcone_00/map_000.fits"})
    write(name, "half");
  ASSERT_EQ(call("resume " + path("one") + " time_limit=\"1 h\"").code, 0);
  EXPECT_FALSE(fs::exists(path("one/.snapshot_001.hdf5.12.0.partial")));
  EXPECT_FALSE(fs::exists(path("one/lightcone_00/.state_000001.0.hdf5.12.0.partial")));
  EXPECT_TRUE(fs::exists(path("one/.notes.txt.12.0.partial")));
  EXPECT_TRUE(fs::exists(path("one/lightcone_00/map_000.fits")));
}

TEST_F(RunDirectory, TheLogTellsOfTheErrorThatEndsARun) {
  ASSERT_EQ(run("one", stopped_).code, 3);
  fs::create_directory(path("one/snapshot_002.hdf5"));
  expect_end(call("resume " + path("one") + " time_limit=\"1 h\""), 1,
             {"maki: error: cannot write", "To continue: maki resume " + path("one")});
  expect_contains(text_of(path("one/log.txt")),
                  {"The run ends by an error: cannot write '" + path("one/snapshot_002.hdf5") + "' (it is a directory)",
                   "To continue: maki resume " + path("one")});
  expect_end(call("watch " + path("one")), 1,
             {"Ended by an error at z", "(it is a directory)", "To go on: maki resume"});
}

// TOML is UTF-8: the configuration in a restart could not be read again.
TEST_F(RunDirectory, NamesThatAreNotUtf8AreRefusedBeforeTheRun) {
  expect_end(run("caf\xe9", ""), 1, {"is not UTF-8", "another name"});
  EXPECT_FALSE(fs::exists(path("caf\xe9")));
  ASSERT_EQ(run("caf\xc3\xa9", whole_).code, 0);
  fs::rename(path("caf\xc3\xa9"), path("caf\xe9"));
  expect_end(call("resume " + path("caf\xe9")), 1, {"is not UTF-8", "give the directory another name"});
}

TEST_F(RunDirectory, ARunThatWasStoppedAndThenEndedHasEnded) {
  ASSERT_EQ(run("one", stopped_).code, 3);
  ASSERT_EQ(call("resume " + path("one") + " time_limit=\"1 h\"").code, 0);
  for (const std::string& restart : restarts_in(path("one"))) fs::remove_all(restart);
  expect_end(run("one", "--resume"), 0, {"has come to its end"});
}

TEST_F(RunDirectory, TheRestartOfAnotherRunIsRefused) {
  ASSERT_EQ(run("one", whole_ + "initial.seed=1").code, 0);
  ASSERT_EQ(run("two", stopped_ + "initial.seed=2").code, 3);
  const std::string other = restarts("one").front(), foreign = path("two/" + other);
  const std::string stopped = restarts("two").front();
  const auto bring = [&](const std::string& to) {
    fs::create_directories(fs::path(to).parent_path());
    fs::copy(path("one/" + other), to, fs::copy_options::recursive);
  };
  bring(foreign);
  expect_end(call("resume " + foreign), 1, {other, "is a restart of another run"});
  expect_end(call("resume " + path("two") + " time_limit=\"1 h\""), 0, {"Resumed from " + path("two/" + stopped)});
  EXPECT_FALSE(fs::exists(foreign));

  bring(path("alone/" + other));
  EXPECT_EQ(call("resume " + path("alone")).code, 0);
  ASSERT_EQ(run("three", stopped_ + "initial.seed=3").code, 3);
  bring(path("three/" + other));
  fs::remove(path("three/metrics.jsonl"));
  expect_end(call("resume " + path("three")), 1, {"restarts of several runs", "metrics.jsonl"});
}

// As logrotate's copytruncate leaves it.
TEST_F(RunDirectory, ARunWhoseMetricsHaveLostTheirFirstLineGoesOn) {
  ASSERT_EQ(run("one", stopped_).code, 3);
  std::ofstream(path("one/metrics.jsonl")) << "{\"step\": 1}\n";
  EXPECT_EQ(call("resume " + path("one") + " time_limit=\"1 h\"").code, 0);
  EXPECT_EQ(call("report " + path("one")).code, 0);
}

// Of a set whose file has the units.
TEST_F(RunDirectory, OutputsAtAnIntervalThatChanges) {
  const std::string set = path("set.hdf5");
  const std::string model = write("sphere.toml",
                                  "[run]\nkind = \"isolated\"\n[initial]\nkind = \"plummer\"\nparticles = 500\n"
                                  "mass = \"1e10 Msun\"\nradius = \"1 kpc\"\n"
                                  "[units]\nlength = \"kpc\"\nmass = \"1e10 Msun\"\nvelocity = \"km/s\"\n"
                                  "[gravity]\nsoftening = \"0.2 kpc\"\n");
  expect_end(call("ic " + model + " -o " + set), 0);
  const std::string config =
      write("set.toml", "[run]\nkind = \"isolated\"\n[initial]\nkind = \"file\"\nfile = \"" + set +
                            "\"\n[gravity]\nsoftening = \"0.2 kpc\"\n[time]\nend_time = \"50 Myr\"\n"
                            "[output]\ninterval = \"0.02 Gyr\"\ntimes = [\"10 Myr\"]\nimage = false\n");
  expect_end(call("run " + config + " output_directory=" + path("one")), 0, {"t = 10 Myr: wrote", "t = 40 Myr: wrote"});
  const std::string resume = "resume " + path("one");
  expect_end(call(resume + " end_time=\"45 Myr\""), 1, {"beyond its new end", "45 Myr", "t = 50 Myr"});
  expect_end(call(resume + " end_time=\"70 Myr\""), 0, {"t = 60 Myr: wrote " + path("one/snapshot_005")});
  const Result other = expect_end(call(resume + " end_time=\"0.15 Gyr\" output.interval=\"50 Myr\""), 0,
                                  {"t = 0.1 Gyr: wrote " + path("one/snapshot_007")});
  expect_lacks(other.output, {"t = 0.08 Gyr"});
  EXPECT_TRUE(fs::exists(path("one/snapshot_008.hdf5")) && !fs::exists(path("one/snapshot_009.hdf5")));
}

TEST_F(RunDirectory, EnergiesOfAnotherSofteningAreNotCompared) {
  const std::string config = write("sphere.toml",
                                   "[run]\nkind = \"isolated\"\n[initial]\nkind = \"plummer\"\nparticles = 500\n"
                                   "[gravity]\nsoftening = 0.02\n[time]\nend_time = 0.1\n"
                                   "[output]\nenergy_interval = 1\nimage = false\n");
  expect_end(call("run " + config + " output_directory=" + path("one")), 0);
  const Result resumed = expect_end(call("resume " + path("one") + " time.end_time=0.2 gravity.softening=0.5"), 0,
                                    {"softening is another one", "since this restart"});
  expect_lacks(resumed.output, {"the energy is off"});
}

class DamagedRestart : public Program {
 protected:
  DamagedRestart() {
    expect_end(call("run " + tiny() +
                    " restart_steps=1 output.image=false power_spectrum=false output_directory=" + path("run")),
               0);
    EXPECT_EQ(restarts("run").size(), 2u);
    fs::remove(path("run/snapshot_002.hdf5"));
    as_killed_before_the_end("run");
  }
  std::vector<std::string> restarts(const std::string& name) const { return restarts_in(path(name)); }
  // A copy of the run, in which only its newest restart is there where `alone`.
  void copy_run(bool alone) const {
    fs::remove_all(path("copy"));
    fs::copy(path("run"), path("copy"), fs::copy_options::recursive);
    if (alone) fs::remove_all(restarts("copy").front());
  }
  // Flips a bit of a file of the restart, or cuts the file off. Returns what was done.
  std::string damage(const fs::path& restart) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(restart)) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    const fs::path file = files[random_() % files.size()];
    const std::uintmax_t at = random_() % fs::file_size(file);
    if (random_() % 3 == 0) {
      fs::resize_file(file, at);
      return file.filename().string() + " was cut off at " + std::to_string(at);
    }
    const int bit = static_cast<int>(random_() % 8);
    flip_bit(file, at, bit);
    return "bit " + std::to_string(bit) + " of byte " + std::to_string(at) + " of " + file.filename().string();
  }
  // One of four times there is no other restart, and the run is refused.
  void expect_noticed(int times) {
    for (int i = 0; i < times; ++i) {
      const bool alone = i % 4 == 3;
      copy_run(alone);
      const std::string before = restarts("copy").front();
      SCOPED_TRACE(damage(restarts("copy").back()) + ", seed " + std::to_string(seed_));
      const Result resumed = expect_end(call("resume " + path("copy")), alone ? 1 : 0, {"damaged"});
      EXPECT_EQ(fs::exists(path("copy/snapshot_002.hdf5")), !alone);
      if (!alone) {
        expect_words(resumed, {"Resumed from " + before, "one before has to serve"});
        continue;
      }
      expect_words(resumed, {"copy a whole one back, or begin again"});
      EXPECT_EQ(restarts("copy").size(), 1u) << "it is left alone";
    }
  }
  const unsigned seed_ = std::random_device()();
  std::mt19937 random_{seed_};
};

TEST_F(DamagedRestart, IsNoticedAndTheOneBeforeServes) { expect_noticed(12); }

// A disk that does not answer now may do so later.
TEST_F(DamagedRestart, IsLeftAloneWhereAFileCannotBeRead) {
  copy_run(false);
  const std::vector<std::string> there = restarts("copy");
  for (const auto& entry : fs::directory_iterator(there.back())) {
    if (entry.path().extension() != ".hdf5") continue;
    fs::rename(entry.path(), path("whole.hdf5"));
    fs::create_directory(entry.path());  // reading it fails
    expect_end(call("resume " + path("copy")), 1, {"cannot be read", "directory", "move it away"});
    EXPECT_EQ(restarts("copy"), there);
    fs::remove(entry.path());
    fs::rename(path("whole.hdf5"), entry.path());
  }
  expect_end(call("resume " + path("copy")), 0, {"Resumed from " + there.back()});
}

class FullDamagedRestart : public DamagedRestart {};
TEST_F(FullDamagedRestart, IsNoticedAHundredTimes) { expect_noticed(100); }

}  // namespace
}  // namespace maki::test
