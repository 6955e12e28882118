// The sites of a run, as tree gravity deals with them: whose slab is where, the trees that come from the others, and
// when all rebuild. Of a site alone: when it rebuilds.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/particles/particles.hpp"
#include "src/gravity/gravity.hpp"
#include "src/gravity/site_agreement.hpp"
#include "src/gravity/tree_drift.hpp"
#include "src/gravity/tree_imports.hpp"
#include "wan/sites/site_migration.hpp"
#include "wan/sites/site_trees.hpp"

namespace maki {

// Slabs are never thinner (sides), however they move. `ghost_level` as in GravityOptions.
double thinnest_slab(double r_cut, int ghost_level, int sites);

class OtherSites final : public TreeImports {
 public:
  // Throws Error where slabs would be too thin for the cutoff.
  OtherSites(SiteAgreement& agreement, const GravityOptions& options, PhaseTimers& timers);

  // At the beginning of an evaluation, from sums that all sites have: whether they rebuild now. Alike at all sites.
  bool rebuild_is_wanted();
  // On a rebuild, before the ranks of this site share out their particles: new slabs, and particles to their sites.
  void cut_slabs();
  void migrate(const Stream& stream, Particles& particles, VectorArray* carried);

  // The box of an isolated set has doubled about its middle: at all sites before the same evaluation, which rebuilds.
  void double_box();

  const SourceParticle* particles() const override { return trees_.particles(); }
  std::uint64_t particle_count() const override { return trees_.particle_count(); }

  // What this evaluation adds to this site's sums. `x`: samples of what the particles cost, after a rebuild, where work is
  // shared with other sites. Collective.
  struct Evaluation {
    StepSums sums;        // over the ranks
    double interactions;  // of this rank
    double seconds;       // in lists and their evaluation, likewise
    bool asks_rebuild;    // of all sites, as this one cannot wait; alike on all ranks
    bool balanced;        // domains of ranks were cut by what particles have cost; likewise
  };
  void tell(const Evaluation& evaluation, std::vector<std::uint32_t> x);
  bool shares_work() const { return !agreement_.sites().alone(); }

  const sites::Slabs& slabs() const { return slabs_; }
  // Throws Error where one is too thin for the cutoff.
  void set_slabs(const sites::Slabs& slabs);
  TreeDrift& drift() { return drift_; }
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
  TreeDrift drift_;                           // beyond their slab, for the trees that come; alike at all sites
  std::uint64_t rebuilt_at_ = 0;              // evaluation
  std::uint64_t cut_at_ = 0;                  // evaluation from which on slabs are as they are
  bool balanced_ = false;                     // as told of the last evaluation
  bool settled_ = false;                      // the last cut left them so
  double waste_ = 0;                          // of sites that waited for slower ones, interactions a particle
  std::uint64_t judged_ = ~std::uint64_t{0};  // the last one whose sums were looked at
  double work_ = 0, seconds_ = 0;             // since the rebuild
};

}  // namespace maki
