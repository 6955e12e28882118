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
  std::vector<int> in_world;  // by rank of `comm`: its rank in the job
  Communicator::Limits limits;
  double timeout = 120;  // s
};

// Throws Error where an MPI call did not succeed.
void check(int code, const char* call);

// Starts MPI (once) and gives the job's ranks; `expected` of them, where that is not 0.
Ranks start(int expected);
// Describes `comm`, with limits and timeout of `like`; from here on MPI returns errors of `comm` as codes.
Ranks describe(MPI_Comm comm, const Ranks& like);
// Frees the communicator, unless MPI is finalized already.
void release(Ranks& ranks);

// One spell of waiting: ever longer pauses between looks at the requests, so that ranks that share a core leave it to
// those that work, and an end after the timeout.
//
// The waiting ends at once when a rank is lost (heartbeat.hpp) or another has given up, else after the timeout, unless
// a rank answers that it is at work: then it goes on, with a line on standard error now and then. So a long computation
// or a slow file is no fault, and a stopped process is one.
class Patience {
 public:
  Patience(const Ranks& ranks, std::string what);
  ~Patience();
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;
  // Something came: the timeout starts anew.
  void refresh();
  // Waits a little. When waiting ends, throws Error naming the ranks that do not answer, or if all answer the ranks of
  // `pending` (numbered as in `comm`), which are still waited for.
  void pause(const std::function<std::vector<int>()>& pending);

 private:
  using Clock = std::chrono::steady_clock;
  bool others_are_at_work();
  [[noreturn]] void give_up(const std::vector<int>& pending) const;
  const Ranks& ranks_;
  std::string what_;
  int idle_ = 0;
  Clock::time_point looked_;
  std::chrono::duration<double> waited_{0};  // since something came
  std::chrono::duration<double> asked_{0};   // the part of it after which all ranks were asked; 0: they were not
  std::vector<unsigned long> answers_;       // by rank: the answers counted at that time
};

// Waits for one request of a collective call.
void finish(const Ranks& ranks, MPI_Request request, const char* what);

}  // namespace maki::mpi
