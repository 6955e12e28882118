// Which environments mean ranks; and what a job does when one of its ranks is stopped, killed or fails: all the others
// end, and say which it was.
#include "host/comm/job.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kernels/error.hpp"
#include "tests/commands.hpp"
#include "tests/messages.hpp"
#include "tests/places.hpp"

namespace maki {
namespace {

using test::error_of;
using test::expect_contains;
using test::times;

Launcher find(const std::map<std::string, std::string>& environment) {
  return find_launcher([&](const char* name) -> const char* {
    const auto at = environment.find(name);
    return at == environment.end() ? nullptr : at->second.c_str();
  });
}

void expect(const std::map<std::string, std::string>& environment, bool starts_mpi, int ranks) {
  const Launcher launcher = find(environment);
  EXPECT_EQ(launcher.starts_mpi, starts_mpi);
  EXPECT_EQ(launcher.ranks, ranks);
}

// A set of the cores first ... first + count - 1.
CoreSet cores(std::size_t first, std::size_t count) {
  CoreSet set{};
  for (std::size_t core = first; core < first + count; ++core) set[core / 64] |= std::uint64_t{1} << core % 64;
  return set;
}

// Ranks that are bound to nothing; and to two sockets in pairs, beside one with a core of its own.
TEST(ShareOfCores, DividesEachCoreAmongTheRanksThatMayRunThere) {
  EXPECT_EQ(share_of_cores({cores(0, 8), cores(0, 8)}, 1), 4);
  EXPECT_EQ(share_of_cores({cores(0, 3), cores(0, 3)}, 0), 1);
  EXPECT_EQ(share_of_cores({cores(0, 1), cores(0, 1)}, 0), 1);
  EXPECT_EQ(share_of_cores({cores(0, 12), cores(0, 12), cores(0, 12)}, 2), 4);
  const std::vector<CoreSet> bound = {cores(0, 16), cores(0, 16), cores(64, 16), cores(64, 16), cores(100, 1)};
  EXPECT_EQ(share_of_cores(bound, 0), 8);
  EXPECT_EQ(share_of_cores(bound, 3), 8);
  EXPECT_EQ(share_of_cores(bound, 4), 1);
}

// Each rank sees all GPUs, or one; pairs see two, and the ranks of a pair are not neighbours; one sees less than another.
TEST(GpusInTurn, NoGpuIsTakenTwiceWhileAnotherIsFree) {
  const std::vector<std::string> all = {"a", "b", "c", "d"}, front = {"a", "b"}, back = {"c", "d"};
  EXPECT_EQ(gpus_in_turn({all, all, all, all, all}), (std::vector<int>{0, 1, 2, 3, 0}));
  EXPECT_EQ(gpus_in_turn({{"a"}, {"b"}, {"c"}}), (std::vector<int>{0, 0, 0}));
  EXPECT_EQ(gpus_in_turn({front, back, front, back}), (std::vector<int>{0, 0, 1, 1}));
  EXPECT_EQ(gpus_in_turn({front, {"a"}}), (std::vector<int>{1, 0}));
  EXPECT_EQ(gpus_in_turn({front, {}}), (std::vector<int>{0, 0}));
}

TEST(Job, MoreMemoryThanThereIsIsRefused) {
  EXPECT_NO_THROW(require_host_memory(Communicator::self(), "little", 1e3));
  expect_contains(test::error_of([] { require_host_memory(Communicator::self(), "the set", 1e18); }),
                  {"there is no memory for the set", "at least 1000000000.00 GB", "are free"});
}

TEST(Launcher, NoneMeansOneProcess) {
  expect({}, false, 0);
  expect({{"HOME", "/"}, {"SLURM_NTASKS", "8"}}, false, 0);  // salloc's shell
}

TEST(Launcher, MpirunInsideSlurmAndOutside) {
  expect({{"OMPI_COMM_WORLD_SIZE", "4"}, {"PMIX_RANK", "1"}}, true, 4);
  expect({{"OMPI_COMM_WORLD_SIZE", "4"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}}, true, 4);
}

TEST(Launcher, SrunWithAnInterface) {
  expect({{"PMIX_RANK", "3"}, {"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "8"}, {"SLURM_STEP_NUM_TASKS", "6"}}, true, 6);
  expect({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}}, true, 2);
  expect({{"PMIX_RANK", "0"}}, true, 0);
  expect({{"PALS_RANKID", "1"}, {"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "8"}, {"SLURM_STEP_NUM_TASKS", "4"}}, true, 4);
  expect({{"PALS_RANKID", "0"}}, true, 0);  // HPE Cray's mpiexec
}

TEST(Launcher, SrunWithoutAnInterfaceIsRefusedWithAdvice) {
  for (const char* task : {"0", "3"})
    expect_contains(error_of([&] {
                      find({{"SLURM_PROCID", task}, {"SLURM_NTASKS", "8"}});
                    }),
                    {"8 tasks", "process management interface", "srun --mpi=pmix", "mpirun"});
  EXPECT_THROW(find({{"SLURM_PROCID", "0"}, {"SLURM_STEP_ID", "0"}, {"SLURM_NTASKS", "2"}, {"ENVIRONMENT", "BATCH"}}),
               Error);
}

TEST(Launcher, OneTaskAndTheBatchScriptItselfAreOneProcess) {
  expect({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}}, false, 0);
  expect({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_STEP_NUM_TASKS", "1"}}, false, 0);
  expect({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"ENVIRONMENT", "BATCH"}}, false, 0);
}

// What a job does when one of its ranks is stopped, killed or fails: all the others end, and say which it was.

using Clock = std::chrono::steady_clock;

// Four ranks that make `calls`; `loss` goes to rank `lost` when all have said which process they are, and one of them
// the words `after` (0: to none).
struct Job {
  std::string output;
  int status = -1;
  double seconds = 0;  // from the signal to the end
  int left = 0;        // ranks that still run then
};

Job lose_rank(const std::string& calls, int loss, const std::string& timeout, int lost = 2,
              const std::string& after = "") {
  const auto here = test::directory_of_this_program();
  // A time limit on all of it: a job that does not end fails the test instead of hanging it.
  const std::string command = "OMP_NUM_THREADS=1 " + timeout + " timeout -k 5 250 " + test::launcher(4) +
                              (here / "tests_ranks").string() + " --until-lost " + calls + " 2>&1";
  Job job;
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return job;
  std::map<int, int> processes;
  auto begin = Clock::now();
  std::array<char, 4096> line;
  while (std::fgets(line.data(), line.size(), pipe) != nullptr) {
    job.output += line.data();
    int rank = 0, process = 0;
    if (std::sscanf(line.data(), "rank %d is process %d", &rank, &process) == 2) processes[rank] = process;
    if (loss == 0 || processes.size() < 4 || job.output.find(after) == job.output.npos) continue;
    begin = Clock::now();
    kill(processes[lost], std::exchange(loss, 0));
  }
  job.status = pclose(pipe);
  job.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  const auto left = [&] {
    return std::ranges::count_if(processes, [](const auto& one) { return test::runs(one.second); });
  };
  for (int waits = 0; left() > 0 && waits < 300; ++waits) usleep(100000);
  job.left = static_cast<int>(left());
  return job;
}

void expect_end(const Job& job, const std::string& message) {
  EXPECT_NE(job.output.find(message), std::string::npos) << "'" << message << "' is missing in:\n" << job.output;
  EXPECT_NE(job.status, 0);
  EXPECT_LT(job.seconds, 55);  // before any timeout
  EXPECT_EQ(job.left, 0);
}

TEST(LostRank, StoppedInEachKindOfCallIsNamedOnceAndAllEnd) {
  for (const char* calls : {"barrier", "sum", "exchange", "row", "payload"}) {
    SCOPED_TRACE(calls);
    const Job job = lose_rank(calls, SIGSTOP, "MAKI_RANK_TIMEOUT=2");
    expect_end(job, "maki: error: rank 0: rank 2 is not heard from");
    EXPECT_EQ(times(job.output, "maki: error"), 1u) << job.output;
  }
}

TEST(LostRank, FirstIsNamedByTheOthers) {
  for (const char* calls : {"exchange", "asleep"}) {
    SCOPED_TRACE(calls);
    expect_end(lose_rank(calls, SIGSTOP, "MAKI_RANK_TIMEOUT=2", 0), ": rank 0 is not heard from");
  }
}

TEST(LostRank, StoppedIsSeenLongBeforeTheTimeout) {  // which is 120 s
  expect_end(lose_rank("exchange", SIGSTOP, ""), "maki: error: rank 0: rank 2 is not heard from");
}

// In calls of other libraries, where nobody would see a timeout.
TEST(LostRank, StoppedWhileNoneWaitsHere) {
  expect_end(lose_rank("asleep", SIGSTOP, "MAKI_RANK_TIMEOUT=60"), ": rank 2 is not heard from for 5 s");
}

TEST(LostRank, AtWorkForLongerThanTheTimeoutIsNotLost) {
  const std::string waiting = "maki: waiting for rank 2 for 1 s or more: at work";
  const Job job = lose_rank("work", SIGUSR1, "MAKI_RANK_TIMEOUT=1", 2, waiting);
  EXPECT_EQ(job.status, 0) << job.output;
  expect_contains(job.output, {waiting});
  EXPECT_EQ(job.output.find("error"), std::string::npos) << job.output;
}

TEST(LostRank, OutOfMemoryNamesTheRankAndTheArray) {
  expect_end(lose_rank("memory", 0, ""), "maki: error: rank 2: no memory for the array 'interaction lists'");
}

TEST(LostRank, KilledEndsAllAndIsNamed) {
  const Job job = lose_rank("exchange", SIGKILL, "");
  const std::string of_mpich = "BAD TERMINATION";                                   // which does not say of which rank
  expect_end(job, times(job.output, of_mpich) > 0 ? of_mpich : "process rank 2 ");  // by mpirun, which sees it at once
}

TEST(LostRank, FailedSpeaksForItselfAndEndsAll) {
  const Job job = lose_rank("fail", 0, "");
  expect_end(job, "maki: error: rank 2: no more paper (it was all used): get some");
  EXPECT_EQ(times(job.output, "maki: error"), 1u) << job.output;
}

TEST(LostRank, RanksThatDoNotMakeTheSameCallsEnd) {
  expect_end(lose_rank("leave", 0, "MAKI_RANK_TIMEOUT=2"), "the ranks do not make the same calls");
}

}  // namespace
}  // namespace maki
