// Which environments mean ranks, which mean one process, and which mean a mistake.
#include "host/comm/job.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "kernels/error.hpp"

namespace maki {
namespace {

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
}

TEST(Launcher, SrunWithoutAnInterfaceIsRefusedWithAdvice) {
  for (const char* task : {"0", "3"}) {
    try {
      find({{"SLURM_PROCID", task}, {"SLURM_NTASKS", "8"}});
      FAIL() << "expected an Error";
    } catch (const Error& error) {
      const std::string message = error.what();
      for (const char* words : {"8 tasks", "process management interface", "srun --mpi=pmix", "mpirun"}) {
        EXPECT_NE(message.find(words), std::string::npos) << words << " is missing in: " << message;
      }
    }
  }
  EXPECT_THROW(find({{"SLURM_PROCID", "0"}, {"SLURM_STEP_ID", "0"}, {"SLURM_NTASKS", "2"}, {"ENVIRONMENT", "BATCH"}}),
               Error);
}

TEST(Launcher, OneTaskAndTheBatchScriptItselfAreOneProcess) {
  expect({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}}, false, 0);
  expect({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_STEP_NUM_TASKS", "1"}}, false, 0);
  expect({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"ENVIRONMENT", "BATCH"}}, false, 0);
}

}  // namespace
}  // namespace maki
