// Connecting one stream: addresses and relay (relay/connector.hpp), TLS, greeting. Runs in the loop of its path.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "wan/net/path/wire.hpp"
#include "wan/net/relay/connector.hpp"
#include "wan/net/secure/channel.hpp"
#include "wan/net/socket/event_loop.hpp"
#include "wan/net/socket/tcp.hpp"

namespace maki::wan {

struct DialPlan {
  HostAddresses addresses;  // of the peer, or of the relay
  std::string host;         // as given by the user, for messages and certificates
  PathSettings settings;
  std::shared_ptr<const SecurityContext> security;
  RelayRoute relay;
  Hello hello;                // party and own_machine are set later
  std::optional<Party> peer;  // the peer of an existing session: only its answers count
};

enum class DialFailure {
  kAgain,  // nobody there, timeout, busy: try later
  kFinal,  // refused: key, certificate (of a new path), version, unknown session
};

// One attempt to connect a stream. It reads no byte beyond the Welcome: the following frames are the stream's.
class Dial final : private Pollable {
 public:
  // Exactly one of the two is called, later and in the loop's thread, unless the Dial is deleted first. It may be
  // deleted inside them.
  using Done = std::function<void(std::unique_ptr<Channel>, const Welcome&)>;
  using Failed = std::function<void(DialFailure, const std::string& reason)>;
  // Throws Error if the relay's key or the name there is unusable.
  Dial(EventLoop& loop, const DialPlan& plan, Done done, Failed failed);
  ~Dial() override { end(); }

 private:
  enum class Phase { kSecure, kHello, kWelcome };  // in this order
  struct Failure {
    DialFailure kind;
    std::string reason;
  };

  void on_ready(bool, bool) override;
  void connected(Socket socket, const Address& peer);
  IoStatus step();
  bool advance();
  void judge();
  const char* words() const { return phase_ == Phase::kSecure ? "the handshake" : "the greeting"; }
  DialFailure unless_it_stood() const;
  Hello hello() const;
  void fail(DialFailure failure, const std::string& reason);
  void end();

  EventLoop& loop_;
  DialPlan plan_;
  Done done_;
  Failed failed_;
  std::optional<Connector> connector_;
  Address peer_;
  std::unique_ptr<Channel> channel_;
  int watched_ = -1;
  EventLoop::Timer timer_ = 0;
  Phase phase_ = Phase::kSecure;
  Transfer hello_, answer_{kWelcomeBytes};
  Welcome welcome_;
};

}  // namespace maki::wan
