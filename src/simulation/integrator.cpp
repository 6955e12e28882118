#include "src/simulation/integrator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include "kernels/device/error.hpp"
#include "kernels/measure/step_reductions.hpp"
#include "src/simulation/totals.hpp"

namespace maki {

namespace {

// Of the largest acceleration from one step to the next, as far as the choice of steps believes it.
constexpr double kLargestGrowth = 1.25;

}  // namespace

Integrator::Integrator(const RunContext& run, Particles& particles, ForceField& forces, const Timeline& timeline,
                       const StepOptions& options, const Frame& frame)
    : stream_(run.stream), particles_(particles), forces_(forces), timeline_(timeline), options_(options),
      frame_(frame), timers_(run.timers), ranks_(run.ranks), agreement_(run.sites) {}

StepReport Integrator::start(double t, bool want_potential) {
  time_ = short_kicked_to_ = long_kicked_to_ = long_begin_ = long_end_ = t;
  if (agreement_) agreement_->begin();
  evaluate(true, want_potential);
  measure(true);
  if (agreement_) take_measure_of_sites();
  before_last_ = older_ = last_;
  return {t, 0, 0, true, want_potential, last_};
}

IntegratorState Integrator::state() const {
  if (!at_boundary()) throw std::logic_error("a state is kept where a long step has ended");
  return {time_, short_kicked_to_, long_kicked_to_, long_begin_, has_potential_,
          last_, before_last_,     older_,          told_last_,  told_before_};
}

void Integrator::resume(const IntegratorState& state) {
  time_ = long_end_ = state.time;
  short_kicked_to_ = state.short_kicked_to;
  long_kicked_to_ = state.long_kicked_to;
  long_begin_ = state.long_begin;
  if (agreement_) agreement_->begin();
  forces_.prepare_potentials();
  evaluate(true, state.has_potential);  // sums are in another order, and rounded so, where potentials are wanted
  measure(true);
  told_last_ = state.told_last;
  told_before_ = state.told_before;
  if (agreement_) collect_in_flight();
  last_ = state.last;
  before_last_ = state.before_last;
  older_ = state.older;
}

// The measures of the last two evaluations were on their way when the run was left: the steps to come are those that
// they would have led to. A round trip.
void Integrator::collect_in_flight() {
  const std::array<StepMeasure, 2> mine = {told_before_, told_last_};
  std::array<bool, 2> boundary = {true, true};
  in_flight_.assign(2, {});
  for (const sites::Message& message : agreement_->sites().gather(sites::Phase::kOutput, 1, sites::as_bytes_of(mine))) {
    const auto told = sites::value_of<std::array<StepMeasure, 2>>(message);
    for (std::size_t i = 0; i < 2; ++i) {
      StepMeasure& all = in_flight_[i];
      all.acceleration = std::max(all.acceleration, told[i].acceleration);
      all.max_momentum = std::max(all.max_momentum, told[i].max_momentum);
      all.rms_momentum += told[i].rms_momentum;
      boundary[i] = boundary[i] && told[i].rms_momentum >= 0;
    }
  }
  for (std::size_t i = 0; i < 2; ++i)
    in_flight_[i].rms_momentum = boundary[i] ? std::sqrt(in_flight_[i].rms_momentum) : -1;
}

// Over several sites: the measures that the step is chosen by, which all have told each other by now. Those on their way
// when a run was left come first.
void Integrator::learn_measures_of_sites() {
  if (!agreement_) return;
  const auto known = agreement_->known();
  agreement_->begin();
  older_ = before_last_;
  if (!in_flight_.empty()) {
    const double rms = last_.rms_momentum;
    last_ = in_flight_.front();
    if (last_.rms_momentum < 0) last_.rms_momentum = rms;
    in_flight_.erase(in_flight_.begin());
  } else if (agreement_->known() != known) {
    take_measure_of_sites();
  }
  before_last_ = last_;
}

void Integrator::choose_long_step(double target) {
  const double remaining = target - time_;
  const StepMeasure expected = expected_measure();
  const double wanted_short = safe_step(short_step(options_, timeline_, time_, expected), expected);
  const double wanted =
      forces_.has_mesh() ? long_step(options_, timeline_, time_, expected, wanted_short) : wanted_short;
  const double length = divide_evenly(remaining, wanted);
  long_begin_ = time_;
  long_end_ = length < remaining ? time_ + length : target;
}

double Integrator::choose_short_end() const {
  const double remaining = long_end_ - time_;
  if (!forces_.has_mesh()) return long_end_;
  const double length = divide_evenly(remaining, short_step(options_, timeline_, time_, expected_measure()));
  return length < remaining ? time_ + length : long_end_;
}

// What the middle of the coming step will be like, by the trend of the two measures that are allowed to speak. Without
// the trend, steps lag behind: too long on the way into a pericentre, too short on the way out, and orbits drift in
// energy (e = 0.5, 1000 steps an orbit, 100 orbits: 4e-5 of it; with the trend 2e-9, in exact arithmetic).
StepMeasure Integrator::expected_measure() const {
  StepMeasure expected = before_last_;
  if (older_.acceleration > 0) {
    const double growth =
        std::clamp(before_last_.acceleration / older_.acceleration, 1 / kLargestGrowth, kLargestGrowth);
    expected.acceleration *= growth * std::sqrt(growth);
  }
  return expected;
}

// An isolated set must not cross the empty half of its box in one step: at most an eighth of the side.
double Integrator::safe_step(double step, const StepMeasure& from) const {
  if (timeline_.is_comoving() || from.max_momentum <= 0) return step;
  return std::min(step, 0.125 * frame_.side / from.max_momentum);
}

// With a mesh, accelerations of one range alone may be larger; and nobody asks.
void Integrator::know_reach(const StepMaxima& maxima) {
  if (!forces_.has_mesh())
    farthest_ = {static_cast<double>(maxima.reach) / kSideToUnits, maxima.momentum, maxima.acceleration};
}

void Integrator::measure(bool boundary) {
  const PhaseTimers::Scope scope(timers_, "reductions", stream_);
  const VectorArray* far = forces_.has_mesh() ? &forces_.long_acceleration() : nullptr;
  const bool alone = ranks_.size() == 1 && !agreement_;
  StepMeasures measures;
  if (alone && boundary)
    measures = step_measures(stream_, particles_, forces_.short_acceleration(), far);
  else
    measures.maxima = largest_of_ranks(ranks_, step_maxima(stream_, particles_, forces_.short_acceleration(), far));
  const StepMaxima& maxima = measures.maxima;
  if (!std::isfinite(maxima.acceleration) || !std::isfinite(maxima.momentum))
    throw Error(fmt::format("a particle's {} is not a finite number",
                            std::isfinite(maxima.momentum) ? "acceleration" : "momentum"),
                timeline_.is_comoving() ? fmt::format("at scale factor {:.6g}", timeline_.scale_factor(time_))
                                        : fmt::format("at time {:.6g}", time_),
                "check masses, units and softening of the initial conditions; if they are sound, use a smaller eta");
  know_reach(maxima);
  const std::uint64_t total = forces_.total();
  std::uint64_t units = measures.square_momentum_units;
  if (!alone && boundary)
    units = over_ranks(ranks_, square_momentum_units(stream_, particles_, maxima.momentum, total));
  if (agreement_) {
    SiteMeasures& mine = agreement_->mine();
    mine.acceleration = maxima.acceleration * frame_.acceleration_unit();
    mine.momentum = maxima.momentum;
    if (boundary) mine.mean_square_momentum = mean_square_momentum(units, maxima.momentum, total);
    agreement_->publish();
    told_before_ = told_last_;
    told_last_ = {mine.acceleration, mine.momentum, mine.mean_square_momentum};
    return;
  }
  older_ = before_last_;
  before_last_ = last_;
  last_.acceleration = maxima.acceleration * frame_.acceleration_unit();
  last_.max_momentum = maxima.momentum;
  if (boundary) last_.rms_momentum = std::sqrt(mean_square_momentum(units, maxima.momentum, total));
}

// last_ is then of the evaluation whose sums all sites have: not of the last one.
void Integrator::take_measure_of_sites() {
  last_.acceleration = last_.max_momentum = 0;
  double mean_square = 0;
  bool boundary = true;
  for (const SiteMeasures& step : agreement_->all()) {
    last_.acceleration = std::max(last_.acceleration, step.acceleration);
    last_.max_momentum = std::max(last_.max_momentum, step.momentum);
    mean_square += step.mean_square_momentum;
    boundary = boundary && step.mean_square_momentum >= 0;
  }
  if (boundary) last_.rms_momentum = std::sqrt(mean_square);
}

}  // namespace maki
