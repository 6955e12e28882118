// One connection that has come in, until it has shown who it is and been answered: TLS, Hello, Welcome. Runs in one loop.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "wan/net/path/greeting_io.hpp"
#include "wan/net/path/wire.hpp"
#include "wan/net/secure/channel.hpp"
#include "wan/net/socket/event_loop.hpp"

namespace maki::wan {

class Greeter final : public Pollable {
 public:
  // decide: what to answer, once the peer is authenticated and its Hello is read. Then exactly one of the others, which may delete
  // the Greeter: welcomed, when an Answer::kWelcome is sent in full; gone, for everything else, with the reason in words.
  struct Events {
    std::function<Welcome(const Hello&, const Channel&)> decide;
    std::function<void(Greeter&, std::unique_ptr<Channel>)> welcomed;
    std::function<void(Greeter&, const std::string& reason)> gone;
  };

  // Nothing is called from within the constructor. All of it has to be over in `timeout` seconds.
  Greeter(EventLoop& loop, std::unique_ptr<Channel> channel, const Address& peer, double timeout, Events events);
  ~Greeter() override;
  void on_ready(bool, bool) override;

  const Address& peer() const { return peer_; }
  const Hello& hello() const { return hello_; }      // once decided
  const Welcome& welcome() const { return welcome_; }
  bool decided() const { return phase_ == Phase::kWelcome; }

 private:
  enum class Phase { kSecure, kHello, kWelcome };

  bool advance();
  IoStatus step();
  void end();
  void fail(const std::string& reason);

  EventLoop& loop_;
  std::unique_ptr<Channel> channel_;
  Address peer_;
  Events events_;
  Phase phase_ = Phase::kSecure;
  int watched_ = -1;
  EventLoop::Timer timer_ = 0;
  Incoming<kHelloBytes> question_;
  Outgoing answer_;
  Hello hello_;
  Welcome welcome_;
};

}  // namespace maki::wan
