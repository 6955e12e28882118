#include "src/cosmology/cosmology.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/error.hpp"

namespace maki {
namespace {

constexpr Background kEinsteinDeSitter = {.omega0 = 1, .omega_lambda = 0};

Background flat_lambda(double omega0) { return {.omega0 = omega0, .omega_lambda = 1 - omega0}; }

// Growing mode of a flat universe, -> a early on: a 2F1(1/3, 1; 11/6; -a^3 OmegaLambda/Omega0), as the series that
// Pfaff's transformation gives (its argument stays below 1).
double flat_growing_mode(double a, double omega0) {
  const double x = a * a * a * (1 - omega0) / omega0;
  const double z = x / (1 + x);
  double term = 1, sum = 1;
  for (int n = 0; n < 2000; ++n) {
    term *= (1.5 + n) * (1.0 + n) / ((11.0 / 6 + n) * (1.0 + n)) * z;
    sum += term;
  }
  return a * sum / (1 + x);
}

TEST(Cosmology, HubbleConstantFollowsTheUnits) {
  Background p;
  EXPECT_NEAR(Cosmology(p, UnitSystem{}).hubble(1), 100, 1e-10);
  const UnitSystem kpc{.length_cgs = kMpcCgs / 1000};
  EXPECT_NEAR(Cosmology(p, kpc).hubble(1), 0.1, 1e-13);
  const UnitSystem without_h{.with_h = false};
  EXPECT_NEAR(Cosmology(p, without_h).hubble(1), 67.8, 1e-10);
  // 27.75 x 1e10 Msun/h/(Mpc/h)^3, the critical density.
  EXPECT_NEAR(Cosmology(p, UnitSystem{}).mean_density() / p.omega0, 27.75, 0.01);
}

TEST(Cosmology, TimeFactorsInEinsteinDeSitter) {
  const Cosmology c(kEinsteinDeSitter, UnitSystem{});
  const double pairs[][2] = {{0.02, 1}, {0.5, 0.5001}, {1, 0.1}, {0.01, 0.0100001}};
  for (const auto& [from, to] : pairs) {
    const double kick = 2 / c.hubble(1) * (std::sqrt(to) - std::sqrt(from));
    const double drift = 2 / c.hubble(1) * (1 / std::sqrt(from) - 1 / std::sqrt(to));
    const double time = 2 / (3 * c.hubble(1)) * (std::pow(to, 1.5) - std::pow(from, 1.5));
    // Closed forms of short intervals lose digits to cancellation, hence the wider bound there.
    const double tolerance = std::abs(to / from - 1) < 1e-3 ? 1e-9 : 1e-11;
    EXPECT_NEAR(c.kick_factor(from, to) / kick, 1, tolerance);
    EXPECT_NEAR(c.drift_factor(from, to) / drift, 1, tolerance);
    EXPECT_NEAR(c.time_between(from, to) / time, 1, tolerance);
  }
}

// d1 and the growing mode's momentum a^2 H f1 d1 are the integrals of each other: p' = 3/2 Omega_0 H_0^2 d1 / a.
TEST(Cosmology, GrowingFactorsIntegrateTheGrowingMode) {
  for (const Background& p : {kEinsteinDeSitter, flat_lambda(0.3)}) {
    const Cosmology c(p, UnitSystem{});
    const auto momentum = [&](double a) { return a * a * c.hubble(a) * c.growth(a).f1 * c.growth(a).d1; };
    for (const auto [from, to, at] :
         {std::array{0.02, 0.03, 0.02}, std::array{0.5, 0.4, 0.45}, std::array{0.9, 3.0, 1.0}}) {
      const double drifted = momentum(at) * c.growing_drift_factor(from, to, at);
      EXPECT_NEAR(drifted / (c.growth(to).d1 - c.growth(from).d1), 1, 1e-6);
      const double kicked =
          1.5 * p.omega0 * c.hubble(1) * c.hubble(1) * c.growth(at).d1 * c.growing_kick_factor(from, to, at);
      EXPECT_NEAR(kicked / (momentum(to) - momentum(from)), 1, 1e-6);
    }
    // Of a short step they are the plain ones.
    EXPECT_NEAR(c.growing_kick_factor(0.3, 0.3003, 0.30015) / c.kick_factor(0.3, 0.3003), 1, 1e-6);
    EXPECT_NEAR(c.growing_drift_factor(0.3, 0.3003, 0.30015) / c.drift_factor(0.3, 0.3003), 1, 1e-6);
  }
}

TEST(Cosmology, AgeOfAFlatUniverse) {
  const Cosmology c(flat_lambda(0.3), UnitSystem{});
  const auto age = [](double a) { return 2 / (3 * std::sqrt(0.7)) * std::asinh(std::sqrt(0.7 / 0.3 * a * a * a)); };
  EXPECT_NEAR(c.time_between(0.02, 1) * c.hubble(1) / (age(1) - age(0.02)), 1, 1e-11);
}

TEST(Cosmology, GrowthInEinsteinDeSitterIsTheScaleFactor) {
  const Cosmology c(kEinsteinDeSitter, UnitSystem{});
  for (double a : {1e-3, 0.02, 0.5, 1.0, 2.0}) {
    const Growth g = c.growth(a);
    EXPECT_NEAR(g.d1 / a, 1, 1e-12);
    EXPECT_NEAR(g.f1, 1, 1e-12);
    EXPECT_NEAR(g.d2 / (-3.0 / 7 * a * a), 1, 1e-12);
    EXPECT_NEAR(g.f2, 2, 1e-12);
  }
}

TEST(Cosmology, GrowthInAFlatUniverseIsTheHypergeometricFunction) {
  const Cosmology c(flat_lambda(0.3), UnitSystem{});
  for (double a : {1e-3, 0.02, 0.1, 0.5, 1.0}) {
    EXPECT_NEAR(c.growth(a).d1 * flat_growing_mode(1, 0.3) / flat_growing_mode(a, 0.3), 1, 1e-8) << a;
    const double h = 1e-4;
    const double slope = std::log(flat_growing_mode(a * std::exp(h), 0.3) / flat_growing_mode(a * std::exp(-h), 0.3));
    EXPECT_NEAR(c.growth(a).f1, slope / (2 * h), 1e-7) << a;
  }
}

// Open universe without Lambda (Peebles 1980, eq. 11.16); dark energy with w = -1/3 expands like curvature.
TEST(Cosmology, GrowthInAnOpenUniverse) {
  const auto mode = [](double a) {
    const double x = a * 0.7 / 0.3, r = std::sqrt(1 + x);
    return 1 + 3 / x + 3 * r / std::pow(x, 1.5) * std::log(r - std::sqrt(x));
  };
  for (const Background& p :
       {Background{.omega0 = 0.3, .omega_lambda = 0}, Background{.omega0 = 0.3, .omega_lambda = 0.7, .w0 = -1.0 / 3}}) {
    const Cosmology c(p, UnitSystem{});
    for (double a : {0.05, 0.3, 0.8})
      EXPECT_NEAR(c.growth(a).d1 * mode(1) / mode(a), 1, 1e-8) << a << p.beyond_lambda();
  }
}

// Of all kinds of density at once.
Background general() { return {.omega0 = 0.3, .omega_lambda = 0.6, .omega_radiation = 2e-3, .w0 = -0.8, .wa = -0.7}; }

TEST(Cosmology, SlopeOfTheExpansionIsItsDerivative) {
  const Cosmology c(general(), UnitSystem{});
  EXPECT_NEAR(c.expansion(1), 1, 1e-15);
  for (double a : {1e-4, 0.01, 0.3, 1.0, 2.0}) {
    const double h = 1e-4, change = std::log(c.expansion(a * std::exp(h)) / c.expansion(a * std::exp(-h)));
    EXPECT_NEAR(c.log_hubble_slope(a), change / (2 * h), 1e-7) << a;
  }
  EXPECT_NEAR(general().dark_energy(0.5), std::pow(0.5, -3 * (1 - 1.5)) * std::exp(3 * 0.7 * 0.5), 1e-14);
}

// Meszaros 1974: d1 ~ a + 2/3 a_eq.
TEST(Cosmology, GrowthWithRadiation) {
  const Cosmology c({.omega0 = 0.998, .omega_lambda = 0, .omega_radiation = 2e-3}, UnitSystem{});
  const double offset = 2.0 / 3 * 2e-3 / 0.998;
  for (double a : {1e-8, 1e-5, 1e-3, 0.02, 0.5, 1.0}) {
    const Growth g = c.growth(a);
    EXPECT_NEAR(g.d1 * (1 + offset) / (a + offset), 1, 1e-10) << a;
    EXPECT_NEAR(g.f1 * (a + offset) / a, 1, 1e-10) << a;
  }
  EXPECT_NEAR(c.growth(1e-8).d2 / -(2.0 / 3 * 1e-8 * 2e-3 / 0.998) * (1 + offset) * (1 + offset), 1, 1e-4);
}

TEST(Cosmology, SecondOrderGrowthObeysItsEquation) {
  for (const Background& p : {flat_lambda(0.25), general()}) {
    const Cosmology c(p, UnitSystem{});
    for (double a : {0.05, 0.4, 1.0}) {
      const double h = 0.01;
      const Growth g = c.growth(a), before = c.growth(a * std::exp(-h)), after = c.growth(a * std::exp(h));
      const double first = (after.d2 - before.d2) / (2 * h);
      const double second = (after.d2 - 2 * g.d2 + before.d2) / (h * h);
      const double om = c.omega_matter(a);
      const double left = second + (2 + c.log_hubble_slope(a)) * first - 1.5 * om * g.d2;
      EXPECT_NEAR(left / (-1.5 * om * g.d1 * g.d1), 1, 2e-4) << a;
      EXPECT_NEAR(g.f2, first / g.d2, 2e-4) << a;
      // The usual fits (Bouchet et al. 1995), good to a few parts in a thousand.
      if (p.omega_radiation > 0) continue;
      EXPECT_NEAR(g.d2 / (-3.0 / 7 * g.d1 * g.d1 * std::pow(om, -1.0 / 143)), 1, 1e-3) << a;
      EXPECT_NEAR(g.f2 / (2 * std::pow(om, 6.0 / 11)), 1, 6e-3) << a;
    }
  }
}

TEST(Cosmology, RefusesImpossibleUniverses) {
  EXPECT_THROW(Cosmology({.omega0 = 0}, UnitSystem{}), Error);
  EXPECT_THROW(Cosmology({.omega0 = 0.1, .omega_lambda = 2.5}, UnitSystem{}), Error);
  // H^2 is below 0 by 2e-5 in a narrow range about a = 0.444.
  EXPECT_THROW(Cosmology({.omega0 = 0.3, .omega_lambda = 1.7134664028734554}, UnitSystem{}), Error);
  EXPECT_THROW(Cosmology({.omega_radiation = -1e-4}, UnitSystem{}), Error);
  EXPECT_THROW(Cosmology({.w0 = -0.9, .wa = 0.6}, UnitSystem{}), Error);
  EXPECT_THROW(Cosmology({.w0 = -HUGE_VAL}, UnitSystem{}), Error);
  EXPECT_THROW(Cosmology({.omega0 = 0.065, .omega_lambda = 1.098396473825844, .w0 = -2}, UnitSystem{}), Error);
  const Cosmology closed({.omega0 = 1.5, .omega_lambda = 0}, UnitSystem{});  // turns around at a = 3
  EXPECT_NO_THROW(closed.require_expansion(0.1, 2.999));
  EXPECT_THROW(closed.require_expansion(0.1, 3.001), Error);
}

TEST(Timeline, ComovingStepsInTheLogarithmOfTheScaleFactor) {
  const Background p = flat_lambda(0.3);
  const Timeline t = Timeline::comoving(p, UnitSystem{});
  const Cosmology c(p, UnitSystem{});
  const double t0 = std::log(0.02), t1 = 0;
  EXPECT_TRUE(t.is_comoving());
  EXPECT_NEAR(t.scale_factor(t0), 0.02, 1e-15);
  EXPECT_NEAR(t.kick_factor(t0, t1) / c.kick_factor(0.02, 1), 1, 1e-12);
  EXPECT_NEAR(t.drift_factor(t0, t1) / c.drift_factor(0.02, 1), 1, 1e-12);
  EXPECT_NEAR(t.hubble(t1), 100, 1e-10);
  // Factors of adjoining intervals add up.
  EXPECT_NEAR(t.kick_factor(t0, -1) + t.kick_factor(-1, t1), t.kick_factor(t0, t1), 1e-12 * t.kick_factor(t0, t1));
}

TEST(Timeline, NewtonianTimeIsTime) {
  const Timeline t = Timeline::newtonian();
  EXPECT_FALSE(t.is_comoving());
  EXPECT_EQ(t.scale_factor(7), 1);
  EXPECT_EQ(t.kick_factor(1, 3.5), 2.5);
  EXPECT_EQ(t.drift_factor(1, 3.5), 2.5);
  EXPECT_EQ(t.physical_time(1, 3.5), 2.5);
  EXPECT_EQ(t.hubble(3), 0);
  EXPECT_THROW(t.cosmology(), std::logic_error);
}

}  // namespace
}  // namespace maki
