#include "src/lightcone/sky_map.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "kernels/error.hpp"
#include "tests/src/io/io_helpers.hpp"
#include "tests/src/lightcone/cone_reader.hpp"

namespace maki {
namespace {

using test::TempDir;

TEST(SkyMap, FilesHoldWhatWasAdded) {
  for (const int nside : {2, 64}) {  // rows of one pixel, and of 1024
    const TempDir folder;
    const Communicator ranks = Communicator::self();
    SkyMap map(ranks, nside);
    const double quantum = sky_quantum(3.5f, 1000);
    std::mt19937_64 random(5);
    std::normal_distribution<double> normal;
    std::vector<double> wanted(sky_pixels(nside));
    for (int batch = 0; batch < 3; ++batch) {
      std::vector<PixelCount> found;
      for (int i = 0; i < 1000; ++i) {
        const std::uint64_t pixel = sky_pixel(nside, {normal(random), normal(random), normal(random)});
        found.push_back({pixel, static_cast<std::uint64_t>(std::llround(3.5 / quantum))});
        wanted.at(pixel) += 3.5;
      }
      map.add(found);
    }
    write_sky_map({folder / "map.fits", quantum, "1e10 Msun/h", {{"ZNEAR", "", 0.5}}, false}, map, ranks);
    EXPECT_EQ(test::read_sky_map(folder / "map.fits"), wanted);
    EXPECT_EQ(test::sky_map_key(folder / "map.fits", "ORDERING"), "'RING    '");
    EXPECT_EQ(test::sky_map_key(folder / "map.fits", "LASTPIX"), std::to_string(12 * nside * nside - 1));
    EXPECT_EQ(folder.entries(), 1u) << "no temporary file is left";
  }
}

TEST(SkyMap, NamesWithBracketsAreNames) {
  const TempDir folder;
  const SkyMap map(Communicator::self(), 1);
  write_sky_map({folder / "map[1].fits", 1, "", {}, false}, map, Communicator::self());
  EXPECT_TRUE(std::filesystem::exists(folder / "map[1].fits"));
}

TEST(SkyMap, FilesThatCannotBeWrittenAreErrors) {
  const TempDir folder;
  const SkyMap map(Communicator::self(), 1);
  EXPECT_THROW(write_sky_map({folder / "none/map.fits", 1, "", {}, false}, map, Communicator::self()), Error);
  EXPECT_EQ(folder.entries(), 0u);
}

TEST(SkyMap, MassesOfTheHeaviestParticlesAreWholeCounts) {
  for (const float mass : {1.0f, 0.3f, 1.2345e7f, 7e-5f}) {
    const double counts = mass / sky_quantum(mass, 1e9);
    EXPECT_EQ(counts, std::floor(counts));
    EXPECT_LT(counts * 1e9, std::ldexp(1.0, 64));
  }
  EXPECT_LT(1e15 * (1.0f / sky_quantum(1, 1e15)), std::ldexp(1.0, 64)) << "coarser where there are more particles";
}

TEST(SkyMap, CountsOfOnePixelAreJoined) {
  std::vector<PixelCount> counts = {{7, 1}, {3, 2}, {7, 5}, {9, 1}, {3, 1}};
  join_pixels(counts);
  ASSERT_EQ(counts.size(), 3u);
  EXPECT_EQ(counts[0].pixel, 3u);
  EXPECT_EQ(counts[0].count, 3u);
  EXPECT_EQ(counts[1].count, 6u);
  EXPECT_EQ(counts[2].pixel, 9u);
  join_pixels(counts = {});
  EXPECT_TRUE(counts.empty());
}

TEST(SkyMap, PixelsAreThoseOfTheDirection) {
  EXPECT_EQ(sky_pixel(64, {0, 0, 7}), sky_pixel(64, {1e-9, 0, 3}));
  EXPECT_LT(sky_pixel(64, {0.001, 0.001, 1}), 4u) << "the first ring is about +z";
  EXPECT_GE(sky_pixel(64, {0.001, 0.001, -1}), sky_pixels(64) - 4);
}

}  // namespace
}  // namespace maki
