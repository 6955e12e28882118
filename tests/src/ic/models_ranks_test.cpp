#include "src/ic/models.hpp"

#include <gtest/gtest.h>

#include "tests/src/ic/shares_ranks.hpp"

namespace maki {
namespace {

template <class Parameters>
void expect_same_bits(Snapshot (*make)(const Parameters&, const Communicator&), const Parameters& parameters) {
  const auto world = Communicator::world();
  expect_shares_of(make(parameters, Communicator::self()), make(parameters, world), world);
}

TEST(ModelsOverRanks, PlummerSphere) {
  for (const std::uint64_t particles : {1, 5, 1000, 1001}) {
    expect_same_bits(make_plummer, {.seed = 3, .particles = particles});
    expect_same_bits(make_plummer, {.seed = 4, .particles = particles, .mass = 7, .truncation_radius = 3});
  }
}

TEST(ModelsOverRanks, ColdSphere) {
  for (const std::uint64_t particles : {3, 1000}) {
    expect_same_bits(make_cold_sphere, {.seed = 5, .particles = particles});
    expect_same_bits(make_cold_sphere, {.seed = 5, .particles = particles, .virial_ratio = 0.5});
  }
}

TEST(ModelsOverRanks, KeplerDisk) {
  for (const std::uint64_t particles : {1, 777})
    expect_same_bits(make_kepler_disk, {.seed = 6, .particles = particles});
}

// More ranks than bodies, from three ranks on.
TEST(ModelsOverRanks, TwoBodies) {
  expect_same_bits(make_two_body, {.mass1 = 1.3, .mass2 = 0.2, .semi_major_axis = 0.7, .eccentricity = 0.6});
}

}  // namespace
}  // namespace maki
