#include "src/simulation/integrator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "host/measure/totals.hpp"
#include "kernels/error.hpp"
#include "kernels/measure/reductions.hpp"

namespace maki {

namespace {

// Largest growth of the largest acceleration from one step to the next that the choice of steps assumes.
constexpr double kLargestGrowth = 1.25;

MeasurePart part_of(const SiteMeasures& site) {
  return {site.acceleration, site.momentum, site.mean_square_momentum, site.mean_square_acceleration,
          site.mean_logarithm};
}

// Joins the parts of sites.
void join(MeasurePart& all, const MeasurePart& one) {
  all.acceleration = std::max(all.acceleration, one.acceleration);
  all.max_momentum = std::max(all.max_momentum, one.max_momentum);
  const auto add = [](double& sum, double part) { sum = sum < 0 || part < 0 ? -1 : sum + part; };
  add(all.mean_square_momentum, one.mean_square_momentum);
  add(all.mean_square_acceleration, one.mean_square_acceleration);
  add(all.mean_logarithm, one.mean_logarithm);
}

// The measure of all parts joined; where no long step has ended, means are those `before`. `unit`: of accelerations.
// (Where an isolated set's box doubled while the parts were under way, the typical acceleration is too low for a step.)
StepMeasure measure_of(const MeasurePart& all, const StepMeasure& before, double unit) {
  const auto root = [](double mean_square, double known) { return mean_square < 0 ? known : std::sqrt(mean_square); };
  return {all.acceleration, all.max_momentum, root(all.mean_square_momentum, before.rms_momentum),
          root(all.mean_square_acceleration, before.rms_acceleration),
          all.mean_logarithm < 0 ? before.typical_acceleration : unit * typical_acceleration(all.mean_logarithm)};
}

}  // namespace

Integrator::Integrator(const RunContext& run, Particles& particles, ForceField& forces, const Timeline& timeline,
                       const StepOptions& options, const Frame& frame)
    : stream_(run.stream), particles_(particles), forces_(forces), timeline_(timeline), options_(options),
      frame_(frame), timers_(run.timers), ranks_(run.ranks), agreement_(run.agreement),
      lag_(options.by_newest ? std::max(run.agreement.delay(), 1) : 2) {}

StepReport Integrator::start(double t, bool want_potential) {
  s_.time = s_.short_kicked_to = s_.long_kicked_to = s_.long_begin = s_.long_end = t;
  agreement_.begin();
  evaluate(true, want_potential);
  measure(true);
  s_.decisive = older_ = latest();
  later_.assign(static_cast<std::size_t>(lag_), s_.decisive);  // it also stands for steps before the start
  s_.sent_before = s_.sent_last;
  return {t, 0, true, want_potential, s_.decisive};
}

void Integrator::resume(const IntegratorState& state) {
  s_ = state;
  agreement_.begin();
  forces_.prepare_potentials();
  const bool has_stepped = state.long_begin < state.time;  // else these are the forces of start()
  if (has_stepped) forces_.measured(state.decisive);
  evaluate(at_boundary(), state.has_potential);  // with potentials, sums have another order and rounding
  measure(at_boundary());
  s_ = state;  // without what was measured again
  collect_sent();
}

// The measures of the last two evaluations may have been in transit when the run ended. Sites exchange them again, so
// that the next steps are the same as without the interruption. One round trip.
void Integrator::collect_sent() {
  using Parts = std::array<MeasurePart, 2>;
  const auto join_both = [](Parts& sum, const Parts& one) {
    for (std::size_t i = 0; i < 2; ++i) join(sum[i], one[i]);
  };
  later_.clear();
  for (const MeasurePart& all :
       agreement_.sites().joined(sites::Phase::kOutput, 1, Parts{s_.sent_before, s_.sent_last}, join_both))
    later_.push_back(measure_of(all, latest(), frame_.acceleration_unit()));
  if (lag_ == 1) later_.pop_front();
}

// Takes the measures that choose the step, which all sites have by now.
void Integrator::learn_measures() {
  agreement_.begin();
  take_known();
  older_ = std::exchange(s_.decisive, later_.front());
  later_.pop_front();
  forces_.measured(s_.decisive);
}

namespace {

// Throws Error where a step is lost in the rounding of the time.
void require_progress(double begin, double end) {
  if (end > begin) return;
  throw Error(fmt::format("the time step is too small for times such as {:g}", begin),
              "the time would stay the same: steps are shorter than its last bit",
              "see whether a mass, a unit or the softening is wrong, or begin nearer to t = 0");
}

}  // namespace

void Integrator::choose_long_step(double target) {
  const double remaining = target - s_.time;
  const StepMeasure expected = expected_measure();
  const double wanted_short = safe_step(short_step(options_, timeline_, s_.time, expected), expected);
  const double wanted =
      forces_.has_mesh() ? long_step(options_, timeline_, s_.time, expected, wanted_short) : wanted_short;
  const double length = divide_evenly(remaining, wanted, 0);
  s_.long_begin = s_.time;
  s_.long_end = length < remaining ? s_.time + length : target;
  require_progress(s_.time, s_.long_end);
}

double Integrator::choose_short_end() const {
  const double remaining = s_.long_end - s_.time;
  if (!forces_.has_mesh()) return s_.long_end;
  const double length = divide_evenly(remaining, short_step(options_, timeline_, s_.time, expected_measure()),
                                      options_.fixed_step > 0 ? 0 : kStretch);
  const double end = length < remaining ? s_.time + length : s_.long_end;
  require_progress(s_.time, end);
  return end;
}

// The measure in the middle of the coming step, extrapolated from the two measures that may be used. Without the trend,
// steps lag behind: too long on the way into a pericentre, too short on the way out, and orbits drift in energy (e =
// 0.5, 1000 steps an orbit, 100 orbits: 4e-5 of it; with the trend 2e-9, in exact arithmetic).
StepMeasure Integrator::expected_measure() const {
  StepMeasure expected = s_.decisive;
  if (older_.acceleration > 0) {
    const double growth =
        std::clamp(s_.decisive.acceleration / older_.acceleration, 1 / kLargestGrowth, kLargestGrowth);
    expected.acceleration *= std::pow(growth, lag_ - 0.5);
  }
  return expected;
}

// An isolated set must not cross the empty half of its box in one step: at most an eighth of the side.
double Integrator::safe_step(double step, const StepMeasure& from) const {
  if (timeline_.is_comoving() || from.max_momentum <= 0) return step;
  return std::min(step, 0.125 * frame_.side / from.max_momentum);
}

// With a mesh there are no bounds: the acceleration of one range may be larger than the sum of both, and the reach is
// not needed.
void Integrator::know_reach(const StepMaxima& maxima) {
  if (!forces_.has_mesh())
    farthest_ = {static_cast<double>(maxima.reach) / kSideToUnits, maxima.momentum, maxima.acceleration};
}

void Integrator::measure(bool boundary) {
  const PhaseTimers::Scope scope(timers_, "reductions", stream_);
  const VectorArray* far = forces_.has_mesh() ? &forces_.long_acceleration() : nullptr;
  const std::uint64_t total = forces_.total();
  const VectorArray& near = forces_.short_acceleration();
  const StepMeasures measures =
      boundary ? measures_of_ranks(ranks_, stream_, particles_, near, far, total)
               : StepMeasures{largest_of_ranks(ranks_, step_maxima(stream_, particles_, near, far)), {}};
  const StepMaxima& maxima = measures.maxima;
  if (!std::isfinite(maxima.acceleration) || !std::isfinite(maxima.momentum))
    throw Error(fmt::format("a particle's {} is not a finite number",
                            std::isfinite(maxima.momentum) ? "acceleration" : "momentum"),
                timeline_.is_comoving() ? fmt::format("at scale factor {:.6g}", timeline_.scale_factor(s_.time))
                                        : fmt::format("at time {:.6g}", s_.time),
                "check masses, units and softening of the initial conditions (numbers end at 3e38: a mass over the "
                "softening may need a larger unit of mass); if they are sound, use a smaller eta");
  know_reach(maxima);
  const double unit = frame_.acceleration_unit();
  SiteMeasures& mine = agreement_.mine();
  mine.acceleration = maxima.acceleration * unit;
  mine.momentum = maxima.momentum;
  if (boundary) {
    const SquareUnits& squares = measures.squares;
    mine.mean_square_momentum = mean_square(squares.momentum, maxima.momentum, total);
    mine.mean_square_acceleration = mean_square(squares.acceleration, maxima.acceleration, total) * unit * unit;
    mine.mean_logarithm = static_cast<double>(squares.logarithm) / static_cast<double>(total);
  }
  s_.sent_before = s_.sent_last;
  s_.sent_last = part_of(mine);
  agreement_.publish();
  take_known();
}

void Integrator::take_known() {
  if (agreement_.known() == taken_) return;
  taken_ = agreement_.known();
  later_.push_back(measure_of_all());
}

// The measure over all sites of the last evaluation whose sums all sites have.
StepMeasure Integrator::measure_of_all() const {
  MeasurePart all;
  for (const SiteMeasures& site : agreement_.all()) join(all, part_of(site));
  return measure_of(all, latest(), frame_.acceleration_unit());
}

}  // namespace maki
