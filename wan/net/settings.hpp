// Settings of a path as a user gives them: sizes, rates and times in text form, the peer's address, the behaviour of
// streams, who may be at the other end; and the keys that name these choices.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace maki::wan {

// ---- sizes, rates and times: "4 MB", "800 Mbit/s", "10 min" --------------------------------------------------------

// All throw Error that says what was expected. "4 MB" -> 4000000; a plain number is in bytes.
std::size_t parse_size(const std::string& text);
// "800 Mbit/s" -> 1e8 bytes a second; 0 needs no unit.
double parse_rate(const std::string& text);
// "10 min" -> 600; a plain number is in seconds.
double parse_seconds(const std::string& text);
int parse_integer(const std::string& text, int low, int high);
std::string_view trimmed(std::string_view text);  // without blanks and ends of lines around it

// The inverse, so that parsing gives the same number.
std::string size_text(std::size_t bytes);
std::string rate_text(double bytes_per_second);

// Rounded, for messages: "8 bytes", "1.5 MB".
std::string amount(std::uint64_t bytes);

using WallClock = std::chrono::steady_clock;

inline double seconds_since(WallClock::time_point begin) {
  return std::chrono::duration<double>(WallClock::now() - begin).count();
}

// ---- choices for a path --------------------------------------------------------------------------------------------

// A host (name, IPv4 or IPv6 address) and a TCP port.
struct Endpoint {
  std::string host;
  std::uint16_t port = 0;

  // "host:port", "1.2.3.4:port", "[::1]:port", ":port" (host empty: any). Throws Error for anything else.
  static Endpoint parse(const std::string& text);
  std::string text() const;
  bool operator==(const Endpoint&) const = default;
};

inline constexpr int kMaxStreams = 256;

// Sizes in bytes, times in seconds, rates in bytes per second.
struct PathSettings {
  int streams = 16;                       // TCP connections of the path, 1 to 256
  std::size_t window = 0;                 // SO_SNDBUF and SO_RCVBUF of each stream; 0: the kernel's tuning
  std::size_t send_chunk = 64 << 10;      // largest piece of a message given to a stream at once, 12 kB at least
  std::size_t receive_chunk = 256 << 10;  // most bytes read from a stream before the next one's turn
  double pacing_rate = 0;                 // of what the whole path sends; 0: no limit
  std::string congestion;                 // TCP_CONGESTION ("cubic", "bbr"); empty: the kernel's choice
  std::string local_address;              // connect from this address; empty: any
  std::uint16_t local_port_first = 0;     // connect from ports of this range (firewalls); 0: any
  std::uint16_t local_port_last = 0;
  double connect_timeout = 10;  // of one attempt
  double handshake_timeout = 10;
  double heartbeat = 1;                                // between heartbeats on an idle stream
  double stream_timeout = 6;                           // silence after which a stream is dead, and reconnected
  double patience = 600;                               // silence of the peer after which a path is given up
  std::size_t unmatched_limit = std::size_t{1} << 28;  // memory for data that arrive before their receive is posted
  std::uint64_t message_limit = std::uint64_t{1} << 40;

  // Throws Error, naming the setting and its range.
  void check() const;
  bool operator==(const PathSettings&) const = default;
};

// The peers allowed, and our own proof of identity. Exactly one of: key files, certificates, insecure.
struct Security {
  // Pre-shared keys (secure/key.hpp), one a peer. Connecting uses the first; listening admits holders of any.
  std::vector<std::string> key_files = {};
  // Mutual certificates, PEM files: ours with its private key, and the authority that signed the peer's.
  std::string certificate = {}, private_key = {}, authority = {};
  // The name required in the peer's certificate. Empty: connecting, the host's; listening, any of the authority.
  std::string peer_name = {};
  // This side's own name among the holders of its keys or certificates, a different one for each. A side refuses a call
  // that has been reflected to it. Empty: this machine, which may call itself by its own addresses.
  std::string own_name = {};
  // No encryption and no authentication: must be requested, and is logged. Payloads then carry checksums.
  bool insecure = false;
  bool operator==(const Security&) const = default;
};

// A relay on the way (relay/relay.hpp): its address, its key, and the target.
struct RelayRoute {
  Endpoint relay;
  std::string key_file;
  std::string target;  // registered by a hidden listener, or one of the relay's own destinations
  bool used() const { return !target.empty(); }
  bool operator==(const RelayRoute&) const = default;
};

// All settings of a path in one table: the keys of a [path] table and of MAKI_WAN_SETTINGS, which are also the options
// of all `maki wan` commands (send_chunk in a file is --send-chunk on a command line).
struct PathChoices {
  PathSettings settings;
  Security security;
  RelayRoute relay;
};

struct PathKey {
  const char* name;   // "send_chunk"
  const char* group;  // heading in the help
  const char* value;  // placeholder of the value there: "SIZE"; empty: a switch
  const char* meaning;
  bool list = false;  // may be given more than once
  // From text; a list's values are set one after another. Throws Error that says what was expected.
  void (*set)(PathChoices&, const std::string&) = nullptr;
  std::string (*get)(const PathChoices&) = nullptr;  // TOML
  void (*clear)(PathChoices&) = nullptr;             // of lists: before the first value

  std::string option() const;  // "--send-chunk"
  bool of_relay() const;       // whether it concerns a relay on the way
};

const std::vector<PathKey>& path_keys();
// nullptr for an unknown name.
const PathKey* find_path_key(const std::string& name);

// Text in TOML's double quotes.
std::string quoted(const std::string& text);

}  // namespace maki::wan
