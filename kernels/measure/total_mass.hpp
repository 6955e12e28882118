// Small sums that gravity needs of itself.
#pragma once

#include "kernels/device/buffer.hpp"
#include "kernels/measure/double_double.hpp"
#include "kernels/particles/types.hpp"

namespace maki {

// Sum of masses, for sums over ranks (exact_sum of host/comm/exact_sum.hpp).
DoubleDouble mass_sum(const Stream& stream, const SourceParticle* particles, std::size_t n);
// The same, rounded once: equal for any order of particles and any number of threads.
double total_mass(const Stream& stream, const SourceParticle* particles, std::size_t n);

// values[i] += constant.
void add_constant(const Stream& stream, DeviceBuffer<float>& values, float constant);

}  // namespace maki
