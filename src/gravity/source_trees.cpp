#include "src/gravity/source_trees.hpp"

#include <ranges>

#include "src/gravity/forests.hpp"
#include "src/gravity/ghost_sources.hpp"

namespace maki {

void send_to_all(const std::vector<TreeImports*>& imports, const Stream& stream, OwnTree& own,
                 const Particles& particles, const WalkOptions& walk, bool fresh) {
  for (TreeImports* const to : std::views::reverse(imports))
    to->send(stream, own.octree(), particles.source.data(), walk, fresh);
}

std::unique_ptr<SourceTrees> make_source_trees(const GravityOptions& options, PhaseTimers& timers, OwnTree& own,
                                               const std::vector<TreeImports*>& imports, ListForces& forces) {
  if (options.ghost_level > 0) return std::make_unique<GhostSources>(options, timers, own, imports, forces);
  return std::make_unique<Forests>(own, imports, forces);
}

}  // namespace maki
