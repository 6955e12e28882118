// Particles that leave the box of an isolated set for good.
#pragma once

#include "kernels/particles/particles.hpp"

namespace maki {

// Takes every particle with |x - 1/2| > reach on some axis (units of the last bit) out of the set and returns them;
// the others keep their order. Accelerations of the set are stale afterwards.
HostParticles set_aside(const Stream& stream, Particles& particles, std::int64_t reach);

}  // namespace maki
