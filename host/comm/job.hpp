// The job as a whole: how it ends when one rank cannot go on.
#pragma once

#include <string>

#include "host/comm/communicator.hpp"

namespace maki {

// Prints "maki: error: rank R: message" and ends all ranks (MPI_Abort); in a process alone, the message without a rank,
// and exit code 1. Where all ranks fail alike, one of them prints: after a timeout the lowest rank that is still heard
// of, else rank 0; the others first leave it a moment to end the job.
[[noreturn]] void abort_job(const std::string& message);

// Whether this process has started MPI.
bool under_mpi();

// This rank among those of the job on its machine; {0, 1} in a process alone.
struct OnMachine {
  int number = 0, ranks = 1;
};
OnMachine on_this_machine();

// The default GPU of this rank: the ranks of a machine take the visible GPUs in turn.
int usual_device();
// The default number of threads of this rank: 0 leaves it to OMP_NUM_THREADS and the cores that the launcher bound this
// rank to; without binding, the ranks of a machine share its cores evenly.
int usual_threads();

// Ranks, machines, and the path of device payloads with its reason, for the log: "8 ranks on 2 machines, 4 on each;
// between devices by NCCL (each rank has a GPU of its own; NCCL 2.28.9)". Collective, once a device is selected.
std::string describe_ranks(const Communicator& ranks);

// The MPI library, as it describes itself in one line.
std::string mpi_library();

}  // namespace maki
