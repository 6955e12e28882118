// Heartbeats: a thread in each process tells that it still runs, however long it makes no MPI call.
//
// To a rank that waits in MPI, a peer that computes, writes a file or is stopped looks the same. So each rank has a
// thread that makes no MPI calls and sends rank 0 a small UDP datagram every second, with a secret of the job and
// whether its rank waits; rank 0 answers. A peer that was heard of and then is silent for a twelfth of the timeout (10
// s by default, 5 s at least) is lost: its process is stopped, gone, or cut off. Rank 0 detects the others, and they
// rank 0. Where no datagram arrives at all (a firewall between nodes, IPv6 only), silence means nothing, and the
// timeout applies.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace maki::mpi {

// Starts the heartbeat. Collective over the job, once MPI runs; `timeout` in seconds, the same on all ranks. Without
// sockets or threads ranks stay silent, which is no error.
void open_heartbeat(double timeout);

// Sets whether this rank has waited for half of the timeout, so that all may be waiting for each other.
void say_waiting(bool waiting);
// This rank is about to end, with the job or with a message that names the lost ranks; its thread leaves that to it.
// Otherwise the thread ends the process itself, with a message, some seconds after a rank was lost: calls that wait
// inside other libraries, such as parallel file I/O, would wait for ever.
void say_ending();

// Ranks of the job that this rank's thread has found lost.
std::vector<int> lost_ranks();
// On rank 0: whether all ranks that are heard of report that they wait. On others false: rank 0 tells.
bool all_wait();
// Whether rank 0 has heard of all ranks; on others, of rank 0.
bool in_touch();

// When ranks have the same to report, lower ones speak first and end the job: seconds that this rank leaves them.
inline double turn_to_speak(int rank) { return rank == 0 ? 0 : 2 + std::min(0.1 * rank, 3.0); }

// "rank 2", "ranks 2, 3 and 5", "ranks 2, 3, 5 and 12 more"; with machine names where there are several: "rank 2
// (node017)".
std::string name_ranks(const std::vector<int>& ranks);

}  // namespace maki::mpi
