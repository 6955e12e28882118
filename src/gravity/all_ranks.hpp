// The other ranks of a site: their local essential trees, and all their particles gathered.
#pragma once

#include <cstdint>

#include "host/comm/communicator.hpp"
#include "host/comm/device_payload.hpp"
#include "host/let/local_essential_tree.hpp"
#include "kernels/particles/particles.hpp"
#include "src/gravity/gravity_options.hpp"
#include "src/gravity/tree_imports.hpp"

namespace maki {

// Local essential trees of the other ranks of this site.
class RankTrees final : public TreeImports {
 public:
  RankTrees(const GravityOptions& options, PhaseTimers& timers, const Communicator& ranks);

  // Sets the first drift() from the number of particles of all ranks, where it is not known yet. Collective.
  void know_drift(std::uint64_t own_particles);
  TreeDrift& drift() { return drift_; }
  const TreeDrift& drift() const { return drift_; }

  int others() const override { return ranks_.size() - 1; }
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

// All ranks' particles as sources of a direct sum, on every rank.
class AllSources {
 public:
  explicit AllSources(const Communicator& ranks) : payload_(ranks) {}

  // Positions and masses in the order of ranks, 16 bytes for each particle of the whole set; those of this rank begin
  // at `first`. Collective. Throws Error for 2^32 particles or more.
  struct View {
    const SourceParticle* particles;
    std::uint32_t count, first;
  };
  View gather(const Stream& stream, const Particles& particles);

 private:
  DevicePayload payload_;
  DeviceBuffer<SourceParticle> all_{"direct.sources"};
};

}  // namespace maki
