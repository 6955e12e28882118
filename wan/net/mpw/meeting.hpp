// Two programs that come to one path, whoever calls and whoever listens.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "wan/net/mpw/environment.hpp"
#include "wan/net/mpw/reaching.hpp"
#include "wan/net/path.hpp"

namespace maki::wan::mpw {

inline constexpr Tag kGreetingTag = 0;
inline constexpr Tag kFirstLane = 1;  // the tag of a path's first channel
inline constexpr std::size_t kMaxChannels = 8192;
inline constexpr std::size_t kMaxGreeting = 32 + 4 * kMaxChannels;

// The first message on a path of mpw.h, both ways: who is there, and which ports its channels have.
struct Greeting {
  std::uint64_t ticket = 0;  // random: the side with the lower one decides
  std::vector<int> ports;    // of the channels that look for a partner, in order
};

std::vector<std::byte> encode(const Greeting& greeting);
// Throws ProtocolError for anything that encode() cannot have made.
Greeting decode_greeting(std::span<const std::byte> bytes);

// Those of `mine` whose channels have a partner, in the order that makes them a path's channels 0, 1, ...: equal ports
// are partners; where no port is on both sides (one was forwarded under another number), the first is the first's and
// so on. Throws Error where that leaves channels alone.
std::vector<int> partners(const std::vector<int>& mine, const std::vector<int>& theirs);

// How two programs with MPWide's calls come to one path, whoever calls and whoever listens.
//
// Each side greets on every path to the other that stands. The side with the lower ticket takes the first of them and
// says so on it; the other side follows, and all other paths are closed. So two sides that call each other at the same
// time end with one path, and a side that cannot be called (or whose port is taken on this host) is no worse off.

enum class Manner {
  kWait,  // listens only (where the port is taken on this host, calls whoever has it)
  kCall,  // calls only, and does not wait for a peer that is not there
  kBoth,
};

struct MeetingPlan {
  std::string host;
  Manner manner = Manner::kBoth;
  std::vector<int> ports;  // of the channels that look for partners, in order; the first is called and listened on
  PathSettings settings;   // of the path
  Environment environment;
};

struct Met {
  Path path;
  std::vector<int> ports;  // of `plan.ports` those with a partner, in the order of the path's channels
  std::shared_ptr<SharedListener> listener;  // where the path came in; open as long as lost streams are to come back
};

// Throws Error where no path came about within the environment's `wait` (kCall: connect_timeout), SecurityError.
Met meet(const MeetingPlan& plan);

}  // namespace maki::wan::mpw
