// Connecting to one of several addresses: the next one starts when those before it failed or are slow, and the first
// that answers is taken (RFC 8305, in short). Runs in one loop.
#pragma once

#include <functional>
#include <list>
#include <string>
#include <vector>

#include "wan/net/socket/event_loop.hpp"
#include "wan/net/socket/tcp.hpp"

namespace maki::wan {

class ConnectRace {
 public:
  // Exactly one of the two, never from within the constructor. Either may delete the race.
  using Won = std::function<void(Socket, const Address&)>;
  using Lost = std::function<void(const std::string& reasons)>;
  ConnectRace(EventLoop& loop, std::vector<Address> addresses, const PathSettings& settings, Won won, Lost lost);
  ~ConnectRace();
  ConnectRace(const ConnectRace&) = delete;
  ConnectRace& operator=(const ConnectRace&) = delete;

 private:
  struct Attempt final : Pollable {
    Attempt(ConnectRace& race, const Address& address) : race(race), address(address) {}
    void on_ready(bool, bool) override { race.answered(*this); }
    ConnectRace& race;
    Address address;
    Socket socket;
    EventLoop::Timer timeout = 0;
  };

  void start_next();
  void answered(Attempt& attempt);
  void fail(Attempt& attempt, const std::string& reason);
  void end(Attempt& attempt);
  void go_on();
  double time_left() const;  // of the first attempt
  void add_reason(const std::string& reason);

  EventLoop& loop_;
  std::vector<Address> addresses_;
  PathSettings settings_;
  Won won_;
  Lost lost_;
  std::size_t next_ = 0;  // attempts so far: the addresses in turn
  const EventLoop::Clock::time_point begun_ = EventLoop::Clock::now();
  std::list<Attempt> attempts_;
  EventLoop::Timer timer_ = 0;
  std::string reasons_;
};

}  // namespace maki::wan
