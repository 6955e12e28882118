// Reductions over ranks in a fixed order. Included by host/comm/communicator.cpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <vector>

#include "host/comm/mpi_ranks.hpp"

namespace maki::mpi {

// `bytes` from every rank, in the order of ranks; up to the limit of a piece.
void gather(const Ranks& ranks, const void* mine, void* all, std::size_t bytes);
// Block r of `mine` (`bytes` each) goes to rank r; block r of `theirs` comes from rank r.
void transpose(const Ranks& ranks, const void* mine, void* theirs, std::size_t bytes);

// Each combines one element of all ranks: value(r) for r = 0 ... n-1, in that order.
inline constexpr auto add = []<class Value>(const Value& value, int n) {
  auto total = value(0);
  if constexpr (std::is_floating_point_v<decltype(total)>) {
    // Neumaier, Z. angew. Math. Mech. 54 (1974): the rounding errors are added up beside the sum.
    decltype(total) lost = 0;
    for (int r = 1; r < n; ++r) {
      const auto next = value(r), sum = total + next;
      lost += std::abs(total) >= std::abs(next) ? (total - sum) + next : (next - sum) + total;
      total = sum;
    }
    return std::isfinite(lost) ? total + lost : total;
  } else {
    for (int r = 1; r < n; ++r) total += value(r);
    return total;
  }
};
inline constexpr auto largest = []<class Value>(const Value& value, int n) {
  auto found = value(0);
  for (int r = 1; r < n; ++r) found = std::max(found, value(r));
  return found;
};
inline constexpr auto smallest = []<class Value>(const Value& value, int n) {
  auto found = value(0);
  for (int r = 1; r < n; ++r) found = std::min(found, value(r));
  return found;
};

// Rank r combines the r-th share of the elements and all gather the results: 2 n elements sent by a rank. A few
// elements are gathered and combined by all, which is one exchange instead of two.
template <class T, class Combine>
void reduce(const Ranks& ranks, std::span<T> values, const Combine& combine) {
  constexpr std::size_t kFew = 256;
  if (ranks.size == 1 || values.empty()) return;
  const std::size_t n = values.size(), size = ranks.size;
  const auto combined = [&](const std::vector<T>& blocks, std::size_t i) {
    const std::size_t stride = blocks.size() / size;
    return combine([&](int r) { return blocks[r * stride + i]; }, ranks.size);
  };
  if (n <= kFew) {
    std::vector<T> all(n * size);
    gather(ranks, values.data(), all.data(), n * sizeof(T));
    for (std::size_t i = 0; i < n; ++i) values[i] = combined(all, i);
    return;
  }
  const std::size_t most = ranks.limits.piece_bytes / sizeof(T);
  const std::size_t share = std::clamp<std::size_t>((n + size - 1) / size, 1, std::max<std::size_t>(most, 1));
  std::vector<T> mine(share * size), theirs(share * size), result(share);
  for (std::size_t begin = 0; begin < n; begin += mine.size()) {
    const std::size_t count = std::min(mine.size(), n - begin);
    std::fill(std::copy_n(values.begin() + begin, count, mine.begin()), mine.end(), T{});
    transpose(ranks, mine.data(), theirs.data(), share * sizeof(T));
    for (std::size_t i = 0; i < share; ++i) result[i] = combined(theirs, i);
    gather(ranks, result.data(), mine.data(), share * sizeof(T));
    std::copy_n(mine.begin(), count, values.begin() + begin);
  }
}

}  // namespace maki::mpi
