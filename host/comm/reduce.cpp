#include "host/comm/reduce.hpp"

namespace maki::mpi {

void gather(const Ranks& ranks, const void* mine, void* all, std::size_t bytes) {
  const int count = static_cast<int>(bytes);
  MPI_Request request;
  check(MPI_Iallgather(mine, count, MPI_BYTE, all, count, MPI_BYTE, ranks.comm, &request), "MPI_Iallgather");
  finish(ranks, request, "a gathering");
}

void transpose(const Ranks& ranks, const void* mine, void* theirs, std::size_t bytes) {
  const int count = static_cast<int>(bytes);
  MPI_Request request;
  check(MPI_Ialltoall(mine, count, MPI_BYTE, theirs, count, MPI_BYTE, ranks.comm, &request), "MPI_Ialltoall");
  finish(ranks, request, "an exchange of equal blocks");
}

}  // namespace maki::mpi
