#include "src/gravity/rank_trees.hpp"

#include <span>

namespace maki {

RankTrees::RankTrees(const GravityOptions& options, PhaseTimers& timers, const Communicator& ranks)
    : TreeImports(timers, "export trees", "wait for trees"), ranks_(ranks),
      let_(ranks, LetOptions{.error_lengths = options.open_by_error, .compress = options.let_compression}) {
  let_.send_whole_cells(options.ghost_level);
}

void RankTrees::know_drift(std::uint64_t own_particles) {
  if (drift_.known()) return;
  ranks_.sum(std::span(&own_particles, 1));
  drift_.begin(own_particles);
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

}  // namespace maki
