#include "src/simulation/film.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/src/simulation/einstein_de_sitter.hpp"
#include "tests/test_stream.hpp"

namespace maki {
namespace {

using maki::testing::einstein_de_sitter;

TEST(Film, MomentsAreEvenInWhatTheyShouldBe) {
  const Timeline universe = einstein_de_sitter();
  const auto by_a = film_times(5, Cadence::kScaleFactor, universe, 0.2, 1);
  const auto by_log = film_times(5, Cadence::kLogScaleFactor, universe, 0.0625, 1);
  const auto by_time = film_times(5, Cadence::kTime, universe, 0.04, 1);
  for (std::size_t i = 0; i < 5; ++i) {
    const double part = 0.25 * static_cast<double>(i);
    EXPECT_NEAR(by_a[i], 0.2 + 0.8 * part, 1e-12);
    EXPECT_NEAR(by_log[i], std::pow(2, static_cast<double>(i) - 4), 1e-12);
    const double time = 0.008 + 0.992 * part;  // a goes with t^(2/3)
    EXPECT_NEAR(by_time[i], std::pow(time, 2.0 / 3), 1e-6) << i;
  }
}

TEST(Film, OfAnIsolatedSetIsEvenInTime) {
  EXPECT_EQ(film_times(3, Cadence::kLogScaleFactor, Timeline::newtonian(), 0, 8), (std::vector<double>{0, 4, 8}));
  EXPECT_EQ(film_times(1, Cadence::kScaleFactor, Timeline::newtonian(), 0, 8), (std::vector<double>{8}));
  EXPECT_TRUE(film_times(0, Cadence::kTime, Timeline::newtonian(), 0, 8).empty());
}

TEST(Film, TakesPositionsBackAndLeavesTheParticles) {
  const Stream& stream = test::test_stream();
  Particles particles;
  upload_particles(stream, particles, {{0.25, 0.5, 0.01}}, {{1.0f, -2.0f, 4.0f}}, {1.0f}, {7});
  const HostParticles then = download_particles(stream, [&] {
    Particles back = drifted_back(stream, particles, 0.01);
    back.id.resize(back.size());
    back.id.fill_zero(stream);
    return back;
  }());
  EXPECT_NEAR(then.fractions[0][0], 0.24, 1e-7);
  EXPECT_NEAR(then.fractions[0][1], 0.52, 1e-7);
  EXPECT_NEAR(then.fractions[0][2], 0.97, 1e-7) << "around the edge of the box";
  EXPECT_NEAR(download_particles(stream, particles).fractions[0][0], 0.25, 1e-9);
  EXPECT_EQ(download_particles(stream, copy_of(stream, particles)).ids[0], 7u);
}

}  // namespace
}  // namespace maki
