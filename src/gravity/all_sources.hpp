// All ranks' particles as sources of a direct sum, on every rank.
#pragma once

#include <cstdint>

#include "host/comm/device_payload.hpp"
#include "kernels/particles/particles.hpp"

namespace maki {

class AllSources {
 public:
  explicit AllSources(const Communicator& ranks) : payload_(ranks) {}

  // Positions and masses in the order of ranks; this rank's begin at `first`. On one rank they are the particles
  // themselves, else 16 bytes for each particle of the whole set. Collective. Throws Error where there are 2^32 or
  // more.
  struct View {
    const SourceParticle* particles;
    std::uint32_t count, first;
  };
  View gather(const Stream& stream, const Particles& particles);

 private:
  DevicePayload payload_;
  DeviceBuffer<SourceParticle> all_{"direct.sources"};
};

}  // namespace maki
