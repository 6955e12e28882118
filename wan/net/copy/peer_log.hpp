// What a server says of its clients: every line safe to be shown, and no more of them than an operator can bear.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <string>

namespace maki::wan::copy {

// Any thread.
class PeerLog {
 public:
  static constexpr int kAMinute = 60;               // lines of mention() about each identity
  static constexpr int kBurst = 100, kASecond = 4;  // orders of each identity

  explicit PeerLog(std::function<void(const std::string& line)> sink) : sink_(std::move(sink)) {}

  // What has to be said. Whoever calls for a peer waits for its turn() first.
  void record(const std::string& line);
  // What may be left out: beyond so many a minute lines are counted only.
  void mention(const std::string& identity, const std::string& line);
  void catch_up();  // called now and then: says how many were left out
  // Seconds that an order of this identity has to wait for, so that orders do not fill the log.
  double turn(const std::string& identity);

 private:
  using Clock = std::chrono::steady_clock;
  struct Peer {
    Clock::time_point minute = Clock::now();  // when it began
    int said = 0;
    std::uint64_t left_out = 0;
    Clock::time_point due = {};  // of the latest order, if they came evenly
  };
  void sum_up(const std::string& identity, Peer& peer);

  std::function<void(const std::string& line)> sink_;
  std::mutex mutex_;
  std::map<std::string, Peer> peers_;  // of authenticated ones only
};

}  // namespace maki::wan::copy
