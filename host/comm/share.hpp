// Which items of a list a rank holds where nothing else decides: initial conditions, files.
#pragma once

#include <cstdint>

namespace maki {

// Items first ... end - 1 of all.
struct Share {
  std::uint64_t first = 0, end = 0;
  std::uint64_t size() const { return end - first; }
};

// Even shares in the order of ranks; some are empty where there are fewer items than ranks.
inline Share share_of(std::uint64_t total, int rank, int ranks) {
  const auto r = static_cast<std::uint64_t>(rank), all = static_cast<std::uint64_t>(ranks);
  return {total * r / all, total * (r + 1) / all};
}

}  // namespace maki
