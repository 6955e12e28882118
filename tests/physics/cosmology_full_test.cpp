// Periodic boxes at full length.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tests/physics/cosmology_runs.hpp"

namespace maki {
namespace {

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
    const RunRecord record = run(initial, options, standard_timeline());
    std::printf("32^3, 50 Mpc/h, z = 49 to 0: %llu steps, Layzer-Irvine error %.2e\n",
                static_cast<unsigned long long>(record.result.steps), record.result.worst_energy_error);
    EXPECT_LE(record.result.worst_energy_error, 0.01);
    power[k] = mode_power(record.outputs.back(), kBins);
  }
  double worst = 0;
  for (std::size_t bin = 0; bin < kBins; ++bin) worst = std::max(worst, std::fabs(power[0][bin] / power[1][bin] - 1));
  std::printf("Halving the step changes P(k) at z = 0 by %.2e at most, up to half the Nyquist wave number\n", worst);
  EXPECT_LE(worst, 5e-3);
}

}  // namespace
}  // namespace maki
