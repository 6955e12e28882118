#include "src/simulation/step_criterion.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace maki {

namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

// dt in units of the timeline: d ln a = H dt.
double in_timeline(const Timeline& timeline, double t, double dt) {
  return timeline.is_comoving() ? dt * timeline.hubble(t) : dt;
}

}  // namespace

double softening_at(const StepOptions& options, double a) {
  if (options.max_physical_softening <= 0) return options.softening;
  return std::min(options.softening, options.max_physical_softening / a);
}

double short_step(const StepOptions& options, const Timeline& timeline, double t, const StepMeasure& measure) {
  if (options.fixed_step > 0) return options.fixed_step;
  double step = options.max_step > 0 ? options.max_step : kNoLimit;
  if (timeline.is_comoving()) step = std::min(step, options.max_dlna);
  if (measure.acceleration > 0) {
    const double a = timeline.scale_factor(t);
    const double dt = options.eta * std::sqrt(a * a * a * softening_at(options, a) / measure.acceleration);
    step = std::min(step, in_timeline(timeline, t, dt));
  }
  return step;
}

double long_step(const StepOptions& options, const Timeline& timeline, double t, const StepMeasure& measure,
                 double short_step) {
  if (options.r_cut <= 0) return short_step;
  double limit = timeline.is_comoving() ? options.long_dlna : kNoLimit;
  if (measure.rms_momentum > 0) {
    const double a = timeline.scale_factor(t);
    const double dt = options.long_displacement * options.r_cut * a * a / measure.rms_momentum;  // dx = p dt / a^2
    limit = std::min(limit, in_timeline(timeline, t, dt));
  }
  const double substeps = std::floor(limit / short_step * (1 + 1e-9));
  return short_step * std::clamp(substeps, 1.0, static_cast<double>(options.max_substeps));
}

double divide_evenly(double remaining, double wanted, double stretch) {
  const double number = remaining / wanted;
  const double least = std::max(number / (1 + stretch), stretch > 0 ? number - 0.5 : number);
  return remaining / std::max(1.0, std::ceil(least * (1 - 1e-9)));
}

}  // namespace maki
