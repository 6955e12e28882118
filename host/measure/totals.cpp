#include "host/measure/totals.hpp"

#include <cmath>
#include <limits>

namespace maki {

namespace {

// NaN as infinity, since comparisons would drop NaN.
double comparable(double value) { return std::isnan(value) ? std::numeric_limits<double>::infinity() : value; }

}  // namespace

EnergyTotals over_ranks(const Communicator& ranks, const EnergySums& mine) {
  std::array<DoubleDouble, 3> sums = {mine.kinetic, mine.potential, mine.mass};
  sum_over_ranks(ranks, sums);
  return {sums[0].value(), sums[1].value(), sums[2].value()};
}

MomentumTotals over_ranks(const Communicator& ranks, const MomentumSums& mine) {
  std::array<DoubleDouble, 8> sums = {mine.momentum[0], mine.momentum[1], mine.momentum[2], mine.momentum_scale,
                                      mine.force[0],    mine.force[1],    mine.force[2],    mine.force_scale};
  sum_over_ranks(ranks, sums);
  const auto value = [&sums](std::size_t i) { return sums[i].value(); };
  return {{value(0), value(1), value(2)}, value(3), {value(4), value(5), value(6)}, value(7)};
}

double over_ranks(const Communicator& ranks, const DoubleDouble& mine) {
  std::array<DoubleDouble, 1> sum = {mine};
  sum_over_ranks(ranks, sum);
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
  std::array<std::uint64_t, 3> sums{mine.acceleration, mine.momentum, mine.logarithm};
  ranks.sum(sums);
  return {maxima, {sums[0], sums[1], sums[2]}};
}

}  // namespace maki
