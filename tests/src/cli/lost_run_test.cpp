// A run of maki over ranks that loses one of them: the others end and name it, and what was written is whole.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "src/io/snapshot_io.hpp"
#include "tests/places.hpp"

namespace maki {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

std::string read(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The process of `rank` of the job that has `mark` in its environment; 0 where there is none.
int process_of(const std::string& mark, int rank) {
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const int process = std::atoi(entry.path().filename().c_str());
    if (process == 0) continue;
    const std::string variables = '\0' + read(entry.path() / "environ");
    const auto has = [&](const std::string& setting) {
      return variables.find('\0' + setting + '\0') != std::string::npos;
    };
    if (!has(mark)) continue;
    for (const char* name : {"OMPI_COMM_WORLD_RANK=", "PMI_RANK="})  // Open MPI's, MPICH's
      if (has(name + std::to_string(rank))) return process;
  }
  return 0;
}

class LostRun : public testing::TestWithParam<int> {};

TEST_P(LostRun, OthersEndAndFilesAreWhole) {
  const fs::path directory = fs::temp_directory_path() / ("maki_lost_run_" + std::to_string(getpid()));
  fs::create_directories(directory);
  const std::string mark = "MAKI_TEST_JOB=" + std::to_string(getpid()) + "_" + std::to_string(GetParam());
  const std::string command =
      mark + " OMP_NUM_THREADS=1 timeout -k 5 90 " + test::launcher(3) + test::program() + " run " + MAKI_SOURCE_DIR +
      "/configs/quickstart.toml initial.particles_per_side=32 output.redshifts=[49,40,30,20] output.image=false " +
      "run.overwrite=true run.output_directory=" + (directory / "run").string() + " > " + (directory / "out").string() +
      " 2>&1";
  const pid_t shell = fork();
  if (shell == 0) {
    execl("/bin/sh", "sh", "-c", ("exec " + ("env " + command)).c_str(), nullptr);
    _exit(127);
  }
  // Once the second snapshot is there, the run is on its way.
  const auto patience = Clock::now() + std::chrono::seconds(60);
  int status = 0;
  while (!fs::exists(directory / "run" / "snapshot_001.hdf5") && Clock::now() < patience) {
    ASSERT_EQ(waitpid(shell, &status, WNOHANG), 0) << read(directory / "out");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  const int victim = process_of(mark, 1);
  ASSERT_NE(victim, 0) << read(directory / "out");
  const auto begin = Clock::now();
  kill(victim, GetParam());
  waitpid(shell, &status, 0);
  EXPECT_LT(std::chrono::duration<double>(Clock::now() - begin).count(), 30);
  EXPECT_NE(status, 0);
  const std::string output = read(directory / "out");
  // MPICH's mpirun tells of a process that was killed, and not which rank it was.
  const bool told = GetParam() == SIGKILL && output.find("BAD TERMINATION") != std::string::npos;
  EXPECT_TRUE(told || output.find("rank 1 ") != std::string::npos) << output;
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(process_of(mark, rank), 0);
  // Everything under its own name is whole.
  for (const auto& entry : fs::directory_iterator(directory / "run")) {
    const std::string name = entry.path().filename();
    if (name.starts_with("snapshot_") && name.ends_with(".hdf5")) {
      EXPECT_EQ(read_snapshot(entry.path().string()).positions.size(), 32u * 32u * 32u) << name;
    }
  }
  const std::string metrics = read(directory / "run" / "metrics.jsonl"), log = read(directory / "run" / "log.txt");
  EXPECT_TRUE(metrics.empty() || metrics.ends_with("}\n"));
  EXPECT_TRUE(log.empty() || log.ends_with("\n"));
  fs::remove_all(directory);
}

INSTANTIATE_TEST_SUITE_P(Loss, LostRun, testing::Values(SIGKILL, SIGSTOP),
                         [](const auto& info) { return info.param == SIGKILL ? "Killed" : "Stopped"; });

}  // namespace
}  // namespace maki
