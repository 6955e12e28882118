// The hello that each site sends at the start, and the differences that keep two sites from running together.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "wan/sites/ring.hpp"
#include "wan/sites/ring_plan.hpp"

namespace maki::sites {

inline constexpr std::uint32_t kRingProtocol = 2;
inline constexpr std::size_t kLongestHello = std::size_t{16} << 20;
inline constexpr std::size_t kMostRestarts = 4096;  // in a hello; of more, the last ones

enum class Purpose : std::uint32_t { kRun, kCheck };

struct Hello {
  std::uint32_t protocol = kRingProtocol;
  Purpose purpose = Purpose::kRun;
  std::string version, name;
  // Members below are sent and read only between sites of the same protocol.
  std::vector<std::string> ring;  // names of all sites
  std::string agreement;          // RingPlan::agreement
  std::vector<std::uint64_t> restarts;
  double clock = 0;  // time of sending, seconds since 1970
};

Hello hello_of(const RingPlan& plan, Purpose purpose);
Message encode(const Hello& hello);
// Throws Error where the bytes are no hello. Version and name are made wan::printable().
Hello decode_hello(std::span<const std::byte> bytes);

// Why the two cannot run together, as one sentence each: "gravity.theta is 0.5 at site a and 0.4 at site b". Version,
// protocol, ring, lines of the agreement. Empty: they can.
std::vector<std::string> differences(const Hello& ours, const Hello& theirs);

}  // namespace maki::sites
