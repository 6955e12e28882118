// What this rank needs of trees elsewhere, and sends of its own: one face for the ranks of its site (rank_trees.hpp) and
// for other sites (other_sites.hpp).
#pragma once

#include <cstdint>

#include "kernels/device/timer.hpp"
#include "kernels/particles/particles.hpp"
#include "kernels/tree/walk.hpp"
#include "src/gravity/gravity.hpp"
#include "src/gravity/sources.hpp"

namespace maki {

class TreeImports {
 public:
  virtual ~TreeImports() = default;

  // Collective. This rank's tree goes on its way: what others need of it is selected where it is `fresh`, else it is
  // the payload of the last selection. `tree` and `particles` are not changed until take().
  void send(const Stream& stream, Octree& tree, const SourceParticle* particles, const WalkOptions& walk, bool fresh) {
    const PhaseTimers::Scope scope(timers_, sending_);
    begin(stream, tree, particles, walk, fresh);
  }
  // Moves messages on without waiting. Whether some are on their way that move in such calls only.
  virtual bool move() { return false; }
  // Waits. What came is there for work queued on `stream`.
  void take(const Stream& stream) {
    const PhaseTimers::Scope scope(timers_, waiting_);
    finish(stream);
  }

  // As they came, in the order of their senders.
  virtual const SourceParticle* particles() const = 0;
  virtual std::uint64_t particle_count() const = 0;
  bool empty() { return forest().cells == 0; }
  Sources sources(const Particles& targets) {
    Octree& tree = forest();
    return {tree,
            {particles(), tree.moments.data(), tree.first.data(), tree.count.data(), targets.source.data()},
            lists_,
            this};
  }
  KeptLists& lists() { return lists_; }

  // Groups that have come too near to what was sent undivided, in this evaluation.
  std::uint32_t outgrown = 0;

  // Into the counts of this evaluation.
  virtual void report(GravityCounts& /*counts*/) const {}

 protected:
  // Phases of the timers.
  TreeImports(PhaseTimers& timers, const char* sending, const char* waiting)
      : timers_(timers), sending_(sending), waiting_(waiting) {}
  virtual void begin(const Stream& stream, Octree& tree, const SourceParticle* particles, const WalkOptions& walk,
                     bool fresh) = 0;
  virtual void finish(const Stream& stream) = 0;
  virtual Octree& forest() = 0;

 private:
  PhaseTimers& timers_;
  const char *sending_, *waiting_;
  KeptLists lists_;
};

}  // namespace maki
