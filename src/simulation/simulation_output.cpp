// Outputs, energies and kept states of a run.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <utility>

#include "kernels/error.hpp"
#include "kernels/particles/types.hpp"
#include "src/simulation/film.hpp"
#include "src/simulation/force_check.hpp"
#include "src/simulation/simulation.hpp"
#include "src/simulation/stop_request.hpp"

namespace maki {

namespace {

// A copy of a run's particles on the host; escapers come last.
class StateCopy : public ParticleSource {
 public:
  explicit StateCopy(const OutputState& state);

  const SnapshotHeader& header() const override { return header_; }
  std::size_t size() const override { return rows_.size() + gone_.size(); }
  double position(std::size_t i, std::size_t axis) const override;
  float velocity(std::size_t i, std::size_t axis) const override;
  float mass(std::size_t i) const override;
  std::uint64_t id(std::size_t i) const override;

 private:
  SnapshotHeader header_;
  Frame frame_;
  double scale_factor_;
  ParticleRows rows_;
  EscaperRows gone_;
};

StateCopy::StateCopy(const OutputState& state)
    : header_(state.header), frame_(state.frame), scale_factor_(header_.comoving ? header_.time : 1),
      gone_(state.escapers) {
  copy_to_rows(state.stream, state.particles, rows_);
}

double StateCopy::position(std::size_t i, std::size_t axis) const {
  if (i >= rows_.size()) {
    i -= rows_.size();
    return gone_.positions[i][axis] + gone_.velocities[i][axis] * (header_.time - gone_.times[i]);
  }
  const SourceParticle& p = rows_.source[i];
  const Remainder& r = rows_.remainder[i];
  const double fraction = axis == 0 ? fraction_of(p.x, r.x) : axis == 1 ? fraction_of(p.y, r.y) : fraction_of(p.z, r.z);
  return frame_.corner[axis] + fraction * frame_.side;
}

float StateCopy::velocity(std::size_t i, std::size_t axis) const {
  if (i >= rows_.size()) return gone_.velocities[i - rows_.size()][axis];
  return static_cast<float>(rows_.momentum[axis][i] / scale_factor_);
}

float StateCopy::mass(std::size_t i) const {
  return i < rows_.size() ? rows_.source[i].mass : gone_.masses[i - rows_.size()];
}

std::uint64_t StateCopy::id(std::size_t i) const {
  return i < rows_.size() ? rows_.id[i] : gone_.ids[i - rows_.size()];
}

}  // namespace

Snapshot OutputState::snapshot() const {
  const StateCopy copy(*this);
  Snapshot set;
  set.header = header;
  set.resize(copy.size());
  for (std::size_t i = 0; i < copy.size(); ++i) {
    set.positions[i] = {copy.position(i, 0), copy.position(i, 1), copy.position(i, 2)};
    set.velocities[i] = {copy.velocity(i, 0), copy.velocity(i, 1), copy.velocity(i, 2)};
    set.masses[i] = copy.mass(i);
    set.ids[i] = copy.id(i);
  }
  return set;
}

std::shared_ptr<const ParticleSource> OutputState::copy() const { return std::make_shared<StateCopy>(*this); }

// Sorted, without repetitions, the end last. Those before the start keep their index but are left out.
std::vector<Simulation::Target> Simulation::plan_outputs() const {
  const double span = options_.end - s_.header.time;
  const auto same = [&](double a, double b) { return std::fabs(a - b) <= kSameTime * std::min(std::fabs(b), span); };
  std::vector<double> times = options_.outputs;
  std::erase_if(times, [&](double time) { return time > options_.end && !same(time, options_.end); });
  if (times.size() < options_.outputs.size())
    observer_.message(
        fmt::format("Outputs after the end of the run are left out: {}.", options_.outputs.size() - times.size()));
  times.push_back(options_.end);
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end(), same), times.end());
  times.back() = options_.end;

  std::vector<Target> targets;
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (times[i] < s_.header.time && !same(times[i], s_.header.time)) continue;
    if (resumes_ && same(times[i], s_.file_time)) continue;
    targets.push_back(
        {same(times[i], s_.header.time) ? on_timeline(s_.header.time) : on_timeline(times[i]), static_cast<int>(i)});
  }
  if (!resumes_ && targets.front().index > 0)
    observer_.message(fmt::format("Outputs before the start of the run are left out: {0}; numbers begin with {0:03}.",
                                  targets.front().index));
  if (!resumes_) return targets;
  std::erase_if(targets, [this](const Target& target) { return target.t <= s_.integrator.time; });
  if (!targets.empty() && targets.front().index != static_cast<int>(s_.outputs))
    throw Error("the outputs before the restart are no longer what they were",
                fmt::format("the next one would have number {}, and the run had come to number {}",
                            targets.front().index, s_.outputs),
                "change later outputs only");
  return targets;
}

