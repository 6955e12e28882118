// Small sums that gravity needs of itself.
#pragma once

#include "kernels/device/buffer.hpp"
#include "kernels/particles/types.hpp"

namespace maki {

// Sum of masses, in double.
double total_mass(const Stream& stream, const SourceParticle* particles, std::size_t n);

// values[i] += constant.
void add_constant(const Stream& stream, DeviceBuffer<float>& values, float constant);

}  // namespace maki
