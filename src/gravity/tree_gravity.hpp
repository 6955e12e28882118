// Tree, groups and interaction lists over time: built, kept, repaired, and measured
// (docs/design.md, "The walk of a step").
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "host/comm/communicator.hpp"
#include "host/let/local_essential_tree.hpp"
#include "kernels/device/results.hpp"
#include "kernels/device/timer.hpp"
#include "kernels/device/work_clock.hpp"
#include "kernels/force/force.hpp"
#include "kernels/particles/morton.hpp"
#include "kernels/tree/octree.hpp"
#include "kernels/tree/walk.hpp"
#include "src/gravity/ghost_tree.hpp"
#include "src/gravity/gravity.hpp"
#include "src/gravity/kept_lists.hpp"
#include "src/gravity/list_probes.hpp"
#include "src/gravity/other_sites.hpp"
#include "src/gravity/rank_domains.hpp"
#include "src/gravity/rebuild_judge.hpp"
#include "src/gravity/tree_drift.hpp"

namespace maki {

// Evaluates short-range forces from kept lists. One call of prepare() and one of evaluate() are one step, on all ranks:
//  1. when a rebuild is due, prepare() cuts the domains anew, moves particles to their ranks and sorts them: from then
//     on their number, order and positions stay;
//  2. rebuild (build, sweep, groups), or else sweep the kept tree and refit the groups;
//  3. what other ranks need of the tree goes on its way;
//  4. lists over the local tree (new, or those repaired that no longer satisfy the opening criterion) are evaluated;
//  5. the same over what has come from other ranks, and over what has come from other sites;
//  6. the probes' forces are compared with a strict walk, and all ranks decide together whether the next step rebuilds
//     (over several sites: all sites, in the next step, whether the one after it does).
// With ghosts (GravityOptions::ghost_level) 3 to 5 are instead: particles come from other ranks and sites, and lists
// over one tree of them and one's own are evaluated.
class TreeGravity {
 public:
  // `steps`: of a run over several sites, else null.
  TreeGravity(const GravityOptions& options, PhaseTimers& timers, const Communicator& ranks,
              SiteSteps* steps = nullptr);

  // At the beginning of an evaluation, before rebuild_is_due(): what the sites have decided.
  void agree_with_sites();

  bool rebuild_is_due() const {
    return rebuild_due_ || (options_.fixed_reuse > 0 && uses_since_rebuild_ >= options_.fixed_reuse);
  }
  // `carried` (may be null) is put into the particles' new order on a rebuild, and follows them to other ranks.
  void prepare(const Stream& stream, Particles& particles, VectorArray* carried);
  void evaluate(const Stream& stream, const Particles& particles, const ForceOutput& out);

  void request_rebuild() { rebuild_due_ = true; }
  void box_doubled() {
    rebuild_due_ = true;
    drift_.box_doubled();
    domains_.double_box();
    if (sites_) sites_->double_box();
  }
  void set_theta(double theta);
  void set_law(const ForceLaw& law);
  const GravityCounts& counts() const { return counts_; }
  OtherSites* sites() { return sites_.get(); }
  TreeDrift& drift() { return drift_; }
  std::uint64_t unkept_ghost_lists() const { return unkept_ghost_lists_; }
  const GravityOptions& options() const { return options_; }

 private:
  enum class From { kHere, kRanks, kSites };
  // A tree whose sources act on the groups, and the lists over it. Forces of imported ones are added to those of the
  // local tree.
  struct Sources {
    Octree& tree;
    KeptLists& lists;
    SourceView view;
    From from;
    bool imported() const { return from != From::kHere; }
  };