// Takes the pictures whose moments are in the last step. Momenta are still those of the drift, and no message about
// energies is in transit.
void Simulation::take_film() {
  const std::vector<double>& film = options_.film;
  for (; next_picture_ < film.size() && film[next_picture_] <= file_time() * (1 + kSameTime); ++next_picture_) {
    const PhaseTimers::Scope scope(timers_, "film");
    const double t = std::min(on_timeline(film[next_picture_]), integrator_->time());
    const Particles then = drifted_back(stream_, particles_, integrator_->drift_since(t));
    observer_.film(
        {static_cast<int>(next_picture_), header_at(film[next_picture_]), stream_, then, s_.frame, field_->escapers()});
  }
}

// Before momenta are kicked again, as take_film().
void Simulation::tell_of_drift(const StepReport& report) {
  const PhaseTimers::Scope scope(timers_, "light cones");
  const auto since = [this](double t) { return integrator_->drift_since(t); };
  observer_.drifted(
      {s_.result.steps, report.begin, report.t, report.long_boundary, since, stream_, particles_, s_.frame, s_.header});
}

SnapshotHeader Simulation::header_at(double file_time) const {
  SnapshotHeader header = s_.header;
  header.time = file_time;
  header.redshift = header.comoving ? 1 / header.time - 1 : 0;
  return header;
}

OutputState Simulation::state(int index) const {
  return {index, header_at(file_time()), stream_, particles_, s_.frame, field_->escapers()};
}

void Simulation::write_output(int index) {
  StepMetrics unused;  // sums in transit have to be received before other messages of Phase::kOutput
  finish_energy(unused);
  const PhaseTimers::Scope scope(timers_, "output");
  OutputState output = state(index);
  if (options_.error_targets > 0 && index >= 0) {
    const ForceError error =
        measure_force_error(stream_, particles_, *gravity_, ranks_, *sites_, options_.error_targets);
    if (error.targets > 0) output.force_error = error;
    observer_.message("Force error: " + (error.targets > 0 ? text_of(error) : "no particle was chosen, ask for more"));
    warn_of_error(error);
  }
  observer_.output(output);
}

// A tight pair of an isolated set may have nearly all of the rms force: there the median tells of the others. In boxes
// forces nearly cancel at first, and a median is not the requested error.
void Simulation::warn_of_error(const ForceError& error) {
  const double largest = options_.largest_error;
  if (largest <= 0) return;
  if (error.rms > largest)
    observer_.message(
        fmt::format("Warning: this is more than gravity.error = {:g} asks for: give a smaller one.", largest));
  else if (!s_.frame.periodic && error.median > largest)
    observer_.message(fmt::format(
        "Warning: half of the particles err by more than gravity.error = {:g}, of their own forces: give a smaller one.",
        largest));
}

Snapshot Simulation::snapshot() const { return state(0).snapshot(); }

// ---- energies and momenta -------------------------------------------------------------------------------------------

namespace {

// Comoving runs sample the kinetic energy this often in ln a for the Layzer-Irvine integral (trapezoids: 1e-4; where
// steps are 0.08 long, 3e-4).
constexpr double kKineticInterval = 0.04;

double norm(const std::array<double, 3>& v) { return std::sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]); }

}  // namespace

bool Simulation::kinetic_is_due(const StepReport& report) const {
  return timeline_.is_comoving() && options_.energy_interval > 0 && report.long_boundary &&
         report.t - s_.last_kinetic_t >= kKineticInterval;
}

