// Reductions for gravity: the total mass, a constant added to potentials, and the error of kept lists, from a sample of
// groups.
#pragma once

#include <cstdint>

#include "kernels/device/buffer.hpp"
#include "kernels/measure/double_double.hpp"
#include "kernels/particles/types.hpp"
#include "kernels/tree/types.hpp"

namespace maki {

// Sum of masses, for sums over ranks (exact_sum() of host/comm/exact_sum.hpp).
DoubleDouble mass_sum(const Stream& stream, const SourceParticle* particles, std::size_t n);
// The same, rounded once: equal for any order of particles and any number of threads.
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
// regularities. Fills `indices` and `offsets` (GroupSample; one more entry, the number of members). Nothing is copied
// to the host.
void choose_sample(const Stream& stream, const DeviceBuffer<Group>& groups, std::uint32_t wanted,
                   DeviceBuffer<std::uint32_t>& indices, DeviceBuffer<std::uint32_t>& offsets);

// Copies the sample's members to `packed`, group after group, and its groups, as ranges of `packed`, to
// `packed_groups`.
void gather_sample(const Stream& stream, const GroupSample& sample, const SourceParticle* particles,
                   SourceParticle* packed, Group* packed_groups);

// Squared errors of two accelerations against a packed reference: the first is of all particles, the second packed.
struct SampleError {
  double difference = 0;         // sum |first - reference|^2
  double packed_difference = 0;  // sum |second - reference|^2
  double reference = 0;          // sum |reference|^2
};
// Writes the sums over the sample to *error, in device memory.
void sample_error(const Stream& stream, const GroupSample& sample, ConstVectorView acceleration, ConstVectorView packed,
                  ConstVectorView packed_reference, SampleError* error);

}  // namespace maki
