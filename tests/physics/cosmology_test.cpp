// Periodic boxes with known solutions: quick versions, and at full length.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "kernels/device/device.hpp"
#include "src/ic/lagrangian.hpp"
#include "tests/physics/physics_runs.hpp"

namespace maki {
namespace {

using testing::Ends;
using testing::run_on;

// Runs of periodic boxes; each returns how far it strayed from the known solution.
struct PancakeErrors {
  double position = 0;    // rms along the wave, over the rms displacement from the lattice
  double velocity = 0;    // rms along the wave, over the rms velocity
  double transverse = 0;  // largest displacement across the wave, in particle spacings
};
struct GrowthErrors {
  // Ratios minus one, by |m| = 1, 2, ... of k = 2 pi m / L.
  std::vector<double> linear;  // power at z = 9 over that at z = 49 times the squared growth factor
  std::vector<double> lpt;     // power at z = 9 over that of 2LPT of the same seed at z = 9
};
constexpr double kSide = 50;

double nearest(double distance) { return distance - kSide * std::round(distance / kSide); }

Snapshot universe(int particles_per_side, double redshift, const CosmologyParameters& cosmology,
                  bool flip_phases = false) {
  const CosmologicalIcParameters parameters = {.particles_per_side = particles_per_side,
                                               .box_size = kSide,
                                               .redshift = redshift,
                                               .flip_phases = flip_phases};
  return make_cosmological_ic(parameters, {cosmology, {}}, PowerSpectrum({}, cosmology, {}));
}

Timeline standard_timeline() { return Timeline::comoving({}, {}); }

// Initial conditions of `particles_per_side`^3 in 50 Mpc/h at z = 49, sigma8 = 0.829.
Snapshot standard_universe(int particles_per_side) { return universe(particles_per_side, 49, {}); }

// A plane wave that collapses at z = 1, from z = 49 to `end_redshift`, against Zel'dovich's exact solution.
PancakeErrors pancake(int particles_per_side, double end_redshift) {
  const Cosmology cosmology({}, {});
  PancakeParameters parameters = {.particles_per_side = particles_per_side, .box_size = kSide};
  const Snapshot initial = make_pancake(parameters, cosmology);
  parameters.redshift = end_redshift;
  const Snapshot exact = make_pancake(parameters, cosmology);

  // Sheets of particles only look smooth to a force that is soft on the scale of their spacing.
  const double spacing = kSide / particles_per_side;
  const Ends record = run_on(initial, box_options(initial, 0.3 * spacing, end_redshift), standard_timeline());
  const Snapshot& end = record.state;
  const auto place = index_by_id(end);
  double x2 = 0, displacement2 = 0, v2 = 0, speed2 = 0, transverse = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const std::size_t j = place.at(exact.ids[i]);
    const auto plane = (exact.ids[i] - 1) / static_cast<std::uint64_t>(particles_per_side * particles_per_side);
    const auto dx = [&](std::size_t axis) { return nearest(end.positions[j][axis] - exact.positions[i][axis]); };
    x2 += std::pow(dx(0), 2);
    displacement2 += std::pow(nearest(exact.positions[i][0] - static_cast<double>(plane) * spacing), 2);
    v2 += std::pow(end.velocities[j][0] - exact.velocities[i][0], 2);
    speed2 += std::pow(exact.velocities[i][0], 2);
    transverse = std::max({transverse, std::fabs(dx(1)), std::fabs(dx(2))});
  }
  return {std::sqrt(x2 / displacement2), std::sqrt(v2 / speed2), transverse / spacing};
}

// 50 Mpc/h from z = 49 to z = 9, twice, the second time with all phases turned by pi. A lattice of particles grows
// slower than a fluid, by about k^2 (0.2 % at 1/16 of the Nyquist wave number), so only the largest modes can be
// compared.
GrowthErrors linear_growth(int particles_per_side, double sigma8, double theta) {
  constexpr int kBins = 2;
  const CosmologyParameters parameters{{}, sigma8};
  const Cosmology cosmology(parameters, {});
  // Power of both members of a pair: what goes with the third power of the contrast drops out.
  std::vector<double> before(kBins), after(kBins), lpt(kBins);
  const auto add = [](std::vector<double>& sum, const Snapshot& snapshot) {
    const std::vector<double> power = mode_power(snapshot, kBins);
    for (std::size_t bin = 0; bin < kBins; ++bin) sum[bin] += power[bin];
  };
  for (const bool flip : {false, true}) {
    const Snapshot initial = universe(particles_per_side, 49, parameters, flip);
    SimulationOptions options = box_options(initial, 0.04 * kSide / particles_per_side, 9);
    options.gravity.theta = options.theta_early = theta;
    options.energy_interval = 0;
    const Ends record = run_on(initial, options, standard_timeline());
    add(before, initial);
    add(after, record.state);
    add(lpt, universe(particles_per_side, 9, parameters, flip));
  }
  const double growth = cosmology.growth(0.1).d1 / cosmology.growth(0.02).d1;
  GrowthErrors errors;
  for (std::size_t bin = 0; bin < kBins; ++bin) {
    errors.linear.push_back(after[bin] / (before[bin] * growth * growth) - 1);
    errors.lpt.push_back(after[bin] / lpt[bin] - 1);
  }
  return errors;
}

TEST(Cosmology, PancakeFollowsTheExactSolution) {
  const PancakeErrors errors = pancake(32, 2);
  EXPECT_LE(errors.position, 0.01);
  EXPECT_LE(errors.velocity, 0.015);
  EXPECT_LE(errors.transverse, 0.05);
}

TEST(Cosmology, SmallPerturbationsGrowLinearly) {
  const GrowthErrors errors = linear_growth(32, 0.02, 0.2);
  EXPECT_LE(std::fabs(errors.linear[0]), 3e-3);
  EXPECT_LE(std::fabs(errors.lpt[0]), 3e-3);
}

TEST(Cosmology, EnergyAndMomentumAreKept) {
  const Snapshot initial = standard_universe(16);
  SimulationOptions options = box_options(initial, 0.04 * 50 / 16, 0, 32);
  options.step_options.eta = 0.1;
  const Ends record = run_on(initial, options, standard_timeline());
  EXPECT_LE(record.result.worst_energy_error, 1e-3);
  EXPECT_LE(record.result.momentum_drift, 1e-4);
  EXPECT_LE(record.steps.back().force_residual, 1e-4);
  EXPECT_LT(record.result.long_steps, record.result.steps);  // the mesh force is taken less often
  EXPECT_EQ(record.state.header.time, 1);
}

// The largest distance along an axis between the same particles of two sets.
double apart(const Snapshot& a, const Snapshot& b) {
  const auto place = index_by_id(b);
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t axis = 0; axis < 3; ++axis)
      worst = std::max(worst, std::fabs(a.positions[i][axis] - b.positions[place.at(a.ids[i])][axis]));
  return worst;
}

