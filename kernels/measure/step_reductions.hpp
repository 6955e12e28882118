// Reductions over all particles for the integrator: the numbers that set the next step, energies and momenta.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/measure/double_double.hpp"
#include "kernels/particles/particles.hpp"

namespace maki {

// Maxima are independent of particle order and thread count. Not-a-number counts as the largest.
struct StepMaxima {
  double acceleration = 0;  // |a_short + a_long|, mass / side^2
  double momentum = 0;      // |p|, velocity units
  std::int64_t reach = 0;   // largest |x - 1/2| on any axis, in units of the last bit
};
// `long_range` may be null. Accelerations in the order of the particles.
StepMaxima step_maxima(const Stream& stream, const Particles& particles, const VectorArray& short_range,
                       const VectorArray* long_range);

// Largest |x - 1/2| on any axis, units of the last bit: at most 2^30 while all lie in the middle half.
std::int64_t largest_reach(const Stream& stream, const Particles& particles);

// Sums of |a|^2 and |p|^2 as integers, in units derived from the largest over all ranks, so that the means too are the
// same for any number of threads and ranks.
struct SquareUnits {
  std::uint64_t acceleration = 0;
  std::uint64_t momentum = 0;
};
// The sums of this rank. `maxima`: the largest over all ranks; `total`: the number of all particles.
SquareUnits square_units(const Stream& stream, const Particles& particles, const VectorArray& short_range,
                         const VectorArray* long_range, const StepMaxima& maxima, std::uint64_t total);
// The mean square, from the sum of units over all ranks and the root of the largest square. Good to 2^-32 of the
// largest square for totals up to 2^32, beyond that to total * 2^-64. Not-a-number where `largest` is.
double mean_square(std::uint64_t units, double largest, std::uint64_t total);
// step_maxima(), and square_units() by this set's own maxima: for a set that is all on this rank, with one wait instead
// of two.
struct StepMeasures {
  StepMaxima maxima;
  SquareUnits squares;
};
StepMeasures step_measures(const Stream& stream, const Particles& particles, const VectorArray& short_range,
                           const VectorArray* long_range);

// Sums of exact terms, to some 1e-31 of the sum of absolute values: value() is the exact sum rounded once, whatever the
// order of particles and the number of threads. exact_sum() (host/comm/exact_sum.hpp) adds the sums of ranks.
struct EnergySums {
  DoubleDouble kinetic;    // 1/2 sum m p^2
  DoubleDouble potential;  // 1/2 sum m phi, where phi is the sum of both ranges, in mass^2 / side
  DoubleDouble mass;
};
// `long_potential` may be null.
EnergySums energy_sums(const Stream& stream, const Particles& particles, const DeviceBuffer<float>& short_potential,
                       const DeviceBuffer<float>* long_potential);
DoubleDouble kinetic_sum(const Stream& stream, const Particles& particles);  // 1/2 sum m p^2

struct MomentumSums {
  std::array<DoubleDouble, 3> momentum{};  // sum m p
  DoubleDouble momentum_scale;             // sum m |p|; each |p| is rounded
  std::array<DoubleDouble, 3> force{};     // sum m a
  DoubleDouble force_scale;                // sum m |a|; likewise
};
MomentumSums momentum_sums(const Stream& stream, const Particles& particles, const VectorArray& short_range,
                           const VectorArray* long_range);

}  // namespace maki
