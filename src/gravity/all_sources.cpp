#include "src/gravity/all_sources.hpp"

#include <limits>
#include <vector>

#include "kernels/error.hpp"

namespace maki {

AllSources::View AllSources::gather(const Stream& stream, const Particles& particles) {
  const Communicator& ranks = payload_.ranks();
  if (ranks.size() == 1) return {particles.source.data(), static_cast<std::uint32_t>(particles.size()), 0};
  const auto self = static_cast<std::size_t>(ranks.rank());
  const std::uint64_t mine = particles.size();
  std::vector<std::uint64_t> counts(static_cast<std::size_t>(ranks.size()));
  ranks.all_gather(&mine, counts.data(), sizeof mine);
  std::uint64_t total = 0;
  for (const std::uint64_t count : counts) total += count;
  if (total > std::numeric_limits<std::uint32_t>::max())
    throw Error("too many particles for a direct sum", std::to_string(total) + " particles, the limit is 2^32 - 1",
                "use gravity.method = \"tree\"");
  all_.resize(total);
  std::vector<Communicator::Outgoing> out;
  std::vector<Communicator::Incoming> in;
  std::uint64_t first = 0, own = 0;
  for (std::size_t r = 0; r < counts.size(); ++r) {
    const auto rank = static_cast<int>(r);
    if (r == self)
      own = first;
    else
      in.push_back({rank, all_.data() + first, counts[r] * sizeof(SourceParticle)});
    if (r != self) out.push_back({rank, particles.source.data(), mine * sizeof(SourceParticle)});
    first += counts[r];
  }
  copy_on_device(stream, all_.data() + own, particles.source.data(), mine * sizeof(SourceParticle));
  payload_.exchange(stream, out, in);
  return {all_.data(), static_cast<std::uint32_t>(total), static_cast<std::uint32_t>(own)};
}

}  // namespace maki
