// configs/slurm.sh under a stand-in for Slurm: it goes on until the run is done, with the bits of the run that was left alone,
// and submits no job that cannot succeed.
#include <cstdio>

#include "tests/configs/killer.hpp"
#include "tests/configs/slurm_stand_in.hpp"
#include "tests/src/cli/program_fixture.hpp"

namespace maki::test {
namespace {

constexpr const char* kBox = R"(
[run]
name = "box"
deterministic = true
restart_steps = 3
[box]
size = "50 Mpc/h"
[initial]
particles_per_side = 16
redshift = 9
[gravity]
mesh = 32
reuse = 1
[time]
max_dlna = 0.01
[output]
redshifts = [5]
image = false
power_spectrum = false
)";

class Slurm : public Program {
 protected:
  SlurmStandIn slurm(const std::string& settings = "") const {
    return {path("slurm"), directory_.string(), "MAKI_OUTPUT=" + path("out") + " " + settings};
  }
  void submit(const SlurmStandIn& to, const std::string& settings = "") const {
    to.submit(source_directory() + "/configs/slurm.sh " + config_ + " " + settings);
  }
  // Runs jobs until the queue is empty; returns the exit status of the last one.
  static int run_all(SlurmStandIn& in, int most) {
    int status = -1;
    for (int jobs = 0; !in.queue().empty(); ++jobs) {
      if (jobs == most) ADD_FAILURE() << "jobs without end:\n" << tail(in.said());
      if (jobs == most) break;
      status = in.run_next(1, [] { return false; }).status;
    }
    return status;
  }
  std::size_t jobs() const {
    std::istringstream file(text_of(path("out/jobs.txt")));
    std::size_t number = 0;
    for (std::string line; std::getline(file, line);) number += line.starts_with("begin ") ? 1 : 0;
    return number;
  }
  void expect_said(const SlurmStandIn& in, const std::vector<std::string>& words) const {
    expect_words({0, in.said()}, words);
  }
  void expect_the_bits_after(int kills, const std::string& end);

