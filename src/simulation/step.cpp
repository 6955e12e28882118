// One step of the leapfrog (docs/design.md, "The walk of a step").
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <stdexcept>

#include "kernels/error.hpp"
#include "src/simulation/integrator.hpp"

namespace maki {
namespace {

// Relative bound on roundings of kicks and drifts in single precision.
constexpr double kRoundings = 1e-4;
// Most sides of the box that a particle may move in one step; drift() holds twice as many.
constexpr double kMostSides = 0x1p14;

}  // namespace

StepReport Integrator::advance(double target, Potentials potentials) {
  if (!(target > s_.time)) throw std::logic_error("a step must go forward in time");
  learn_measures();
  if (at_boundary()) {
    choose_long_step(target);
    kick_long(0.5 * (s_.long_begin + s_.long_end), s_.time);
  } else if (target < s_.long_end) {  // as after a resume with another target
    shorten_long_step(target);
  }
  const double begin = s_.time, end = choose_short_end();
  kick_short(0.5 * (begin + end));  // with the half that ended the step before
  drift_to(end);
  const bool boundary = at_boundary();
  const bool with_potential =
      (potentials == Potentials::kAtBoundary && boundary) || (potentials == Potentials::kAtTarget && end == target);
  evaluate(boundary, with_potential);
  measure(boundary);
  return {end, end - begin, boundary, with_potential, latest(), begin};
}

// The second halves of the kicks.
void Integrator::synchronise() {
  if (!at_boundary()) {
    shorten_long_step(s_.time);
    forces_.evaluate(s_.time, Ranges::kLong, false);
  }
  kick_short(s_.time);
  kick_long(s_.time, s_.time);
}

// The half kick at the beginning of the long step under way was for its whole length: it becomes that for the new one.
void Integrator::shorten_long_step(double end) {
  s_.long_end = end;
  kick_long(0.5 * (s_.long_begin + end), s_.long_begin);
}

// The kick factor for forces `evaluated` at that time.
double Integrator::kick_factor(double from, double to, double evaluated) const {
  return options_.growth_exact ? timeline_.growing_kick_factor(from, to, evaluated) : timeline_.kick_factor(from, to);
}

void Integrator::kick_short(double to) {
  if (to == s_.short_kicked_to) return;
  const PhaseTimers::Scope scope(timers_, "kick", stream_);
  const double factor = frame_.acceleration_unit() * kick_factor(s_.short_kicked_to, to, s_.time);
  // In a box kicks are never so small beside the momenta that they are lost.
  const auto draw = timeline_.is_comoving() ? std::nullopt : std::optional(std::bit_cast<std::uint64_t>(to));
  kick(stream_, particles_, forces_.short_acceleration(), factor, draw);
  if (farthest_) farthest_->momentum += std::fabs(factor) * farthest_->acceleration;
  s_.short_kicked_to = to;
}

double Integrator::drift_factor(double from, double to) const {
  const double length = options_.growth_exact ? timeline_.growing_drift_factor(from, to, s_.short_kicked_to)
                                              : timeline_.drift_factor(from, to);
  return length / frame_.side;
}

void Integrator::drift_to(double end) {
  const PhaseTimers::Scope scope(timers_, "drift", stream_);
  const double factor = drift_factor(s_.time, end);
  if (const double sides = std::fabs(factor) * s_.decisive.max_momentum; sides > kMostSides)
    throw Error(fmt::format("a particle moves through the whole box {:.3g} times in one step", sides),
                fmt::format("its velocity is {:.3g} units of velocity",
                            s_.decisive.max_momentum / timeline_.scale_factor(s_.time)),
                "check the velocities of the initial conditions and their unit");
  drift(stream_, particles_, factor);
  forces_.drifted(std::fabs(factor) * s_.decisive.rms_momentum);
  if (farthest_) farthest_->reach_sides += std::fabs(factor) * farthest_->momentum;
  agreement_.decided(end);
  agreement_.decided(s_.long_end);
  s_.time = end;
}

void Integrator::kick_long(double to, double evaluated) {
  if (forces_.has_mesh() && to != s_.long_kicked_to) {
    const PhaseTimers::Scope scope(timers_, "kick", stream_);
    const double scale = frame_.acceleration_unit();
    kick(stream_, particles_, forces_.long_acceleration(), scale * kick_factor(s_.long_kicked_to, to, evaluated));
  }
  s_.long_kicked_to = to;
}

// Evaluates forces at the new positions, with the mesh where a long step ends.
void Integrator::evaluate(bool boundary, bool want_potential) {
  s_.has_potential = want_potential;
  if (farthest_) forces_.all_are_within(farthest_->reach_sides * (1 + kRoundings));
  forces_.evaluate(s_.time, boundary && forces_.has_mesh() ? Ranges::kBoth : Ranges::kShort, want_potential);
}

}  // namespace maki
