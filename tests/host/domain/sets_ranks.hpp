// Sets of particles for tests of what happens to them between ranks.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "host/domain/multisection.hpp"
#include "tests/host/domain/fields.hpp"

namespace maki::test {

// A Plummer sphere of n particles about `centre`, its scale radius in sides; those beyond 0.2 sides are left out.
std::vector<SamplePoint> plummer_set(std::size_t n, std::array<double, 3> centre, double scale, std::uint64_t seed);
// Clumps of log-normal richness at uniform places, Plummer spheres each, periodic.
std::vector<SamplePoint> clump_set(std::size_t n, std::size_t clumps, std::uint64_t seed);

}  // namespace maki::test