void Simulation::sample_energy(StepMetrics& metrics, bool with_potential, bool at_output) {
  const PhaseTimers::Scope scope(timers_, "energy", stream_);
  integrator_->synchronise();
  s_.last_kinetic_t = integrator_->time();
  EnergySample sample{timeline_.scale_factor(integrator_->time()),
                      with_potential,
                      s_.result.steps,
                      s_.frame.potential_unit(),
                      field_->state().escaped_energy,
                      field_->state().escaped_momentum,
                      {}};
  EnergyTotals& energy = sample.sums.energy;
  if (with_potential) {
    const VectorArray* far = gravity_->has_mesh() ? &gravity_->long_acceleration() : nullptr;
    energy = over_ranks(ranks_, energy_sums(stream_, particles_, gravity_->short_potential(),
                                            far ? &gravity_->long_potential() : nullptr));
    sample.sums.momentum = over_ranks(ranks_, momentum_sums(stream_, particles_, gravity_->short_acceleration(), far));
    gravity_->release_potentials();
    s_.last_energy_step = s_.result.steps;
  } else {
    energy.kinetic = over_ranks(ranks_, kinetic_sum(stream_, particles_));
  }
  s_.sample = sample;
  publish_totals(*sites_, s_.result.steps, sample.sums);
  if (agreement_.delay() == 0 || at_output) finish_energy(metrics);
}

// Over several sites called one step later, when the sums of the others have arrived, or at an output.
void Simulation::finish_energy(StepMetrics& metrics) {
  if (!s_.sample) return;
  const EnergySample sample = *s_.sample;
  s_.sample.reset();
  const SiteTotals sums = collect_totals(*sites_, sample.step);
  const double a = sample.a;
  if (!sample.with_potential) {
    energy_.add_kinetic(a, sums.energy.kinetic / (a * a));
    return;
  }
  energy_.remove(sample.escaped - s_.removed_energy);
  s_.removed_energy = sample.escaped;
  const MomentumTotals& momentum = sums.momentum;
  std::array<double, 3> change;
  double gained = 0;  // of P^2 / 2, by those that have not escaped
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const double now = momentum.momentum[axis];
    change[axis] = now + sample.escaped_momentum[axis] - s_.first_momentum.momentum[axis];
    gained += change[axis] * (now - 0.5 * change[axis]);
  }
  BulkEnergy bulk;
  if (const double mass = sums.energy.mass; mass > 0)
    bulk = {std::pow(norm(momentum.momentum), 2) / (2 * mass), gained / mass};
  const bool first = !energy_.state().has_start;
  metrics.energy =
      energy_.add(a, sums.energy.kinetic / (a * a), sums.energy.potential * sample.potential_unit / a, bulk);
  if (momentum.momentum_scale > 0) metrics.momentum_drift = norm(change) / momentum.momentum_scale;
  if (momentum.force_scale > 0) metrics.force_residual = norm(momentum.force) / momentum.force_scale;
  s_.result.energy = metrics.energy;
  if (first) note_unbound(metrics.energy->kinetic - bulk.kinetic, metrics.energy->potential);
  note_energy_error(std::fabs(metrics.energy->error), sample.step);
  s_.result.momentum_drift = metrics.momentum_drift;
  s_.result.worst_force_residual = std::max(s_.result.worst_force_residual, metrics.force_residual);
}

// Warns of an isolated set that is far from bound at its first energy, as one read in wrong units often is.
void Simulation::note_unbound(double kinetic, double potential) {
  constexpr double kFar = 100;
  if (s_.header.comoving || !(potential < 0) || !(kinetic > -kFar * potential)) return;
  observer_.message(fmt::format(
      "Warning: the kinetic energy is {:.2g} times the potential energy, and nothing holds this set together. "
      "Are its units right (units.length, units.mass, units.velocity)?",
      kinetic / -potential));
}

// Warns when the largest error of the run becomes a large one. The bound of boxes is wider: their error is relative to
// an energy that grows, and early times without much structure count.
void Simulation::note_energy_error(double error, std::uint64_t step) {
  const double large = s_.header.comoving ? 0.1 : 0.01, before = s_.result.worst_energy_error;
  s_.result.worst_energy_error = std::max(before, error);
  if (before >= large || !(error >= large)) return;
  observer_.message(fmt::format(
      "Warning: by step {} the energy is off by {:.2g} %. Shorter steps ({}) or a larger gravity.softening keep it better.",
      step, 100 * error, key_of_steps()));
}

// Warns, once in a run, where the forces of an isolated set as a whole rise too much in one step, above all earlier ones,
// as where few bodies meet fast: steps follow from the forces before, and jump over the encounter. (Where only the
// largest forces rise, a few particles of many have met; bodies that leave each other's softened core have had such
// forces before.)
void Simulation::note_jump(const StepMeasure& measure) {
  constexpr double kJump = 2.5;
  using Forces = std::array<double, 2>;
  const Forces now{measure.rms_acceleration, measure.typical_acceleration}, before = std::exchange(forces_before_, now);
  double jump = HUGE_VAL;
  for (std::size_t i = 0; i < 2; ++i) {
    const bool rises = before[i] > 0 && now[i] > largest_forces_[i];
    jump = std::min(jump, rises ? now[i] / before[i] : 1);
    largest_forces_[i] = std::max(largest_forces_[i], now[i]);
  }
  if (s_.header.comoving || warned_of_jump_ || !(jump > kJump)) return;
  warned_of_jump_ = true;
  observer_.message(fmt::format(
      "Warning: in step {} the forces of the whole set rose {:.2g} times. Steps are too long where bodies meet so fast; a "
      "smaller {} makes them shorter.",
      s_.result.steps, jump, key_of_steps()));
}

