#include "src/simulation/totals.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "host/comm/exact_sum.hpp"

namespace maki {

namespace {

// NaN as infinity, since comparisons would drop NaN.
double comparable(double value) { return std::isnan(value) ? std::numeric_limits<double>::infinity() : value; }

}  // namespace

EnergyTotals over_ranks(const Communicator& ranks, const EnergySums& mine) {
  std::array<DoubleDouble, 3> sums = {mine.kinetic, mine.potential, mine.mass};
  exact_sum(ranks, sums);
  return {sums[0].value(), sums[1].value(), sums[2].value()};
}

MomentumTotals over_ranks(const Communicator& ranks, const MomentumSums& mine) {
  std::array<DoubleDouble, 8> sums = {mine.momentum[0], mine.momentum[1], mine.momentum[2], mine.momentum_scale,
                                      mine.force[0],    mine.force[1],    mine.force[2],    mine.force_scale};
  exact_sum(ranks, sums);
  const auto value = [&sums](std::size_t i) { return sums[i].value(); };
  return {{value(0), value(1), value(2)}, value(3), {value(4), value(5), value(6)}, value(7)};
}

void publish_totals(sites::Sites& sites, std::uint64_t number, const SiteTotals& mine) {
  sites.publish(sites::Phase::kOutput, number, sites::as_bytes_of(mine));
}

SiteTotals collect_totals(sites::Sites& sites, std::uint64_t number) {
  SiteTotals all;
  for (const auto& message : sites.collect(sites::Phase::kOutput, number)) {
    const auto one = sites::value_of<SiteTotals>(message);
    all.energy.kinetic += one.energy.kinetic;
    all.energy.potential += one.energy.potential;
    all.energy.mass += one.energy.mass;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      all.momentum.momentum[axis] += one.momentum.momentum[axis];
      all.momentum.force[axis] += one.momentum.force[axis];
    }
    all.momentum.momentum_scale += one.momentum.momentum_scale;
    all.momentum.force_scale += one.momentum.force_scale;
  }
  return all;
}

double over_ranks(const Communicator& ranks, const DoubleDouble& mine) {
  std::array<DoubleDouble, 1> sum = {mine};
  exact_sum(ranks, sum);
  return sum[0].value();
}

StepMaxima largest_of_ranks(const Communicator& ranks, const StepMaxima& mine) {
  // Reaches are integers below 2^32: exact as doubles.
  std::array<double, 3> values = {comparable(mine.acceleration), comparable(mine.momentum),
                                  static_cast<double>(mine.reach)};
  ranks.max(values);
  return {values[0], values[1], static_cast<std::int64_t>(values[2])};
}

std::int64_t largest_of_ranks(const Communicator& ranks, std::int64_t mine) {
  return static_cast<std::int64_t>(largest_of(ranks, static_cast<std::uint64_t>(mine)));
}

StepMeasures measures_of_ranks(const Communicator& ranks, const Stream& stream, const Particles& particles,
                               const VectorArray& short_range, const VectorArray* long_range, std::uint64_t total) {
  if (ranks.size() == 1 && total == particles.size()) return step_measures(stream, particles, short_range, long_range);
  const StepMaxima maxima = largest_of_ranks(ranks, step_maxima(stream, particles, short_range, long_range));
  const SquareUnits mine = square_units(stream, particles, short_range, long_range, maxima, total);
  return {maxima, {sum_of(ranks, mine.acceleration), sum_of(ranks, mine.momentum)}};
}

void EnergyTracker::add_kinetic(double a, double kinetic) {
  if (s_.has_kinetic && comoving_) s_.integral += 0.5 * (kinetic + s_.last_kinetic) * (a - s_.last_a);
  s_.has_kinetic = true;
  s_.last_a = a;
  s_.last_kinetic = kinetic;
}

EnergyReport EnergyTracker::add(double a, double kinetic, double potential) {
  add_kinetic(a, kinetic);
  s_.scale = std::max(s_.scale, std::fabs(a * potential));
  if (!s_.has_start) {
    s_.has_start = true;
    s_.integral = 0;
    s_.start = a * (kinetic + potential);
  }
  const double now = a * (kinetic + potential) + s_.integral + s_.removed;
  double scale = s_.scale;
  if (!comoving_ && std::fabs(s_.start) > 1e-6 * std::fabs(potential)) scale = std::fabs(s_.start);
  return {kinetic, potential, s_.integral, scale > 0 ? (now - s_.start) / scale : 0};
}

}  // namespace maki
