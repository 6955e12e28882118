// Power spectra and pictures of particles on many ranks against those of one.
#include <gtest/gtest.h>

#include <cmath>

#include "host/domain/multisection.hpp"
#include "host/measure/spectra.hpp"
#include "kernels/device/buffer.hpp"
#include "kernels/device/memory.hpp"
#include "kernels/error.hpp"
#include "tests/kernels/particles/sets.hpp"
#include "tests/on_device.hpp"
#include "tests/test_stream.hpp"

namespace maki {
namespace {

using test::OnDevice;
using Set = std::vector<SourceParticle>;

class OverRanks : public ::testing::Test {
 protected:
  // The middle rank has none.
  Set share(const Set& set) const {
    Set mine;
    for (std::size_t i = 0; i < set.size(); ++i) {
      int owner = static_cast<int>(i) % world.size();
      if (world.size() > 1 && owner == world.size() / 2) owner = 0;
      if (owner == world.rank()) mine.push_back(set[i]);
    }
    return mine;
  }
  const Stream& stream = test::test_stream();
  const Communicator world = Communicator::world();
};

// A rank's domain folds onto far more of the mesh than its share, which is all that the rank takes memory for.
TEST_F(OverRanks, AFoldedSetTakesItsShareOfTheMesh) {
  const Domains domains(choose_factors(world.size()));
  Set here;
  for (const SourceParticle& p : testing::random_set(20000, 4, 1))
    if (domains.rank_of(p.x, p.y, p.z) == static_cast<std::uint32_t>(world.rank())) here.push_back(p);
  const OnDevice mine(here);
  const auto peak = [&](int folding) {
    pool_watch({});
    const double before = static_cast<double>(pool_report().in_use);
    measure_power(world, stream, mine.data(), mine.size(), {.cells = 64, .folding = folding});
    return static_cast<double>(pool_report().high_water) - before;
  };
  const double flat = peak(1);
  for (const int folding : {2, 16}) EXPECT_LT(peak(folding), 1.3 * flat);
}

TEST_F(OverRanks, PowerAndCrossSpectraAreThoseOfOneRank) {
  const Set set = testing::clumped_set(500, 8, false), other(set.begin(), set.begin() + 200);
  const OnDevice whole(set), mine(share(set)), second(other), mine_of_second(share(other));
  const MeasurePowerOptions options = {.cells = 18};
  const ParticleSets all{{whole.data(), whole.size()}, {second.data(), second.size()}};
  const ParticleSets here{{mine.data(), mine.size()}, {mine_of_second.data(), mine_of_second.size()}};
  const MeasuredPower one = measure_power_up_to(4, Communicator::self(), stream, all.first, options);
  const MeasuredPower many = measure_power_up_to(4, world, stream, here.first, options);
  EXPECT_NEAR(one.shot_noise, many.shot_noise, 1e-13 * one.shot_noise);
  EXPECT_EQ(one.nyquist, many.nyquist);
  ASSERT_EQ(one.bins.size(), many.bins.size());
  for (std::size_t b = 0; b < one.bins.size(); ++b) {
    EXPECT_EQ(one.bins[b].folding, many.bins[b].folding);
    EXPECT_EQ(one.bins[b].modes, many.bins[b].modes);
    EXPECT_NEAR(one.bins[b].k, many.bins[b].k, 1e-13 * one.bins[b].k);
    EXPECT_NEAR(one.bins[b].power, many.bins[b].power, 2e-6 * one.bins[b].power);
  }
  const CrossPower cross = measure_cross_up_to(2, Communicator::self(), stream, all, options);
  const CrossPower crossed = measure_cross_up_to(2, world, stream, here, options);
  ASSERT_EQ(cross.bins.size(), crossed.bins.size());
  for (std::size_t b = 0; b < cross.bins.size(); ++b) {
    EXPECT_EQ(cross.bins[b].modes, crossed.bins[b].modes);
    EXPECT_NEAR(cross.bins[b].cross, crossed.bins[b].cross, 1e-12 * cross.bins[b].first);
    EXPECT_NEAR(cross.bins[b].second, crossed.bins[b].second, 1e-12 * cross.bins[b].second);
  }
}

TEST_F(OverRanks, BispectraAreThoseOfOneRank) {
  const Set set = testing::clumped_set(500, 8, false);
  const OnDevice whole(set), mine(share(set));
  const BispectrumOptions options{.cells = 18, .width = 1.5};
  const MeasuredBispectrum one =
      measure_bispectrum(Communicator::self(), stream, {whole.data(), whole.size()}, options);
  const MeasuredBispectrum many = measure_bispectrum(world, stream, {mine.data(), mine.size()}, options);
  ASSERT_EQ(one.bins.size(), many.bins.size());
  for (std::size_t b = 0; b < one.bins.size(); ++b) {
    const TriangleMean &a = one.bins[b].squeezed, &c = many.bins[b].squeezed;
    EXPECT_NEAR(a.bispectrum, c.bispectrum, 1e-9 * std::abs(a.bispectrum));
    EXPECT_NEAR(a.triangles, c.triangles, 1e-9 * a.triangles);
    EXPECT_NEAR(one.bins[b].equilateral.bispectrum, many.bins[b].equilateral.bispectrum,
                1e-9 * std::abs(one.bins[b].equilateral.bispectrum));
    EXPECT_NEAR(a.shot_noise, c.shot_noise, 1e-12 * a.shot_noise);
  }
}

TEST_F(OverRanks, PicturesAreThoseOfOneRankBitForBit) {
  const Set set = testing::clumped_set(500, 8, false);
  const OnDevice whole(set), mine(share(set));
  const ProjectionOptions slab{.width = 20, .height = 12, .front = 0.9, .depth = 0.4};
  ProjectionOptions counted = slab, from_afar{.width = 20, .height = 12, .left = -1, .bottom = -1, .extent = 3};
  counted.count_particles = true;
  from_afar.periodic = false;
  for (const ProjectionOptions& options : {slab, counted, from_afar}) {
    EXPECT_EQ(project_density(world, stream, mine.data(), mine.size(), options),
              project_density(Communicator::self(), stream, whole.data(), whole.size(), options));
  }
}

TEST_F(OverRanks, MeshesAndMassesThatMakeNoSenseAreErrorsOnAll) {
  const OnDevice mine(share(Set(20, {1, 2, 3, 0.0f})));
  MeasurePowerOptions options = {.cells = 16};
  EXPECT_THROW(measure_power(world, stream, mine.data(), mine.size(), options), Error);
  const OnDevice heavy(share(testing::clumped_set(20, 8, false)));
  options.cells = 15;
  EXPECT_THROW(measure_power(world, stream, heavy.data(), heavy.size(), options), Error);
}

}  // namespace
}  // namespace maki
