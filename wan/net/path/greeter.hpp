// What a listener answers those who connect to it. All of it runs in one loop.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "wan/net/listener.hpp"
#include "wan/net/path/held_memory.hpp"
#include "wan/net/path/path_core.hpp"
#include "wan/net/path/wire.hpp"
#include "wan/net/secure/channel.hpp"
#include "wan/net/socket/event_loop.hpp"

namespace maki::wan {

// One connection that has come in, until it has shown who it is and been answered: TLS, Hello, Welcome. Who comes with
// TLS where there is none, or without, is told so in plain bytes, which decide nothing but what is said.
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

// The paths that a listener has taken in, by their session ids; decides what a Hello is answered.
class SessionTable {
 public:
  SessionTable(const PathSettings& settings, const ListenerLimits& limits);

  // A new session's place is taken by a Welcome, until settle() or give_up(). `host`: where the peer is, which it
  // counts by where it has no identity.
  Welcome answer(const Hello& hello, const std::string& identity, const std::string& host);
  void settle(const SessionId& session, const std::shared_ptr<PathCore>& core);
  void give_up(const SessionId& session);
  Holding take_promised(const SessionId& session);  // before settle(): what the Welcome promised, for the path to hold
  std::shared_ptr<PathCore> find(const SessionId& session) const;

  static Welcome refuse(Answer answer, const std::string& reason = "");

 private:
  struct Entry {
    std::string identity, host;
    std::weak_ptr<PathCore> core;
    bool settled = false;
    std::uint32_t streams = 1;
    std::uint64_t unmatched_limit = 0;  // as in its Welcome
    Holding promised;
  };
  struct Count {
    int sessions = 0, streams = 0;
  };

  Welcome accept(const SessionId& session, const Entry& entry) const;
  Welcome answer_new(const Hello& hello, const std::string& identity, const std::string& host, const Count& there);
  Welcome answer_join(const Hello& hello, const std::string& identity);
  Count count(const std::string& identity, const std::string& host) const;
  bool replaces(const Hello& hello, const std::string& identity) const;
  void remove_ended();

  PathSettings settings_;
  ListenerLimits limits_;
  std::map<SessionId, Entry> entries_;
};

}  // namespace maki::wan
