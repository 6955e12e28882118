// Joins two networks: peers that hold one of its keys are connected to its configured destinations, or to hidden
// listeners registered with it. It forwards the peers' bytes, encrypted under their own keys, and changes none of them.
//
// It listens on one port only, and connects only to its configured destinations: a peer sends the name of one, never an
// address.
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
  std::vector<std::string> key_files;  // or directories, whose *.key files count
  std::map<std::string, Endpoint> destinations;
  PathSettings socket;  // window, congestion, local_address: of the sockets on both sides
  int threads = 0;      // that forward data; 0: one for each core, at most 4
  // Connections without a complete request; beyond so many the network with the most of them loses its oldest.
  int half_open = 256;
  int sessions = 4096;
  int sessions_per_key = 0;       // 0: half of them where there are several keys, else all
  int names = 256;                // hidden listeners
  double admission_timeout = 10;  // seconds for a peer's admission
  double answer_timeout = 8;      // for a destination or a hidden listener to answer
  double idle_timeout = 600;      // a session without data for so long is ended

  // Throws Error, naming the setting and its range.
  void check() const;
  // Descriptors that such a relay may need at once, if few sessions have bytes waiting in pipes both ways.
  std::size_t descriptors() const;
};

struct RelayStatus {
  int sessions = 0, half_open = 0, names = 0;
  std::uint64_t sessions_ever = 0, refused = 0;
  std::uint64_t bytes = 0;  // forwarded, both ways
};

class RelayCore;

class Relay {
 public:
  // Listens on return. Throws Error, SecurityError.
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
