// Sums over ranks in more digits than a double has.
#pragma once

#include <span>
#include <vector>

#include "host/comm/communicator.hpp"
#include "kernels/measure/double_double.hpp"

namespace maki {

// The sums over ranks, added in the order of ranks: the same bits on every rank. Their errors are some 1e-32 of the
// largest partial sum, and 0 where terms are multiples of a 2^-106th part of that. So value() is the exact sum rounded
// once, for any number of ranks, unless the exact sum is that close to the midpoint of two doubles. Collective.
inline void sum_over_ranks(const Communicator& ranks, std::span<DoubleDouble> sums) {
  if (ranks.size() == 1) return;
  std::vector<DoubleDouble> all(static_cast<std::size_t>(ranks.size()) * sums.size());
  ranks.all_gather(sums.data(), all.data(), sums.size_bytes());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    sums[i] = all[i];
    for (std::size_t k = i + sums.size(); k < all.size(); k += sums.size()) sums[i] = sums[i] + all[k];
  }
}

}  // namespace maki
