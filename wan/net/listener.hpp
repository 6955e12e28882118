// Accepts paths on one TCP port. A session id, issued inside the encrypted channel and bound to the peer's identity,
// lets further streams and reconnections find their path.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "wan/net/path.hpp"

namespace maki::wan {

struct ListenerLimits {
  // Limit on connections that are not authenticated yet, and also on authenticated ones that are being greeted. Above
  // it the network (an IPv4 address, a /64 of IPv6) with the most of them loses its oldest; among authenticated ones,
  // the identity with the most.
  int half_open = 256;
  int sessions = 1024;
  // Limit for one key or certificate (insecure: one address), so that others find room. Above it a caller is told to
  // come later. The memory that a peer may make us hold is bounded too: path/held_memory.hpp.
  int sessions_per_peer = 128;
  int streams_per_peer = 0;  // of all its sessions; 0: a quarter of the process's limit of open files, at least 256
};

struct Accepted {
  Path path;
  std::string name;      // the peer's name for itself
  std::string identity;  // as authenticated; empty when insecure
};

class Listener {
 public:
  // Binds to `local` only (an empty host: every address, IPv6 and IPv4; port 0: any free one). `settings` are for the
  // accepted paths (streams: as the peer asks, bounded by `limits`). With a relay it does not bind, but registers
  // `relay.target` there and accepts what the relay passes on. Throws Error if the port is unavailable, SecurityError
  // for bad keys.
  Listener(const Endpoint& local, const Security& security, const PathSettings& settings,
           const ListenerLimits& limits = {}, const RelayRoute& relay = {}, Context& context = Context::shared());
  ~Listener();  // its accepted paths live on, but their lost streams cannot reconnect
  Listener(Listener&&) noexcept;
  Listener& operator=(Listener&&) noexcept;

  Endpoint address() const;  // with the port that was bound
  Accepted accept();         // waits for the next path
  std::optional<Accepted> accept_for(double seconds);

 private:
  class Core;
  std::shared_ptr<Core> core_;
};

}  // namespace maki::wan
