// MPI as the rest of host/comm uses it: errors as exceptions, waiting that ends. Included by host/comm/*.cpp only.
#pragma once

#include <mpi.h>

#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "host/comm/communicator.hpp"

namespace maki::mpi {

// One MPI communicator and what belongs to it. `comm` is MPI_COMM_NULL for a process alone.
struct Ranks {
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0, size = 1;
  std::vector<int> in_world;  // the rank in the job of each rank here
  Communicator::Limits limits;
  double timeout = 120;  // s
};

// Throws Error where an MPI call did not succeed.
void check(int code, const char* call);

// Starts MPI (once) and gives the job's ranks; `expected` of them, where that is not 0.
Ranks start(int expected);
// A communicator of `comm`'s members with errors as return values.
Ranks describe(MPI_Comm comm, const Ranks& like);
// Frees the communicator, where that can still be done.
void release(Ranks& ranks);

// One spell of waiting: ever longer pauses between looks at the requests, so that ranks that share a core leave it to
// those that work, and an end after the timeout.
//
// When it ends: at once when a rank is lost (heartbeat.hpp); after the timeout when all ranks say that they wait, or
// where none is heard of. A rank at work is waited for as long as it takes, with a line on standard error now and then.
// So a long computation or a slow file is no fault, and a stopped process is one. Rank 0 decides for all in touch.
class Patience {
 public:
  Patience(const Ranks& ranks, std::string what);
  ~Patience();
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;
  // Something came: the timeout starts anew.
  void refresh();
  // Waits a little. At the end throws Error naming the ranks that are not heard from; `pending` (ranks here) are those
  // waited for, which are named if all answer.
  void pause(const std::function<std::vector<int>()>& pending);

 private:
  using Clock = std::chrono::steady_clock;
  [[noreturn]] void give_up(const std::vector<int>& lost, const std::vector<int>& pending) const;
  const Ranks& ranks_;
  std::string what_;
  int idle_ = 0;
  Clock::time_point looked_;
  std::chrono::duration<double> waited_{0};  // since something came
};

// Waits for one request of a collective call.
void finish(const Ranks& ranks, MPI_Request request, const char* what);

}  // namespace maki::mpi
