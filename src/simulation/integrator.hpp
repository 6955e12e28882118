// Kick-drift-kick leapfrog with two nested time steps (docs/design.md, "Numbers").
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "host/comm/communicator.hpp"
#include "kernels/device/stream.hpp"
#include "kernels/measure/reductions.hpp"
#include "kernels/particles/particles.hpp"
#include "src/gravity/gravity_options.hpp"
#include "src/gravity/site_agreement.hpp"
#include "src/simulation/frame.hpp"
#include "src/simulation/run_state.hpp"
#include "src/simulation/step_criterion.hpp"
#include "src/timing/phase_timers.hpp"

namespace maki {

// The stream, timers, ranks and sites that all parts of a step use.
struct RunContext {
  const Stream& stream;
  PhaseTimers& timers;
  SiteAgreement& agreement;
  Communicator ranks = Communicator::self();
};

// The source of accelerations: G = 1, mass / side^2, in the order of the particles. An evaluation may reorder
// particles, double the box (Frame::side) or remove escapers; the accelerations of a range that is not evaluated are
// reordered and scaled likewise.
class ForceField {
 public:
  virtual ~ForceField() = default;
  // Forces at the particles' present positions, of the short range or of both.
  virtual void evaluate(double t, Ranges ranges, bool want_potential) = 0;
  // States that no particle will be further from the middle than `reach_sides` on any axis at the next evaluation, so
  // that this need not be measured.
  virtual void all_are_within(double /*reach_sides*/) {}
  // States the rms distance that particles have moved since the last call or evaluation, from the measure by which a
  // step is chosen.
  virtual void drifted(double /*rms_sides*/) {}
  // States the last measure by which a step is chosen.
  virtual void measured(const StepMeasure&) {}
  // Exchanges in advance the data between sites for potentials (the total mass).
  virtual void prepare_potentials() {}
  virtual bool has_mesh() const = 0;        // whether there is a long range
  virtual std::uint64_t total() const = 0;  // particles of all ranks
  virtual const VectorArray& short_acceleration() const = 0;
  virtual const VectorArray& long_acceleration() const = 0;
};

// The ends of steps at which potentials are computed, which costs time.
enum class Potentials {
  kNever,
  kAtTarget,    // where the target of advance() is reached
  kAtBoundary,  // wherever a long step ends
};

struct StepReport {
  double t = 0;                // at the end of the step
  double step = 0;             // length of the short step, timeline units
  bool long_boundary = false;  // the long-range force was evaluated at its end
  bool has_potential = false;  // potentials at the end of the step were wanted and computed
  StepMeasure measure;         // the latest that all sites know; at one site the one at the end of the step
  double begin = 0;            // t at the beginning of the step, to the bit
};

// A long step is: half a kick by the mesh, short steps (half a kick by the tree, drift, half a kick), half a kick by
// the mesh. Adjacent kicks are one kick, unless synchronise() is called between them: after a step positions are at its
// end, momenta at its middle. Lengths of steps are chosen from reductions of earlier steps (docs/design.md, "The walk
// of a step"): maxima in each step and sums in each long step, over all ranks and over all sites, whose messages have
// arrived by then. All calls are collective.
class Integrator {
 public:
  // All references have to outlive this.
  Integrator(const RunContext& run, Particles& particles, ForceField& forces, const Timeline& timeline,
             const StepOptions& options, const Frame& frame);

  // Starts at time t, with positions and momenta both at that time, and evaluates both ranges. Throws Error where an
  // acceleration or a momentum is not a number.
  StepReport start(double t, bool want_potential);

  // One short step towards `target`. Steps hit the target exactly and end a long step there, also one of a resumed run
  // that was to go further: the last steps before it have equal lengths. Throws as start(), and std::logic_error where
  // the target is not ahead.
  StepReport advance(double target, Potentials potentials);

  // The state for a restart. resume() continues from it and evaluates the forces again, within a long step those of the
  // short range: the field has to hold the long-range accelerations of its beginning. Throws Error as start().
  const IntegratorState& state() const { return s_; }
  void resume(const IntegratorState& state);

  // Kicks momenta to the time of the positions. A long step under way ends there, with its long-range force evaluated; a
  // run that is to be repeated goes on from the state before this call.
  void synchronise();

  // The factor of drift() from t, within the last step, to its end.
  double drift_since(double t) const { return drift_factor(t, s_.time); }

  double time() const { return s_.time; }
  bool at_boundary() const { return s_.time == s_.long_end; }

 private:
  // Parts of a step (step.cpp).
  double kick_factor(double from, double to, double evaluated) const;
  double drift_factor(double from, double to) const;
  void kick_short(double to);
  void kick_long(double to, double evaluated);
  void shorten_long_step(double end);
  void drift_to(double end);
  void evaluate(bool boundary, bool want_potential);
  // Lengths of steps, and the measures by which they are chosen.
  void learn_measures();
  void choose_long_step(double target);
  double choose_short_end() const;
  void measure(bool boundary);
  void know_reach(const StepMaxima& maxima);
  void take_known();
  StepMeasure measure_of_all() const;
  // The last measure that all sites know.
  const StepMeasure& latest() const { return later_.empty() ? s_.decisive : later_.back(); }
  void collect_sent();
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

  IntegratorState s_;
  // Upper bounds over all particles: the last measure, plus the largest changes by kicks and drifts since.
  struct Bounds {
    double reach_sides;   // |x - 1/2| on any axis
    double momentum;      // |p|, velocity units
    double acceleration;  // mass / side^2
  };
  std::optional<Bounds> farthest_;
  // Steps from a measure to the end of the step that it decides: 1 (at one site with StepOptions::by_newest) or 2.
  int lag_;
  // Measures over all sites. The decisive one, and `older_` from one step before it, chose the present step; `later_`
  // holds the known ones of the steps after it, each of which will be the decisive one of a coming step.
  StepMeasure older_;
  std::deque<StepMeasure> later_;
  std::optional<std::uint64_t> taken_;  // the last evaluation whose measures of all sites were taken
};

}  // namespace maki
