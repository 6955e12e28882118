// Particles that know their fields by their id, for tests of what happens to them between ranks.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "host/domain/multisection.hpp"
#include "kernels/particles/particles.hpp"

namespace maki::test {

// Any 64 bits for an id and a purpose.
std::uint64_t hash(std::uint64_t id, std::uint64_t purpose);

struct Fields {
  SourceParticle source;
  Remainder remainder;
  float momentum[3];
  float extra[2];
};
// Uniform over the box.
Fields fields_of(std::uint64_t id);

// Particles of these ids, and their two extra arrays.
void make_particles(const Stream& stream, const std::vector<std::uint64_t>& ids, Particles& particles,
                    std::vector<DeviceBuffer<float>>& extra);

// EXPECTs that all fields are those of the ids.
void expect_fields_of_ids(const Stream& stream, const Particles& particles,
                          const std::vector<DeviceBuffer<float>>& extra);

// A Plummer sphere of n particles about `centre`, its scale radius in sides; those beyond 0.2 sides are left out.
std::vector<SamplePoint> plummer_set(std::size_t n, std::array<double, 3> centre, double scale, std::uint64_t seed);
// Clumps of log-normal richness at uniform places, Plummer spheres each, periodic.
std::vector<SamplePoint> clump_set(std::size_t n, std::size_t clumps, std::uint64_t seed);

}  // namespace maki::test
