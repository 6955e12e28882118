// Listeners behind a relay: their control connection to it, and their answers to calls.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <future>
#include <list>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include "wan/net/relay/connector.hpp"
#include "wan/net/settings.hpp"
#include "wan/net/socket/event_loop.hpp"
#include "wan/net/socket/tcp.hpp"

namespace maki::wan {

inline constexpr std::size_t kControlBytes = 64;
inline constexpr std::size_t kTokenBytes = 32;  // hexadecimal digits
inline constexpr double kControlBeat = 1;       // seconds
inline constexpr double kControlTimeout = 6;    // considered dead after this silence

// A frame is a beat (no token) or a call.
std::array<std::byte, kControlBytes> encode_control(const std::string& token);
// Throws ProtocolError.
std::string decode_control(std::span<const std::byte, kControlBytes> bytes);
std::string make_token();
bool valid_token(const std::string& token);

// The connection over which a relay sends calls to a hidden listener, after the admission. Frames of 64 bytes both
// ways: a beat every second, and from the relay the token of each call.
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
  std::array<std::byte, kControlBytes> incoming_{};
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
  // The result of the first attempt: registered if there is no failure.
  struct First {
    std::optional<Connector::Failure> failure;
    std::string reason;
  };

  HiddenListener(EventLoop& loop, const RelayRoute& route, const PathSettings& settings, Arrived arrived);
  void enroll();
  void enrolled(Socket socket);
  void not_enrolled(Connector::Failure failure, const std::string& reason);
  void lost(const std::string& reason);
  void log_problem(const std::string& text);
  void again();
  void settle(const First& first);
  void called(const std::string& token);
  void answer_waiting();
  void answer(const std::string& token);

  EventLoop& loop_;
  std::string name_;
  Endpoint relay_;
  PathSettings settings_;
  Arrived arrived_;
  Key key_;
  std::vector<Address> addresses_;
  std::promise<First> first_;
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
