// The program under a launcher: one output, one message, whatever the number of ranks; and when one of them is lost,
// the others end and name it, and what was written is whole.
#include "kernels/device/device.hpp"

#include <signal.h>

#include <chrono>
#include <thread>

#include "tests/src/cli/program_fixture.hpp"

namespace maki::test {
namespace {

// A time limit on all of it: a job that does not end fails the test instead of hanging it.
Result call(int ranks, const std::string& arguments) {
  return test::call(arguments, "OMP_NUM_THREADS=1 timeout -k 5 300 " + (ranks > 1 ? launcher(ranks) : ""));
}

std::size_t count(const Result& result, const std::string& text) { return times(result.output, text); }

class ProgramOfRanks : public Program {
 protected:
  const std::string config_ = write("box.toml",
                                    "[box]\nsize = \"50 Mpc/h\"\n[initial]\nparticles_per_side = 16\nredshift = 9\n"
                                    "[gravity]\nmesh = 32\n[time]\nend_redshift = 8\n[output]\nredshifts = []\n"
                                    "image_pixels = 64\npower_mesh = 32\n[run]\noutput_directory = \"" +
                                        path("out") + "\"\n");
};

TEST_F(ProgramOfRanks, WhatOneProcessDoesIsDoneOnce) {
  EXPECT_EQ(expect_end(call(3, "config"), 0).output, call(1, "config").output);
  EXPECT_EQ(count(call(3, "--version"), "backend"), 1u);
}

TEST_F(ProgramOfRanks, ErrorsThatAllMeetAreToldOnce) {
  for (const std::string& wrong : {std::string("run"), "run " + path("none.toml")}) {
    const Result result = call(3, wrong);
    EXPECT_NE(result.code, 0);
    EXPECT_EQ(count(result, "maki: error:"), 1u) << result.output;
  }
}

TEST_F(ProgramOfRanks, TheEstimateIsOfARank) {
  const Result result = expect_end(call(3, "run " + config_ + " --estimate"), 0);
  const char* machine =
      std::string(backend_name()) == "cpu" ? "a machine, all its ranks" : "a machine's host, all its ranks";
  for (const char* words : {"on each of 3 ranks", "local essential trees", machine, "disk, each"})
    EXPECT_EQ(count(result, words), 1u) << words << " in\n" << result.output;
}

// The snapshot is the same as one rank's but for round-off; the log tells of ranks.
TEST_F(ProgramOfRanks, ARunIsOneRun) {
  const std::string run = "run " + config_ + " power_spectrum=false output.image=false";
  const Result result = expect_end(call(3, run), 0);
  EXPECT_EQ(count(result, "3 ranks on"), 1u) << result.output;
  EXPECT_EQ(count(result, "wrote "), 2u) << result.output;  // the snapshot, and a restart
  EXPECT_EQ(count(result, "\033"), 0u) << "a log of mpirun's output is to be read as text";
  EXPECT_EQ(read_snapshot(path("out/snapshot_000.hdf5")).size(), 4096u);
  expect_contains(text_of(path("out/log.txt")), {"over ranks", "interactions", "tree/evaluate", "(most)", "held most"});
  const Result again = call(3, run);  // the directory holds a run
  EXPECT_NE(again.code, 0);
  EXPECT_EQ(count(again, "maki: error:"), 1u) << again.output;
}

TEST_F(ProgramOfRanks, ARestartIsWholeBeforeStoppedHdf5) {
  const std::string stopped = " time_limit=\"0.001 s\"", file = path("out/stopped.hdf5");
  expect_end(call(2, "run " + config_ + " time.max_dlna=0.02" + stopped), 3);
  fs::remove(file);
  fs::create_directory(file);
  const Result result = call(2, "resume " + path("out"));
  EXPECT_NE(result.code, 0);
  expect_words(result, {"cannot write '" + file + "' (it is a directory)", "To continue: maki resume " + path("out")});
  ASSERT_EQ(restarts_in(path("out")).size(), 2u);
  EXPECT_TRUE(fs::exists(restarts_in(path("out")).back() + "/complete.toml"));
}

// The process of `rank` of the job that has `mark` in its environment; 0 where there is none.
int process_of(const std::string& mark, int rank) {
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const int process = std::atoi(entry.path().filename().c_str());
    if (process == 0) continue;
    const std::string variables = '\0' + text_of(entry.path() / "environ");
    const auto has = [&](const std::string& setting) {
      return variables.find('\0' + setting + '\0') != std::string::npos;
    };
    if (!has(mark)) continue;
    for (const char* name : {"OMPI_COMM_WORLD_RANK=", "PMI_RANK="})  // Open MPI's, MPICH's
      if (has(name + std::to_string(rank))) return process;
  }
  return 0;
}

class LostRun : public Program, public testing::WithParamInterface<int> {};

TEST_P(LostRun, OthersEndAndFilesAreWhole) {
  const std::string mark = "MAKI_TEST_JOB=" + std::to_string(getpid()) + "_" + std::to_string(GetParam());
  const std::string command = "exec env " + mark + " OMP_NUM_THREADS=1 timeout -k 5 300 " + launcher(3) + program() +
                              " run " + MAKI_SOURCE_DIR +
                              "/configs/quickstart.toml initial.particles_per_side=32 output.redshifts=[49,40,30,20] " +
                              "output.image=false run.overwrite=true run.output_directory=" + path("run");
  StartedCommand run(command, path("out"));
  // Once the second snapshot is there, the run is on its way.
  while (!fs::exists(path("run/snapshot_001.hdf5"))) {
    ASSERT_FALSE(run.ended()) << run.said();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  const int victim = process_of(mark, 1);
  ASSERT_NE(victim, 0) << run.said();
  kill(victim, GetParam());
  const auto begun = std::chrono::steady_clock::now();
  const auto [code, output] = run.wait(400);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(100)) << "not by the timeout of 120 s";
  EXPECT_NE(code, 0);
  // MPICH's mpirun tells of a process that was killed, and not which rank it was.
  const bool told = GetParam() == SIGKILL && output.find("BAD TERMINATION") != std::string::npos;
  EXPECT_TRUE(told || output.find("rank 1 ") != std::string::npos) << output;
  for (int rank = 0; rank < 3; ++rank) {  // the launcher may end before them
    int left = 0;
    for (int i = 0; i < 3000 && (left = process_of(mark, rank)) != 0; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_EQ(left, 0);
    if (left != 0) kill(left, SIGKILL);
  }
  // Everything under its own name is whole.
  for (const auto& entry : fs::directory_iterator(path("run"))) {
    const std::string name = entry.path().filename();
    if (!name.starts_with("snapshot_") || !name.ends_with(".hdf5")) continue;
    EXPECT_EQ(read_snapshot(entry.path().string()).positions.size(), 32u * 32u * 32u) << name;
  }
  const std::string metrics = text_of(path("run/metrics.jsonl")), log = text_of(path("run/log.txt"));
  EXPECT_TRUE(metrics.empty() || metrics.ends_with("}\n"));
  EXPECT_TRUE(log.empty() || log.ends_with("\n"));
}

INSTANTIATE_TEST_SUITE_P(Loss, LostRun, testing::Values(SIGKILL, SIGSTOP),
                         [](const auto& info) { return info.param == SIGKILL ? "Killed" : "Stopped"; });

}  // namespace
}  // namespace maki::test
