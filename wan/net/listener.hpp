// Takes in paths on one TCP port. A session id, issued inside the encrypted channel and bound to the peer's identity,
// lets further streams and reconnections find their path.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "wan/net/path.hpp"

namespace maki::wan {

struct ListenerLimits {
  // Connections that have not yet shown who they are, and as many again that have and are being greeted. Beyond it the
  // oldest of the network with the most (an IPv4 address, a /64 of IPv6) is dropped; of those who are known, of the
  // identity with the most.
  int half_open = 256;
  int sessions = 1024;
  // Of one key or certificate (insecure: of one address), so that others find room. Beyond them a caller is told to
  // come later. What it may make us hold in memory is bounded too: path/held_memory.hpp.
  int sessions_per_peer = 128;
  int streams_per_peer = 0;  // of all its sessions; 0: a quarter of the files that this process may open, at least 256
};

struct Accepted {
  Path path;
  std::string name;      // what the peer calls itself
  std::string identity;  // as authenticated; empty when insecure
};

class Listener {
 public:
  // Binds to `local` only (an empty host: every address, IPv6 and IPv4; port 0: any free one). `settings` are those of
  // the paths to come (of streams: the peer asks, `limits` bounds). With a relay it does not bind, but registers
  // `relay.target` there and takes what the relay passes on. Throws Error where the port cannot be had, SecurityError
  // for bad keys.
  Listener(const Endpoint& local, const Security& security, const PathSettings& settings,
           const ListenerLimits& limits = {}, const RelayRoute& relay = {}, Context& context = Context::shared());
  ~Listener();  // paths taken from it live on, but lost streams of theirs cannot come back
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
