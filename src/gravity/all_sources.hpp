// All ranks' particles as sources of a direct sum, on every rank.
#pragma once

#include <cstdint>

#include "host/comm/device_payload.hpp"
#include "kernels/particles/particles.hpp"

namespace maki {

class AllSources {
 public:
  explicit AllSources(const Communicator& ranks) : payload_(ranks) {}

  // Positions and masses in the order of ranks; those of this rank begin at `first`. On one rank this is a view of the
  // particles themselves, else a copy of 16 bytes for each particle of the whole set. Collective. Throws Error for 2^32
  // particles or more.
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