  WalkOptions walk_options(double theta) const;
  void distribute(const Stream& stream, Particles& particles, VectorArray* carried);
  Costs costs_of_particles(const Stream& stream, double seconds);
  void begin_evaluation();
  void evaluate_forests(const Stream& stream, const Particles& particles, bool fresh, const ForceOutput& out);
  void evaluate_with_ghosts(const Stream& stream, const Particles& particles, bool fresh, const ForceOutput& out);
  void evaluate_new_tree(const Stream& stream, const Particles& particles, bool want_potential);
  void evaluate_kept_tree(const Stream& stream, const Particles& particles, bool want_potential);
  void evaluate_groups(const Stream& stream, const Sources& sources, const DeviceBuffer<std::uint32_t>& which,
                       const ForceOutput& out);
  void split_groups(const Stream& stream);
  void send_ghosts(const Stream& stream, const Particles& particles, bool fresh);
  GhostTree::Ghosts take_ghosts(const Stream& stream);
  int min_level() const { return options_.periodic ? kPeriodicMinLevel : 0; }
  void rebuild_tree(const Stream& stream, const Particles& particles);
  void rebuild_groups(const Stream& stream, const Particles& particles);
  void refit_tree(const Stream& stream, const Particles& particles);
  void exchange_trees(const Stream& stream, const Particles& particles, bool fresh);
  void finish_exchange(const Stream& stream);
  void renew_imports(const Stream& stream, const Particles& particles, const ForceOutput& out);
  void serve(const Stream& stream, const Sources& sources, bool fresh, const ForceOutput& out);
  void walk_and_evaluate(const Stream& stream, const Sources& sources, bool fresh, const ForceOutput& out);
  void serve_in_batches(const Stream& stream, const Sources& sources, std::uint32_t batch, const ForceOutput& out);
  void evaluate_kept(const Stream& stream, const Sources& sources, const ForceOutput& out);
  void evaluate_in_slices(const Stream& stream, const Sources& sources, const ListView& lists, bool waiting,
                          const ForceOutput& out);
  void move_messages(const Stream& stream);
  void count(const ListStatistics& statistics);
  void count_later(const Stream& stream, const Sources& sources);
  void count_now(const Stream& stream, const Sources& sources);
  std::vector<Sources> all_sources(const Particles& particles);
  bool has_probes() const;
  Result<SampleError> probe(const Stream& stream, const Particles& particles, const ForceOutput& out);
  SampleError settle(const Stream& stream, const Particles& particles, const ForceOutput& out);
  void begin_force(const Stream& stream);
  void end_force(const Stream& stream);
  void take_force_seconds();
  StepSums over_ranks(const SampleError& error) const;
  void report(const StepSums& sums);
  void ask_for_rebuild();
  void judge(const StepSums& sums, bool fresh);
  bool must_replace() const;
  void replace_lists(const Stream& stream, const Particles& particles, const ForceOutput& out);
  std::size_t budget_of(const Sources& sources) const;
  Sources local(const Particles& particles);
  Sources imported(const Particles& particles);
  Sources from_sites(const Particles& particles);
  bool has_imported() const { return imported_cells_ > 0; }
  bool has_sites() const { return sites_ && !ghosts_ && sites_->cells() > 0; }
  void tell_sites(const Stream& stream, const Particles& particles, const StepSums& sums);

  GravityOptions options_;
  PhaseTimers& timers_;
  Communicator ranks_;
  RankDomains domains_;
  MortonSorter sorter_;
  Octree tree_;                        // of own particles; with ghosts, only to choose what others need
  std::unique_ptr<GhostTree> ghosts_;  // or null
  std::uint64_t unkept_ghost_lists_ = 0;
  DeviceBuffer<Group> groups_{"tree.groups"};
  KeptLists lists_, imported_lists_;
  LocalEssentialTree let_;
  std::uint32_t imported_cells_ = 0;
  ListProbes probes_;
  RebuildJudge judge_;
  GravityCounts counts_;
  ListStatistics statistics_;  // of this step's lists over both trees
  bool batched_ = false;       // this step's lists were not kept
  bool lists_gone_ = false;    // those of the last step were not kept
  std::uint32_t outgrown_ = 0;  // groups that have come too near to a closed cell of other ranks
  std::uint32_t outgrown_sites_ = 0;  // the same, of other sites
  bool asks_rebuild_ = false;  // of all sites, as this one cannot wait
  std::unique_ptr<OtherSites> sites_;  // null in a run of one
  Results results_{"gravity.results"};  // of this step's kernels, until settle()
  std::vector<Result<ListStatistics>> counted_;  // in results_
  StreamClock force_clock_;    // marks 2 k and 2 k + 1: what force_seconds_ is made of
  std::size_t force_spans_ = 0;
  double force_seconds_ = 0;   // of this step
  TreeDrift drift_;            // that imported trees allow
  bool costs_known_ = false;   // all ranks' lists tell what the particles cost; alike on all ranks
  bool balanced_ = false;      // they were known when the domains were cut
  DeviceBuffer<std::uint32_t> costs_{"domains.costs"};
  WorkClock work_;             // of lists and evaluation since the domains were cut
  bool rebuild_due_ = true;
  int uses_since_rebuild_ = 0;
};

}  // namespace maki
