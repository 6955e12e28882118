#include "host/comm/survivor_check.hpp"

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "host/comm/mpi_ranks.hpp"

namespace maki::mpi {
namespace {

using Clock = std::chrono::steady_clock;
// Waiting ranks look for a call more than ten times in this time.
constexpr std::chrono::milliseconds kMoment{1500};

MPI_Comm roll = MPI_COMM_NULL;
int spokesman = 0;
std::vector<bool> heard;

}  // namespace

void open_survivor_check() {
  check(MPI_Comm_dup(MPI_COMM_WORLD, &roll), "MPI_Comm_dup");
  check(MPI_Comm_set_errhandler(roll, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
}

bool survivor_check_is_called() {
  int called = 0;
  return MPI_Iprobe(MPI_ANY_SOURCE, 0, roll, &called, MPI_STATUS_IGNORE) == MPI_SUCCESS && called;
}

std::vector<bool> check_survivors() {
  if (!heard.empty()) return heard;
  int rank = 0, size = 0;
  MPI_Comm_rank(roll, &rank);
  MPI_Comm_size(roll, &size);
  heard.assign(size, false);
  heard[rank] = true;
  static const char here = 1;
  for (int to = 0; to < size; ++to) {
    MPI_Request request;
    // Nobody waits for these: a rank that does not run does not take them.
    if (to != rank && MPI_Isend(&here, 1, MPI_BYTE, to, 0, roll, &request) == MPI_SUCCESS) MPI_Request_free(&request);
  }
  for (const auto end = Clock::now() + kMoment; Clock::now() < end;) {
    int came = 0;
    MPI_Status status;
    if (MPI_Iprobe(MPI_ANY_SOURCE, 0, roll, &came, &status) == MPI_SUCCESS && came) {
      char byte;
      MPI_Recv(&byte, 1, MPI_BYTE, status.MPI_SOURCE, 0, roll, MPI_STATUS_IGNORE);
      heard[status.MPI_SOURCE] = true;
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  spokesman = static_cast<int>(std::find(heard.begin(), heard.end(), true) - heard.begin());
  return heard;
}

bool speaks_for_all() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank == spokesman;
}

std::string name_ranks(const std::vector<int>& ranks, const std::function<std::string(int)>& more) {
  constexpr std::size_t kNamed = 12;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  const std::size_t named = std::min(ranks.size(), kNamed);
  for (std::size_t i = 0; i < named; ++i) {
    if (i > 0) text += i + 1 == ranks.size() ? " and " : ", ";
    text += std::to_string(ranks[i]) + (more ? more(ranks[i]) : "");
  }
  if (ranks.size() > named) text += " and " + std::to_string(ranks.size() - named) + " more";
  return text;
}

}  // namespace maki::mpi
