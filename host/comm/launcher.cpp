#include "host/comm/launcher.hpp"

#include <cstdlib>
#include <string>

#include "kernels/error.hpp"

namespace maki {

Launcher find_launcher(const std::function<const char*(const char*)>& variable) {
  const auto number = [&](const char* name) {
    const char* text = variable(name);
    return text ? std::atoi(text) : 0;
  };
  if (variable("OMPI_COMM_WORLD_SIZE")) return {true, number("OMPI_COMM_WORLD_SIZE")};
  const int tasks = number(variable("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS");
  if (variable("PMI_RANK") || variable("PMI_SIZE")) return {true, number("PMI_SIZE")};
  if (variable("PMIX_RANK")) return {true, variable("SLURM_PROCID") ? tasks : 0};
  // A batch script's own shell is no task of a step, though it has the numbers of the allocation.
  const char* environment = variable("ENVIRONMENT");
  const bool batch_shell =
      environment && std::string(environment) == "BATCH" && !variable("SLURM_STEP_ID") && number("SLURM_PROCID") == 0;
  if (variable("SLURM_PROCID") && tasks > 1 && !batch_shell) {
    throw Error("srun started " + std::to_string(tasks) + " tasks that cannot find each other",
                "it offers no process management interface, so that each would run the whole job by itself",
                "use 'srun --mpi=pmix', or mpirun inside the allocation");
  }
  return {};
}

}  // namespace maki
