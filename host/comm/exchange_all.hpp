// Messages of one type from every rank to every rank.
#pragma once

#include <type_traits>
#include <vector>

#include "host/comm/communicator.hpp"

namespace maki {

// Sends out[r] to rank r and returns what each rank sent to this one. Collective.
template <class T>
std::vector<std::vector<T>> exchange_all(const Communicator& ranks, std::vector<std::vector<T>> out) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (ranks.size() == 1) return out;
  std::vector<std::uint64_t> sizes;
  for (const std::vector<T>& message : out) sizes.push_back(message.size() * sizeof(T));
  const std::vector<std::uint64_t> coming = ranks.exchange_sizes(sizes);
  std::vector<std::vector<T>> in(out.size());
  std::vector<Communicator::Outgoing> sends;
  std::vector<Communicator::Incoming> receives;
  for (std::size_t r = 0; r < out.size(); ++r) {
    in[r].resize(coming[r] / sizeof(T));
    sends.push_back({static_cast<int>(r), out[r].data(), sizes[r]});
    receives.push_back({static_cast<int>(r), in[r].data(), coming[r]});
  }
  ranks.exchange(sends, receives);
  return in;
}

}  // namespace maki
