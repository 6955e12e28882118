// The ranks on this machine, looked at from outside: one that is stopped (SIGSTOP, a full terminal) is seen at once,
// where only a long silence tells of one far away.
#pragma once

#include <vector>

namespace maki::mpi {

// Collective over the job, once MPI runs: tells which ranks share this machine and its process numbers.
void meet_neighbours();
// Ranks of the job on this machine that are stopped right now.
std::vector<int> stopped_neighbours();

}  // namespace maki::mpi
