// A connection to a relay, made and admitted: addresses in turn, then the admission. For hidden listeners; a relay
// connects to its destinations by it too, without an admission.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "wan/net/relay/admission.hpp"
#include "wan/net/socket/event_loop.hpp"

namespace maki::wan {

class RelayDial final : private Pollable {
 public:
  enum class Failure {
    kAgain,     // nobody there, timeout, busy: later it may go
    kRefused,   // as what was asked for cannot be had
    kSecurity,  // the key
  };
  using Ask = std::function<std::unique_ptr<RelayAdmission>()>;  // one for each address; empty: no admission
  using Done = std::function<void(Socket)>;
  using Failed = std::function<void(Failure, const std::string& reason)>;

  // In the loop's thread, and so is the end. Exactly one of the two is called, later, unless the RelayDial ends first.
  // It may be ended inside them.
  RelayDial(EventLoop& loop, std::vector<Address> addresses, const PathSettings& settings, Ask ask, Done done,
            Failed failed);
  ~RelayDial() override;
  RelayDial(const RelayDial&) = delete;
  RelayDial& operator=(const RelayDial&) = delete;

 private:
  void on_ready(bool readable, bool writable) override;
  void try_next();
  void connected();
  void advance();
  void succeed();
  void give_up(Failure failure, const std::string& reason);
  void drop_socket();
  const Address& address() const { return addresses_[tried_ - 1]; }

  EventLoop& loop_;
  std::vector<Address> addresses_;
  PathSettings settings_;
  Ask ask_;
  Done done_;
  Failed failed_;
  std::size_t tried_ = 0;
  Socket socket_;
  std::unique_ptr<RelayAdmission> admission_;  // while there is none: connecting
  EventLoop::Timer timer_ = 0;
  std::string last_reason_;
};

}  // namespace maki::wan
