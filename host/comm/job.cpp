#include "host/comm/job.hpp"

#include <mpi.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "host/comm/survivor_check.hpp"

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
  // Time for the one that speaks to end the job, if it fails as well.
  if (!mpi::speaks_for_all()) std::this_thread::sleep_for(std::chrono::seconds(2));
  std::fprintf(stderr, "maki: error: rank %d: %s\n", rank, message.c_str());
  std::fflush(stderr);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::_Exit(1);
}

}  // namespace maki
