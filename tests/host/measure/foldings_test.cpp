// Power spectra beyond the mesh's Nyquist wave number, and of two sets.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "host/measure/spectra.hpp"
#include "kernels/error.hpp"
#include "tests/host/measure/random_field.hpp"

namespace maki {
namespace {

constexpr double kPi = std::numbers::pi;

MeasuredPower power_up_to(int highest, int cells, const std::vector<SourceParticle>& set) {
  const test::OnDevice source(set);
  MeasurePowerOptions options;
  options.cells = cells;
  return measure_power_up_to(highest, Communicator::self(), test::test_stream(), source.all(), options);
}

CrossPower cross_of(const std::vector<SourceParticle>& a, const std::vector<SourceParticle>& b, int highest = 1) {
  const test::OnDevice first(a), second(b);
  MeasurePowerOptions options;
  options.cells = 16;
  return measure_cross_up_to(highest, Communicator::self(), test::test_stream(), {first.all(), second.all()}, options);
}

// The mean of the field's P over the modes of a bin, by the bin's number among those of its folding.
std::vector<double> expected_power(const test::RandomField& field, int cells, int folding) {
  std::vector<double> sums(static_cast<std::size_t>(cells)), modes(sums.size());
  const int half = cells / 2;
  for (int x = -half; x <= half; ++x)
    for (int y = -half; y <= half; ++y)
      for (int z = -half; z <= half; ++z) {
        const double n = std::sqrt(x * x + y * y + z * z);
        if (n == 0 || n >= half) continue;
        const auto bin = static_cast<std::size_t>(n + 0.5);
        sums[bin] += field.power(2 * kPi * folding * n);
        modes[bin] += 1;
      }
  for (std::size_t b = 0; b < sums.size(); ++b) sums[b] /= std::max(1.0, modes[b]);
  return sums;
}

double expected_at(const test::RandomField& field, int cells, const PowerBin& bin) {
  return expected_power(field, cells, bin.folding)[static_cast<std::size_t>(bin.k / (2 * kPi * bin.folding) + 0.5)];
}

TEST(Foldings, RecoverAKnownSpectrumToFourTimesTheNyquistWaveNumber) {
  const test::RandomField field(96, -1.5, 0.015);
  const MeasuredPower found = power_up_to(4, 16, field.weighted());
  EXPECT_NEAR(found.nyquist, 4 * kPi * 16, 1e-9);
  double worst = 0, last = 0;
  for (const PowerBin& bin : found.bins) {
    EXPECT_GT(bin.k, last);
    last = bin.k;
    const double error = std::abs(bin.power / expected_at(field, 16, bin) - 1);
    worst = std::max(worst, error);
    EXPECT_LT(error, 1e-3) << bin.k / (2 * kPi) << " of folding " << bin.folding;
  }
  std::printf("P at most %.2e off up to %.3g times the Nyquist wave number\n", worst, last / (kPi * 16));
  EXPECT_GT(last, 3.8 * kPi * 16);
  EXPECT_EQ(found.bins.front().folding, 1);
  EXPECT_EQ(found.bins.back().folding, 4);
}

TEST(Foldings, ShotNoiseIsApart) {
  const test::RandomField field(96, -1.5, 0.025);
  constexpr std::size_t count = 300000;
  const MeasuredPower found = power_up_to(4, 16, field.sampled(count));
  EXPECT_NEAR(found.shot_noise, 1.0 / count, 1e-12);
  for (const PowerBin& bin : found.bins) {
    const double expected = expected_at(field, 16, bin) + 1.0 / count;
    const double scatter = std::sqrt(2.0 / static_cast<double>(bin.modes));
    EXPECT_NEAR(bin.power / expected, 1, 4 * scatter) << bin.k / (2 * kPi) << " of folding " << bin.folding;
  }
}

// Where a mesh reaches without folding, it has what a larger one has; beyond, other modes of the same spectrum.
TEST(Foldings, AgreeWithALargerMesh) {
  const auto set = test::RandomField(96, -1.5, 0.025).sampled(300000);
  const MeasuredPower small = power_up_to(2, 32, set), large = power_up_to(1, 64, set);
  double worst = 0;
  for (std::size_t b = 0; b < small.bins.size(); ++b) {
    const PowerBin& bin = small.bins[b];
    if (bin.folding > 1) continue;
    EXPECT_NEAR(bin.k, large.bins[b].k, 1e-12 * bin.k);
    EXPECT_EQ(bin.modes, large.bins[b].modes);
    worst = std::max(worst, std::abs(bin.power / large.bins[b].power - 1));
  }
  std::printf("A mesh of half the side differs by %.2e below its Nyquist wave number\n", worst);
  EXPECT_LT(worst, 1e-3);
  EXPECT_EQ(small.nyquist, large.nyquist);
}

TEST(Foldings, MeetWithoutGaps) {
  for (const int cells : {16, 18}) {
    const WaveRange first = waves_of_folding(1, 4, cells), second = waves_of_folding(2, 4, cells);
    EXPECT_EQ(first.begin, 0);
    EXPECT_EQ(first.end, second.begin);
    EXPECT_EQ(second.end, waves_of_folding(4, 4, cells).begin);
    EXPECT_TRUE(std::isinf(waves_of_folding(4, 4, cells).end));
  }
  EXPECT_EQ(foldings_up_to(8), (std::vector<int>{1, 2, 4, 8}));
  for (const int no_power : {0, 3, -1, 8192}) EXPECT_THROW(foldings_up_to(no_power), Error);
}

TEST(CrossPower, OfMultiplesOfOneFieldIsFull) {
  const test::RandomField field(32, -1, 0.01);
  const CrossPower found = cross_of(field.weighted(1), field.weighted(2), 2);
  EXPECT_EQ(found.bins.back().folding, 2);
  for (const CrossBin& bin : found.bins) {
    EXPECT_NEAR(bin.second / bin.first, 4, 1e-4);
    EXPECT_NEAR(bin.cross / bin.first, 2, 1e-4);
    EXPECT_NEAR(bin.correlation(), 1, 1e-5);
  }
}

TEST(CrossPower, OfOppositeAndOfIndependentFields) {
  const test::RandomField one(32, -1, 0.01), other(32, -1, 0.01, 2);
  for (const CrossBin& bin : cross_of(one.weighted(1), one.weighted(-1)).bins) EXPECT_NEAR(bin.correlation(), -1, 1e-5);
  for (const CrossBin& bin : cross_of(one.weighted(), other.weighted()).bins)
    EXPECT_NEAR(bin.correlation(), 0, 4 / std::sqrt(static_cast<double>(bin.modes)));
}

TEST(CrossPower, HasTheSpectraOfBoth) {
  const auto a = test::RandomField(32, -1, 0.04).sampled(5000), b = test::RandomField(32, -1, 0.04, 2).sampled(3000);
  const CrossPower found = cross_of(a, b, 2);
  const MeasuredPower first = power_up_to(2, 16, a), second = power_up_to(2, 16, b);
  EXPECT_NEAR(found.shot_noise_first, 1.0 / 5000, 1e-12);
  EXPECT_NEAR(found.shot_noise_second, 1.0 / 3000, 1e-12);
  ASSERT_EQ(found.bins.size(), first.bins.size());
  for (std::size_t i = 0; i < found.bins.size(); ++i) {
    EXPECT_NEAR(found.bins[i].k, first.bins[i].k, 1e-12 * first.bins[i].k);
    EXPECT_NEAR(found.bins[i].first / first.bins[i].power, 1, 1e-5);
    EXPECT_NEAR(found.bins[i].second / second.bins[i].power, 1, 1e-5);
  }
}

}  // namespace
}  // namespace maki
