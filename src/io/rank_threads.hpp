// A thread of each rank that works beside its main thread, and its end, on which the ranks agree: what writes restarts and
// snapshots while a run goes on. MPI and HDF5 are the main threads'.
#pragma once

#include <functional>
#include <future>
#include <string>

#include "host/comm/communicator.hpp"

namespace maki {

class RankThreads {
 public:
  explicit RankThreads(const Communicator& ranks) : ranks_(ranks) {}
  // Waits for this rank's thread.
  ~RankThreads() = default;

  // Starts this rank's thread, behind those that compute; a rank may have none. May be called where none is at work.
  // `work` is let go of at the thread's end.
  void start(std::function<void()> work);
  // Whether the threads of all ranks are done. Collective, returns at once.
  bool all_done() const;
  // Waits for this rank's thread alone.
  void wait() const;
  // What the call threw on the lowest rank where it did; "" where all went well. Collective; all threads are done.
  std::string problem();

 private:
  Communicator ranks_;
  std::future<std::string> thread_;
};

}  // namespace maki
