// The sources of a rank's forces: its own tree and the imported forests, or one tree of own particles and
// ghosts (ghost_sources.hpp). Chosen once in a run.
#pragma once

#include <memory>
#include <vector>

#include "src/gravity/list_forces.hpp"
#include "src/gravity/own_tree.hpp"

namespace maki {

class SourceTrees {
 public:
  virtual ~SourceTrees() = default;

  // Short-range forces on own particles. Trees and groups are built (`fresh`: the particles have just been sorted) or
  // refitted, other ranks and sites are sent the trees that they need, and each tree is evaluated as it arrives.
  // Collective.
  virtual void evaluate(const Stream& stream, const Particles& particles, bool fresh, const ForceOutput& out) = 0;

  // The same once more from the lists and trees that are there: where room for lists was short, some were not evaluated.
  virtual void evaluate_again(const Stream& stream, const Particles& particles, const ForceOutput& out) = 0;

  // The trees of the last evaluation in the order in which they acted; the tree of own particles is the first.
  virtual std::vector<Sources> all(const Particles& particles) = 0;
  // For each group the range of own particles in it.
  virtual const DeviceBuffer<Group>& own_groups() const = 0;
  // Number of evaluations so far whose lists should have been kept but exceeded the memory for lists.
  virtual std::uint64_t unkept_lists() const { return 0; }
};

// Sends parts of this rank's tree to other sites and ranks, to the furthest first.
void send_to_all(const std::vector<TreeImports*>& imports, const Stream& stream, OwnTree& own,
                 const Particles& particles, const WalkOptions& walk, bool fresh);

// GhostSources where options.ghost_level > 0, else Forests. All arguments have to outlive the result.
std::unique_ptr<SourceTrees> make_source_trees(const GravityOptions& options, PhaseTimers& timers, OwnTree& own,
                                               const std::vector<TreeImports*>& imports, ListForces& forces);

}  // namespace maki
