// Connections with or without a relay on the way: making one, and listening behind a relay.
#pragma once

#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <future>
#include <list>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "wan/net/relay/admission.hpp"
#include "wan/net/settings.hpp"
#include "wan/net/socket/event_loop.hpp"
#include "wan/net/socket/tcp.hpp"

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
            std::optional<RelayAdmission> admission, Done done, Failed failed);
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
  std::optional<RelayAdmission> admission_;
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

// ---- listening behind a relay --------------------------------------------------------------------------------------

inline constexpr std::size_t kTokenBytes = 32;  // hexadecimal digits
inline constexpr double kControlBeat = 1;       // seconds
inline constexpr double kControlTimeout = 6;    // considered dead after this silence

// A frame is the token of a call, or zeros: a beat (no token).
std::array<std::byte, kTokenBytes> encode_control(const std::string& token);
// Throws ProtocolError.
std::string decode_control(std::span<const std::byte, kTokenBytes> bytes);
std::string make_token();

// The connection over which a relay sends calls to a hidden listener, after the admission. Frames both ways: a
// beat every second, and from the relay the token of each call.
//
// Nothing in it is secret or trusted: a token is useless without the key with which the listener registered.
class ControlChannel final : private Pollable {
 public:
  using Called = std::function<void(const std::string& token)>;
  using Lost = std::function<void(const std::string& reason)>;
  // Used, and ended, in the loop's thread. `lost` is called at most once; the channel may be ended inside it.
  ControlChannel(EventLoop& loop, Socket socket, Called called, Lost lost);
  ~ControlChannel() override;
  ControlChannel(const ControlChannel&) = delete;
  ControlChannel& operator=(const ControlChannel&) = delete;

  void call(const std::string& token);
  double silent() const;  // since anything was received

 private:
  void on_ready(bool readable, bool writable) override;
  bool receive();
  void queue(const std::string& token);
  void send();
  void beat();
  void end(const std::string& reason);

  EventLoop& loop_;
  Socket socket_;
  Called called_;
  Lost lost_;
  std::array<std::byte, kTokenBytes> incoming_{};
  std::size_t received_ = 0;
  std::vector<std::byte> outgoing_;
  EventLoop::Timer beat_ = 0;
  EventLoop::Clock::time_point heard_ = EventLoop::Clock::now();
};

// A listener that is not reachable directly, registered at a relay. It keeps a control connection there and answers
// each call with a connection of its own, which is then used like an accepted socket.
class HiddenListener {
 public:
  using Arrived = std::function<void(Socket, const Address& relay)>;  // in the loop's thread
  // Registers, and again whenever the control connection is lost. Throws SecurityError, Error for initial errors (key
  // file, unknown name of the relay, refusal): waits for the first attempt, at most five seconds, and then continues in
  // the background. In the loop's thread it cannot wait, and a refusal is only logged.
  static std::unique_ptr<HiddenListener> start(EventLoop& loop, const RelayRoute& route, const PathSettings& settings,
                                               Arrived arrived);
  ~HiddenListener() { loop_.cancel(again_); }  // in the loop's thread
  HiddenListener(const HiddenListener&) = delete;

 private:
  HiddenListener(EventLoop& loop, const RelayRoute& route, const PathSettings& settings, Arrived arrived);
  void enroll();
  void enrolled(Socket socket);
  void not_enrolled(Connector::Failure failure, const std::string& reason);
  void lost(const std::string& reason);
  void log_problem(const std::string& text);
  void again();
  void settle(const std::exception_ptr& refusal);
  void called(const std::string& token);
  void answer_waiting();
  void answer(const std::string& token);

  EventLoop& loop_;
  std::string name_;
  Endpoint relay_;
  PathSettings settings_;
  Arrived arrived_;
  Key key_;
  HostAddresses addresses_;
  std::promise<void> first_;  // the first attempt, which throws where it was refused
  bool settled_ = false;
  bool problem_logged_ = false;
  double wait_;  // before the next attempt to register
  std::minstd_rand random_{std::random_device{}()};
  EventLoop::Timer again_ = 0;
  std::unique_ptr<Connector> dial_;
  std::unique_ptr<ControlChannel> control_;
  std::deque<std::string> calls_;  // tokens of calls not yet being answered
  std::list<std::unique_ptr<Connector>> answers_;
};

}  // namespace maki::wan
