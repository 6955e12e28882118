// A run from its initial state to its end.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/measure/reductions.hpp"
#include "src/cosmology/cosmology.hpp"
#include "src/gravity/gravity.hpp"
#include "src/gravity/site_agreement.hpp"
#include "src/io/snapshot.hpp"
#include "src/simulation/gravity_field.hpp"
#include "src/simulation/integrator.hpp"
#include "src/simulation/metrics.hpp"
#include "src/simulation/run_state.hpp"
#include "src/simulation/totals.hpp"

namespace maki {

struct SimulationOptions {
  GravityOptions gravity;           // lengths in sides
  StepOptions step_options;         // lengths in length units
  double theta_early = 0;           // FieldOptions
  double side = 0;                  // of the box, length units
  std::array<double, 3> centre{};   // of the box
  bool begins_aside = false;        // particles of an isolated set beyond its middle half begin set aside
  double end = 1;                   // scale factor, or time
  std::vector<double> outputs;      // scale factors, or times; the end is always an output
  std::vector<double> film;         // scale factors, or times, in order: moments of a film's pictures
  int energy_interval = 10;         // steps between computations of the energy; 0: never
  std::uint64_t error_targets = 0;  // particles whose forces are compared with exact sums at each output; 0: none
  double largest_error = 0;         // requested rms error of forces over the rms force; 0: none requested
};

// The state at an output; positions and momenta are of the same time. Particles are this rank's.
struct OutputState {
  // Index in the sorted list of all outputs, those before the start included; -1: the run was stopped.
  int index = 0;
  SnapshotHeader header;  // of this time
  const Stream& stream;
  const Particles& particles;
  const Frame& frame;
  const EscaperRows& escapers;
  std::optional<ForceError> force_error = {};  // if SimulationOptions::error_targets is set

  // This rank's share of the state on the host, with its escapers.
  Snapshot snapshot() const;
  // This rank's share in the device's numbers, which takes only the time of the copy: the source converts numbers when
  // they are read.
  std::shared_ptr<const ParticleSource> copy() const;
  static constexpr double kCopyBytes = ParticleRows::kBytes;  // of copy(), a particle, on the host
};

// A completed drift. Particles are this rank's, with the positions at its end and the momenta of the drift.
struct Drift {
  std::uint64_t step;
  double begin, end;  // timeline
  bool boundary;      // a long step ends with it
  // The factor of drift() from a time within the drift to its end; from its beginning exactly the factor that was used.
  std::function<double(double)> since;
  const Stream& stream;
  const Particles& particles;
  const Frame& frame;
  const SnapshotHeader& header;  // of the start of the run
};

// Receives the events of a run; by default does nothing. One observer on each rank: all get the same events, except for
// the parts of StepMetrics and PhaseTimers that describe their own rank.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  virtual void message(const std::string&) {}
  virtual void step(const StepMetrics&, const PhaseTimers&) {}
  virtual void output(const OutputState&) {}
  // A time of SimulationOptions::film, with its index there: positions are those at that time, momenta and ids are
  // meaningless, and escapers are left out. A film does not change the steps.
  virtual void film(const OutputState&) {}
  // After each step; on all ranks.
  virtual void drifted(const Drift&) {}
  // Called after each step with the expected wall-clock seconds until the run could stop the next time (one step, over
  // several sites three). Returns the reason to stop the run here, or "". All ranks stop if one has a reason; the
  // reason of the lowest such rank is reported.
  virtual std::string stop_reason(double /*next_seconds*/) { return {}; }
  // Called after each step, with the number of steps so far: whether a restart is to be written. Rank 0 decides.
  virtual bool wants_restart(std::uint64_t /*steps*/) { return false; }
  // Called at the end of the run, the same on all ranks: whether its last state goes to restart(), for a later end.
  virtual bool wants_last_restart() { return false; }
  // The step of the newest whole restart, the same on all ranks; 0: none. Called after each step.
  virtual std::uint64_t newest_restart() { return 0; }
  // States the newest restart that all sites have, by its step: no site may remove its own. Called after each step.
  virtual void needs_restart(std::uint64_t /*step*/) {}
  // Takes a state to write as a restart, possibly during later steps: the state does not change while it is held. Also
  // called when the run is stopped, before the output with index -1.
  virtual void restart(const std::shared_ptr<const KeptState>&) {}
};

// Over ranks all calls are collective; all decisions and the RunResult are the same on all ranks.
class Simulation {
 public:
  // `initial` is this rank's share; it may be empty, but not that of all ranks. `initial.header.comoving` has to be
  // timeline.is_comoving(). Throws Error where the end is not after the start, the softening is below 256 units of the
  // last bit, or the set does not fit. Over several sites `initial` has to lie in this site's slab, all sites make the
  // same calls, and "all ranks" are those of all sites.
  Simulation(const Stream& stream, Snapshot initial, const SimulationOptions& options, Timeline timeline,
             RunObserver& observer, const RunPlace& place = {});
  // Continues from a state passed to RunObserver::restart(). This rank may hold any part of its particles, which are
  // then sent to the ranks that own them. options.side and options.centre are not used. A run whose end this state is
  // makes no step. Throws Error where the end lies before it, or where its outputs up to here have changed.
  Simulation(const Stream& stream, const KeptState& from, const SimulationOptions& options, Timeline timeline,
             RunObserver& observer, const RunPlace& place = {});
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  // Runs to the end, or until the observer stops the run: then its last output has index -1, and a run that starts from
  // that state continues this one. Call it once.
  // When another site is lost, the observer gets the states after the last two long steps, of which all sites share
  // one, and the run ends as if stopped.
  RunResult run();