const char* Simulation::key_of_steps() const {
  return options_.step_options.fixed_step > 0 ? "time.fixed_step" : "time.eta";
}

// ---- states, and resuming from them ---------------------------------------------------------------------------------

// Evaluates the forces again at the state of the restart; the observer already got the step that ends here.
void Simulation::resume() {
  integrator_->resume(s_.integrator);
  gravity_->release_potentials();
  if (s_.sample) publish_totals(*sites_, s_.sample->step, s_.sample->sums);
  timers_.collect();
}

void Simulation::after_steps(std::uint64_t next_output) {
  const std::shared_ptr<KeptState> kept = keep_state(next_output);
  // Before files are waited for: within a long step sites exchange masses here.
  if (!s_.result.stopped_by.empty()) synchronise();
  if (restart_wanted_) {
    const PhaseTimers::Scope scope(timers_, "restart", stream_);
    observer_.restart(kept);
    restart_at_ = agreement_.number();
    requests_ &= ~kRestart;  // fulfilled: the other sites must not hear of it once more
    agreement_.request(requests_);
  }
  restart_wanted_ = false;
}

// Keeps the state for a restart, if one is wanted, and returns it; over several sites also the states of the last two
// boundaries (at first that of the start, or of the resume), as a lost site may not have ended the last long step.
std::shared_ptr<KeptState> Simulation::keep_state(std::uint64_t next_output) {
  const bool over_sites = agreement_.delay() > 0;
  const bool for_others = over_sites && (integrator_->at_boundary() || kept_.empty());
  if (!restart_wanted_ && !for_others) return {};
  const PhaseTimers::Scope scope(timers_, "restart", stream_);
  if (over_sites && !for_others) {
    std::shared_ptr<KeptState> within_long_step;
    copy_state(next_output, within_long_step);
    return within_long_step;
  }
  if (kept_.size() < (for_others ? 2 : 1))
    kept_.emplace_back();
  else
    std::rotate(kept_.begin(), kept_.begin() + 1, kept_.end());
  copy_state(next_output, kept_.back());
  return kept_.back();
}

// Another site no longer answers. The work of this site since the last boundary is discarded.
RunResult Simulation::leave(const std::string& reason) {
  observer_.message(reason);
  for (const auto& kept : kept_)  // all sites may have a later one already
    if (kept->state.result.steps >= agreement_.common_restart()) observer_.restart(kept);
  const RunState& last = kept_.back()->state;
  s_.result = last.result;
  s_.result.time = last.file_time;
  s_.result.particles = last.field.total;
  const bool by_file = (requests_ & kStopFile) != 0 || observer_.stop_reason(0) == kStopFileReason;
  s_.result.stopped_by = largest_of(ranks_, by_file ? 1.0 : 0.0) > 0 ? kStopFileReason : "the loss of another site";
  s_.result.site_lost = true;
  return s_.result;
}

// Reuses the memory of the state in `place`, unless it is being written.
void Simulation::copy_state(std::uint64_t next_output, std::shared_ptr<KeptState>& place) const {
  if (!place || place.use_count() > 1) place = std::make_shared<KeptState>();
  std::atomic_thread_fence(std::memory_order_acquire);  // a writer's reads of it have ended
  KeptState& kept = *place;
  RunState& state = kept.state = s_;
  state.integrator = integrator_->state();
  state.field = field_->state();
  state.energy = energy_.state();
  state.drifts = gravity_->drifts();
  state.outputs = next_output;
  state.file_time = file_time();
  const auto starts = gravity_->slabs().starts();
  state.slabs.assign(starts.begin(), starts.end());
  kept.particles.long_acceleration.reset();
  copy_to_rows(stream_, particles_, kept.particles);
  if (!integrator_->at_boundary())
    copy_to_rows(stream_, gravity_->long_acceleration(), kept.particles.long_acceleration.emplace());
  kept.escapers = field_->escapers();
}

}  // namespace maki
