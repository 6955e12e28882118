// What a user decides about a path: where its peer is, how its streams behave, who may be at the other end; and the
// keys by which it is said.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace maki::wan {

// A host (name, IPv4 or IPv6 address) and a TCP port.
struct Endpoint {
  std::string host;
  std::uint16_t port = 0;

  // "host:port", "1.2.3.4:port", "[::1]:port", ":port" (host empty: any). Throws Error where it is none of these.
  static Endpoint parse(const std::string& text);
  std::string text() const;
  bool operator==(const Endpoint&) const = default;
};

inline constexpr int kMaxStreams = 256;

// Sizes in bytes, times in seconds, rates in bytes per second.
struct PathSettings {
  int streams = 16;                       // TCP connections of the path, 1 to 256
  std::size_t window = 0;                 // SO_SNDBUF and SO_RCVBUF of each stream; 0 leaves it to the kernel's tuning
  std::size_t send_chunk = 64 << 10;      // the largest piece of a message given to a stream at once
  std::size_t receive_chunk = 256 << 10;  // the most taken from a stream before the next one's turn
  double pacing_rate = 0;                 // of the whole path, what is sent; 0: as fast as the streams take it
  std::string congestion;                 // TCP_CONGESTION ("cubic", "bbr"); empty: the kernel's choice
  std::string local_address;              // connect from this address; empty: any
  std::uint16_t local_port_first = 0;     // connect from ports of this range (firewalls); 0: any
  std::uint16_t local_port_last = 0;
  double connect_timeout = 10;  // of one attempt
  double handshake_timeout = 10;
  double heartbeat = 1;                                // between heartbeats on an idle stream
  double stream_timeout = 6;                           // a stream silent for so long is taken for dead, and reconnected
  double patience = 600;                               // a path whose peer is silent for so long is given up
  std::size_t unmatched_limit = std::size_t{1} << 28;  // memory for what arrives before its receive is posted
  std::uint64_t message_limit = std::uint64_t{1} << 40;

  // Throws Error, naming the setting and its range.
  void check() const;
  bool operator==(const PathSettings&) const = default;
};

// Who may be at the other end, and how we show who we are. Exactly one of: key files, certificates, insecure.
struct Security {
  // Pre-shared keys (secure/key.hpp), one a peer. Connecting uses the first; listening admits peers that hold any.
  std::vector<std::string> key_files = {};
  // Mutual certificates, PEM files: ours with its private key, and the authority that signed the peer's.
  std::string certificate = {}, private_key = {}, authority = {};
  // The name that the peer's certificate must carry. Empty: connecting, the host's; listening, any of the authority.
  std::string peer_name = {};
  // What this side calls itself among those that hold its keys or certificates, a name for each: a call that comes back
  // to its own caller is refused by it. Empty: this machine, which may call itself by its own addresses.
  std::string own_name = {};
  // No encryption and no authentication: has to be asked for, and is logged. Payloads carry checksums then.
  bool insecure = false;
};

// A relay on the way (relay/relay.hpp): where it is, the key it asks for, and what to ask it for.
struct RelayRoute {
  Endpoint relay;
  std::string key_file;
  std::string target;  // a name that a hidden listener has registered, or one of the relay's own destinations
  bool used() const { return !target.empty(); }
};

// What can be said of a path, by one table: the keys of a [path] table and of MAKI_WAN_SETTINGS, which are the options
// of all `maki wan` commands too (send_chunk in a file is --send-chunk on a command line).
struct PathChoices {
  PathSettings settings;
  Security security;
  RelayRoute relay;
};

struct PathKey {
  const char* name;   // "send_chunk"
  const char* group;  // as the help has it
  const char* value;  // what stands for its value there: "SIZE"; empty: a switch
  const char* meaning;
  bool list = false;  // may be given more than once
  // From text; a key's values follow one another. Throws Error that says what was expected.
  void (*set)(PathChoices&, const std::string&) = nullptr;
  std::string (*get)(const PathChoices&) = nullptr;  // TOML
  void (*clear)(PathChoices&) = nullptr;             // of lists: before the first value

  std::string option() const;  // "--send-chunk"
  bool of_relay() const;       // whether it says something of a relay on the way
};

const std::vector<PathKey>& path_keys();
// nullptr where there is none.
const PathKey* find_path_key(const std::string& name);

// Text in TOML's double quotes.
std::string quoted(const std::string& text);

}  // namespace maki::wan