TEST(Cosmology, OneAndTwoThreadsAgree) {
  const Snapshot initial = standard_universe(16);
  const SimulationOptions options = box_options(initial, 0.04 * 50 / 16, 9, 32);
  const int threads = thread_count();
  select_device(0, 1);
  const Ends one = run_on(initial, options, standard_timeline());
  select_device(0, 2);
  const Ends two = run_on(initial, options, standard_timeline());
  select_device(0, threads);
  EXPECT_EQ(one.result.steps, two.result.steps);
  EXPECT_LE(apart(one.state, two.state), 1e-5);
}

TEST(Cosmology, ContinuesFromASnapshotOnItsWay) {
  const Snapshot initial = standard_universe(16);
  SimulationOptions options = box_options(initial, 0.1, 19, 32);
  options.outputs = {1.0 / 31};
  const Ends whole = run_on(initial, options, standard_timeline(), {}, {.states = true});
  ASSERT_EQ(whole.states.size(), 2u);
  options.outputs.clear();
  const Ends rest = run_on(whole.states[0], options, standard_timeline());
  // Lists and steps begin afresh: equal to the force error (particles move by 0.2).
  EXPECT_LE(apart(whole.state, rest.state), 0.02);
}

TEST(FullCosmology, PancakeUpToShellCrossing) {
  const PancakeErrors errors = pancake(64, 1.05);
  std::printf("Pancake, 64^3, z_c = 1, at z = 1.05: rms dx %.2e, rms dv %.2e, across the wave %.2e spacings\n",
              errors.position, errors.velocity, errors.transverse);
  EXPECT_LE(errors.position, 0.01);
  EXPECT_LE(errors.velocity, 0.03);
}

TEST(FullCosmology, SmallPerturbationsGrowLinearly) {
  const GrowthErrors errors = linear_growth(64, 0.02, 0.2);
  std::printf("Growth of power, sigma8 = 0.02, z = 49 to 9, 64^3: %+.2e, %+.2e beside linear theory\n",
              errors.linear[0], errors.linear[1]);
  for (const double error : errors.linear) EXPECT_LE(std::fabs(error), 3e-3);
}

TEST(FullCosmology, FullAmplitudeGrowsAsSecondOrderTheory) {
  const GrowthErrors errors = linear_growth(64, 0.829, 0.5);
  std::printf("Growth of power, sigma8 = 0.829, z = 49 to 9, 64^3: %+.2e, %+.2e beside 2LPT\n", errors.lpt[0],
              errors.lpt[1]);
  for (const double error : errors.lpt) EXPECT_LE(std::fabs(error), 5e-3);
}

TEST(FullCosmology, HalvingTheStepKeepsThePowerSpectrum) {
  constexpr int kSideOfParticles = 32;
  constexpr int kBins = kSideOfParticles / 4;  // half the Nyquist wave number
  const Snapshot initial = standard_universe(kSideOfParticles);
  std::vector<double> power[2];
  for (int k = 0; k < 2; ++k) {
    SimulationOptions options = box_options(initial, 0.04 * 50 / kSideOfParticles, 0);
    const double factor = k == 0 ? 1 : 0.5;
    options.step_options.eta *= factor;
    options.step_options.max_dlna *= factor;
    options.step_options.long_dlna *= factor;
    const Ends record = run_on(initial, options, standard_timeline());
    std::printf("32^3, 50 Mpc/h, z = 49 to 0: %llu steps, Layzer-Irvine error %.2e\n",
                static_cast<unsigned long long>(record.result.steps), record.result.worst_energy_error);
    EXPECT_LE(record.result.worst_energy_error, 0.01);
    power[k] = mode_power(record.state, kBins);
  }
  double worst = 0;
  for (std::size_t bin = 0; bin < kBins; ++bin) worst = std::max(worst, std::fabs(power[0][bin] / power[1][bin] - 1));
  std::printf("Halving the step changes P(k) at z = 0 by %.2e at most, up to half the Nyquist wave number\n", worst);
  EXPECT_LE(worst, 5e-3);
}

}  // namespace
}  // namespace maki
