// Files of light cones: maps of the sky, and spools.
#include "src/lightcone/cone_state.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <random>

#include "kernels/error.hpp"
#include "src/lightcone/sky_map.hpp"
#include "tests/src/io/io_helpers.hpp"
#include "tests/src/lightcone/cone_reader.hpp"

namespace maki {
namespace {

using namespace test;
using SkyMaps = InTempDir;

TEST_F(SkyMaps, FilesHoldWhatWasAdded) {
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
    EXPECT_EQ(read_sky_map(folder / "map.fits"), wanted);
    EXPECT_EQ(sky_map_key(folder / "map.fits", "ORDERING"), "'RING    '");
    EXPECT_EQ(sky_map_key(folder / "map.fits", "LASTPIX"), std::to_string(12 * nside * nside - 1));
    EXPECT_EQ(folder.entries(), 1u) << "no temporary file is left";
  }
}

TEST_F(SkyMaps, NamesWithBracketsAreNames) {
  const SkyMap map(Communicator::self(), 1);
  write_sky_map({dir / "map[1].fits", 1, "", {}, false}, map, Communicator::self());
  EXPECT_TRUE(std::filesystem::exists(dir / "map[1].fits"));
}

TEST_F(SkyMaps, FilesThatCannotBeWrittenAreErrors) {
  const SkyMap map(Communicator::self(), 1);
  EXPECT_THROW(write_sky_map({dir / "none/map.fits", 1, "", {}, false}, map, Communicator::self()), Error);
  EXPECT_EQ(dir.entries(), 0u);
}

TEST_F(SkyMaps, MassesOfTheHeaviestParticlesAreWholeCounts) {
  for (const float mass : {1.0f, 0.3f, 1.2345e7f, 7e-5f}) {
    const double counts = mass / sky_quantum(mass, 1e9);
    EXPECT_EQ(counts, std::floor(counts));
    EXPECT_LT(counts * 1e9, std::ldexp(1.0, 64));
  }
  EXPECT_LT(1e15 * (1.0f / sky_quantum(1, 1e15)), std::ldexp(1.0, 64)) << "coarser where there are more particles";
}

// Velocities are peculiar, over the root of each particle's own scale factor.
TEST(ShellFile, HoldsVelocitiesByTheParticlesOwnScaleFactor) {
  const TempDir folder;
  LightConeOptions options;
  options.shells = {{0, 0.5}, {0, 1000}};
  const ConeObserver observer{};
  const ShellFacts facts{options, observer, 0, make_snapshot(1).header};
  const ShellParticle particle{{300, 400, 0}, {100, 0, -50}, 1, 7, 0.8};
  const std::string path = write_shell(folder / "shell.hdf5", {particle}, facts, make_provenance(), {});
  const std::vector<ReadParticle> found = read_shell(path);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].id, 7u);
  EXPECT_NEAR(found[0].scale_factor, 0.8, 1e-7);
  EXPECT_NEAR(found[0].velocity[0] * std::sqrt(0.8), 100, 1e-3);
  EXPECT_NEAR(found[0].velocity[2] * std::sqrt(0.8), -50, 1e-3);
}

TEST_F(SkyMaps, CountsOfOnePixelAreJoined) {
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

// Joining is a sort of all that wait.
TEST_F(SkyMaps, CountsThatWaitAreJoinedSeldom) {
  constexpr std::uint64_t kPixels = 50000, kRounds = 40;
  PixelCounts counts(1000);
  std::size_t most = 0;
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    for (std::uint64_t i = 0; i < kPixels; ++i) {
      counts.add({(round + 7919 * i) % kPixels, round + 1});
      most = std::max(most, counts.waiting());
    }
    if (round == 0) {
      EXPECT_LE(counts.joinings(), 6) << "log2(50)";
    }
  }
  EXPECT_LE(counts.joinings(), 6 + static_cast<int>(kRounds));
  EXPECT_LE(most, 2 * kPixels);
  const std::vector<PixelCount> joined = counts.take();
  ASSERT_EQ(joined.size(), kPixels);
  for (const PixelCount& one : joined) ASSERT_EQ(one.count, kRounds * (kRounds + 1) / 2);
  EXPECT_TRUE(counts.take().empty());
}

TEST_F(SkyMaps, PixelsAreThoseOfTheDirection) {
  EXPECT_EQ(sky_pixel(64, {0, 0, 7}), sky_pixel(64, {1e-9, 0, 3}));
  EXPECT_LT(sky_pixel(64, {0.001, 0.001, 1}), 4u) << "the first ring is about +z";
  EXPECT_GE(sky_pixel(64, {0.001, 0.001, -1}), sky_pixels(64) - 4);
}

