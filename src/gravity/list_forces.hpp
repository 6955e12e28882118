// Forces by interaction lists: made for all groups over one tree of sources after another, kept, repaired, evaluated and
// counted (docs/design.md, "The walk of a step").
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/device/results.hpp"
#include "kernels/device/timer.hpp"
#include "kernels/device/work_clock.hpp"
#include "kernels/force/force.hpp"
#include "kernels/tree/walk.hpp"
#include "src/gravity/gravity.hpp"
#include "src/gravity/tree_imports.hpp"

namespace maki {

class ListForces {
 public:
  // Both are referred to, and may change between evaluations. Messages of imports are moved on while lists are evaluated.
  ListForces(const GravityOptions& options, PhaseTimers& timers, const std::vector<TreeImports*>& imports)
      : options_(options), timers_(timers), imports_(imports) {}

  // Whose members are acted on; empty where there are no particles.
  DeviceBuffer<Group>& groups() { return groups_; }
  const DeviceBuffer<Group>& groups() const { return groups_; }
  // Over the tree of own particles; those over imports are theirs.
  KeptLists& own_lists() { return own_lists_; }
  void release_lists();
  WalkOptions walk(double theta) const;
  WalkOptions walk() const { return walk(options_.theta); }

  // An evaluation begins.
  void begin();
  // New lists (`fresh`, or where the last were not kept), or kept ones repaired, and their evaluation.
  void serve(const Stream& stream, const Sources& sources, bool fresh, const ForceOutput& out);
  // Evaluates kept lists as they are, of the groups `which` or of all; or makes all anew, over the tree as it is, first.
  void evaluate_part(const Stream& stream, const Sources& sources, const DeviceBuffer<std::uint32_t>& which,
                     const ForceOutput& out);
  void evaluate_kept(const Stream& stream, const Sources& sources, const ForceOutput& out);
  void evaluate_anew(const Stream& stream, const Sources& sources, const ForceOutput& out);
  // Queues the counting of kept lists, for take_counted() once results() are fetched; or counts at once.
  void count_later(const Stream& stream, const Sources& sources);
  void count_now(const Stream& stream, const Sources& sources);
  bool has_counted() const { return !counted_.empty(); }
  void take_counted(bool good);  // those of lists that were not good are dropped
  // All lists of this evaluation are evaluated again.
  void count_again() { statistics_ = {}; }

  // What kernels of this evaluation have found: fetched by the caller, when all are queued.
  Results& results() { return results_; }
  // The rest is of this evaluation, too.
  const ListStatistics& statistics() const { return statistics_; }
  void set_members(std::uint64_t own) { statistics_.members = own; }  // where groups have others' members too
  std::uint64_t interactions() const { return statistics_.particle_pairs + statistics_.cell_pairs; }
  std::uint64_t rewalked() const { return rewalked_; }
  std::uint64_t take_redone();               // groups walked twice because room was short, since the last call
  bool batched() const { return batched_; }  // lists were not kept
  bool lists_are_gone() const { return lists_gone_; }  // those of the last evaluation were not
  double seconds() const { return seconds_; }          // of lists and their evaluation, after take_seconds()
  void take_seconds();                                 // the host has waited for the work
  // Of lists and evaluation, since the last call.
  double take_work() { return work_.take(); }

 private:
  void walk_and_evaluate(const Stream& stream, const Sources& sources, bool fresh, const ForceOutput& out);
  void serve_in_batches(const Stream& stream, const Sources& sources, std::uint32_t batch, const ForceOutput& out);
  void evaluate(const Stream& stream, const Sources& sources, const ListView& lists, const ForceOutput& out);
  bool move_messages() const;
  void move_messages_beside(const Stream& stream) const;
  std::size_t budget_of(const Sources& sources) const;
  void count(const ListStatistics& statistics);
  void begin_span(const Stream& stream);
  void end_span(const Stream& stream);

  const GravityOptions& options_;
  PhaseTimers& timers_;
  const std::vector<TreeImports*>& imports_;
  DeviceBuffer<Group> groups_{"tree.groups"};
  KeptLists own_lists_;
  Results results_{"gravity.results"};
  ListStatistics statistics_;
  std::vector<Result<ListStatistics>> counted_;  // in results_
  std::uint64_t rewalked_ = 0;
  bool batched_ = false, lists_gone_ = false;
  StreamClock clock_;  // marks 2 k and 2 k + 1: what seconds_ is made of
  std::size_t spans_ = 0;
  double seconds_ = 0;
  WorkClock work_;
};

}  // namespace maki
