// A run in the directory of an earlier one, and restarts that lie where they do not belong.
#include "src/io/run_directory.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "src/io/snapshot_io.hpp"
#include "tests/src/cli/program_fixture.hpp"

namespace maki::test {
namespace {

std::vector<std::string> restarts_in(const std::string& directory) {
  std::vector<std::string> names = files_of_a_run(directory);
  std::erase_if(names, [](const std::string& name) { return !name.starts_with("restart_"); });
  return names;
}

class RunDirectory : public Program {
 protected:
  // Into the folder `name`: with a restart every second step, or stopped after the first long one.
  Result run(const std::string& name, const std::string& settings) const {
    return call("run " + write("tiny.toml", kTinyUniverse) + " output_directory=" + path(name) +
                " gravity.reuse=1 output.image=false " + settings);
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

TEST_F(RunDirectory, OverwritingLeavesNothingOfTheEarlierRun) {
  ASSERT_EQ(run("one", whole_ + "initial.seed=1").code, 0);
  write("one/notes.txt", "mine");
  const std::vector<std::string> earlier = restarts_in(path("one"));
  ASSERT_FALSE(earlier.empty());
  const Result stopped = run("one", stopped_ + "initial.seed=2 overwrite=true");
  ASSERT_EQ(stopped.code, 3) << stopped.output;
  ASSERT_EQ(restarts_in(path("one")).size(), 1u);
  EXPECT_LT(restarts_in(path("one")).back(), earlier.back());
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
  const Result refused = run("one", "overwrite=true initial.kind=file initial.file=" + path("one/stopped.hdf5"));
  EXPECT_EQ(refused.code, 1);
  expect_words(refused, {"stopped.hdf5' would be removed", "run.output_directory"});
  EXPECT_TRUE(fs::exists(path("one/stopped.hdf5")));
}

TEST_F(RunDirectory, ARunGoesOnWhereItsRestartsAre) {
  ASSERT_EQ(run("one", whole_).code, 0);
  const Result elsewhere = call("resume " + path("one") + " output_directory=" + path("two"));
  EXPECT_EQ(elsewhere.code, 1);
  expect_words(elsewhere, {"run.output_directory", "is not where the run is", path("one")});
  EXPECT_FALSE(fs::exists(path("two")));
  EXPECT_EQ(call("resume " + path("one") + " run.output_directory=" + path("one/../one/")).code, 0);
  EXPECT_EQ(run("one", "--resume").code, 0) << "the directory is among its settings";
  const std::string last = restarts_in(path("one")).back();
  const Result inside = call_shell("cd " + path("one") + " && " + program() + " resume " + last);
  EXPECT_EQ(inside.code, 0) << inside.output;
}

// TOML is UTF-8: the configuration in a restart could not be read again.
TEST_F(RunDirectory, NamesThatAreNotUtf8AreRefusedBeforeTheRun) {
  const Result refused = run("caf\xe9", "");
  EXPECT_EQ(refused.code, 1);
  expect_words(refused, {"is not UTF-8", "another name"});
  EXPECT_FALSE(fs::exists(path("caf\xe9")));
  ASSERT_EQ(run("caf\xc3\xa9", whole_).code, 0);
  fs::rename(path("caf\xc3\xa9"), path("caf\xe9"));
  const Result moved = call("resume " + path("caf\xe9"));
  EXPECT_EQ(moved.code, 1);
  expect_words(moved, {"is not UTF-8", "give the directory another name"});
}

TEST_F(RunDirectory, ARunThatWasStoppedAndThenEndedHasEnded) {
  ASSERT_EQ(run("one", stopped_).code, 3);
  ASSERT_EQ(call("resume " + path("one") + " time_limit=\"1 h\"").code, 0);
  for (const std::string& name : restarts_in(path("one"))) fs::remove_all(path("one/" + name));
  const Result again = run("one", "--resume");
  EXPECT_EQ(again.code, 1);
  expect_words(again, {"has come to its end"});
}

TEST_F(RunDirectory, TheRestartOfAnotherRunIsRefused) {
  ASSERT_EQ(run("one", whole_ + "initial.seed=1").code, 0);
  ASSERT_EQ(run("two", stopped_ + "initial.seed=2").code, 3);
  const std::string last = restarts_in(path("one")).back(), foreign = path("two/" + last);
  const std::string stopped = restarts_in(path("two")).front();
  const auto bring = [&](const std::string& to) {
    fs::create_directories(fs::path(to).parent_path());
    fs::copy(path("one/" + last), to, fs::copy_options::recursive);
  };
  bring(foreign);
  const Result named = call("resume " + foreign);
  EXPECT_EQ(named.code, 1);
  expect_words(named, {last, "is a restart of another run"});
  const Result own = call("resume " + path("two") + " time_limit=\"1 h\"");
  EXPECT_EQ(own.code, 0) << own.output;
  expect_words(own, {"Resumed from " + path("two/" + stopped)});
  EXPECT_FALSE(fs::exists(foreign));

  bring(path("alone/" + last));
  EXPECT_EQ(call("resume " + path("alone")).code, 0);
  ASSERT_EQ(run("three", stopped_ + "initial.seed=3").code, 3);
  bring(path("three/" + last));
  fs::remove(path("three/metrics.jsonl"));
  const Result nobodys = call("resume " + path("three"));
  EXPECT_EQ(nobodys.code, 1);
  expect_words(nobodys, {"restarts of several runs", "metrics.jsonl"});
}

}  // namespace
}  // namespace maki::test
