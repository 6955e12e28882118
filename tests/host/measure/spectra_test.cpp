// Power spectra beyond the mesh's Nyquist wave number and of two sets; bispectra of random particles, and of waves of
// Lagrangian perturbation theory.
#include "host/measure/spectra.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>
#include <vector>

#include "kernels/device/buffer.hpp"
#include "kernels/error.hpp"
#include "kernels/mesh/mesh.hpp"
#include "kernels/particles/types.hpp"
#include "src/cosmology/nonlinear.hpp"
#include "src/cosmology/power.hpp"
#include "src/ic/lagrangian.hpp"
#include "tests/kernels/particles/sets.hpp"
#include "tests/on_device.hpp"
#include "tests/test_stream.hpp"

namespace maki {
namespace {

// P(k) goes with k^index, and |delta_k|^2 is P of the mode exactly. Lengths in sides of the box. The particles stand on
// a lattice, so that modes a multiple of its side apart are one: a mesh has to be such that interlacing takes those for
// images.
class RandomField {
 public:
  RandomField(int side, double index, double sigma, std::uint64_t seed = 1)
      : side_(side), power_({.model = PowerModel::kPowerLaw, .power_law_index = index}, {{}, sigma}, UnitSystem{}),
        grid_(make_linear_density({.seed = seed, .fixed_amplitudes = true}, power_, kBox, side_)) {
    grid_.to_points();
  }

  double power(double k) const { return power_(k / kBox) / (kBox * kBox * kBox); }

  // The lattice's points, of masses 1 + amplitude delta.
  std::vector<SourceParticle> weighted(double amplitude = 1) const {
    std::vector<SourceParticle> all;
    for_sites([&](const SourceParticle& p, double delta) {
      all.push_back({p.x, p.y, p.z, static_cast<float>(1 + amplitude * delta)});
    });
    return all;
  }

  // So many particles at the lattice's points, at each with a probability that goes with 1 + delta.
  std::vector<SourceParticle> sampled(std::size_t count) const {
    std::vector<SourceParticle> sites;
    std::vector<double> weights;
    for_sites([&](const SourceParticle& p, double delta) {
      sites.push_back(p);
      weights.push_back(std::max(0.0, 1 + delta));
    });
    std::mt19937_64 random(5);
    std::discrete_distribution<std::size_t> site(weights.begin(), weights.end());
    std::vector<SourceParticle> all(count);
    for (SourceParticle& p : all) p = sites[site(random)];
    return all;
  }

 private:
  static constexpr double kBox = 100;  // Mpc/h
  template <class Visit>
  void for_sites(const Visit& visit) const {
    const auto at = [this](int i) { return static_cast<std::uint32_t>(i * kSideToUnits / side_); };
    for (int x = 0; x < side_; ++x)
      for (int y = 0; y < side_; ++y)
        for (int z = 0; z < side_; ++z) visit({at(x), at(y), at(z), 1.0f}, grid_.row(x, y)[z]);
  }

