// How two programs with MPWide's calls agree on one path: the environment, the ways to a peer, and the choice of the
// path.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "wan/net/listener.hpp"
#include "wan/net/path.hpp"
#include "wan/net/settings.hpp"

namespace maki::wan::mpw {

// Keys and settings from the environment, which MPWide's calls cannot express. There is no relay: MPWide's programs call
// each other.
struct Environment : PathChoices {
  bool streams_given = false;  // by the settings; else the number of the program's channels
  std::string listen;          // the address to listen on; empty: every one
  double wait = 600;           // seconds until a missing peer is an error
};

// Looks a variable up; nullptr where it is not set.
using Lookup = std::function<const char*(const char*)>;

// Reads MAKI_WAN_KEY, MAKI_WAN_INSECURE and MAKI_WAN_SETTINGS (mpw.h defines them). Throws SecurityError without key,
// certificate or permission to go without, Error for invalid settings.
Environment read_environment(const Lookup& lookup);

// "streams = 32, window = 4 MB": into `environment`. Throws Error, naming `source`.
void read_settings(const std::string& text, const std::string& source, Environment& environment);

// Waits for the attempts to call that meetings have left behind.
void end_attempts();

// The peer that a meeting expects at a port. No addresses: anyone. `caller`: that peer's own name; if its host is this
// machine, it may call its own port.
struct Expected {
  std::vector<std::string> addresses;
  std::string caller;
};

// The ports that a program listens on: one listener a port, for any number of paths.
class SharedListener {
 public:
  // The listener of this port, shared by all who hold it. Throws Error if the port is unavailable.
  static std::shared_ptr<SharedListener> open(int port, const Environment& environment);
  explicit SharedListener(int port, const Environment& environment);

  void expect(const Expected& who);
  void forget(const Expected& who);
  // The next path for `who`, if there is one. A path goes to the meeting that expects its address, else to one that
  // expects anyone, else (an address may be translated) to the first that waits; never to its own caller.
  std::optional<Accepted> take(const Expected& who);

 private:
  const Expected* owner(const Accepted& arrival) const;

  std::mutex mutex_;
  Listener listener_;
  std::list<Accepted> arrivals_;
  std::vector<const Expected*> expected_;
};

inline constexpr Tag kGreetingTag = 0;
inline constexpr Tag kFirstLane = 1;  // the tag of a path's first channel
inline constexpr std::size_t kMaxChannels = 8192;
inline constexpr std::size_t kMaxGreeting = 32 + 4 * kMaxChannels;

// The first message on a path of mpw.h, both ways: the sender, and the ports of its channels.
struct Greeting {
  std::uint64_t ticket = 0;  // random: the side with the lower one decides
  std::vector<int> ports;    // of the channels without a partner, in order
};

std::vector<std::byte> encode(const Greeting& greeting);
// Throws ProtocolError for anything that encode() cannot have produced.
Greeting decode_greeting(std::span<const std::byte> bytes);

// The elements of `mine` whose channels have a partner, in the order of the path's channels 0, 1, ... Equal ports are
// partners. If no port is on both sides (one was forwarded under another number), the n-th is the partner of the n-th.
// Throws Error if that leaves channels alone.
std::vector<int> partners(const std::vector<int>& mine, const std::vector<int>& theirs);

// How two programs with MPWide's calls agree on one path, whoever calls and whoever listens.
//
// Each side sends its greeting on every path to the other. The side with the lower ticket chooses the first of them and
// says so on it; the other side follows, and all other paths are closed. So two sides that call each other at the same
// time end with one path, and it is enough that one side can be called.

enum class Manner {
  kWait,  // listens only (if the port is taken on this host, calls its owner)
  kCall,  // calls only, and does not wait for an absent peer
  kBoth,
};

struct MeetingPlan {
  std::string host;
  Manner manner = Manner::kBoth;
  std::vector<int> ports;   // of the channels without a partner, in order; the first is called and listened on
  Environment environment;  // its settings are those of the path
};

struct Met {
  Path path;
  std::vector<int> ports;  // those of `plan.ports` with a partner, in the order of the path's channels
  std::shared_ptr<SharedListener> listener;  // accepted the path; lost streams reconnect only while it is open
};

// Throws Error if no path is made within the environment's `wait` (kCall: connect_timeout), SecurityError.
Met meet(const MeetingPlan& plan);

}  // namespace maki::wan::mpw
