// The job as a whole: its launcher, its machines, and its end when one rank cannot go on.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "host/comm/communicator.hpp"

namespace maki {

// Waits turn_to_speak() (mpi_ranks.hpp), once in a process: if all ranks fail alike, the lowest prints its error and
// ends the job first.
void wait_to_speak();

// Prints "maki: error: rank R: message" (in a single process without a rank), after wait_to_speak(), and ends all ranks
// (MPI_Abort) with the exit code.
[[noreturn]] void abort_job(const std::string& message, int exit_code = 1);

// Whether MPI runs in this process.
bool under_mpi();

// Throws Error under several ranks; `what` ("calibrate is measured by") begins its message, `why` is the reason. Starts
// MPI under a launcher.
void require_one_process(const std::string& what, const std::string& why, const std::string& advice);

// Throws Error on all ranks where `bytes` of any are more than its share of the memory that its machine, or the job's
// limit there, has left. `what`: "the particles of 'FILE'". Collective.
void require_host_memory(const Communicator& ranks, const std::string& what, double bytes);

// This rank among the job's ranks on its machine; the defaults are those of a single process.
struct OnMachine {
  int number = 0, ranks = 1;
  int cores = 0;  // share_of_cores() of this rank; 0 in a single process
};
OnMachine on_this_machine();

// The cores on which a process may run, a bit each, as sched_getaffinity() gives them.
using CoreSet = std::array<std::uint64_t, 128>;

// The cores of this process. With OMP_PROC_BIND its first thread may be bound to some of them: then the cores of all
// places of OpenMP.
CoreSet own_cores();

// Cores for rank number `rank` of a machine, at least 1: each core is divided among the ranks that may run on it.
int share_of_cores(const std::vector<CoreSet>& of_ranks, std::size_t rank);

// Which of the GPUs that it sees each rank of a machine takes, by its place in the rank's list. A GPU has the same name
// for all ranks, which may see different ones. Ranks that see fewer choose first; each takes the first of those that the
// fewest ranks have taken.
std::vector<int> gpus_in_turn(const std::vector<std::vector<std::string>>& seen);
// The default GPU of this rank: the ranks of a machine take the GPUs that they see in turn. Collective.
int usual_device(const Communicator& ranks);
// Ranks of this machine that have selected the same GPU; in a CPU build all ranks of the machine. Collective.
int ranks_on_this_device(const Communicator& ranks);
// The default threads of this rank: its share_of_cores(), or of the machine's processor_quota() where that is less.
// 0: OMP_NUM_THREADS decides, or all cores of a single process.
int usual_threads();

// Ranks, machines, and the path of device payloads with its reason, for the log: "8 ranks on 2 machines, 4 on each;
// between devices by NCCL (each rank has a GPU of its own; NCCL 2.28.9)"; "4 ranks on node7, up to 2 on one GPU; ...".
// Collective, once a device is selected.
std::string describe_ranks(const Communicator& ranks);

// For estimates: host bytes of MPI and its buffers.
inline constexpr double kMpiBytes = 60e6;

// The MPI library's description of itself, in one line.
std::string mpi_library();
// The NCCL version ("2.28.9") that this build is linked to; empty in a build without NCCL.
std::string nccl_version();

// The machines of a job's ranks.
struct Machines {
  int count = 1;       // machines with ranks of the communicator
  int this_one = 0;    // 0 ... count-1, in the order of their lowest ranks
  int ranks_here = 1;  // on this machine
  int most_ranks = 1;  // on the machine with the most ranks
  std::string name;    // of this machine, as the network knows it
};

// Collective.
Machines find_machines(const Communicator& ranks);

// The launcher that started this process, as the environment shows it.
struct Launcher {
  bool starts_mpi = false;  // there are other ranks: MPI must be started
  int ranks = 0;            // as the launcher says; 0: it does not say
};

// `variable` gives an environment variable's value, or null. Throws Error where srun started several tasks without a
// process management interface: under MPI each would consider itself the only one.
Launcher find_launcher(const std::function<const char*(const char*)>& variable);

}  // namespace maki
