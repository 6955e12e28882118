// A set of particles that do not move, on the device.
#pragma once

#include <vector>

#include "kernels/particles/particles.hpp"

namespace maki::testing {

// Momenta, remainders and ids are 0.
inline void upload_at_rest(const Stream& stream, const std::vector<SourceParticle>& set, Particles& particles) {
  particles.resize(set.size());
  particles.source.upload(stream, set);
  particles.remainder.fill_zero(stream);
  particles.momentum.fill_zero(stream);
  particles.id.fill_zero(stream);
}

}  // namespace maki::testing
