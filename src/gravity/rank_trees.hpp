// Local essential trees of the other ranks of this site.
#pragma once

#include "host/let/local_essential_tree.hpp"
#include "src/gravity/tree_drift.hpp"
#include "src/gravity/tree_imports.hpp"

namespace maki {

class RankTrees final : public TreeImports {
 public:
  RankTrees(const GravityOptions& options, PhaseTimers& timers, const Communicator& ranks);

  // Sets the first drift() from the number of particles of all ranks, where it is not known yet. Collective.
  void know_drift(std::uint64_t own_particles);
  TreeDrift& drift() { return drift_; }

  bool move() override { return !let_.progress() && let_.needs_host(); }
  const SourceParticle* particles() const override { return let_.particles(); }
  std::uint64_t particle_count() const override { return let_.particle_count(); }
  void report(GravityCounts& counts) const override;

 private:
  void begin(const Stream& stream, Octree& tree, const SourceParticle* particles, const WalkOptions& walk,
             bool fresh) override;
  void finish(const Stream& stream) override { let_.finish(stream); }
  Octree& forest() override { return let_.forest(); }

  Communicator ranks_;
  LocalEssentialTree let_;
  TreeDrift drift_;
};

}  // namespace maki
