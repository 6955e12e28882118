// A TCP proxy on loopback that tests put between two peers, to do to them what networks do: cut connections, go silent,
// alter bytes, lead to another machine.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "wan/net/settings.hpp"

namespace maki::wan::test {

class Proxy {
 public:
  explicit Proxy(const Endpoint& target);
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  Endpoint address() const { return address_; }
  void lead_to(const Endpoint& target);                 // connections from now on
  void cut();                                           // all that there are, with a reset
  void cut_one();                                       // whichever moves bytes next, in the middle of them
  void stall(bool silent) { set(stalled_, silent); }    // nothing passes, nothing is closed, new ones wait
  void refuse(bool refuse) { set(refusing_, refuse); }  // new connections are closed at once
  // Called by the proxy's thread before anything passes, again and again: what it does to the proxy happens before that.
  // To be set while nobody is connected.
  void before_each(std::function<void()> call) { before_each_ = std::move(call); }
  void alter_one_byte();                            // in one of the next 16 pieces that pass; call by one thread
  int connections() const { return connections_; }  // so far
  std::uint64_t bytes() const { return bytes_; }    // passed on, both ways

 private:
  class Pump;
  void set(std::atomic<bool>& flag, bool value);

  Endpoint address_;
  std::function<void()> before_each_;
  std::mutex mutex_;
  Endpoint target_;
  std::atomic<bool> stalled_{false}, refusing_{false}, ending_{false}, cutting_{false};
  std::atomic<int> cut_one_{0}, alter_{0}, connections_{0};
  unsigned altered_ = 0;
  std::atomic<std::uint64_t> bytes_{0};
  int wake_ = -1;
  std::thread thread_;
};

}  // namespace maki::wan::test
