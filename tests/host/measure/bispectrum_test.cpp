// Bispectra of random particles, and of Lagrangian perturbation theory against tree level.
#include "host/measure/spectra.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/error.hpp"
#include "kernels/particles/types.hpp"
#include "src/cosmology/nonlinear.hpp"
#include "src/ic/lagrangian.hpp"
#include "tests/host/measure/random_field.hpp"

namespace maki {
namespace {

constexpr double kPi = std::numbers::pi;

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
Tree tree_of(const std::vector<Wave>& far, int b, double width, const std::vector<double>& power_of_square) {
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
        powers[i] = power_of_square[static_cast<std::size_t>(n2[i])];
      }
      tree.triangles += 1;
      tree.bispectrum += tree_bispectrum(sides, powers);
    }
  }
  tree.bispectrum /= std::max(1.0, tree.triangles);
  return tree;
}

constexpr double kBox = 500;  // Mpc/h
constexpr int kCells = 64, kLast = 6;

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
  return measure_bispectrum(Communicator::self(), test::test_stream(), source.all(), options);
}

CosmologicalIcParameters lattice() {
  CosmologicalIcParameters parameters;
  parameters.seed = 3;
  parameters.particles_per_side = 64;
  parameters.box_size = kBox;
  parameters.redshift = 19;
  parameters.fixed_amplitudes = true;
  return parameters;
}

double growth_at(const CosmologicalIcParameters& parameters, const Cosmology& cosmology) {
  return cosmology.growth(1 / (1 + parameters.redshift)).d1;
}

constexpr double kAmplitude = 0.01;  // |delta_k| of the waves below; third order is 1e-2 of second

// Two linear waves of modes (x, y, 0), at second order.
std::vector<SourceParticle> two_waves(const Wave& first, const Wave& second) {
  const Cosmology cosmology(CosmologyParameters{}, UnitSystem{});
  const CosmologicalIcParameters parameters = lattice();
  PeriodicGrid density(parameters.particles_per_side);
  for (const Wave& n : {first, second})
    for (const int sign : {1, -1})
      density.mode_row(density.index_of(sign * n[0]), density.index_of(sign * n[1]))[0] =
          kAmplitude / growth_at(parameters, cosmology);
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

// Means of fields and of those with opposite phases: what is odd in the linear field, and would be the larger part of the
// scatter, cancels.
MeasuredBispectrum of_pairs(const Cosmology& cosmology, const PowerSpectrum& power, const BispectrumOptions& options) {
  constexpr int seeds = 2;
  MeasuredBispectrum mean;
  for (int i = 0; i < 2 * seeds; ++i) {
    CosmologicalIcParameters parameters = lattice();
    parameters.seed = 3 + static_cast<std::uint64_t>(i / 2);
    parameters.flip_phases = i % 2;
    MeasuredBispectrum one = measured(particles_of(make_cosmological_ic(parameters, cosmology, power)), options);
    if (mean.bins.empty()) mean = one;
    for (std::size_t b = 0; b < one.bins.size(); ++b) {
      for (const auto kind : {&BispectrumBin::equilateral, &BispectrumBin::squeezed}) {
        double& sum = (mean.bins[b].*kind).bispectrum;
        sum = (i == 0 ? 0 : sum) + (one.bins[b].*kind).bispectrum / (2 * seeds);
      }
    }
  }
  return mean;
}

TEST(Bispectrum, OfSecondOrderFieldsIsTreeLevel) {
  const Cosmology cosmology(CosmologyParameters{}, UnitSystem{});
  const PowerSpectrum power({.model = PowerModel::kPowerLaw, .power_law_index = 0}, CosmologyParameters{},
                            UnitSystem{});
  const BispectrumOptions options{.cells = kCells, .width = 3};
  const MeasuredBispectrum found = of_pairs(cosmology, power, options);
  const double growth = growth_at(lattice(), cosmology), wave = 2 * kPi / kBox;
  const std::function<double(double)> of = [&](double n) {
    return growth * growth * power(wave * n) / (kBox * kBox * kBox);
  };
  std::vector<double> powers(1000);
  for (std::size_t n2 = 1; n2 < powers.size(); ++n2) powers[n2] = of(std::sqrt(static_cast<double>(n2)));
  const std::vector<Wave> far = shell(1, options.width);
  const WaveShell far_shell{0.5 * options.width, 1.5 * options.width};
  double equilateral = 0, squeezed = 0;
  for (int b = 2; b <= kLast; ++b) {
    const BispectrumBin& bin = found.bins[static_cast<std::size_t>(b - 1)];
    const Tree eq = tree_of(shell(b, options.width), b, options.width, powers),
               sq = tree_of(far, b, options.width, powers);
    EXPECT_NEAR(bin.equilateral.triangles / eq.triangles, 1, 1e-4) << b;
    EXPECT_NEAR(bin.squeezed.triangles / sq.triangles, 1, 1e-4) << b;
    const double eq_ratio = bin.equilateral.bispectrum / eq.bispectrum,
                 sq_ratio = bin.squeezed.bispectrum / sq.bispectrum;
    std::printf("  n = %2g: equilateral %.3f, squeezed %.3f of tree level\n", b * options.width, eq_ratio, sq_ratio);
    equilateral += eq_ratio / (kLast - 1);
    squeezed += sq_ratio / (kLast - 1);
    // The mean over shells that maki bispectrum writes beside the measured one.
    const WaveShell near{bin.begin / (2 * kPi), bin.end / (2 * kPi)};
    EXPECT_NEAR(mean_tree_bispectrum(of, {near, near, near}, 1) / eq.bispectrum, 1, 0.02) << b;
    EXPECT_NEAR(mean_tree_bispectrum(of, {far_shell, near, near}, 1) / sq.bispectrum, 1, 0.02) << b;
  }
  EXPECT_NEAR(equilateral, 1, 0.1);
  EXPECT_NEAR(squeezed, 1, 0.1);
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
  std::mt19937 random(9);
  std::vector<SourceParticle> set(300);
  for (SourceParticle& p : set) {
    const auto any = [&] { return static_cast<std::uint32_t>(random()); };
    p = {any(), any(), any(), random() % 2 ? 1.0f : 3.0f};
  }
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
    return measure_bispectrum(Communicator::self(), test::test_stream(), source.all(), options);
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
