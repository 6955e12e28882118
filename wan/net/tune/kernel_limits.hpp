// What the kernel of one end allows its sockets, and what of it stands in the way of a path.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "wan/net/settings.hpp"
#include "wan/net/tune/words.hpp"

namespace maki::wan {

// Bytes; 0 where the kernel does not say.
struct KernelLimits {
  std::uint64_t rmem_max = 0, wmem_max = 0;          // bounds of SO_RCVBUF and SO_SNDBUF: settings.window
  std::uint64_t tcp_rmem_max = 0, tcp_wmem_max = 0;  // bounds of the kernel's own tuning
  bool slow_start_after_idle = false;
  std::string congestion;                // the default
  std::vector<std::string> congestions;  // those that a program may use here

  static KernelLimits of_this_machine();
  void write(Words& words) const;
  static KernelLimits read(const Words& words);
};

struct Limit {
  std::string what;    // one sentence
  std::string remedy;  // a command for an administrator; may be empty
};

// What would keep a path with these settings from `rate` (bytes/s) over `round_trip` (seconds) in a kernel that sends
// and receives.
std::vector<Limit> limits_of(const KernelLimits& kernel, const PathSettings& settings, double rate, double round_trip);

// Whether the bounds of the kernel's own tuning are among them.
bool memory_holds_back(const KernelLimits& kernel, const PathSettings& settings, double rate, double round_trip);

}  // namespace maki::wan
