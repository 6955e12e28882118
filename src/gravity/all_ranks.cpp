#include "src/gravity/all_ranks.hpp"

#include <limits>
#include <vector>

#include "kernels/error.hpp"

namespace maki {

RankTrees::RankTrees(const GravityOptions& options, PhaseTimers& timers, const Communicator& ranks)
    : TreeImports(timers, "export trees", "wait for trees"), ranks_(ranks),
      let_(ranks, LetOptions{.error_lengths = options.open_by_error, .compress = options.let_compression}) {
  let_.send_whole_cells(options.ghost_level);
}

void RankTrees::know_drift(std::uint64_t own_particles) {
  if (drift_.known()) return;
  drift_.begin(sum_of(ranks_, own_particles));
}

void RankTrees::begin(const Stream& stream, Octree& tree, const SourceParticle* particles, const WalkOptions& walk,
                      bool fresh) {
  if (fresh)
    let_.rebuild(stream, tree, particles, walk, static_cast<float>(drift_.use()));
  else
    let_.update(stream, tree, particles);
}

void RankTrees::report(GravityCounts& counts) const {
  const LetCounts& let = let_.counts();
  counts.let_cells = let.cells_received;
  counts.let_particles = let.particles_received;
  counts.let_bytes = let.bytes_sent;
  counts.let_messages = let.messages_sent;
  counts.let_exchange_seconds = let.exchange_seconds;
  counts.let_waited_seconds = let.waited_seconds;
}

AllSources::View AllSources::gather(const Stream& stream, const Particles& particles) {
  const Communicator& ranks = payload_.ranks();
  const auto self = static_cast<std::size_t>(ranks.rank());
  const std::uint64_t mine = particles.size();
  const std::vector<std::uint64_t> counts = gathered(ranks, mine);
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
