// One stream being connected: addresses in turn, relay, TLS, greeting. Runs in the loop of its path.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "wan/net/path/wire.hpp"
#include "wan/net/secure/channel.hpp"
#include "wan/net/socket/event_loop.hpp"

namespace maki::wan {

struct DialPlan {
  std::vector<Address> addresses;  // of the peer, or of the relay
  std::string host;                // as the user wrote it, for messages and certificates
  PathSettings settings;
  std::shared_ptr<const SecurityContext> security;
  RelayRoute relay;
  Hello hello;                // but for who we are
  std::optional<Party> peer;  // of a session that stands: only its answers count
};

enum class DialFailure {
  kAgain,  // nobody there, timeout, busy: try later
  kFinal,  // refused: key, certificate (of a new path), version, unknown session
};

class Dial {
 public:
  // Exactly one of the two is called, later and in the loop's thread, unless the Dial is deleted first. The Dial may be
  // deleted inside them.
  using Done = std::function<void(std::unique_ptr<Channel>, const Welcome&, const Address& peer)>;
  using Failed = std::function<void(DialFailure, const std::string& reason)>;
  virtual ~Dial() = default;
  // Reads exactly the Welcome: the first frame is the stream's.
  static std::unique_ptr<Dial> start(EventLoop& loop, const DialPlan& plan, Done done, Failed failed);
};

}  // namespace maki::wan
