// Where the sources of a rank's forces are: in its own tree and the forests of what others sent (forests.hpp), or in one
// tree of own particles and ghosts (ghost_sources.hpp). Chosen once in a run.
#pragma once

#include <memory>
#include <vector>

#include "src/gravity/list_forces.hpp"
#include "src/gravity/own_tree.hpp"

namespace maki {

class SourceTrees {
 public:
  virtual ~SourceTrees() = default;

  // Collective. Trees and groups are made (`fresh`: particles have just been sorted) or follow their particles, others
  // get what they need, and what acts on own particles is evaluated, as it comes, by `forces`.
  virtual void evaluate(const Stream& stream, const Particles& particles, bool fresh, const ForceOutput& out) = 0;

  // What acted in the last evaluation, in this order; that of own particles first.
  virtual std::vector<Sources> all(const Particles& particles) = 0;
  // By group: which own particles are in it.
  virtual const DeviceBuffer<Group>& own_groups() const = 0;
  // Evaluations so far whose lists were to be kept and had no room.
  virtual std::uint64_t unkept_lists() const { return 0; }
};

// What others need goes on its way, to the furthest first.
void send_to_all(const std::vector<TreeImports*>& imports, const Stream& stream, OwnTree& own,
                 const Particles& particles, const WalkOptions& walk, bool fresh);

// Which of the two, GravityOptions::ghost_level says. All arguments are referred to.
std::unique_ptr<SourceTrees> make_source_trees(const GravityOptions& options, PhaseTimers& timers, OwnTree& own,
                                               const std::vector<TreeImports*>& imports, ListForces& forces);

}  // namespace maki