  // run() piece by piece: begin() once, then step() as long as it returns true, then finish().
  //
  // Evaluates the first forces, and writes an output at the start.
  void begin();
  // Makes a step, at most to `until` (scale factor, or time), which is hit exactly. Returns whether the run goes on; does
  // nothing where `until` is not ahead.
  bool step(double until = std::numeric_limits<double>::infinity());
  bool within_long_step() const { return !integrator_->at_boundary(); }
  void check_moment(double until) const;  // throws Error where step() cannot go there
  // Ends the run now, as if the observer had stopped it: with a restart, and the output of index -1. No effect after
  // its end.
  void stop(const std::string& reason);
  // Kicks momenta to the time of the positions; between calls of step(). A long step ends there.
  void synchronise();
  // Whether an error ended a step on its way: positions and momenta are of different times then.
  bool broke_off() const { return stepping_; }
  bool ended() const { return reached_ == targets_.size() || !s_.result.stopped_by.empty(); }
  RunResult finish();
  // Scale factor, or time, of the positions.
  double time() const { return file_time(); }
  RunResult so_far() const;

  // This rank's share of the present state; after run(), of the final state.
  Snapshot snapshot() const;
  const PhaseTimers& timers() const { return timers_; }
  const Frame& frame() const { return s_.frame; }

 private:
  struct Target {
    double t;   // timeline
    int index;  // of the output
  };
  enum Request : std::uint64_t {
    kStop = 1,
    kRestart = 2,
    kStopFile = 4
  };  // of a site to all (SiteAgreement::request())
  void assemble();
  std::vector<Target> plan_outputs() const;
  void first_forces();
  void resume();
  void arrive();
  void after_steps(std::uint64_t next_output);
  std::shared_ptr<KeptState> keep_state(std::uint64_t next_output);
  void copy_state(std::uint64_t next_output, std::shared_ptr<KeptState>& place) const;
  RunResult run_to_end();
  RunResult leave(const std::string& reason);
  void one_step(double target);
  bool kinetic_is_due(const StepReport& report) const;
  void ask_observer();
  void warn_of_shared_planes();
  void warn_of_unkept_lists();
  void sample_energy(StepMetrics& metrics, bool with_potential, bool at_output);
  void finish_energy(StepMetrics& metrics);
  void note_unbound(double kinetic, double potential);
  void note_energy_error(double error, std::uint64_t step);
  void note_jump(const StepMeasure& measure);
  const char* key_of_steps() const;
  SitesRecord record_of_sites();
  void record(const StepReport& report, double seconds, bool at_output);
  OutputState state(int index) const;
  void write_output(int index);
  void warn_of_error(const ForceError& error);
  void take_film();
  void tell_of_drift(const StepReport& report);
  SnapshotHeader header_at(double file_time) const;
  double file_time() const;                    // scale factor, or time
  double on_timeline(double file_time) const;  // the same in the timeline's variable
  static constexpr double kSameTime = 1e-9;    // relative difference below which times are equal

  const Stream& stream_;
  SimulationOptions options_;
  Timeline timeline_;
  RunObserver& observer_;
  Communicator ranks_;
  std::shared_ptr<sites::Sites> sites_;
  SiteAgreement agreement_;
  // The state so far; integrator, field, energy, drifts, slabs, outputs and time are those of the restart.
  RunState s_;
  bool resumes_ = false;
  PhaseTimers timers_;
  Particles particles_;
  std::unique_ptr<Gravity> gravity_;
  std::unique_ptr<GravityField> field_;
  std::unique_ptr<Integrator> integrator_;
  EnergyTracker energy_;
  std::vector<Target> targets_;
  std::size_t reached_ = 0;  // of the targets
  bool warned_of_shared_planes_ = false, warned_of_unkept_lists_ = false, warned_of_jump_ = false;
  // rms and geometric mean acceleration in the step before, and their largest values; zeros at each start and resume.
  std::array<double, 2> forces_before_{}, largest_forces_{};
  std::uint64_t requests_ = 0;                    // of this site
  bool restart_wanted_ = false;                   // of this state; the same on all ranks
  std::vector<std::shared_ptr<KeptState>> kept_;  // of the last restart; over sites of the last two boundaries
  std::optional<std::uint64_t> restart_at_;       // the evaluation after which the last restart was written
  std::size_t next_picture_ = 0;                  // of the film
  bool stepping_ = false;
  std::array<double, 2> longest_{};  // seconds of the longest step of the long step before and of this one
};

}  // namespace maki
