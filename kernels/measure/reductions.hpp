// Reductions over this rank's particles: the measures that set the next step, energies, momenta, the total mass, and
// the error of kept lists from a sample of groups. Sums over ranks: host/measure/totals.hpp.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/device/buffer.hpp"
#include "kernels/device/macros.hpp"
#include "kernels/measure/double_double.hpp"
#include "kernels/particles/particles.hpp"
#include "kernels/particles/types.hpp"
#include "kernels/tree/types.hpp"

namespace maki {

// Maxima are independent of particle order and thread count. Not-a-number counts as the largest.
struct StepMaxima {
  double acceleration = 0;  // |a_short + a_long|, mass / side^2
  double momentum = 0;      // |p|, velocity units
  std::int64_t reach = 0;   // largest |x - 1/2| on any axis, in units of the last bit
  bool operator==(const StepMaxima&) const = default;
};
// `long_range` may be null. Accelerations in the order of the particles.
StepMaxima step_maxima(const Stream& stream, const Particles& particles, const VectorArray& short_range,
                       const VectorArray* long_range);

// Largest |x - 1/2| on any axis, units of the last bit: at most 2^30 while all lie in the middle half.
std::int64_t largest_reach(const Stream& stream, const Particles& particles);

// Sums of |a|^2, |p|^2 and log2 |a|^2 as integers, so that means are the same for any number of threads and ranks. The
// units of the squares follow from the maxima over all ranks.
struct SquareUnits {
  std::uint64_t acceleration = 0;
  std::uint64_t momentum = 0;
  std::uint64_t logarithm = 0;  // of log2 |a|^2 + 1023 in units of 2^-12, linear within each factor of two
  bool operator==(const SquareUnits&) const = default;
  MAKI_HD SquareUnits operator+(const SquareUnits& b) const {
    return {acceleration + b.acceleration, momentum + b.momentum, logarithm + b.logarithm};
  }
};
// The sums of this rank. `maxima`: over all ranks; `total`: the number of particles on all ranks.
SquareUnits square_units(const Stream& stream, const Particles& particles, const VectorArray& short_range,
                         const VectorArray* long_range, const StepMaxima& maxima, std::uint64_t total);
// The mean of |a|^2 or |p|^2, from the sum of units over all ranks and the maximum `largest` of |a| or |p|. Its error
// is 2^-32 of the largest square for totals up to 2^32, beyond that total * 2^-64 of it. Not-a-number where `largest`
// is.
double mean_square(std::uint64_t units, double largest, std::uint64_t total);
// The geometric mean of |a|, from the mean of SquareUnits::logarithm over particles: to 6 %, as the logarithm is
// linear within each factor of two.
double typical_acceleration(double mean_logarithm);
// step_maxima() and square_units() of a set that is all on this rank, with one wait for the device instead of two.
struct StepMeasures {
  StepMaxima maxima;
  SquareUnits squares;
};
StepMeasures step_measures(const Stream& stream, const Particles& particles, const VectorArray& short_range,
                           const VectorArray* long_range);
// The reference of error scales (reference_acceleration() of kernels/tree/opening.hpp), from the measures of the
// `particles` of all ranks.
double reference_acceleration(const StepMeasures& measures, std::uint64_t particles);

// Sums of exact terms, to some 1e-31 of the sum of absolute values: value() is the exact sum rounded once, whatever the
// order of particles and the number of threads. sum_over_ranks() (host/measure/totals.hpp) adds those of ranks.
struct EnergySums {
  DoubleDouble kinetic;    // 1/2 sum m p^2
  DoubleDouble potential;  // 1/2 sum m phi, where phi is the sum of both ranges, in mass^2 / side
  DoubleDouble mass;
  MAKI_HD EnergySums operator+(const EnergySums& b) const {
    return {kinetic + b.kinetic, potential + b.potential, mass + b.mass};
  }
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

// Place and motion of a set as a whole.
struct CentreSums {
  DoubleDouble mass;
  std::array<DoubleDouble, 3> position{};  // sum m x; x from the middle of the box, in 2^-24 sides
  std::array<DoubleDouble, 3> momentum{};  // sum m p
};
CentreSums centre_sums(const Stream& stream, const Particles& particles);

// The number of particles that would be farther than `reach` (units of the last bit) from the middle of the box on some
// axis after shift_box().
std::uint64_t count_beyond(const Stream& stream, const Particles& particles, const std::array<std::int32_t, 3>& shift,
                           std::int64_t reach);

// Sum of masses, for sums over ranks (sum_over_ranks() of host/measure/totals.hpp).
DoubleDouble mass_sum(const Stream& stream, const SourceParticle* particles, std::size_t n);
// mass_sum() rounded once: equal for any order of particles and any number of threads.
double total_mass(const Stream& stream, const SourceParticle* particles, std::size_t n);

// values[i] += constant.
void add_constant(const Stream& stream, DeviceBuffer<float>& values, float constant);

// A sample of groups, for kernels (choose_sample).
struct GroupSample {
  const Group* groups;
  const std::uint32_t* indices;  // of the sampled groups
  const std::uint32_t* offsets;  // begin of a sampled group's members in the packed arrays
  std::uint32_t count;           // sampled groups
};

// One group from each of `wanted` equal parts of the array (wanted <= groups.size()), at a place that avoids the tree's
// regularities. Fills GroupSample's `indices` (wanted entries) and `offsets` (wanted + 1; the last is the number of
// members). Nothing is copied to the host.
void choose_sample(const Stream& stream, const DeviceBuffer<Group>& groups, std::uint32_t wanted,
                   DeviceBuffer<std::uint32_t>& indices, DeviceBuffer<std::uint32_t>& offsets);

// Copies the sample's members to `packed`, group after group, and its groups, as ranges of `packed`, to
// `packed_groups`.
void gather_sample(const Stream& stream, const GroupSample& sample, const SourceParticle* particles,
                   SourceParticle* packed, Group* packed_groups);

// Squared errors of two sets of accelerations against a reference, over the members of a sample. `acceleration` of
// sample_error() is by particle; `packed` and `packed_reference` are in the order of gather_sample().
struct SampleError {
  double difference = 0;         // sum |first - reference|^2
  double packed_difference = 0;  // sum |second - reference|^2
  double reference = 0;          // sum |reference|^2
  MAKI_HD SampleError operator+(const SampleError& b) const {
    return {difference + b.difference, packed_difference + b.packed_difference, reference + b.reference};
  }
};
// Writes the sums over the sample to *error, in device memory.
void sample_error(const Stream& stream, const GroupSample& sample, ConstVectorView acceleration, ConstVectorView packed,
                  ConstVectorView packed_reference, SampleError* error);

}  // namespace maki
