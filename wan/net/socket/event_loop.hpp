// One thread, one epoll: readiness of sockets, timers, and calls posted from other threads.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "wan/net/socket/tcp.hpp"

namespace maki::wan {

// An object with a file descriptor in a loop. Called in the loop's thread.
class Pollable {
 public:
  virtual ~Pollable() = default;
  // readable is also true on hang-up and error, so that the next read reports it. May forget() itself and be deleted.
  virtual void on_ready(bool readable, bool writable) = 0;
};

class EventLoop {
 public:
  using Clock = std::chrono::steady_clock;
  using Timer = std::uint64_t;  // 0 is none

  explicit EventLoop(const std::string& thread_name);
  ~EventLoop();  // stops the thread; work posted before has run, timers have not
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Thread-safe. post: runs soon, in order. call: waits until it has run (at once in the loop's thread); exceptions of
  // `work` are rethrown here.
  void post(std::function<void()> work);
  void call(const std::function<void()>& work);
  bool in_loop() const { return std::this_thread::get_id() == thread_.get_id(); }

  // In the loop's thread only. Level-triggered. A forgotten descriptor is not reported again, not even from the current
  // batch of events; close it only afterwards.
  void watch(int descriptor, bool read, bool write, Pollable& who);
  void change(int descriptor, bool read, bool write);
  void forget(int descriptor);

  Timer after(double seconds, std::function<void()> work);
  void cancel(Timer timer);  // no effect after it has run

 private:
  // The age distinguishes a descriptor from an earlier one with the same number within a batch of events.
  struct Watched {
    Pollable* who;
    std::uint32_t age;
    std::uint32_t events;
  };

  void run();
  int wait();
  void deliver(const epoll_event& event);
  bool run_posted();
  void run_timers();
  void wake();
  void control(int operation, int descriptor, const Watched& watched);

  Descriptor epoll_, wake_;
  bool precise_wait_ = true;  // the kernel has epoll_pwait2
  std::unordered_map<int, Watched> watched_;
  std::uint32_t next_age_ = 1;
  std::array<epoll_event, 128> events_{};

  std::map<std::pair<Clock::time_point, Timer>, std::function<void()>> timers_;
  std::unordered_map<Timer, Clock::time_point> timer_times_;
  Timer next_timer_ = 1;

  std::mutex mutex_;  // guards the members below
  std::vector<std::function<void()>> posted_;
  bool stopping_ = false;

  std::thread thread_;
};

// Accepts the connections of one port, in the loop's thread; pauses while the process is out of descriptors.
class Acceptor final : private Pollable {
 public:
  // `taken` gets each connection, `short_of`, before a pause, the reason. Throws Error if the port is unavailable.
  Acceptor(EventLoop& loop, const Endpoint& local, const PathSettings& settings,
           std::function<void(Socket, const Address& peer)> taken,
           std::function<void(const std::string& reason)> short_of);
  ~Acceptor() override;  // in the loop's thread
  Address address() const { return local_address(socket_.descriptor()); }

 private:
  void on_ready(bool, bool) override;

  EventLoop& loop_;
  std::function<void(Socket, const Address&)> taken_;
  std::function<void(const std::string&)> short_of_;
  Socket socket_;
  EventLoop::Timer pause_ = 0;
};

}  // namespace maki::wan
