// One thread of a relay that moves bytes, with its share of the sessions.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "wan/net/relay/session.hpp"

namespace maki::wan {

struct SessionReport {
  std::uint64_t number = 0;
  std::uint64_t there = 0, back = 0;  // bytes from the caller to the target, and back
  double seconds = 0;
  std::string how;  // it ended
};

class RelayPump {
 public:
  using Ended = std::function<void(const SessionReport&)>;  // in the pump's thread
  // A session in which nothing moves for `idle_timeout` seconds is ended.
  RelayPump(const std::string& thread_name, double idle_timeout, Ended ended);
  ~RelayPump();  // ends what is left, and reports it

  void add(std::uint64_t number, Socket caller, Socket target);                   // any thread
  std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }  // moved since the start

 private:
  struct Running {
    std::unique_ptr<RelaySession> session;
    EventLoop::Clock::time_point since;
  };
  void start(std::uint64_t number, Socket caller, Socket target);
  void ended(std::uint64_t number, const std::string& how);
  void end_idle();
  void watch_idle();

  double idle_timeout_;
  Ended ended_;
  std::atomic<std::uint64_t> bytes_{0};
  PipePool pipes_;
  std::map<std::uint64_t, Running> sessions_;
  EventLoop loop_;  // last: its thread uses all the rest
};

}  // namespace maki::wan