  int side_;
  PowerSpectrum power_;
  PeriodicGrid grid_;
};

// Power spectra beyond the mesh's Nyquist wave number, and of two sets.

constexpr double kPi = std::numbers::pi;

MeshParticles all_of(const test::OnDevice<>& set) { return {set.data(), set.size()}; }

MeasuredPower power_up_to(int highest, int cells, const std::vector<SourceParticle>& set) {
  const test::OnDevice source(set);
  return measure_power_up_to(highest, Communicator::self(), test::test_stream(), all_of(source), {.cells = cells});
}

CrossPower cross_of(const std::vector<SourceParticle>& a, const std::vector<SourceParticle>& b, int highest = 1) {
  const test::OnDevice first(a), second(b);
  return measure_cross_up_to(highest, Communicator::self(), test::test_stream(), {all_of(first), all_of(second)},
                             {.cells = 16});
}

// The mean of the field's P over the modes of a bin, by the bin's number among those of its folding.
std::vector<double> expected_power(const RandomField& field, int cells, int folding) {
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

double expected_at(const RandomField& field, int cells, const PowerBin& bin) {
  return expected_power(field, cells, bin.folding)[static_cast<std::size_t>(bin.k / (2 * kPi * bin.folding) + 0.5)];
}

// Wherever the lattice of the set stands: its particles have few places in a cell, whose weights are rounded alike.
TEST(Foldings, RecoverAKnownSpectrumToFourTimesTheNyquistWaveNumber) {
  const RandomField field(96, -1.5, 0.015);
  std::vector<SourceParticle> set = field.weighted();
  constexpr int kShifts = 8;
  std::vector<double> mean;
  for (int shift = 0; shift < kShifts; ++shift) {
    const MeasuredPower found = power_up_to(4, 16, set);
    EXPECT_NEAR(found.nyquist, 4 * kPi * 16, 1e-9);
    EXPECT_EQ(found.bins.front().folding, 1);
    EXPECT_EQ(found.bins.back().folding, 4);
    EXPECT_GT(found.bins.back().k, 3.8 * kPi * 16);
    mean.resize(found.bins.size());
    for (std::size_t i = 0; i < mean.size(); ++i) {
      const PowerBin& bin = found.bins[i];
      EXPECT_GT(bin.k, i > 0 ? found.bins[i - 1].k : 0.0);
      const double error = bin.power / expected_at(field, 16, bin) - 1;
      EXPECT_LT(std::abs(error), 2e-3) << bin.k / (2 * kPi) << " of folding " << bin.folding;
      mean[i] += error / kShifts;
    }
    for (SourceParticle& p : set) p = {p.x + 14142136u, p.y + 17320508u, p.z + 22360680u, p.mass};
  }
  for (const double error : mean) EXPECT_LT(std::abs(error), 5e-4);
}

// A wave of 2e-4 mean distances on a lattice that stands on the mesh's points, among random displacements as large.
TEST(PowerSpectrum, OfASlightlyDisplacedLatticeIsNotBiased) {
  constexpr int kSide = 32;
  constexpr double kWave = 2e-4 / kSide;
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> dither(-kWave, kWave);
  const auto units = [](double x) { return static_cast<std::uint32_t>(std::llround((x + 1) * kSideToUnits)); };
  std::vector<SourceParticle> set;
  for (int x = 0; x < kSide; ++x)
    for (int i = 0; i < kSide * kSide; ++i) {
      const double at = static_cast<double>(x) / kSide;
      set.push_back({units(at + kWave * std::sin(2 * kPi * at) + dither(random)),
                     units(static_cast<double>(i / kSide) / kSide), units(static_cast<double>(i % kSide) / kSide), 1});
    }
  const PowerBin first = power_up_to(1, kSide, set).bins.front();
  const double expected = std::pow(kPi * kWave, 2) * 2;  // of k and -k
  EXPECT_NEAR(first.power * static_cast<double>(first.modes) / expected, 1, 0.01);
}

TEST(Foldings, ShotNoiseIsApart) {
  const RandomField field(96, -1.5, 0.025);
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
  const auto set = RandomField(96, -1.5, 0.025).sampled(300000);
  const MeasuredPower small = power_up_to(2, 32, set), large = power_up_to(1, 64, set);
  for (std::size_t b = 0; b < small.bins.size(); ++b) {
    const PowerBin& bin = small.bins[b];
    if (bin.folding > 1) continue;
    EXPECT_NEAR(bin.k, large.bins[b].k, 1e-12 * bin.k);
    EXPECT_EQ(bin.modes, large.bins[b].modes);
    EXPECT_LT(std::abs(bin.power / large.bins[b].power - 1), 1e-3);
  }
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
  const RandomField field(32, -1, 0.01);
  const CrossPower found = cross_of(field.weighted(1), field.weighted(2), 2);
  EXPECT_EQ(found.bins.back().folding, 2);
  for (const CrossBin& bin : found.bins) {
    EXPECT_NEAR(bin.second / bin.first, 4, 1e-4);
    EXPECT_NEAR(bin.cross / bin.first, 2, 1e-4);
    EXPECT_NEAR(bin.correlation(), 1, 1e-5);
  }
}

TEST(CrossPower, OfOppositeAndOfIndependentFields) {
  const RandomField one(32, -1, 0.01), other(32, -1, 0.01, 2);
  for (const CrossBin& bin : cross_of(one.weighted(1), one.weighted(-1)).bins) EXPECT_NEAR(bin.correlation(), -1, 1e-5);
  for (const CrossBin& bin : cross_of(one.weighted(), other.weighted()).bins)
    EXPECT_NEAR(bin.correlation(), 0, 4 / std::sqrt(static_cast<double>(bin.modes)));
}

TEST(CrossPower, HasTheSpectraOfBoth) {
  const auto a = RandomField(32, -1, 0.04).sampled(5000), b = RandomField(32, -1, 0.04, 2).sampled(3000);
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

// Bispectra of random particles, and of waves of Lagrangian perturbation theory.

using Wave = std::array<int, 3>;

int squared(const Wave& n) { return n[0] * n[0] + n[1] * n[1] + n[2] * n[2]; }

// The modes of a shell of this width, by BispectrumOptions.
std::vector<Wave> shell(int b, double width) {
  const int most = static_cast<int>((b + 0.5) * width) + 1;
  std::vector<Wave> all;
  for (int x = -most; x <= most; ++x)
    for (int y = -most; y <= most; ++y)
      for (int z = -most; z <= most; ++z)
        if (static_cast<int>(std::sqrt(squared({x, y, z})) / width + 0.5) == b && squared({x, y, z}) > 0)
          all.push_back({x, y, z});
  return all;
}

// Sums over all triangles with a side in `far` and two in shell b.
struct Tree {
  double triangles = 0, bispectrum = 0;
};
Tree tree_of(const std::vector<Wave>& far, int b, double width, const std::function<double(double)>& power) {
  Tree tree;
  const std::vector<Wave> near = shell(b, width);
  for (const Wave& p : far) {
    for (const Wave& q : near) {
      const Wave r = {-p[0] - q[0], -p[1] - q[1], -p[2] - q[2]};
      const int square = squared(r);
      if (square == 0 || static_cast<int>(std::sqrt(square) / width + 0.5) != b) continue;
      const std::array<int, 3> n2 = {squared(p), squared(q), square};
      std::array<double, 3> sides, powers;
      for (std::size_t i = 0; i < 3; ++i) {
        sides[i] = std::sqrt(n2[i]);
        powers[i] = power(sides[i]);
      }
      tree.triangles += 1;
      tree.bispectrum += tree_bispectrum(sides, powers);
    }
  }
  tree.bispectrum /= std::max(1.0, tree.triangles);
  return tree;
}

constexpr double kBox = 500;  // Mpc/h

std::vector<SourceParticle> particles_of(const Snapshot& set) {
  std::vector<SourceParticle> all;
  for (const auto& x : set.positions) {
    const auto at = [](double c) { return static_cast<std::uint32_t>(c / kBox * kSideToUnits); };
    all.push_back({at(x[0]), at(x[1]), at(x[2]), 1.0f});
  }
  return all;
}

MeasuredBispectrum measured(const std::vector<SourceParticle>& set, const BispectrumOptions& options) {
  const test::OnDevice source(set);
  return measure_bispectrum(Communicator::self(), test::test_stream(), all_of(source), options);
}

constexpr double kAmplitude = 0.01;  // |delta_k| of the waves below; third order is 1e-2 of second

// Two linear waves of modes (x, y, 0), at second order.
std::vector<SourceParticle> two_waves(const Wave& first, const Wave& second) {
  const Cosmology cosmology(CosmologyParameters{}, UnitSystem{});
  const CosmologicalIcParameters parameters{.particles_per_side = 64, .box_size = kBox, .redshift = 19};
  PeriodicGrid density(parameters.particles_per_side);
  for (const Wave& n : {first, second})
    for (const int sign : {1, -1})
      density.mode_row(density.index_of(sign * n[0]), density.index_of(sign * n[1]))[0] =
          kAmplitude / cosmology.growth(1 / (1 + parameters.redshift)).d1;
  return particles_of(displace_lattice(density, parameters, cosmology));
}

// 2 F2 P P of two waves, whose sum is the third.
double pair(const Wave& a, const Wave& b) {
  const Wave c = {a[0] + b[0], a[1] + b[1], a[2] + b[2]};
  const double power = kAmplitude * kAmplitude;
  return tree_bispectrum({std::sqrt(squared(a)), std::sqrt(squared(b)), std::sqrt(squared(c))}, {power, power, 0});
}

// The third side is what second order makes of the two others: 12 triples in any order and with opposite signs.
TEST(Bispectrum, OfTwoWavesIsTheirSecondOrder) {
  const Wave a = {8, 0, 0}, b = {-4, 7, 0};
  const TriangleMean found = measured(two_waves(a, b), {.cells = 60}).bins.at(3).equilateral;
  EXPECT_NEAR(found.bispectrum * found.triangles / (12 * pair(a, b)), 1, 0.01);
}

// Of the short wave the long one makes two, whose waves are the sum and the difference.
TEST(Bispectrum, OfALongAndAShortWaveIsTheirSecondOrder) {
  const Wave far = {0, 2, 0}, near = {8, -1, 0}, opposite = {0, -2, 0};
  const TriangleMean found = measured(two_waves(far, near), {.cells = 60}).bins.at(3).squeezed;
  EXPECT_NEAR(found.bispectrum * found.triangles / (4 * (pair(far, near) + pair(opposite, near))), 1, 0.01);
}

TEST(Bispectrum, TrianglesAndTheirMeansAreThoseOfSumsOverModes) {
  const BispectrumOptions options{.cells = 64, .width = 3};
  const MeasuredBispectrum found = measured(testing::random_set(300, 9, 1), options);
  const std::function<double(double)> power = [](double n) { return 1 / std::sqrt(n); };
  const std::vector<Wave> far = shell(1, options.width);
  const WaveShell far_shell{0.5 * options.width, 1.5 * options.width};
  for (int b = 2; b <= 6; ++b) {
    const BispectrumBin& bin = found.bins[static_cast<std::size_t>(b - 1)];
    const Tree eq = tree_of(shell(b, options.width), b, options.width, power),
               sq = tree_of(far, b, options.width, power);
    EXPECT_NEAR(bin.equilateral.triangles / eq.triangles, 1, 1e-4) << b;
    EXPECT_NEAR(bin.squeezed.triangles / sq.triangles, 1, 1e-4) << b;
    // The mean over shells that maki bispectrum writes beside the measured one.
    const WaveShell near{bin.begin / (2 * kPi), bin.end / (2 * kPi)};
    EXPECT_NEAR(mean_tree_bispectrum(power, {near, near, near}, 1) / eq.bispectrum, 1, 0.02) << b;
    EXPECT_NEAR(mean_tree_bispectrum(power, {far_shell, near, near}, 1) / sq.bispectrum, 1, 0.02) << b;
  }
}

TEST(Bispectrum, OfOneParticleIsOne) {
  for (const BispectrumBin& bin : measured({{123456789, 987654321, 5, 3.0f}}, {.cells = 32}).bins) {
    EXPECT_NEAR(bin.power, 1, 1e-3);
    for (const TriangleMean& mean : {bin.equilateral, bin.squeezed}) {
      EXPECT_NEAR(mean.bispectrum, 1, 2e-3);
      EXPECT_NEAR(mean.shot_noise, 1, 2e-3);
    }
  }
}

TEST(Bispectrum, OfRandomParticlesIsShotNoise) {
  auto set = testing::random_set(300, 9, 1);
  for (std::size_t i = 0; i < set.size(); i += 2) set[i].mass = 3;
  const MeasuredBispectrum found = measured(set, {.cells = 48});
  ASSERT_EQ(found.bins.size(), 7u);
  double equilateral = 0, squeezed = 0;
  for (const BispectrumBin& bin : found.bins) {
    equilateral += bin.equilateral.bispectrum / bin.equilateral.shot_noise / 7;
    squeezed += bin.squeezed.bispectrum / bin.squeezed.shot_noise / 7;
  }
  EXPECT_NEAR(equilateral, 1, 0.25);
  EXPECT_NEAR(squeezed, 1, 0.25);
}

TEST(Bispectrum, RefusesShellsThatAreNotThere) {
  const test::OnDevice source({{0, 0, 0, 1.0f}, {5, 5, 5, 1.0f}});
  const auto measure = [&](const BispectrumOptions& options) {
    return measure_bispectrum(Communicator::self(), test::test_stream(), all_of(source), options);
  };
  EXPECT_THROW(measure({.cells = 8, .width = 4}), Error);
  EXPECT_THROW(measure({.cells = 32, .long_shell = 20}), Error);
  EXPECT_THROW(measure({.cells = 33}), Error);
}

TEST(TreeBispectrum, OfEquilateralTrianglesIsFourSeventhsReduced) {
  const double p = 2.5;
  EXPECT_NEAR(tree_bispectrum({1, 1, 1}, {p, p, p}) / (3 * p * p), 4.0 / 7, 1e-12);
  // A line, k3 = k1 + k2: F2 = 1 + (k1/k2 + k2/k1)/2 for the pair along it, by hand for 1, 1, 2.
  EXPECT_NEAR(tree_bispectrum({1, 1, 2}, {p, p, 0}), 2 * 2 * p * p, 1e-12);
}

}  // namespace
}  // namespace maki