spool::Mark mark_of(const std::vector<ShellParticle>& records) {
  spool::RunningMark running;
  running.add(records);
  return running.mark();
}

std::vector<ShellParticle> particles(std::uint64_t first, std::uint64_t count) {
  std::vector<ShellParticle> all;
  for (std::uint64_t id = first; id < first + count; ++id)
    all.push_back({{static_cast<double>(id), 2, 3}, {4, 5, 6}, 7, id, 0.5});
  return all;
}

class Spool : public InTempDir {
 protected:
  const std::string path = dir / spool::name_of(3, 2);
};

TEST_F(Spool, GivesBackWhatWasAppended) {
  std::vector<ShellParticle> all;
  spool::read(path, mark_of({}), all);
  EXPECT_TRUE(all.empty()) << "no file, no particles";
  spool::append(path, particles(0, 10));
  spool::append(path, {});
  spool::append(path, particles(10, 5));
  spool::sync(path, spool::bytes(path));
  spool::read(path, mark_of(particles(0, 15)), all);
  ASSERT_EQ(all.size(), 15u);
  for (std::uint64_t i = 0; i < 15; ++i) EXPECT_EQ(all[i].id, i);
}

TEST_F(Spool, IsCutBackToAnEarlierLength) {
  spool::append(path, particles(0, 10));
  const std::uint64_t then = spool::bytes(path);
  spool::append(path, particles(10, 5));
  spool::cut(path, then);
  spool::append(path, particles(20, 1));
  std::vector<ShellParticle> all, wanted = particles(0, 10);
  wanted.push_back(particles(20, 1).front());
  spool::read(path, mark_of(wanted), all);
  ASSERT_EQ(all.size(), 11u);
  EXPECT_EQ(all.back().id, 20u);
  spool::cut(path, 0);
  EXPECT_EQ(dir.entries(), 0u);
}

TEST_F(Spool, AMarkMovesOnWhereASpoolIsOpenedAgain) {
  spool::append(path, particles(0, 15));
  spool::RunningMark again = spool::reopen(path, mark_of(particles(0, 10)));
  EXPECT_EQ(again.mark(), mark_of(particles(0, 10))) << "what follows is not looked at";
  again.add(particles(10, 5));
  EXPECT_EQ(again.mark(), mark_of(particles(0, 15)));
  EXPECT_EQ(spool::reopen(dir / "none", {}).mark(), mark_of({}));
}

TEST_F(Spool, AFlippedBitAndACutEndAreNoticed) {
  spool::append(path, particles(0, 200000));  // 11 MB, several blocks
  const spool::Mark all = mark_of(particles(0, 200000));
  std::vector<ShellParticle> found;
  const auto expect_noticed = [&](const spool::Mark& mark, const char* word) {
    expect_error([&] { spool::reopen(path, mark); }, {word});
    expect_error([&] { spool::read(path, mark, found); }, {word});
  };
  flip_bit(path, 9000000, 2);
  expect_noticed(all, "damaged");
  EXPECT_EQ(spool::reopen(path, mark_of(particles(0, 100))).mark().bytes, 5600u) << "an earlier part is whole";
  spool::cut(path, 5600);
  expect_noticed(all, "cut off");
  expect_error([&] { spool::sync(path, all.bytes); }, {"cut off", "5600 of its 11200000"});
}

TEST_F(Spool, NamesTellShellAndRank) {
  EXPECT_EQ(spool::name_of(3, 2), "conesnap_003.2.spool");
  EXPECT_EQ(spool::shell_of("conesnap_003.2.spool"), 3);
  EXPECT_EQ(spool::rank_of("conesnap_1234.17.spool"), 17);
  for (const char* other : {"conesnap_003.hdf5", "conesnap_003.2.spool.old", "state_000001.0.hdf5"})
    EXPECT_EQ(spool::rank_of(other), -1) << other;
}

TEST_F(Spool, AFolderThatIsMissingIsAnError) {
  const std::string path = dir / "none/conesnap_000.0.spool";
  expect_error([&] { spool::append(path, particles(0, 1)); }, {"cannot write", path.c_str()});
  expect_error([&] { spool::reopen(path, mark_of(particles(0, 1))); }, {"cannot read"});
}

TEST(ConeState, IsRemovedWhereThatOfTheFirstRankIsGone) {
  const TempDir folder;
  for (const char* name : {"state_000012.1.hdf5", "state_000012.10.hdf5", "state_000120.0.hdf5"})
    std::ofstream(folder / name) << name;
  remove_cone_state(folder.path(), 12);
  EXPECT_EQ(cone_state_steps(folder.path()), (std::vector<std::uint64_t>{120}));
}

}  // namespace
}  // namespace maki
