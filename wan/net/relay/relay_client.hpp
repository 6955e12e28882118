// A connection that a relay has accepted, until it is refused or handed on.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "wan/net/relay/admission_check.hpp"
#include "wan/net/socket/event_loop.hpp"
#include "wan/net/socket/tcp.hpp"

namespace maki::wan {

class RelayClient final : private Pollable {
 public:
  // All in the loop's thread; the client may be deleted inside any of them.
  struct Host {
    virtual ~Host() = default;
    virtual void asked(RelayClient& client) = 0;                         // decide() is to follow, now or later
    virtual void gone(RelayClient& client, const std::string& why) = 0;  // nothing follows
  };
  using Then = std::function<void(RelayClient&)>;

  RelayClient(EventLoop& loop, Host& host, const KeyRing& keys, std::uint64_t number, Socket socket,
              const Address& address, double timeout);
  ~RelayClient() override;

  std::uint64_t number() const { return number_; }
  const Address& address() const { return address_; }
  bool admitted() const { return check_.admitted(); }
  const admission::Request& request() const { return check_.request(); }
  // Once, after asked(). `then` when the verdict has left.
  void decide(const admission::Verdict& verdict, Then then);
  Socket take();  // the socket, from `then` on

 private:
  enum class Step { kAsking, kWaiting, kVerdict };
  void on_ready(bool readable, bool writable) override;
  void hear();
  void tell();
  bool still_there() const;
  void leave(const std::string& why);
  void limit_time(const char* what);

  EventLoop& loop_;
  Host& host_;
  AdmissionCheck check_;
  std::uint64_t number_;
  Socket socket_;
  Address address_;
  double timeout_;
  Step step_ = Step::kAsking;
  Then then_;
  EventLoop::Timer timer_ = 0;
};

}  // namespace maki::wan
