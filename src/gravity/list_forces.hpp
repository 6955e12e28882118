// Forces by interaction lists: makes, keeps, repairs, evaluates and counts the lists of all groups, for one tree of
// sources after another (docs/design.md, "The walk of a step").
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/device/buffer.hpp"
#include "kernels/device/stream.hpp"
#include "kernels/force/force.hpp"
#include "kernels/tree/walk.hpp"
#include "src/gravity/gravity_options.hpp"
#include "src/gravity/tree_imports.hpp"

namespace maki {

class ListForces {
 public:
  // `options` and `imports` are referred to, and may change between evaluations. Messages of imports make progress
  // while lists are evaluated.
  ListForces(const GravityOptions& options, PhaseTimers& timers, const std::vector<TreeImports*>& imports)
      : options_(options), timers_(timers), imports_(imports) {}

  // The groups of targets; none where there are no particles.
  DeviceBuffer<Group>& groups() { return groups_; }
  const DeviceBuffer<Group>& groups() const { return groups_; }
  // Lists over the tree of own particles; lists over imported trees belong to their TreeImports.
  KeptLists& own_lists() { return own_lists_; }
  void release_lists();
  // Cells of new lists open by estimated error, relative to this acceleration; by angle where it is 0.
  void open_by_error(double reference_acceleration);
  bool opens_by_error() const { return reference_acceleration_ > 0; }
  WalkOptions walk(double theta) const;
  WalkOptions walk() const { return walk(options_.theta); }

  // Begins an evaluation: counts and times start at 0.
  void begin();
  // Makes new lists (`fresh`, or where the last ones were not kept) or repairs kept ones, and evaluates them.
  void serve(const Stream& stream, const Sources& sources, bool fresh, const ForceOutput& out);
  // Evaluates kept lists of the groups `which`, after opening cells that have come near.
  void evaluate_part(const Stream& stream, const Sources& sources, const DeviceBuffer<std::uint32_t>& which,
                     const ForceOutput& out);
  // Evaluates kept lists of all groups, unchanged.
  void evaluate_kept(const Stream& stream, const Sources& sources, const ForceOutput& out);
  // Makes new lists over the present tree, in batches where they do not fit, evaluates and counts them.
  void evaluate_anew(const Stream& stream, const Sources& sources, const ForceOutput& out);
  // Count the interactions of lists: count_later() queues the count, for take_counted() once results() are fetched.
  void count_later(const Stream& stream, const Sources& sources);
  void count_now(const Stream& stream, const Sources& sources);
  bool has_counted() const { return !counted_.empty(); }
  void take_counted(bool good);  // counts of lists that were not good are dropped
  // Resets the counts, as all lists of this evaluation are evaluated again.
  void count_again() { statistics_ = {}; }

  // Results of this evaluation's kernels; the caller fetches them when all kernels are queued.
  Results& results() { return results_; }
  // Counts of this evaluation.
  const ListStatistics& statistics() const { return statistics_; }
  void set_members(std::uint64_t own) { statistics_.members = own; }  // for groups that contain ghosts too
  std::uint64_t interactions() const { return statistics_.particle_pairs + statistics_.cell_pairs; }
  std::uint64_t rewalked() const { return rewalked_; }
  std::uint64_t take_redone();               // groups walked twice because room was short, since the last call
  bool batched() const { return batched_; }  // lists of this evaluation are not kept
  bool lists_are_gone() const { return lists_gone_; }  // those of the evaluation before were not
  double seconds() const { return seconds_; }          // spent on lists and their evaluation, after take_seconds()
  void take_seconds();                                 // to be called once the host has waited for the work
  // Seconds of work on lists and their evaluation since the last call.
  double take_work() { return work_.take(); }

 private:
  std::uint32_t bring_up_to_date(const Stream& stream, const Sources& sources, bool fresh);
  void serve_in_batches(const Stream& stream, const Sources& sources, std::uint32_t batch, const ForceOutput& out);
  void evaluate(const Stream& stream, const Sources& sources, const ListView& lists, const ForceOutput& out);
  void reopen(const Stream& stream, const Sources& sources, const DeviceBuffer<std::uint32_t>* which);
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
  float reference_acceleration_ = 0;  // mass / side^2, of the last rebuild
  StreamClock clock_;                 // marks 2 k and 2 k + 1: begin and end of span k, summed in seconds_
  std::size_t spans_ = 0;
  double seconds_ = 0;
  WorkClock work_;
};

}  // namespace maki