  const std::string config_ = write("box.toml", kBox);
  const unsigned seed_ = std::random_device()();
  std::mt19937 random_{seed_};
};

// Jobs of one or two ranks, some of which are put back into the queue as after the loss of a node.
void Slurm::expect_the_bits_after(int kills, const std::string& end) {
  ASSERT_EQ(call("run " + config_ + " " + end + " output_directory=" + path("whole")).code, 0);
  SlurmStandIn in = slurm("MAKI_ATTEMPTS=1000");
  submit(in, end);
  int done = 0, amid = 0, many = 0;
  while (!in.queue().empty()) {
    Killer killer(path("out"), random_);
    const int ranks = 1 + static_cast<int>(random_() % 2);
    const auto ended = in.run_next(
        ranks, [&] { return done < kills && killer(); }, random_() % 4 == 0);
    if (!ended.killed()) continue;
    ++done, many += ranks > 1, amid += killer.amid_restart();
  }
  SCOPED_TRACE("seed " + std::to_string(seed_) + "\n" + tail(in.said()));
  std::printf("  %d kills, %d of them while a restart was written, %d of two ranks\n", done, amid, many);
  RecordProperty("kills", done);
  ASSERT_TRUE(fs::exists(path("out/done")));
  if (kills >= 50) {
    EXPECT_GE(done, kills - kills / 4) << "the run was over too soon";
  }
  for (const char* snapshot : {"/snapshot_000.hdf5", "/snapshot_001.hdf5"}) {
    const ById whole = particles_in(path("whole") + snapshot);
    EXPECT_EQ(whole.size(), 4096u);
    EXPECT_TRUE(particles_in(path("out") + snapshot) == whole) << snapshot;
  }
  expect_whole_metrics(path("out"));
}

TEST_F(Slurm, KilledJobsEndWithTheBitsOfTheRunLeftAlone) { expect_the_bits_after(4, "end_redshift=4"); }

class FullSlurm : public Slurm {};
TEST_F(FullSlurm, FiftyKilledJobsEndWithTheBitsOfTheRunLeftAlone) {
  expect_the_bits_after(50, "end_redshift=0 time.max_dlna=0.004");
}

// On nodes without room for temporary files.
TEST_F(Slurm, AJobThatWasStoppedIsFollowedByTheNext) {
  SlurmStandIn in = slurm("SLURM_CPUS_PER_TASK=2 TMPDIR=" + path("none"));
  submit(in, "end_redshift=7 output.redshifts=[8] time_limit=\"0.05 s\"");
  EXPECT_EQ(run_all(in, 400), 0);
  EXPECT_GT(jobs(), 1u);
  expect_said(in, {"stopped by the time limit", "goes on in " + path("out"), "Resumed from " + path("out/restart_"),
                   "maki: done"});
  submit(in);
  EXPECT_EQ(run_all(in, 1), 0);
  expect_said(in, {"is finished"});
}

TEST_F(Slurm, AStopFileEndsAllJobs) {
  SlurmStandIn in = slurm();
  submit(in, "end_redshift=0");
  const auto stop = [&] {
    if (fs::exists(path("out/metrics.jsonl"))) std::ofstream(path("out/stop"));
    return false;
  };
  EXPECT_EQ(in.run_next(1, stop).status, 3);
  EXPECT_TRUE(in.queue().empty());
  expect_said(in, {"stopped by hand"});
}

TEST_F(Slurm, ABadConfigurationIsRefusedOnce) {
  SlurmStandIn in = slurm();
  submit(in, "end_redshift=banana");
  EXPECT_EQ(run_all(in, 3), 1);
  EXPECT_EQ(jobs(), 1u);
  expect_said(in, {"banana", "refused before it began"});
}

TEST_F(Slurm, TheSameErrorTwiceIsTheLast) {
  SlurmStandIn in = slurm();
  submit(in, "end_redshift=4 time_limit=\"0.05 s\"");
  ASSERT_EQ(in.run_next(1, [] { return false; }).status, 3);
  for (const auto& entry : fs::directory_iterator(path("out")))
    if (entry.path().filename().string().starts_with("restart_")) fs::resize_file(entry.path() / "rank_0.hdf5", 1000);
  EXPECT_EQ(run_all(in, 4), 1);
  EXPECT_EQ(jobs(), 3u);
  expect_said(in, {"no restart is whole", "the same error twice"});
  EXPECT_TRUE(fs::exists(path("out/stopped.hdf5"))) << "nothing was begun anew";
}

// A program in place of Maki that loses the other site twice before the run has begun.
TEST_F(Slurm, ASiteThatLosesAnotherAtTheStartWaitsForIt) {
  const std::string program = path("loses_twice");
  std::ofstream(program)
      << "#!/bin/bash\n[ -e '" << path("twice") << "' ] && exit 0\n"
      << "[ ! -e '" << path("once") << "' ] || touch '" << path("twice") << "'\n"
      << "touch '" << path("once") << "'\n"
      << "echo 'maki: error: site a is lost (seen by site b: nothing was heard of it)' >&2\nexit 1\n";
  fs::permissions(program, fs::perms::owner_all);
  SlurmStandIn in = slurm("MAKI=" + program);
  submit(in, "--site b");
  EXPECT_EQ(run_all(in, 2), 0);
  EXPECT_EQ(jobs(), 3u);  // beginnings, of one job
  expect_said(in, {"goes on as soon as the others do", "maki: done"});
}

// Whatever ends them: here each dies while it starts.
TEST_F(Slurm, JobsWithoutProgressHaveAnEnd) {
  SlurmStandIn in = slurm("MAKI_ATTEMPTS=2");
  submit(in);
  for (int job = 0; job < 2; ++job)
    EXPECT_TRUE(in.run_next(1, [&] { return jobs() > static_cast<std::size_t>(job); }).killed());
  EXPECT_EQ(run_all(in, 2), 1);
  EXPECT_EQ(jobs(), 2u);
  expect_said(in, {"no more jobs: 2 in a row brought no restart beyond step 0"});
  submit(in, "end_redshift=4");  // by hand: it counts anew
  EXPECT_EQ(run_all(in, 2), 0);
}

TEST_F(Slurm, AFullDiskIsNotTriedAgain) {
  fs::create_directories(path("small"));
  const Result mounted = call_shell("mount -t tmpfs -o size=400k tmpfs " + path("small"));
  if (mounted.code != 0) GTEST_SKIP() << "mounting a small file system needs root";
  SlurmStandIn in = slurm("MAKI_OUTPUT=" + path("small/out"));
  submit(in, "end_redshift=4");
  EXPECT_NE(run_all(in, 3), 0);
  EXPECT_EQ(call_shell("umount " + path("small")).code, 0);
  expect_said(in, {"No space left on device", "is full (free some and submit again)"});
}

TEST_F(Slurm, AStoppedRunWithoutRestartsIsNotLost) {
  SlurmStandIn in = slurm();
  submit(in, "run.restarts_kept=0 time_limit=\"0.001 s\"");
  EXPECT_EQ(run_all(in, 4), 1);
  expect_said(in, {"stopped run without a restart", "the same error twice"});
  EXPECT_TRUE(fs::exists(path("out/stopped.hdf5")));
}

}  // namespace
}  // namespace maki::test
