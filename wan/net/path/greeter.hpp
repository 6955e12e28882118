// One connection that has come in, until it has shown who it is and been answered: TLS, Hello, Welcome. Runs in one
// loop. Who comes with TLS where there is none, or without, is told so in plain bytes, which decide nothing but what is
// said.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "wan/net/path/wire.hpp"
#include "wan/net/secure/channel.hpp"
#include "wan/net/socket/event_loop.hpp"

namespace maki::wan {

class Greeter final : public Pollable {
 public:
  // known: the peer has shown its key or certificate; may delete other Greeters, not this one. decide: what to answer,
  // once its Hello is read too. Then exactly one of the others, which may delete the Greeter: welcomed, when an
  // Answer::kWelcome is sent in full; gone, for everything else, with the reason in words.
  struct Events {
    std::function<void(Greeter&, const std::string& identity)> known = {};
    std::function<Welcome(const Hello&, const Channel&)> decide;
    std::function<void(Greeter&, std::unique_ptr<Channel>)> welcomed;
    std::function<void(Greeter&, const std::string& reason)> gone;
  };

  // Nothing is called from within the constructor. All of it has to be over in `timeout` seconds.
  Greeter(EventLoop& loop, std::unique_ptr<Channel> channel, const Address& peer, double timeout, Events events);
  ~Greeter() override;
  void on_ready(bool, bool) override;

  const Address& peer() const { return peer_; }
  const Hello& hello() const { return hello_; }  // once decided
  const Welcome& welcome() const { return welcome_; }
  bool decided() const { return phase_ == Phase::kWelcome; }

 private:
  enum class Phase { kFirstByte, kSecure, kHello, kWelcome };  // in this order

  bool advance();
  IoStatus step();
  IoStatus look_at_first_byte();
  void decide();
  void discard_rest();
  void end();
  void fail(const std::string& reason);

  EventLoop& loop_;
  std::unique_ptr<Channel> channel_;
  Address peer_;
  Events events_;
  Phase phase_ = Phase::kFirstByte;
  std::string other_mode_;  // why no greeting can come about
  int watched_ = -1;
  EventLoop::Timer timer_ = 0;
  Transfer question_{kHelloBytes}, answer_;
  Hello hello_;
  Welcome welcome_;
};

}  // namespace maki::wan
