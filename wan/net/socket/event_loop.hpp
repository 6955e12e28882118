// One thread, one epoll: readiness of sockets, timers, and calls posted from other threads.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace maki::wan {

// Something with a file descriptor in a loop. Called in the loop's thread.
class Pollable {
 public:
  virtual ~Pollable() = default;
  // readable is also true on hang-up and error, so that the next read finds out. May forget() itself and be deleted.
  virtual void on_ready(bool readable, bool writable) = 0;
};

class EventLoop {
 public:
  using Clock = std::chrono::steady_clock;
  using Timer = std::uint64_t;  // 0 is none

  explicit EventLoop(const std::string& thread_name);
  ~EventLoop();  // stops the thread; what was posted before has run, timers have not
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // From any thread. post: runs soon, in order. call: waits until it has run (at once when in the loop); an exception
  // of `work` is thrown here.
  void post(std::function<void()> work);
  void call(const std::function<void()>& work);
  bool in_loop() const;

  // In the loop's thread only. Level-triggered. A forgotten descriptor is not reported again, not even from the batch
  // of events at hand; close it only afterwards.
  void watch(int descriptor, bool read, bool write, Pollable& who);
  void change(int descriptor, bool read, bool write);
  void forget(int descriptor);

  Timer at(Clock::time_point when, std::function<void()> work);
  Timer after(double seconds, std::function<void()> work);
  void cancel(Timer timer);  // harmless for one that has run

 private:
  class Core;
  std::unique_ptr<Core> core_;
};

}  // namespace maki::wan
