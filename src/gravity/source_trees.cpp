#include "src/gravity/source_trees.hpp"

#include "src/gravity/forests.hpp"
#include "src/gravity/ghost_sources.hpp"

namespace maki {

std::unique_ptr<SourceTrees> make_source_trees(const GravityOptions& options, PhaseTimers& timers, OwnTree& own,
                                               const std::vector<TreeImports*>& imports, ListForces& forces) {
  if (options.ghost_level > 0) return std::make_unique<GhostSources>(options, timers, own, imports, forces);
  return std::make_unique<Forests>(own, imports, forces);
}

}  // namespace maki
