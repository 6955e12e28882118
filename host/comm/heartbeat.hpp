// Whether the ranks still run, however long they make no call: a thread in each process says so.
//
// While MPI is waited for, a rank that computes, writes a file or is stopped looks the same. So each rank has a thread
// that makes no MPI calls and sends rank 0 a small UDP datagram every second, with a secret of the job in it and with
// whether its rank waits; rank 0 answers. Who was heard of and then is silent for a twelfth of the timeout (10 s by
// default, 5 s at least) is lost: its process is stopped, gone, or cut off. Rank 0 finds the others, and they rank 0.
// Where no datagram comes through (a firewall between nodes, IPv6 only), nothing is concluded from silence: the
// timeout counts.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace maki::mpi {

// Collective over the job, once MPI runs; `timeout` in seconds, alike on all ranks. Without sockets or threads ranks
// stay silent, which is no error.
void open_heartbeat(double timeout);

// This rank has waited for half of the timeout, so that all may be waiting for each other; it no longer does.
void say_waiting(bool waiting);
// This rank is about to end, with the job or with a message that names those lost: its thread leaves that to it.
// Otherwise the thread ends the process itself, with a message, some seconds after a rank was lost: calls that wait
// inside other libraries, those of parallel files for instance, would do so for ever.
void say_ending();

// Ranks of the job that this one's thread has found lost.
std::vector<int> lost_ranks();
// On rank 0: all ranks that are heard of say that they wait. Else: false, rank 0 tells.
bool all_wait();
// Rank 0 has heard of all ranks, the others of rank 0.
bool in_touch();

// Of ranks that all have the same to say the lower speak first and end the job: how long this one leaves it to them, s.
inline double turn_to_speak(int rank) { return rank == 0 ? 0 : 2 + std::min(0.1 * rank, 3.0); }

// "rank 2", "ranks 2, 3 and 5", "ranks 2, 3, 5 and 12 more"; of several machines with their
// names: "rank 2 (node017)".
std::string name_ranks(const std::vector<int>& ranks);

}  // namespace maki::mpi
