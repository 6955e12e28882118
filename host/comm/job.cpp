#include "host/comm/job.hpp"

#include <mpi.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "host/comm/heartbeat.hpp"

namespace maki {

void abort_job(const std::string& message) {
  std::fflush(stdout);
  if (!under_mpi()) {
    std::fprintf(stderr, "maki: error: %s\n", message.c_str());
    std::fflush(stderr);
    std::_Exit(1);
  }
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::this_thread::sleep_for(std::chrono::duration<double>(mpi::turn_to_speak(rank)));
  std::fprintf(stderr, "maki: error: rank %d: %s\n", rank, message.c_str());
  std::fflush(stderr);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::_Exit(1);
}

}  // namespace maki
