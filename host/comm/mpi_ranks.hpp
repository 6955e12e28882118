// MPI for the rest of host/comm: errors as exceptions, waits that end, heartbeats. Included by host/comm/*.cpp only.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "host/comm/communicator.hpp"

namespace maki::mpi {

// One MPI communicator and its settings. `comm` is MPI_COMM_NULL for a single process.
struct Ranks {
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0, size = 1;
  std::vector<int> in_world;  // the rank in the job of each rank of this communicator
  Communicator::Limits limits;
  double timeout = 120;  // s
};

// Throws Error where an MPI call did not succeed.
void check(int code, const char* call);

// Starts MPI (once), or takes it as another library of this process has started it, and returns the job's ranks, which
// must be `expected` where that is not 0. MPI is finalized by who started it. Throws Error, also where MPI was started
// without threads, or was finalized.
Ranks start(int expected);
// Whether another library has started MPI, with other ranks.
bool started_with_others();
// Describes `comm`, whose errors become return values; other settings from `like`.
Ranks describe(MPI_Comm comm, const Ranks& like);
// Frees the communicator, where that is still possible.
void release(Ranks& ranks);

// One wait, with a timeout: ever longer pauses between looks at the requests, so that ranks on a shared core yield it
// to working ones.
//
// The wait fails at once when a rank is lost (lost_ranks()), and after the timeout when all ranks report that they
// wait, or where none is heard of. A rank at work is waited for as long as it takes, with a line on standard error now
// and then. So a long computation or a slow file is no fault, but a stopped process is. Rank 0 decides for all ranks
// with which it is in touch.
class Patience {
 public:
  Patience(const Ranks& ranks, std::string what);
  ~Patience();
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;
  // There was progress: restarts the timeout.
  void refresh();
  // Waits a little. Where the wait has failed, throws Error that names the lost ranks or, if all answer, those of
  // `pending`: the ranks of this communicator that are waited for.
  void pause(const std::function<std::vector<int>()>& pending);

 private:
  using Clock = std::chrono::steady_clock;
  [[noreturn]] void give_up(const std::vector<int>& lost, const std::vector<int>& pending) const;
  const Ranks& ranks_;
  std::string what_;
  int idle_ = 0;
  Clock::time_point looked_;
  std::chrono::duration<double> waited_{0};  // since the last progress
};

// Waits for one request of a collective call.
void finish(const Ranks& ranks, MPI_Request request, const char* what);

// One exchange of messages in progress. All receives are posted at once, into their final memory, so that every send
// meets a receive: there is no deadlock. Sends follow as the limits allow; each rank begins with its next neighbour, so
// that no rank is the target of all at once. Pieces of a message, and messages to the same rank, are distinguished by
// their order, which MPI keeps for equal tags.
class Exchange {
 public:
  Exchange(const Ranks& ranks, std::span<const Communicator::Outgoing> out, std::span<const Communicator::Incoming> in,
           int tag, Communicator::Traffic& traffic);
  // Cancels an exchange that is not finished (the job or the caller fails): nothing more is received.
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // Advances the messages without waiting. Throws Error where a peer sends another size.
  Communicator::Look look();
  // Ranks that are still waited for.
  std::vector<int> pending() const;

 private:
  struct Piece {
    int peer;
    char* data;
    std::size_t bytes;
    bool sends;
  };
  template <class Message>
  std::vector<Piece> cut(std::span<const Message> messages, bool sends) const;
  void copy_own(std::span<const Communicator::Outgoing> out, std::span<const Communicator::Incoming> in) const;
  void receive_all(std::vector<Piece> pieces);
  void send_more();
  bool test();

  const Ranks& ranks_;
  int tag_;
  Communicator::Traffic& traffic_;
  std::vector<Piece> to_send_;
  std::size_t next_ = 0, sending_ = 0, sending_bytes_ = 0;
  std::vector<Piece> posted_;  // parallel to requests_
  std::vector<MPI_Request> requests_;
  std::vector<int> done_;
  std::vector<MPI_Status> statuses_;
};

// ---- heartbeats -----------------------------------------------------------------------------------------------------

// A thread in each process tells that it still runs, however long it makes no MPI call.
//
// To a rank that waits in MPI, a peer that computes, writes a file or is stopped looks the same. So each rank has a
// thread that makes no MPI calls and sends rank 0 a small UDP datagram every second, with a secret of the job and
// whether its rank waits; rank 0 answers. A peer that was heard of and then is silent for a twelfth of the timeout (10
// s by default, 5 s at least) is lost: its process is stopped, gone, or cut off. Rank 0 detects the others, and they
// rank 0. Where no datagram arrives at all (a firewall between nodes, IPv6 only), silence means nothing, and the
// timeout applies.

// Starts the heartbeat. Collective over the job, once MPI runs; `timeout` in seconds, the same on all ranks. Without
// sockets or threads ranks stay silent, which is no error.
void open_heartbeat(double timeout);

// Sets whether this rank has waited for half of the timeout, so that all may be waiting for each other.
void say_waiting(bool waiting);
// States that this rank is about to end, with the job or with a message that names the lost ranks. Otherwise the
// heartbeat thread ends the process itself, with a message, some seconds after a rank was lost: calls that wait inside
// other libraries, such as parallel file I/O, would wait for ever.
void say_ending();

// Ranks of the job that this rank's thread has found lost.
std::vector<int> lost_ranks();
// On rank 0: whether all ranks that are heard of report that they wait. On others false: rank 0 tells.
bool all_wait();
// Whether rank 0 has heard of all ranks; on others, of rank 0.
bool in_touch();

// Seconds that this rank waits before it reports an error: lower ranks with the same error report it first and end the
// job.
inline double turn_to_speak(int rank) { return rank == 0 ? 0 : 2 + std::min(0.1 * rank, 3.0); }

// "rank 2", "ranks 2, 3 and 5", "ranks 2, 3, 5 and 12 more"; with machine names where there are several: "rank 2
// (node017)".
std::string name_ranks(const std::vector<int>& ranks);

}  // namespace maki::mpi
