// Joins two networks: peers that hold one of its keys are connected to destinations of its own, or to hidden listeners
// that have registered with it. It sees only what the peers send each other, which is under their own keys, and changes
// none of it.
//
// It listens on one port and nowhere else, and connects only to the destinations that it was given: a peer names one of
// them, never an address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "wan/net/settings.hpp"

namespace maki::wan {

struct RelaySettings {
  Endpoint listen;                     // an empty host: every address; port 0: any free one
  std::vector<std::string> key_files;  // also directories, whose *.key files count
  std::map<std::string, Endpoint> destinations;
  PathSettings socket;  // window, congestion, local_address: of the sockets on both sides
  int threads = 0;      // that move bytes; 0: as many as there are cores, at most 4
  int half_open =
      256;  // connections that have not yet said what they want; beyond it the network with the most loses its oldest
  int sessions = 4096;
  int sessions_per_key = 0;       // 0: no bound of its own
  int names = 256;                // hidden listeners
  double admission_timeout = 10;  // seconds for a peer to say who it is and what it wants
  double answer_timeout = 8;      // for a destination or a hidden listener to answer
  double idle_timeout = 600;      // a session in which nothing moves for so long is ended

  // Throws Error, naming the setting and its range.
  void check() const;
  // That such a relay may have open at once, where few sessions have bytes waiting in pipes both ways.
  std::size_t descriptors() const;
};

struct RelayStatus {
  int sessions = 0, half_open = 0, names = 0;
  std::uint64_t sessions_ever = 0, refused = 0;
  std::uint64_t bytes = 0;  // passed on, both ways
};

class RelayCore;

class Relay {
 public:
  // Listens when it returns. Throws Error, SecurityError.
  explicit Relay(const RelaySettings& settings);
  ~Relay();  // ends all sessions
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  Endpoint address() const;  // with the port that was bound
  RelayStatus status() const;

 private:
  std::unique_ptr<RelayCore> core_;
};

}  // namespace maki::wan
