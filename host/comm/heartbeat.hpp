// Whether another rank still runs, however long it makes no call: a thread in each process answers for it.
//
// While MPI is waited for, a rank that computes, writes a file or is stopped looks the same. So each rank has a thread
// that makes no MPI calls and answers small UDP datagrams, with a secret of the job in them. It also asks two other
// ranks every second, so that each rank is watched by two. A rank that has answered before and then is silent for a
// twelfth of the timeout (10 s by default, 5 s at least) is lost: its process is stopped, gone, or cut off. Where no
// datagram comes through (a firewall between nodes, IPv6 only), nothing is concluded from silence: the timeout counts.
#pragma once

#include <string>
#include <vector>

namespace maki::mpi {

// Collective over the job, once MPI runs; `timeout` in seconds, alike on all ranks. Without sockets or threads ranks
// stay silent, which is no error.
void open_heartbeat(double timeout);

// What this rank's thread says of it: it has waited so long for others that they may all be waiting.
void say_waiting(bool waiting);
// This rank is about to end, with the job or with a message that names those lost: its thread leaves that to it.
// Otherwise the thread ends the process itself, with a message, some seconds after a rank was lost: calls that wait
// inside other libraries, those of parallel files for instance, would do so for ever.
void say_ending();

// Ranks of the job that this one's thread has found lost.
bool any_lost();
std::vector<int> lost_ranks();

// Asks all ranks of the job once; answers come in the meantime.
void ask_all();
struct Heartbeat {
  unsigned long answers = 0;  // so far; 0: it was never reached
  bool waiting = false;       // what the last one said
};
std::vector<Heartbeat> heartbeats();

// "rank 2 (node017)", "ranks 2 (node017) and 5 (node018)": with the machines' names, where ranks are on several.
std::string name_with_machines(const std::vector<int>& ranks);

}  // namespace maki::mpi
