#include "src/run/group_members.hpp"

#include <algorithm>
#include <utility>

namespace maki {

namespace {

constexpr std::size_t kAtOnce = std::size_t{1} << 20;  // IDs that go to all ranks

}  // namespace

std::vector<bool> members_among(const ParticleSource& particles, const std::vector<std::uint64_t>& members,
                                const Communicator& ranks) {
  std::vector<std::pair<std::uint64_t, std::size_t>> own(particles.size());  // ID and place
  for (std::size_t i = 0; i < own.size(); ++i) own[i] = {particles.id(i), i};
  std::sort(own.begin(), own.end());
  std::vector<bool> found(own.size());
  std::uint64_t count = members.size();
  ranks.broadcast(&count, sizeof count, 0);
  std::vector<std::uint64_t> piece;
  for (std::uint64_t first = 0; first < count; first += kAtOnce) {
    piece.resize(std::min<std::uint64_t>(kAtOnce, count - first));
    if (ranks.rank() == 0)
      std::copy_n(members.begin() + static_cast<std::ptrdiff_t>(first), piece.size(), piece.begin());
    ranks.broadcast(piece.data(), piece.size() * sizeof(piece[0]), 0);
    for (const std::uint64_t id : piece) {
      const auto at = std::lower_bound(own.begin(), own.end(), std::pair{id, std::size_t{0}});
      if (at != own.end() && at->first == id) found[at->second] = true;
    }
  }
  return found;
}

}  // namespace maki
