// Which items of a list a rank holds where nothing else decides: initial conditions, files.
#pragma once

#include <cstdint>

namespace maki {

// Even shares in the order of ranks: rank r of P holds the items [n r / P, n (r + 1) / P) of n. Some are empty where
// there are fewer items than ranks.
inline std::uint64_t share_begin(std::uint64_t n, int rank, int ranks) {
  return static_cast<std::uint64_t>(static_cast<unsigned __int128>(n) * static_cast<unsigned>(rank) /
                                    static_cast<unsigned>(ranks));
}

struct Share {
  std::uint64_t first = 0, end = 0;
  std::uint64_t size() const { return end - first; }
};
inline Share share_of(std::uint64_t n, int rank, int ranks) {
  return {share_begin(n, rank, ranks), share_begin(n, rank + 1, ranks)};
}

}  // namespace maki
