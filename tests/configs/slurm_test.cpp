// configs/slurm.sh under a stand-in for Slurm: it goes on until the run is done, with the bits of the run that was left
// alone, and submits no job that cannot succeed. At two sites, each with a queue of its own, jobs are killed at either,
// stopped by either's time limit, and wait for each other.
#include <atomic>
#include <cstdio>

#include "tests/configs/slurm_stand_in.hpp"
#include "tests/small_disk.hpp"
#include "tests/src/cli/program_fixture.hpp"
#include "tests/src/cli/sites/two_programs.hpp"

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

// The time is up at the end of the first long step, however fast the machine.
constexpr const char* kStopsSoon = "end_redshift=8 output.redshifts=[8] time_limit=0.001s";
// More than ten thousand steps, of which none leaves a restart.
constexpr const char* kTakesLong = "end_redshift=0 time.max_dlna=0.0001 run.restart_steps=100000";

class Slurm : public Program {
 protected:
  // With a job in its queue.
  SlurmStandIn slurm(const std::string& settings = "", const std::string& environment = "") const {
    SlurmStandIn in(path("slurm"), directory_.string(), "MAKI_OUTPUT=" + path("out") + " " + environment);
    submit(in, settings);
    return in;
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
  std::ptrdiff_t jobs() const {
    return std::ranges::count_if(lines_of(path("out/jobs.txt")),
                                 [](const std::string& line) { return line.starts_with("begin "); });
  }
  void expect_said(const SlurmStandIn& in, const std::vector<std::string>& words) const {
    expect_contains(in.said(), words);
  }
  void expect_the_bits_after(int kills, const std::string& end);

  const std::string config_ = write("box.toml", kBox);
  const unsigned seed_ = std::random_device()();
  std::mt19937 random_{seed_};
};

// Jobs of one or two ranks, some of which are put back into the queue as after the loss of a node.
void Slurm::expect_the_bits_after(int kills, const std::string& end) {
  ASSERT_EQ(call("run " + config_ + " " + end + " output_directory=" + path("whole")).code, 0);
  SlurmStandIn in = slurm(end, "MAKI_ATTEMPTS=1000");
  int done = 0, amid = 0, many = 0;
  while (!in.queue().empty()) {
    Killer killer(path("out"), random_);
    const int ranks = 1 + static_cast<int>(random_() % 2);
    const auto ended = in.run_next(
        ranks, [&] { return done < kills && killer(); }, random_() % 4 == 0);
    if (!ended.killed) continue;
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

// On nodes without room for temporary files. What would be a pattern to the shell is the name of a directory.
TEST_F(Slurm, AJobThatWasStoppedIsFollowedByTheNext) {
  const std::string output = path("out [1] *");
  SlurmStandIn in(path("slurm"), directory_.string(),
                  "SLURM_CPUS_PER_TASK=2 MAKI_ATTEMPTS=1 TMPDIR=" + path("none") + " MAKI_OUTPUT='" + output + "'");
  submit(in, kStopsSoon);
  EXPECT_EQ(run_all(in, 400), 0) << tail(in.said());
  expect_said(in, {"stopped by the time limit", "goes on in " + output, "Resumed from " + output + "/restart_",
                   "maki: done"});
  submit(in);
  EXPECT_EQ(run_all(in, 1), 0);
  expect_said(in, {"is finished"});
}

TEST_F(Slurm, AStopFileEndsAllJobs) {
  SlurmStandIn in = slurm(kTakesLong);
  const auto stop = [&] {
    if (fs::exists(path("out/metrics.jsonl"))) std::ofstream(path("out/stop"));
    return false;
  };
  EXPECT_EQ(in.run_next(1, stop).status, 3);
  EXPECT_TRUE(in.queue().empty());
  expect_said(in, {"stopped by hand"});
}

// It waits in the queue, and goes on where it is submitted again.
TEST_F(Slurm, AStopFileThatIsMadeBetweenJobsEndsThemToo) {
  SlurmStandIn in = slurm(kStopsSoon);
  const auto never = [] { return false; };
  EXPECT_EQ(in.run_next(1, never).status, 3);
  std::ofstream(path("out/stop"));
  EXPECT_EQ(in.run_next(1, never).status, 3);
  EXPECT_TRUE(in.queue().empty());
  EXPECT_EQ(jobs(), 1);
  expect_said(in, {"stopped by hand before the job began"});
  submit(in);
  EXPECT_EQ(run_all(in, 400), 0);
}

TEST_F(Slurm, ABadConfigurationIsRefusedOnce) {
  SlurmStandIn in = slurm("end_redshift=banana");
  EXPECT_EQ(run_all(in, 3), 1);
  expect_said(in, {"banana", "refused before it began"});
  submit(in, "initial.kind=file initial.file=none.hdf5");
  EXPECT_EQ(run_all(in, 3), 1);
  EXPECT_EQ(jobs(), 1);
  expect_said(in, {"none.hdf5", "no more jobs: the run was refused before it began"});
}

// What stands behind the configuration comes before MAKI_OUTPUT, and that before the configuration.
TEST_F(Slurm, AJobLooksWhereTheRunIs) {
  std::string text = kBox;
  text.insert(text.find("name"), "output_directory = '" + path("own") + "'\n");
  const std::string own = write("own.toml", text);
  const auto expect_done_in = [&](const std::string& output, const std::string& config, const std::string& settings,
                                  const std::string& environment) {
    SlurmStandIn in(path("slurm"), directory_.string(), environment);
    in.submit(source_directory() + "/configs/slurm.sh " + config + " end_redshift=8.5 output.redshifts=[] " + settings);
    EXPECT_EQ(run_all(in, 1), 0) << tail(in.said());
    for (const char* file : {"/done", "/log.txt", "/jobs.txt"}) EXPECT_TRUE(fs::exists(output + file)) << output + file;
  };
  const std::string chosen = "MAKI_OUTPUT=" + path("chosen");
  expect_done_in(path("output/box"), config_, "", "");
  expect_done_in(path("own"), own, "", "");
  expect_done_in(path("chosen"), own, "", chosen);
  expect_done_in(path("line"), own, "output_directory=" + path("line") + "/", chosen);
  expect_done_in(path("long"), own, "run.output_directory=" + path("long"), chosen);
}

TEST_F(Slurm, TheSameErrorTwiceIsTheLast) {
  SlurmStandIn in = slurm(kStopsSoon);
  ASSERT_EQ(in.run_next(1, [] { return false; }).status, 3);
  for (const auto& entry : fs::directory_iterator(path("out")))
    if (entry.path().filename().string().starts_with("restart_")) fs::resize_file(entry.path() / "rank_0.hdf5", 1000);
  EXPECT_EQ(run_all(in, 4), 1);
  EXPECT_EQ(jobs(), 3);
  expect_said(in, {"no restart is whole", "the same error twice"});
  EXPECT_TRUE(fs::exists(path("out/stopped.hdf5"))) << "nothing was begun anew";
}

// A program in place of Maki that loses the other site twice before the run has begun.
TEST_F(Slurm, ASiteThatLosesAnotherAtTheStartWaitsForIt) {
  const std::string program = path("loses_twice");
  std::ofstream(program)
      << "#!/bin/bash\n[[ $* != *--where ]] || { echo '" << path("out") << "'; exit; }\n[ -e '" << path("twice")
      << "' ] && exit 0\n"
      << "[ ! -e '" << path("once") << "' ] || touch '" << path("twice") << "'\n"
      << "touch '" << path("once") << "'\n"
      << "echo 'maki: error: site a is lost (seen by site b: nothing was heard of it)' >&2\nexit 4\n";
  fs::permissions(program, fs::perms::owner_all);
  SlurmStandIn in = slurm("--site b", "MAKI=" + program);
  EXPECT_EQ(run_all(in, 2), 0);
  EXPECT_EQ(jobs(), 3);  // beginnings, of one job
  expect_said(in, {"goes on as soon as the others do", "maki: done"});
}

// Whatever ends them: here each dies while it starts.
TEST_F(Slurm, JobsWithoutProgressHaveAnEnd) {
  SlurmStandIn in = slurm(kTakesLong, "MAKI_ATTEMPTS=2");
  for (int job = 0; job < 2; ++job) EXPECT_TRUE(in.run_next(1, [&] { return jobs() > job; }).killed);
  EXPECT_EQ(run_all(in, 2), 1);
  EXPECT_EQ(jobs(), 2);
  expect_said(in, {"no more jobs: 2 in a row brought no restart beyond step 0"});
  submit(in, "end_redshift=4");  // by hand: it counts anew
  EXPECT_EQ(run_all(in, 2), 0);
}

TEST_F(Slurm, AFullDiskIsNotTriedAgain) {
  const SmallDisk small(path("small"));
  if (!small) GTEST_SKIP() << "mounting a small file system needs root";
  write("small/filler", std::string(640'000, 'x'));
  SlurmStandIn in = slurm("end_redshift=4", "MAKI_OUTPUT=" + path("small/out"));
  EXPECT_NE(run_all(in, 3), 0);
  expect_said(in, {"No space left on device", "is full (free some and submit again)"});
}

TEST_F(Slurm, AStoppedRunWithoutRestartsIsNotLost) {
  SlurmStandIn in = slurm("run.restarts_kept=0 time_limit=\"0.001 s\"");
  EXPECT_EQ(run_all(in, 4), 1);
  expect_said(in, {"stopped run without a restart", "the same error twice"});
  EXPECT_TRUE(fs::exists(path("out/stopped.hdf5")));
}

class SlurmSites : public TwoPrograms {
 protected:
  static constexpr const char* kSettings =
      "run.restart_steps=3 run.deterministic=true gravity.reuse=1 time.max_dlna=0.01 output.redshifts=[7] "
      "output.power_spectrum=false output.image=false sites.wait=60s ";
  static constexpr std::array<const char*, 2> kSites = {"a", "b"};

  std::string output(std::size_t site) const { return path(std::string("out/") + kSites[site]); }
  SlurmStandIn submitted(std::size_t site, const std::string& settings) const {
    const std::string name = kSites[site];
    SlurmStandIn in(path("slurm_" + name), directory_.string(), "MAKI_ATTEMPTS=1000 MAKI_OUTPUT=" + output(site));
    in.submit(source_directory() + "/configs/slurm.sh " + config() + " --site " + name + " " + kSettings + settings);
    return in;
  }
  // Runs a site's jobs until its queue is empty. Of `kills_` each site takes as its jobs come.
  void run_site(std::size_t site, SlurmStandIn& in) {
    std::mt19937 random(seed_ + static_cast<unsigned>(site));
    while (!in.queue().empty()) {
      Killer killer(output(site), random);
      const int ranks = kills_ > 0 && random() % 4 == 0 ? 2 : 1;
      const auto now = [&] { return kills_ > 0 && killer(); };
      if (!in.run_next(ranks, now, random() % 4 == 0).killed) continue;
      --kills_;
      ++killed_[site];
      if (killer.amid_restart()) ++amid_;
    }
  }
  void run_both(const std::string& at_a, const std::string& at_b) {
    std::array<SlurmStandIn, 2> in = {submitted(0, at_a), submitted(1, at_b)};
    auto first = std::async(std::launch::async, [&] { run_site(0, in[0]); });
    run_site(1, in[1]);
    first.get();
    for (const SlurmStandIn& one : in) said_.push_back(one.said());
  }
  void expect_the_bits(const std::string& settings) {
    const std::string run = "run " + config() + " " + kSettings + settings;
    expect_end(both(run), 0);
    for (std::size_t site = 0; site < 2; ++site) {
      SCOPED_TRACE("seed " + std::to_string(seed_) + ", site " + kSites[site] + "\n" + tail(said_[site]));
      ASSERT_TRUE(fs::exists(output(site) + "/done"));
      expect_whole_metrics(output(site));
    }
    for (const char* name : {"snapshot_000", "snapshot_001"}) {
      const ById whole = particles_in(collect(name));
      EXPECT_EQ(whole.size(), 4096u);
      EXPECT_TRUE(particles_in(collect(name, "out/a", "out/b")) == whole) << name;
    }
  }
  void expect_the_bits_after(int kills, const std::string& settings) {
    kills_ = kills;
    const std::string quick = settings + " sites.path.patience=1s";
    run_both(quick, quick);
    std::printf("  %d kills at a, %d at b, %d of them while a restart was written\n", killed_[0].load(),
                killed_[1].load(), amid_.load());
    if (kills >= 50) {
      EXPECT_LE(kills_, kills / 4) << "the run was over too soon";
    }
    expect_the_bits(settings);
  }

  const unsigned seed_ = std::random_device()();
  std::atomic<int> kills_{0}, amid_{0};
  std::array<std::atomic<int>, 2> killed_{};
  std::vector<std::string> said_;
};

TEST_F(SlurmSites, KilledJobsEndWithTheBitsOfTheRunLeftAlone) { expect_the_bits_after(4, "end_redshift=5"); }

class FullSlurmSites : public SlurmSites {};
TEST_F(FullSlurmSites, FiftyKilledJobsEndWithTheBitsOfTheRunLeftAlone) {
  expect_the_bits_after(50, "end_redshift=0 time.max_dlna=0.004");
}

// The first site's time is up at the end of each long step, however fast the machine; the second keeps its job, and
// waits.
TEST_F(SlurmSites, ASiteWhoseTimeIsUpStopsAllAndTheyGoOnTogether) {
  run_both("end_redshift=6 run.time_limit=0.001s", "end_redshift=6");
  expect_contains(said_[0], {"stopped by the time limit", "Resumed from", "maki: done"});
  expect_contains(said_[1],
                  {"Stopped by another site", "goes on as soon as the others do", "Resumed from", "maki: done"});
  EXPECT_FALSE(fs::exists(path("slurm_b/spool/3.sh"))) << "one job, and the next one that was cancelled";
  expect_the_bits("end_redshift=6");
}

}  // namespace
}  // namespace maki::test
