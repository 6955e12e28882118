// Making a connection: to one of several addresses, and if that is a relay's, with its admission.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "wan/net/relay/admission.hpp"
#include "wan/net/socket/event_loop.hpp"

namespace maki::wan {

// The next address is tried when those before it have failed or are slow; the first that answers is taken (RFC 8305,
// simplified). Used, and ended, in the loop's thread.
class Connector {
 public:
  enum class Failure {
    kAgain,     // nobody there, timeout, busy: may work later
    kRefused,   // by the relay, for this request
    kSecurity,  // the relay's key
  };
  using Done = std::function<void(Socket, const Address& peer)>;
  using Failed = std::function<void(Failure, const std::string& reason)>;
  // Attempts at a time, each with a socket, for any number of addresses and any time.
  static constexpr std::size_t kAtOnce = 3;

  // Exactly one of the two is called, later, unless the Connector ends first. It may be ended inside them. Without
  // `admission`: no relay.
  Connector(EventLoop& loop, std::vector<Address> addresses, const PathSettings& settings,
            std::unique_ptr<RelayAdmission> admission, Done done, Failed failed);
  ~Connector();
  Connector(const Connector&) = delete;
  Connector& operator=(const Connector&) = delete;

 private:
  struct Attempt final : Pollable {
    Attempt(Connector& owner, const Address& address) : owner(owner), address(address) {}
    void on_ready(bool, bool) override { owner.on_ready(*this); }
    Connector& owner;
    Address address;
    Socket socket;
    EventLoop::Timer timeout = 0;
  };

  void start_next();
  void make_room();
  void go_on();
  void on_ready(Attempt& attempt);
  void answered(Attempt& attempt);
  bool admitted(Attempt& attempt);
  void fail(Attempt& attempt, const std::string& reason);
  void end(Attempt& attempt);
  void give_up(Failure failure, const std::string& reason);
  double time_left() const;  // of the first attempt
  void add_reason(const std::string& reason);

  EventLoop& loop_;
  std::vector<Address> addresses_;
  PathSettings settings_;
  std::unique_ptr<RelayAdmission> admission_;
  Done done_;
  Failed failed_;
  std::size_t next_ = 0;  // attempts so far; addresses are tried in turn
  const EventLoop::Clock::time_point begun_ = EventLoop::Clock::now();
  std::list<Attempt> attempts_;  // only one once it is connected
  bool connected_ = false;
  EventLoop::Timer timer_ = 0;
  std::string reasons_;
  std::vector<std::string> made_room_;  // addresses that were dropped unanswered
};

}  // namespace maki::wan
