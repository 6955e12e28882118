// A listener that no one can connect to, registered at a relay: keeps a control connection there and answers each call
// with a connection of its own, which then looks like an accepted socket.
#pragma once

#include <functional>
#include <memory>

#include "wan/net/settings.hpp"
#include "wan/net/socket/event_loop.hpp"
#include "wan/net/socket/tcp.hpp"

namespace maki::wan {

class HiddenListener {
 public:
  using Arrived = std::function<void(Socket, const Address& relay)>;  // in the loop's thread
  virtual ~HiddenListener() = default;                                // in the loop's thread
  // Registers, and again whenever the control connection is lost. Throws SecurityError, Error for what is wrong from the start
  // (key file, relay's name unknown, refused at first): waits for the first attempt, at most five seconds, after which it goes on
  // in the background. Called in the loop's thread it cannot wait, and a refusal is only logged.
  static std::unique_ptr<HiddenListener> start(EventLoop& loop, const RelayRoute& route, const PathSettings& settings,
                                               Arrived arrived);
};

}  // namespace maki::wan
