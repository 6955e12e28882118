// Tree, groups and interaction lists over time: built, kept, repaired, and measured
// (docs/design.md, "The walk of a step").
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "host/comm/communicator.hpp"
#include "host/domain/rank_domains.hpp"
#include "src/gravity/gravity_options.hpp"
#include "src/gravity/kept_lists.hpp"
#include "src/gravity/list_forces.hpp"
#include "src/gravity/source_trees.hpp"
#include "src/gravity/tree_imports.hpp"

namespace maki {

// Evaluates short-range forces from kept lists. One call of prepare() and one of evaluate() are one step, on all ranks:
//  1. when a rebuild is due, prepare() cuts the domains anew, moves particles to their ranks and sorts them; their
//     number, order and positions then stay until the step ends;
//  2. trees are built or refitted, their parts are sent to the ranks and sites that need them, and lists over each tree
//     (new, or repaired where the opening criterion fails) are evaluated as trees arrive (SourceTrees);
//  3. forces on the probes are compared with a strict walk. By their error and the cost of lists all sites decide
//     together when to rebuild (AllSites): in the next evaluation at one site, in the one after it at several.
class TreeGravity {
 public:
  // An evaluation lies between begin() and publish() of `agreement`.
  TreeGravity(const GravityOptions& options, PhaseTimers& timers, const Communicator& ranks, SiteAgreement& agreement);

  // Applies the decision of all sites to rebuild; called at the beginning of an evaluation, before rebuild_is_due().
  void agree_with_sites();

  bool rebuild_is_due() const {
    return rebuild_due_ || (options_.fixed_reuse > 0 && uses_since_rebuild_ >= options_.fixed_reuse);
  }
  // A rebuild puts `carried` (may be null) into the particles' new order and moves it with them to other ranks: the
  // long-range accelerations, or with GravityOptions::open_by_error the last ones, which evaluate() then finds in
  // `out`.
  void prepare(const Stream& stream, Particles& particles, VectorArray* carried);
  void evaluate(const Stream& stream, const Particles& particles, const ForceOutput& out);

  void request_rebuild() { rebuild_due_ = true; }
  void box_doubled() {
    rebuild_due_ = true;
    rank_trees_.drift().box_doubled();
    domains_.double_box();
    sites_.double_box();
  }
  void drifted(double rms_sides);                       // as Gravity's
  void reference_acceleration_is(double acceleration);  // as Gravity's
  void set_theta(double theta);
  void set_law(const ForceLaw& law);
  const GravityCounts& counts() const { return counts_; }
  AllSites& sites() { return sites_; }
  const AllSites& sites() const { return sites_; }
  TreeDrift& drift() { return rank_trees_.drift(); }
  const TreeDrift& drift() const { return rank_trees_.drift(); }
  std::uint64_t unkept_ghost_lists() const { return source_trees_->unkept_lists(); }
  bool has_imports() const { return !imports_.empty(); }  // there are other ranks or sites

 private:
  void distribute(const Stream& stream, Particles& particles, VectorArray* carried);
  Costs costs_of_particles(const Stream& stream, const Particles& particles, double seconds);
  bool has_probes() const;
  Result<SampleError> probe(const Stream& stream, const Particles& particles, const ForceOutput& out);
  SampleError settle(const Stream& stream, const Particles& particles, const ForceOutput& out);
  StepSums over_ranks(const SampleError& error) const;
  void report(const StepSums& sums, const Particles& particles);
  void judge(const StepSums& sums, bool fresh);
  void renew_imports(const Stream& stream, const Particles& particles, const ForceOutput& out);
  bool must_replace() const;
  void replace_lists(const Stream& stream, const Particles& particles, const ForceOutput& out);
  void tell_sites(const Stream& stream, const Particles& particles, const StepSums& sums);

  GravityOptions options_;
  PhaseTimers& timers_;
  Communicator ranks_;
  RankDomains domains_;
  OwnTree own_;
  RankTrees rank_trees_;
  AllSites sites_;
  std::vector<TreeImports*> imports_;  // rank_trees_ and sites_, if there are other ranks, other sites; nearest first
  ListForces forces_;
  std::unique_ptr<SourceTrees> source_trees_;
  ListProbes probes_;
  GravityCounts counts_;
  bool again_ = false;         // all lists were evaluated a second time in this evaluation
  bool asks_rebuild_ = false;  // this site needs a rebuild at all sites
  bool costs_known_ = false;   // lists of all ranks yield the cost of particles; the same on all ranks
  bool balanced_ = false;      // costs were known when the domains were cut
  DeviceBuffer<std::uint32_t> costs_{"domains.costs"};
  double reference_acceleration_ = 0;  // the last one known; 0: none is
  bool rebuild_due_ = true;
  double drifted_sides_ = 0;  // upper bound of the rms distance since the rebuild
  int uses_since_rebuild_ = 0;
};

}  // namespace maki
