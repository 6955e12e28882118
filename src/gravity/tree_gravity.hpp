// Tree, groups and interaction lists over time: built, kept, repaired, and measured (DESIGN section 2).
#pragma once

#include <cstdint>

#include "kernels/force/force.hpp"
#include "kernels/particles/morton.hpp"
#include "kernels/tree/octree.hpp"
#include "kernels/tree/walk.hpp"
#include "src/gravity/gravity.hpp"
#include "src/gravity/list_probes.hpp"

namespace maki {

// Evaluates short-range forces from kept lists. One call of prepare() and one of evaluate() are one step:
//  1. when a rebuild is due, prepare() sorts the particles: from then on their order and positions stay;
//  2. rebuild (build, sweep, groups, walk), or else sweep the kept tree, refit the groups, and walk again those whose
//     lists no longer satisfy the opening criterion;
//  3. evaluate the lists;
//  4. compare the probes' forces with a strict walk, and decide whether the next step rebuilds.
class TreeGravity {
 public:
  TreeGravity(const GravityOptions& options, PhaseTimers& timers) : options_(options), timers_(timers) {}

  bool rebuild_is_due() const {
    return rebuild_due_ || (options_.fixed_reuse > 0 && uses_since_rebuild_ >= options_.fixed_reuse);
  }
  // `carried` (may be null) is put into the particles' new order on a rebuild.
  void prepare(const Stream& stream, Particles& particles, VectorArray* carried);
  void evaluate(const Stream& stream, const Particles& particles, const ForceOutput& out);

  void request_rebuild() { rebuild_due_ = true; }
  void set_theta(double theta);
  void set_law(const ForceLaw& law);
  const GravityCounts& counts() const { return counts_; }
  const GravityOptions& options() const { return options_; }

 private:
  WalkOptions walk_options(double theta) const;
  void rebuild_tree(const Stream& stream, const Particles& particles);
  void evaluate_fresh(const Stream& stream, const Particles& particles, const ForceOutput& out);
  void evaluate_in_batches(const Stream& stream, const Particles& particles, const ForceOutput& out,
                           std::uint32_t batch);
  void evaluate_kept(const Stream& stream, const Particles& particles, const ForceOutput& out);
  void replace_lists(const Stream& stream, const Particles& particles, const ForceOutput& out);
  std::uint32_t repair_lists(const Stream& stream, const Particles& particles);
  std::uint32_t batch_within_budget(const Stream& stream);
  void evaluate_probed(const Stream& stream, const Particles& particles, const ForceOutput& out);
  void decide_rebuild();
  void count(const ListStatistics& statistics);
  SourceView sources(const Particles& particles) const;
  ListView all_lists() const;

  GravityOptions options_;
  PhaseTimers& timers_;
  MortonSorter sorter_;
  Octree tree_;
  DeviceBuffer<Group> groups_{"tree.groups"};
  InteractionLists lists_;
  ListProbes probes_;
  GravityCounts counts_;
  bool rebuild_due_ = true;
  int uses_since_rebuild_ = 0;
  std::uint64_t fresh_words_ = 0;  // of all lists as they were last made
  double longer_ = 0;              // expected words of a list that is walked again, over their mean
  double fresh_pairs_ = 0;     // interactions of the lists as built
  double fresh_error_ = 0;     // of the probes, just after the rebuild
  double previous_error_ = 0;  // of the probes, one step ago
  double excess_ = 0;          // work that kept lists have cost beyond fresh ones since the rebuild, in interactions
};

}  // namespace maki
