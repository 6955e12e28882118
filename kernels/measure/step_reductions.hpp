// What the integrator has to know of all particles: the numbers that set the next step, energies and momenta.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/particles/particles.hpp"

namespace maki {

// Maxima do not depend on the order of the particles or on the number of threads. Not-a-number counts as the largest.
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

// Mean of |p|^2 over particles, from integers, so that it too is the same for any number of threads.
// `max_momentum` is StepMaxima::momentum of the same momenta; good to 2^-32 of its square.
double mean_square_momentum(const Stream& stream, const Particles& particles, double max_momentum);

// Sums in double; equal to round-off for any number of threads.
struct EnergySums {
  double kinetic = 0;    // 1/2 sum m p^2
  double potential = 0;  // 1/2 sum m phi, phi the sum of both ranges, in mass^2 / side
  double mass = 0;
};
// `long_potential` may be null.
EnergySums energy_sums(const Stream& stream, const Particles& particles, const DeviceBuffer<float>& short_potential,
                       const DeviceBuffer<float>* long_potential);
double kinetic_sum(const Stream& stream, const Particles& particles);  // 1/2 sum m p^2

struct MomentumSums {
  std::array<double, 3> momentum{};  // sum m p
  double momentum_scale = 0;         // sum m |p|
  std::array<double, 3> force{};     // sum m a
  double force_scale = 0;            // sum m |a|
};
MomentumSums momentum_sums(const Stream& stream, const Particles& particles, const VectorArray& short_range,
                           const VectorArray* long_range);

}  // namespace maki
