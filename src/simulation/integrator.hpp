// Kick-drift-kick leapfrog in two nested scales of time (docs/design.md, "Numbers").
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "kernels/measure/step_reductions.hpp"
#include "kernels/particles/particles.hpp"
#include "src/simulation/frame.hpp"
#include "src/simulation/run_context.hpp"
#include "src/simulation/run_state.hpp"
#include "src/simulation/step_criterion.hpp"

namespace maki {

// What gives accelerations: G = 1, mass / side^2, in the order of the particles. A call may reorder particles, double
// the box (Frame::side) or take escapers out; the accelerations of the other range then follow.
class ForceField {
 public:
  virtual ~ForceField() = default;
  virtual void short_range(double t, bool want_potential) = 0;  // at the particles' present positions
  virtual void long_range(double t, bool want_potential) = 0;
  // Both at the same positions; results as of short_range and then long_range.
  virtual void both_ranges(double t, bool want_potential) {
    short_range(t, want_potential);
    long_range(t, want_potential);
  }
  // No particle is further from the middle than `reach` (sides) on any axis when forces are next asked for: said where
  // it is known, so that it need not be measured.
  virtual void all_are_within(double /*reach*/) {}
  // What sites have to ask each other once for potentials, before they are wanted.
  virtual void prepare_potentials() {}
  virtual bool has_mesh() const = 0;        // without one, neither is called
  virtual std::uint64_t total() const = 0;  // particles of all ranks
  virtual const VectorArray& short_acceleration() const = 0;
  virtual const VectorArray& long_acceleration() const = 0;
};

// Where a step should leave potentials behind. They cost time.
enum class Potentials { kNever, kAtTarget, kAtBoundary };  // the last: wherever a long step ends

struct StepReport {
  double t = 0;                // at the end of the step
  double step = 0;             // length of the short step, timeline units
  double long_step = 0;        // length of the long step that it belongs to
  bool long_boundary = false;  // the long-range force was evaluated at its end; synchronise() is possible
  bool has_potential = false;  // potentials of this instant were asked for and are there
  StepMeasure measure;         // at the end of the step
};

// A long step is: half a kick by the mesh, short steps (half a kick by the tree, drift, half a kick), half a kick by
// the mesh. Kicks that meet are one kick, unless synchronise() is called between them: momenta stand at the middle of
// a step, positions at its end. Lengths are chosen from the reductions of the step before the last one and earlier
// ones (docs/design.md, "The walk of a step"), which are over all ranks: one of maxima a step, one sum a long step; and
// over all sites of a run, which have the older ones from each other by then. All calls are collective.
class Integrator {
 public:
  // All references outlive this.
  Integrator(const RunContext& run, Particles& particles, ForceField& forces, const Timeline& timeline,
             const StepOptions& options, const Frame& frame);

  // Sets the clock to t, with positions and momenta both of that time, and evaluates both ranges.
  // Throws Error where an acceleration or a momentum is not a number.
  StepReport start(double t, bool want_potential);

  // One short step towards `target`, which is hit exactly and never passed. Steps left to it are of equal length, and
  // it ends a long step. Throws as start().
  StepReport advance(double target, Potentials potentials);

  // Where a long step has ended: what a restart keeps; and evaluates both ranges as they were, to go on from it. Throws
  // std::logic_error elsewhere, and Error as start().
  IntegratorState state() const;
  void resume(const IntegratorState& state);

  // Momenta to the time of the positions. Only where a long step has ended; throws std::logic_error elsewhere.
  void synchronise();

  double time() const { return time_; }
  bool at_boundary() const { return time_ == long_end_; }
  bool synchronised() const { return short_kicked_to_ == time_ && long_kicked_to_ == time_; }

 private:
  // Of a step (step.cpp).
  void kick_short(double to);
  void kick_long(double to);
  void drift_to(double end);
  void evaluate(bool boundary, bool want_potential);
  // Its length, and what that is chosen by.
  void learn_measures();
  void choose_long_step(double target);
  double choose_short_end() const;
  void measure(bool boundary);
  void know_reach(const StepMaxima& maxima);
  StepMeasure measure_of_all() const;
  // The last one that all sites know.
  const StepMeasure& latest() const { return later_.empty() ? before_last_ : later_.back(); }
  void collect_told();
  StepMeasure expected_measure() const;
  double safe_step(double step, const StepMeasure& from) const;

  const Stream& stream_;
  Particles& particles_;
  ForceField& forces_;
  const Timeline& timeline_;
  const StepOptions& options_;
  const Frame& frame_;
  PhaseTimers& timers_;
  Communicator ranks_;
  SiteAgreement& agreement_;

  double time_ = 0;             // of the positions
  double short_kicked_to_ = 0;  // momenta hold the short-range force up to here
  double long_kicked_to_ = 0;   // and the long-range force up to here
  double long_begin_ = 0;
  double long_end_ = 0;
  bool has_potential_ = false;           // of the last evaluation
  StepMeasure told_last_, told_before_;  // as in IntegratorState
  // What no particle exceeds: of the last measure, and what kicks and drifts since then may have added.
  struct Bounds {
    double reach;         // |x - 1/2| on any axis, sides
    double momentum;      // |p|, velocity units
    double acceleration;  // mass / side^2
  };
  std::optional<Bounds> farthest_;
  // Measures of all sites: those that the next step is chosen by, made at the end of the step before the last one and of
  // that before it; and later ones, as far as they are known, each of which speaks for one more step.
  StepMeasure before_last_, older_;
  std::deque<StepMeasure> later_;
};

}  // namespace maki
