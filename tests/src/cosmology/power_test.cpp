// Spectra of the linear theory, HALOFIT, and the mass function.
#include "src/cosmology/power.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <fstream>
#include <numbers>
#include <sstream>
#include <string>

#include "kernels/error.hpp"
#include "src/cosmology/cosmology.hpp"
#include "src/cosmology/nonlinear.hpp"
#include "tests/src/io/io_helpers.hpp"

namespace maki {
namespace {

CosmologyParameters planck() {
  return {{.omega0 = 0.3089, .omega_lambda = 0.6911, .omega_baryon = 0.0486, .hubble = 0.6774}, 0.8159, 0.9667};
}

struct TableFile {
  explicit TableFile(const std::string& text) { std::ofstream(path) << text; }
  test::TempDir folder;
  std::string path = folder / "table.txt";
};

// P(k)/sigma8^2 of CAMB 2.0.5, massless neutrinos, for planck(): the fit promises a few per cent.
constexpr double kCamb[][2] = {{0.002, 10823.102}, {0.005, 22518.917}, {0.01, 33302.464}, {0.02, 36410.519},
                               {0.05, 18640.241},  {0.07, 14561.760},  {0.1, 8265.7325},  {0.13, 6140.2643},
                               {0.2, 2958.1530},   {0.5, 475.23282},   {1, 102.38363},    {2, 19.844859},
                               {5, 2.0238236},     {10, 0.33800676}};

TEST(Power, EisensteinHuFollowsABoltzmannCode) {
  const CosmologyParameters p = planck();
  const PowerSpectrum wiggles({.model = PowerModel::kEisensteinHu}, p, UnitSystem{});
  const PowerSpectrum smooth({.model = PowerModel::kEisensteinHuNoWiggle}, p, UnitSystem{});
  for (const auto& [k, expected] : kCamb) {
    EXPECT_NEAR(wiggles(k) / (expected * p.sigma8 * p.sigma8), 1, 0.035) << k;
    EXPECT_NEAR(smooth(k) / (expected * p.sigma8 * p.sigma8), 1, 0.07) << k;
  }
}

TEST(Power, TransferFunctionLimits) {
  CosmologyParameters p = planck();
  EXPECT_NEAR(EisensteinHuTransfer(p)(1e-6), 1, 1e-5);
  EXPECT_NEAR(NoWiggleTransfer(p)(1e-6), 1, 1e-5);
  // Their eq. 26, a fit to eq. 6 good to 2 %.
  const double om = p.omega0 * p.hubble * p.hubble, ob = p.omega_baryon * p.hubble * p.hubble;
  const double fit = 44.5 * std::log(9.83 / om) / std::sqrt(1 + 10 * std::pow(ob, 0.75));
  EXPECT_NEAR(EisensteinHuTransfer(p).sound_horizon() / fit, 1, 0.02);
  // A vanishing share of baryons changes nothing, and the slope at large k is that of ln(k)/k^2.
  CosmologyParameters trace = p;
  p.omega_baryon = 0;
  trace.omega_baryon = 1e-7;
  for (double k : {0.01, 0.1, 1.0}) {
    EXPECT_NEAR(EisensteinHuTransfer(trace)(k) / EisensteinHuTransfer(p)(k), 1, 1e-4);
    EXPECT_NEAR(NoWiggleTransfer(p)(k) / EisensteinHuTransfer(p)(k), 1, 0.06);
  }
  const EisensteinHuTransfer dark(p);
  EXPECT_NEAR(std::log(dark(2e4) / dark(1e4)) / std::log(2.0), -2, 0.1);
}

TEST(Power, AmplitudeIsSigma8) {
  const CosmologyParameters p = planck();
  for (PowerModel model : {PowerModel::kEisensteinHu, PowerModel::kEisensteinHuNoWiggle, PowerModel::kPowerLaw})
    EXPECT_NEAR(PowerSpectrum({.model = model}, p, UnitSystem{}).sigma(8), p.sigma8, 1e-12);
}

// sigma^2 of P = k^n in top-hat spheres, by Weber and Schafheitlin's integral of J_3/2 squared over a power.
double closed_variance(double n, double radius) {
  const double integral =
      std::exp(std::lgamma(1 - n) + std::lgamma((n + 3) / 2) - 2 * std::lgamma(1 - n / 2) - std::lgamma((5 - n) / 2)) *
      std::pow(2, n - 1);
  return 9 * M_PI / 2 * integral / std::pow(radius, n + 3) / (2 * M_PI * M_PI);
}

TEST(Power, AmplitudeOfAPowerLawIsThatOfTheClosedForm) {
  const CosmologyParameters p = planck();
  for (const double n : {-2.99, -2.9, -2.5, -2.0, -1.0, 0.0, 0.5, 0.9, 0.99}) {
    const PowerSpectrum power({.model = PowerModel::kPowerLaw, .power_law_index = n}, p, UnitSystem{});
    EXPECT_NEAR(power(1) * closed_variance(n, 8) / (p.sigma8 * p.sigma8), 1, 1e-6) << n;
    EXPECT_NEAR(power(2) / power(1), std::pow(2, n), 1e-12) << n;
    for (const double radius : {1e-4, 1.0, 1e4})
      EXPECT_NEAR(power.sigma(radius) / p.sigma8, std::pow(radius / 8, -(n + 3) / 2), 1e-6 * power.sigma(radius)) << n;
  }
}

// Their ends go on as power laws, which may hold most of sigma8 or all of it.
TEST(Power, AmplitudeOfATableCountsWhatLiesBeyondIt) {
  for (const double n : {-2.9, -1.0, 0.9}) {
    std::ostringstream text;
    text.precision(17);
    for (double k = 0.01; k < 4; k *= 1.5) text << k << ' ' << std::pow(k, n) << '\n';
    const TableFile file(text.str());
    const PowerSpectrum power({.model = PowerModel::kTable, .table_file = file.path}, planck(), UnitSystem{});
    EXPECT_NEAR(power(1) * closed_variance(n, 8) / (0.8159 * 0.8159), 1, 1e-6) << n;
  }
}

// Far from 8 Mpc/h: spheres beyond the horizon, where sigma goes as R^-(3 + n_s)/2, and spheres far below it.
TEST(Power, EisensteinHuVarianceIsThatOfAllWaves) {
  CosmologyParameters p = planck();
  const PowerSpectrum power({}, p, UnitSystem{});
  p.n_s = 0;
  const PowerSpectrum flat({}, p, UnitSystem{});
  EXPECT_NEAR(std::log(flat.sigma(2e6) / flat.sigma(1e6)) / std::log(2), -1.5, 1e-3);
  double sum = 0;  // trapezoids in ln k, at R = 0.001
  const double step = 1e-3;
  for (double log_k = std::log(1e-5); log_k < std::log(1e6); log_k += step) {
    const double k = std::exp(log_k), x = 1e-3 * k;
    const double w = x < 0.02 ? 1 - x * x / 10 : 3 * (std::sin(x) - x * std::cos(x)) / (x * x * x);
    sum += k * k * k * power(k) * w * w * step / (2 * M_PI * M_PI);
  }
  EXPECT_NEAR(power.sigma(1e-3) / std::sqrt(sum), 1, 1e-5);
}

TEST(Power, FollowsTheUnits) {
  const CosmologyParameters p = planck();
  const UnitSystem kpc{.length_cgs = kMpcCgs / 1000};
  const UnitSystem without_h{.with_h = false};
  const PowerSpectrum in_mpc({}, p, UnitSystem{}), in_kpc({}, p, kpc), no_h({}, p, without_h);
  EXPECT_NEAR(in_kpc(1e-4) / (in_mpc(0.1) * 1e9), 1, 1e-12);
  EXPECT_NEAR(no_h(0.1 * p.hubble) * std::pow(p.hubble, 3) / in_mpc(0.1), 1, 1e-12);
  EXPECT_NEAR(in_kpc.sigma(8000), p.sigma8, 1e-12);
  EXPECT_NEAR(no_h.sigma(8 / p.hubble), p.sigma8, 1e-12);
}

TEST(Power, TableGivesBackTheSpectrumBehindIt) {
  CosmologyParameters p = planck();
  const PowerSpectrum source({}, p, UnitSystem{});
  std::string text = "# k (h/Mpc)  P (Mpc/h)^3\n\n";
  for (int i = 400; i >= 0; --i) {  // falling k: the order is free
    const double k = 1e-3 * std::pow(10, i * 0.01);
    text += std::to_string(k * 1e6) + "e-6 " + std::to_string(3 * source(k)) + " 17 # more columns and comments\n";
  }
  const TableFile written(text);
  const std::string& file = written.path;
  const PowerSpectrum table({.model = PowerModel::kTable, .table_file = file}, p, UnitSystem{});
  for (double k : {0.0012, 0.017, 0.073, 0.5, 3.3}) EXPECT_NEAR(table(k) / source(k), 1, 1e-3) << k;
  EXPECT_NEAR(table(20) / source(20), 1, 0.05);  // beyond its end, with the slope of its end
  p.sigma8 = 0;
  const PowerSpectrum as_it_stands({.model = PowerModel::kTable, .table_file = file}, p, UnitSystem{});
  EXPECT_NEAR(as_it_stands(0.1) / source(0.1), 3, 1e-3);
  const PowerSpectrum early({.model = PowerModel::kTable, .table_file = file, .table_redshift = 49}, p, UnitSystem{});
  const double growth = Cosmology(p, UnitSystem{}).growth(1.0 / 50).d1;
  EXPECT_NEAR(early(0.1) * growth * growth / source(0.1), 3, 1e-3);
  p.sigma8 = 0.8;
  EXPECT_THROW(PowerSpectrum({.model = PowerModel::kTable, .table_file = file, .table_redshift = 49}, p, UnitSystem{}),
               Error);
}

TEST(Power, RefusesWhatItCannotUse) {
  CosmologyParameters p = planck();
  const auto make = [&](const std::string& file) {
    return PowerSpectrum({.model = PowerModel::kTable, .table_file = file}, p, UnitSystem{});
  };
  EXPECT_THROW(make("/no/such/file"), Error);
  for (const char* text : {"0.1 2\nnonsense\n", "0.01 1.5D+03\n0.1 1.0D+03\n1 1.0D+01\n", "0.1 2 3 4 5 6 7\n",
                           "0.1 2\n0.2 3\n", "0.1 -5\n", "0.01 1\n0.01 1\n", ""})
    EXPECT_THROW(make(TableFile(text).path), Error) << text;
  for (const double n : {-3.1, 1.1}) {  // tables with an infinite sigma8
    std::ostringstream text;
    for (double k = 0.01; k < 4; k *= 1.5) text << k << ' ' << std::pow(k, n) << '\n';
    EXPECT_THROW(make(TableFile(text.str()).path), Error) << n;
  }
  EXPECT_THROW(PowerSpectrum({.model = PowerModel::kPowerLaw, .power_law_index = -3}, p, UnitSystem{}), Error);
  p.sigma8 = 0;
  EXPECT_THROW(PowerSpectrum({}, p, UnitSystem{}), Error);
  p = planck();
  p.omega_baryon = 0.4;
  EXPECT_THROW(PowerSpectrum({}, p, UnitSystem{}), Error);
}

TEST(MassFunction, TinkersParameters) {
  // By hand from their Table 2: 0.186 ((1 / 2.57)^-1.47 + 1) exp(-1.19).
  EXPECT_NEAR(tinker_multiplicity(1, 0), 0.186 * (4.00499 + 1) * 0.304221, 1e-6);
  EXPECT_NEAR(tinker_multiplicity(0.5, 0), 0.186 * (std::pow(0.5 / 2.57, -1.47) + 1) * std::exp(-4.76), 1e-12);
  // At z = 1: A 2^-0.14, a 2^-0.06, b 2^-0.010673.
  const double a = 1.47 * 0.959264, b = 2.57 * 0.992629;
  EXPECT_NEAR(tinker_multiplicity(2, 1), 0.186 * 0.907519 * (std::pow(2 / b, -a) + 1) * std::exp(-1.19 / 4), 2e-6);
}

TEST(MassFunction, OfAPowerLaw) {
  const CosmologyParameters parameters;
  const UnitSystem units;
  const Cosmology cosmology(parameters, units);
  const PowerSpectrum power({.model = PowerModel::kPowerLaw, .power_law_index = -1.5}, parameters, units);
  const double eight = 4 * std::numbers::pi / 3 * 512 * cosmology.mean_density();  // of 8 Mpc/h
  for (const double a : {1.0, 0.4}) {
    const MassFunction function(power, cosmology, a);
    const double growth = cosmology.growth(a).d1;
    EXPECT_NEAR(function.sigma(eight), parameters.sigma8 * growth, 1e-6);
    for (const double mass : {1e2, 1e4}) {
      const double sigma = parameters.sigma8 * growth * std::pow(mass / eight, -0.25);
      EXPECT_NEAR(function.sigma(mass), sigma, 1e-4 * sigma);
      const double expected = tinker_multiplicity(sigma, 1 / a - 1) * cosmology.mean_density() / mass * 0.25;
      EXPECT_NEAR(function(mass), expected, 2e-3 * expected);
    }
  }
}

// Clusters above 1e14 solar masses/h at z = 0: some 2e-5 in a cubic Mpc/h in the universe of Planck.
TEST(MassFunction, OfOurUniverse) {
  const CosmologyParameters parameters;
  const Cosmology cosmology(parameters, {});
  const PowerSpectrum power({}, parameters, {});
  const MassFunction function(power, cosmology, 1);
  double number = 0;
  for (double log_mass = 14.025; log_mass < 16; log_mass += 0.05)
    number += function(std::pow(10, log_mass - 10)) * 0.05 * std::numbers::ln10;
  EXPECT_GT(number, 1.5e-5);
  EXPECT_LT(number, 4e-5);
}

// The mean at tree level is that over the lattice's own triangles where there are few.
TEST(TreeBispectrum, OfTheFirstShellsHasTheTrianglesOfTheLattice) {
  const auto power = [](double k) { return k * std::exp(-k); };
  const double wave = 0.1;
  const WaveShell one{0.9 * wave, 1.1 * wave}, diagonal{1.3 * wave, 1.5 * wave};
  EXPECT_EQ(mean_tree_bispectrum(power, {one, one, one}, wave), 0);  // three axes do not close
  const double k = wave, d = std::sqrt(2) * wave;
  const double right = tree_bispectrum({k, k, d}, {power(k), power(k), power(d)});
  EXPECT_NEAR(mean_tree_bispectrum(power, {one, one, diagonal}, wave) / right, 1, 1e-12);
  // Equilateral ones of the lattice's face diagonals.
  const double equal = tree_bispectrum({d, d, d}, {power(d), power(d), power(d)});
  EXPECT_NEAR(mean_tree_bispectrum(power, {diagonal, diagonal, diagonal}, wave) / equal, 1, 1e-12);
}

// HALOFIT against two other programs, and its limits.

constexpr std::array kWaves = {0.01, 0.1, 0.3, 1.0, 3.0, 10.0};  // h/Mpc

// P of HALOFIT (Takahashi et al. 2012) over linear P for planck(), massless neutrinos, by wave number.
struct Reference {
  double redshift;
  std::array<double, kWaves.size()> hmf;   // hmf 3.5.2, linear P of Eisenstein & Hu
  std::array<double, kWaves.size()> camb;  // CAMB 2.0.5, its own linear P
};
constexpr Reference kReferences[] = {
    {0,
     {0.993444, 1.012481, 1.549620, 6.04082, 19.9956, 41.8585},
     {0.993379, 1.012368, 1.536636, 5.95914, 20.1762, 42.8566}},
    {1,
     {0.997505, 1.004474, 1.226858, 3.23806, 11.4849, 29.2399},
     {0.997465, 1.009995, 1.238522, 3.26228, 11.6439, 29.5314}},
    {3,
     {0.999470, 1.005817, 1.071389, 1.57014, 4.19538, 16.2527},
     {0.999472, 1.007761, 1.079799, 1.60231, 4.35399, 16.8141}},
};

TEST(Halofit, FollowsOtherPrograms) {
  const Cosmology cosmology(planck(), UnitSystem{});
  const PowerSpectrum linear({}, planck(), UnitSystem{});
  for (const Reference& at : kReferences) {
    const double a = 1 / (1 + at.redshift), growth = cosmology.growth(a).d1;
    const HalofitPower power(linear, cosmology, a);
    for (std::size_t i = 0; i < kWaves.size(); ++i) {
      const double ratio = power(kWaves[i]) / (growth * growth * linear(kWaves[i]));
      EXPECT_NEAR(ratio / at.hmf[i], 1, 0.01) << "z = " << at.redshift << ", k = " << kWaves[i];
      EXPECT_NEAR(ratio / at.camb[i], 1, 0.04) << "z = " << at.redshift << ", k = " << kWaves[i];
    }
  }
}

// Ratios of P of HALOFIT over linear P, over that with Lambda, at z = 0: CAMB 2.0.5 with the same sigma8.
TEST(Halofit, FollowsDarkEnergy) {
  struct Case {
    double w0, wa;
    std::array<double, kWaves.size()> camb;
  };
  const auto ratios = [](double w0, double wa) {
    CosmologyParameters p = planck();
    p.w0 = w0, p.wa = wa;
    const PowerSpectrum linear({}, p, UnitSystem{});
    const HalofitPower power(linear, Cosmology(p, UnitSystem{}), 1);
    std::array<double, kWaves.size()> all;
    for (std::size_t i = 0; i < kWaves.size(); ++i) all[i] = power(kWaves[i]) / linear(kWaves[i]);
    return all;
  };
  const auto lambda = ratios(-1, 0);
  for (const Case& c : {Case{-0.8, -0.5, {1.00002, 1.00379, 1.01786, 1.02234, 1.03258, 1.04945}},
                        Case{-1.3, 0.3, {0.99997, 0.99455, 0.97354, 0.96514, 0.95105, 0.92942}}}) {
    const auto dark = ratios(c.w0, c.wa);
    for (std::size_t i = 0; i < kWaves.size(); ++i)
      EXPECT_NEAR(dark[i] / lambda[i] / c.camb[i], 1, 0.002) << c.w0 << " " << kWaves[i];
  }
}

// sigma^2(R) of P = A k^n is A Gamma((n + 3) / 2) / (4 pi^2 R^(n + 3)): n_eff is n, and C is 0.
TEST(Halofit, KnowsTheScaleOfPowerLaws) {
  constexpr double amplitude = 30;
  for (const double n : {-2.5, -1.5, 0.0}) {
    const auto scale = nonlinear_scale([n](double k) { return amplitude * std::pow(k, n); }, 1e-3, 1e3);
    ASSERT_TRUE(scale);
    const double at_one = amplitude * std::tgamma((n + 3) / 2) / (4 * std::numbers::pi * std::numbers::pi);
    EXPECT_NEAR(scale->radius / std::pow(at_one, 1 / (n + 3)), 1, 1e-6) << n;
    EXPECT_NEAR(scale->slope, n, 1e-6);
    EXPECT_NEAR(scale->curvature, 0, 1e-6);
  }
}

TEST(Halofit, IsLinearWhereNothingHasClustered) {
  const Cosmology cosmology(planck(), UnitSystem{});
  const PowerSpectrum linear({}, planck(), UnitSystem{});
  const HalofitPower power(linear, cosmology, 1.0 / 50);
  const double growth = cosmology.growth(1.0 / 50).d1;
  for (const double k : {0.01, 1.0, 100.0}) EXPECT_DOUBLE_EQ(power(k), growth * growth * linear(k));
}

// Smith et al. 2003: more power than in a flat universe of the same matter.
TEST(Halofit, TakesTheExponentsOfOpenUniverses) {
  CosmologyParameters open = planck();
  open.omega0 = 0.3;
  open.omega_lambda = 0;
  CosmologyParameters nearly = open;
  nearly.omega_lambda = 1e-6;
  const auto at = [](const CosmologyParameters& p, double k) {
    const PowerSpectrum linear({}, p, UnitSystem{});
    return HalofitPower(linear, Cosmology(p, UnitSystem{}), 1)(k) / linear(k);
  };
  EXPECT_NEAR(at(open, 3) / at(nearly, 3), 1, 1e-4);
  CosmologyParameters flat = open;
  flat.omega_lambda = 0.7;
  EXPECT_GT(at(open, 3), 1.1 * at(flat, 3));
}

TEST(Halofit, HasTheUnitsOfItsSpectrum) {
  const UnitSystem kpc{.length_cgs = kMpcCgs / 1000};
  const HalofitPower in_mpc(PowerSpectrum({}, planck(), UnitSystem{}), Cosmology(planck(), UnitSystem{}), 1);
  const HalofitPower in_kpc(PowerSpectrum({}, planck(), kpc), Cosmology(planck(), kpc), 1);
  for (const double k : {0.1, 1.0}) EXPECT_NEAR(in_kpc(k / 1000) / 1e9 / in_mpc(k), 1, 1e-9);
}

}  // namespace
}  // namespace maki
