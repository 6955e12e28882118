// A listener's answers to new connections. All of it runs in one loop.
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

// One new connection, until it is authenticated and answered: TLS, Hello, Welcome. Where only one side has TLS the
// caller is told so in plain bytes, which affect only its error message.
class Greeter final : public Pollable {
 public:
  // known: the peer has proved its identity; may delete other Greeters, not this one. decide: returns the answer to its
  // Hello. Then exactly one of the others, which may delete the Greeter: welcomed, after a complete Answer::kWelcome;
  // gone, in all other cases, with the reason as text.
  struct Events {
    std::function<void(Greeter&, const std::string& identity)> known = {};
    std::function<Welcome(const Hello&, const Channel&)> decide;
    std::function<void(Greeter&, std::unique_ptr<Channel>)> welcomed;
    std::function<void(Greeter&, const std::string& reason)> gone;
  };

  // Nothing is called from within the constructor. All of it must finish within `timeout` seconds.
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
  std::string other_mode_;  // why no greeting is possible
  int watched_ = -1;
  EventLoop::Timer timer_ = 0;
  Transfer question_{kHelloBytes}, answer_;
  Hello hello_;
  Welcome welcome_;
};

// The accepted paths of a listener, by session id; decides the answer to a Hello.
class SessionTable {
 public:
  SessionTable(const PathSettings& settings, const ListenerLimits& limits);

  // A Welcome reserves a place for a new session, until settle() or give_up(). `host`: the peer's host, by which it is
  // counted if it has no identity.
  Welcome answer(const Hello& hello, const std::string& identity, const std::string& host);
  void settle(const SessionId& session, const std::shared_ptr<PathCore>& core);
  void give_up(const SessionId& session);
  Holding take_promised(const SessionId& session);  // before settle(): the Welcome's promise, for the path to hold
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
