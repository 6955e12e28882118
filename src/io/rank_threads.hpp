// A thread of each rank beside its main thread, which writes restarts and snapshots while a run goes on. The ranks
// agree when all these threads are done. Only main threads call MPI and HDF5.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <string>
#include <utility>

#include "host/comm/communicator.hpp"

namespace maki {

class RankThreads {
 public:
  explicit RankThreads(const Communicator& ranks) : ranks_(ranks) {}
  // Waits for this rank's thread.
  ~RankThreads() = default;

  // Starts this rank's thread, at lower priority than computing threads; not every rank needs one. May be called where
  // this rank's thread is not at work. `work` is destroyed at the thread's end. Where no thread can be started,
  // problem() says so.
  void start(std::function<void()> work);
  // Whether the threads of all ranks are done. Collective, returns at once.
  bool all_done() const;
  // Waits only for this rank's thread.
  void wait() const;
  // The message of the exception on the lowest rank with one; "" where all succeeded. Collective; all threads must be
  // done.
  std::string problem();

  // Seconds of work since the last call: of the slowest rank's threads, and of this rank's main thread while a MainWork
  // existed. The time in which nobody looked at finished work does not count.
  double take_seconds() { return std::exchange(seconds_, 0); }
  class MainWork {
   public:
    explicit MainWork(RankThreads& threads) : seconds_(threads.seconds_) {}
    ~MainWork() { seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }
    MainWork(const MainWork&) = delete;
    MainWork& operator=(const MainWork&) = delete;

   private:
    double& seconds_;
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  };

 private:
  struct End {
    std::string problem;
    double seconds;
  };
  Communicator ranks_;
  std::future<End> thread_;
  double seconds_ = 0;
};

}  // namespace maki
