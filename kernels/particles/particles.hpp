// The particles of a run on the device, from start to end.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/particles/types.hpp"
#include "kernels/particles/vector_array.hpp"

namespace maki {

// What lies below the last bit of a coordinate, in 2^-16 of it, so that slow particles do not freeze.
struct Remainder {
  std::uint16_t x, y, z;
};

// 42 bytes a particle. Arrays have one length and one order: Morton order of the last rebuild.
struct Particles {
  DeviceBuffer<SourceParticle> source{"particles.source"};  // position and mass
  DeviceBuffer<Remainder> remainder{"particles.remainder"};
  VectorArray momentum{"particles.momentum"};  // p = a^2 dx/dt, velocity units
  DeviceBuffer<std::uint64_t> id{"particles.id"};
  std::size_t size() const { return source.size(); }
  void resize(std::size_t n);
};

// Host positions as fractions of the side in [0, 1), momenta, masses, ids; arrays of one length.
void upload_particles(const Stream& stream, Particles& particles, const std::vector<std::array<double, 3>>& fractions,
                      const std::vector<std::array<float, 3>>& momenta, const std::vector<float>& masses,
                      const std::vector<std::uint64_t>& ids);

struct HostParticles {
  std::vector<std::array<double, 3>> fractions;  // [0, 1), with the remainder
  std::vector<std::array<float, 3>> momenta;
  std::vector<float> masses;
  std::vector<std::uint64_t> ids;
};
HostParticles download_particles(const Stream& stream, const Particles& particles);

// x += p * factor, on the 48-bit coordinate; factor in sides per momentum unit. Wraps around the box.
void drift(const Stream& stream, Particles& particles, double factor);

// p += acceleration * factor.
void kick(const Stream& stream, Particles& particles, const VectorArray& acceleration, double factor);

// Doubles the box of an isolated set about its middle: x -> (x + 1/2) / 2 in fractions of the new side.
void double_box(const Stream& stream, Particles& particles);

// Takes every particle with |x - 1/2| > reach on some axis (units of the last bit) out of the set and returns them;
// the others keep their order. Accelerations of the set are stale afterwards.
HostParticles set_aside(const Stream& stream, Particles& particles, std::int64_t reach);

}  // namespace maki
