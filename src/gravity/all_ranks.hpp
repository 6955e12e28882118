// The ranks of a site: their domains, their local essential trees, and all their particles gathered.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "host/comm/communicator.hpp"
#include "host/comm/device_payload.hpp"
#include "host/domain/migrate.hpp"
#include "host/domain/sampling.hpp"
#include "host/let/local_essential_tree.hpp"
#include "kernels/particles/particles.hpp"
#include "src/gravity/gravity_options.hpp"
#include "src/gravity/tree_imports.hpp"

namespace maki {

// The domains of the ranks: cut anew at rebuilds by the measured cost of particles, which then move to their ranks.
class RankDomains {
 public:
  explicit RankDomains(const Communicator& ranks) : ranks_(ranks) {}

  // New domains where there are several ranks; one rank keeps all. `costs` returns the cost of each particle in the
  // present order (Costs). The first time, and where no rank has costs, all particles have equal costs. Collective, as
  // is move().
  void cut(const Stream& stream, const Particles& particles, const std::function<Costs()>& costs);
  // Sends particles to their ranks. `carried` (null on all ranks or on none) has one entry for each particle and goes
  // with it.
  void move(const Stream& stream, Particles& particles, VectorArray* carried) const;

  // To be called where the box of an isolated set has doubled about its middle.
  void double_box() {
    if (domains_) domains_->double_box();
  }

 private:
  Communicator ranks_;
  std::optional<Domains> domains_;  // none before the first cut
  std::uint64_t updates_ = 0;
};

// Local essential trees of the other ranks of this site.
class RankTrees final : public TreeImports {
 public:
  RankTrees(const GravityOptions& options, PhaseTimers& timers, const Communicator& ranks);

  // Sets the first drift() from the number of particles of all ranks, where it is not known yet. Collective.
  void know_drift(std::uint64_t own_particles);
  TreeDrift& drift() { return drift_; }
  const TreeDrift& drift() const { return drift_; }

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

  // Positions and masses in the order of ranks; those of this rank begin at `first`. On one rank this is a view of the
  // particles themselves, else a copy of 16 bytes for each particle of the whole set. Collective. Throws Error for 2^32
  // particles or more.
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
