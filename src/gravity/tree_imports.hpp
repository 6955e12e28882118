// Exchange of trees with other ranks: one interface for ranks of the same site (all_ranks.hpp) and for other sites
// (all_sites.hpp).
#pragma once

#include <cstdint>

#include "kernels/device/stream.hpp"
#include "kernels/particles/particles.hpp"
#include "kernels/tree/walk.hpp"
#include "src/gravity/gravity_options.hpp"
#include "src/gravity/kept_lists.hpp"
#include "src/timing/phase_timers.hpp"

namespace maki {

class TreeImports {
 public:
  virtual ~TreeImports() = default;

  // Number of other ranks, or other sites.
  virtual int others() const = 0;

  // Sends parts of this rank's tree to the ranks or sites that need them: a new selection where the tree is `fresh`,
  // else the payload of the last selection. `tree` and `particles` must not change until take(). Collective.
  void send(const Stream& stream, Octree& tree, const SourceParticle* particles, const WalkOptions& walk, bool fresh) {
    const PhaseTimers::Scope scope(timers_, sending_);
    begin(stream, tree, particles, walk, fresh);
  }
  // Makes progress with messages, without waiting. Returns whether messages remain that progress only in such calls.
  virtual bool move() { return false; }
  // Waits for the imported trees; work queued on `stream` afterwards may use them.
  void take(const Stream& stream) {
    const PhaseTimers::Scope scope(timers_, waiting_);
    finish(stream);
  }

  // Imported particles, in the order of their senders.
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

  // Number of groups too near to undivided imported cells, in this evaluation.
  std::uint32_t outgrown = 0;

  // Adds counts of messages to `counts`.
  virtual void report(GravityCounts& /*counts*/) const {}

 protected:
  // `sending`, `waiting`: names of phases of the timers.
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
