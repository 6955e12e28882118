// Data for the short range from other ranks and sites. TreeImports: the interface of imported trees. RankTrees: trees
// of the other ranks of a site. AllSources: the particles of all its ranks, for a direct sum. AllSites: trees of other
// sites, the slabs of the sites, and the decision when all sites rebuild (for one site only this decision).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "host/comm/communicator.hpp"
#include "host/comm/device_payload.hpp"
#include "host/let/local_essential_tree.hpp"
#include "kernels/device/stream.hpp"
#include "kernels/mesh/mesh.hpp"
#include "kernels/particles/particles.hpp"
#include "kernels/tree/walk.hpp"
#include "src/gravity/gravity_options.hpp"
#include "src/gravity/kept_lists.hpp"
#include "src/gravity/site_agreement.hpp"
#include "src/timing/phase_timers.hpp"
#include "wan/sites/site_trees.hpp"
#include "wan/sites/sites.hpp"
#include "wan/sites/slabs.hpp"

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
  virtual const DeviceBuffer<SourceParticle>& particles() const = 0;
  bool empty() { return forest().cells == 0; }
  Sources sources(const Particles& targets) {
    Octree& tree = forest();
    return {tree,
            {particles().data(), tree.moments.data(), tree.first.data(), tree.count.data(), targets.source.data()},
            lists_,
            this};
  }
  KeptLists& lists() { return lists_; }

  // Number of groups too near to closed imported cells in this evaluation (KeptLists::outgrown()).
  std::uint32_t outgrown = 0;

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

// Local essential trees of the other ranks of this site.
class RankTrees final : public TreeImports {
 public:
  RankTrees(const GravityOptions& options, PhaseTimers& timers, const Communicator& ranks);

  // Sets the first drift() from the number of particles of all ranks, where it is not known yet. Collective.
  void know_drift(std::uint64_t own_particles);
  TreeDrift& drift() { return drift_; }
  const TreeDrift& drift() const { return drift_; }
  // Sets the counts of messages.
  void report(GravityCounts& counts) const;

  int others() const override { return ranks_.size() - 1; }
  bool move() override { return !let_.progress() && let_.needs_host(); }
  const DeviceBuffer<SourceParticle>& particles() const override { return let_.particles(); }

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

// The least thickness of a slab, in sides. `ghost_level` as in GravityOptions.
double thinnest_slab(double r_cut, int ghost_level, int sites);

// Trees of other sites, the slabs, and the decision when all sites rebuild.
class AllSites final : public TreeImports {
 public:
  // Throws Error where slabs would be too thin for the cutoff.
  AllSites(SiteAgreement& agreement, const GravityOptions& options, PhaseTimers& timers);

  // Whether all sites rebuild in the evaluation that begins, by sums that all sites know. The same at all sites.
  bool rebuild_is_wanted();
  // Called on a rebuild, before particles go to their ranks: cuts new slabs, and sends particles to the sites that own
  // them. `carried` (may be null) goes with the particles.
  void cut_slabs();
  void migrate(const Stream& stream, Particles& particles, VectorArray* carried);

  // To be called where the box of an isolated set has doubled about its middle: at all sites before the same
  // evaluation, which rebuilds.
  void double_box();

  int others() const override { return agreement_.sites().count() - 1; }
  const DeviceBuffer<SourceParticle>& particles() const override { return trees_.particles(); }

  // The measures of one evaluation.
  struct Evaluation {
    StepSums sums;        // over the ranks of this site
    double interactions;  // of this rank
    double seconds;       // of this rank, for lists and their evaluation
    bool asks_rebuild;    // this site needs a rebuild at all sites; the same on all ranks
    bool balanced;        // the ranks' domains were cut by measured cost; the same on all ranks
  };
  // Enters an evaluation into the message to the other sites (SiteAgreement::mine()). `x`: sampled positions (fixed
  // point), each of which stands for an equal part of the work; empty except after a rebuild over several sites.
  // Collective.
  void tell(const Evaluation& evaluation, std::vector<std::uint32_t> x);
  bool shares_work() const { return agreement_.delay() > 0; }

  const sites::Slabs& slabs() const { return slabs_; }
  // Throws Error where a slab is too thin for the cutoff.
  void set_slabs(const sites::Slabs& slabs);
  void set_theta(double theta) { options_.theta = theta; }
  TreeDrift& drift() { return drift_; }
  const TreeDrift& drift() const { return drift_; }
  SiteAgreement& agreement() { return agreement_; }

 private:
  void begin(const Stream& stream, Octree& tree, const SourceParticle* particles, const WalkOptions& walk,
             bool fresh) override;
  void finish(const Stream& stream) override { trees_.finish(stream); }
  Octree& forest() override { return trees_.forest(); }
  bool is_wasteful(double mean_list);
  void measure_density(std::uint64_t mine);

  GravityOptions options_;
  SiteAgreement& agreement_;
  sites::SlabLimits limits_;
  sites::Slabs slabs_;
  sites::SiteTrees trees_;
  sites::SiteMigration migration_;
  RebuildJudge judge_;
  TreeDrift drift_;                           // the room for particles beyond their slab; the same at all sites
  std::uint64_t rebuilt_at_ = 0;              // number of the evaluation of the last rebuild
  std::uint64_t cut_at_ = 0;                  // number of the first evaluation with the present slabs
  bool balanced_ = false;                     // Evaluation::balanced of the last evaluation
  bool settled_ = false;                      // the last cut left the slabs unchanged
  double waste_ = 0;                          // waiting for slower sites, in interactions a particle
  std::uint64_t judged_ = ~std::uint64_t{0};  // number of the last evaluation whose sums were judged
  double work_ = 0, cost_ = 0;                // SiteWork since the rebuild
};

// The mass unit for the particles of all sites (choose_mass_unit()), the same at all sites: two round trips. Collective
// over the site's ranks. Throws Error as choose_mass_unit() does.
MassUnit mass_unit_of_sites(sites::Sites& sites, const Stream& stream, const MeshOptions& options,
                            const SourceParticle* particles, std::size_t n);

}  // namespace maki
