// What a run works out beside its forces: steps, energies, the frame, the moments of a film.
#include "src/simulation/step_criterion.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/error.hpp"
#include "src/cosmology/cosmology.hpp"
#include "src/simulation/film.hpp"
#include "src/simulation/frame.hpp"
#include "src/simulation/simulation.hpp"
#include "src/simulation/totals.hpp"
#include "tests/messages.hpp"
#include "tests/test_stream.hpp"

namespace maki {
namespace {

Timeline einstein_de_sitter() { return Timeline::comoving({.omega0 = 1, .omega_lambda = 0}, UnitSystem{}); }

TEST(StepCriterion, FollowsTheFormula) {
  const StepOptions options = {.eta = 0.03, .max_dlna = 1, .softening = 0.02};
  const StepMeasure measure{5000, 0, 0};
  EXPECT_NEAR(short_step(options, Timeline::newtonian(), 0, measure), 0.03 * std::sqrt(0.02 / 5000), 1e-15);
  // a = 1/4: a^3 under the root, H = 100 a^-1.5 = 800 km/s/(Mpc/h).
  const double t = std::log(0.25);
  EXPECT_NEAR(short_step(options, einstein_de_sitter(), t, measure), 800 * 0.03 * std::sqrt(0.02 / 5000 / 64), 1e-12);
}

TEST(StepCriterion, PhysicalCapShrinksTheSofteningLate) {
  const StepOptions options = {.softening = 0.02, .max_physical_softening = 0.005};
  EXPECT_EQ(softening_at(options, 0.1), 0.02);
  EXPECT_EQ(softening_at(options, 0.25), 0.02);
  EXPECT_EQ(softening_at(options, 1), 0.005);
}

TEST(StepCriterion, LimitsHold) {
  StepOptions options = {.softening = 1};
  EXPECT_EQ(short_step(options, einstein_de_sitter(), -1, {1e-9, 0, 0}), 0.02);
  EXPECT_TRUE(std::isinf(short_step(options, Timeline::newtonian(), 0, {0, 0, 0})));
  options.max_step = 0.003;
  EXPECT_EQ(short_step(options, Timeline::newtonian(), 0, {1e-9, 0, 0}), 0.003);
  options.fixed_step = 0.1;
  EXPECT_EQ(short_step(options, Timeline::newtonian(), 0, {1e9, 0, 0}), 0.1);
}

TEST(StepCriterion, LongStepIsAWholeNumberOfShortOnes) {
  StepOptions options;
  EXPECT_EQ(long_step(options, einstein_de_sitter(), -1, {}, 0.003), 0.003);  // no mesh
  options.r_cut = 1;
  EXPECT_NEAR(long_step(options, einstein_de_sitter(), -1, {}, 0.003), 0.018, 1e-15);
  EXPECT_NEAR(long_step(options, einstein_de_sitter(), -1, {}, 0.02), 0.02, 1e-15);
  EXPECT_NEAR(long_step(options, einstein_de_sitter(), -1, {}, 0.03), 0.03, 1e-15);
  // rms displacement of 0.25 r_cut: at a = 1, dt = 0.25 / 2500, d ln a = 100 dt = 0.01.
  EXPECT_NEAR(long_step(options, einstein_de_sitter(), 0, {0, 0, 2500}, 0.003), 0.009, 1e-15);
  options.max_substeps = 2;
  EXPECT_NEAR(long_step(options, einstein_de_sitter(), -1, {}, 0.003), 0.006, 1e-15);
}

TEST(StepCriterion, DividesWithoutATinyLastStep) {
  EXPECT_EQ(divide_evenly(1, 2, 0), 1);
  EXPECT_EQ(divide_evenly(1, 1, 0), 1);
  EXPECT_NEAR(divide_evenly(1, 0.3, 0), 0.25, 1e-15);
  EXPECT_NEAR(divide_evenly(1, 0.1, 0), 0.1, 1e-15);
  EXPECT_EQ(divide_evenly(1, std::numeric_limits<double>::infinity(), 0), 1);
  EXPECT_EQ(divide_evenly(1, 0.93, kStretch), 1);
  EXPECT_EQ(divide_evenly(1, 0.92, kStretch), 0.5);
  EXPECT_NEAR(divide_evenly(1, 0.32, kStretch), 1.0 / 3, 1e-15);
}

TEST(EnergyTracker, IsolatedErrorIsTheChangeOverTheStart) {
  EnergyTracker tracker(false);
  EXPECT_EQ(tracker.add(1, 0.25, -0.5).error, 0);
  EXPECT_NEAR(tracker.add(1, 0.3, -0.5).error, 0.2, 1e-12);
  tracker.remove(0.05);  // left with an escaper
  EXPECT_NEAR(tracker.add(1, 0.25, -0.5).error, 0.2, 1e-12);
}

TEST(EnergyTracker, IsolatedErrorLeavesOutTheMotionOfTheWhole) {
  EnergyTracker tracker(false);
  tracker.add(1, 0.25 + 8, -0.5, {8});
  EXPECT_NEAR(tracker.add(1, 0.3 + 8, -0.5, {7}).error, 0.2, 1e-12);
  EXPECT_NEAR(tracker.add(1, 0.3 + 9, -0.5, {9, 1}).error, 0.2, 1e-12);  // momenta were rounded up
}

TEST(EnergyTracker, IsolatedWithoutEnergyIsMeasuredAgainstThePotential) {
  EnergyTracker tracker(false);
  tracker.add(1, 0.5, -0.5);
  EXPECT_NEAR(tracker.add(1, 0.6, -0.5).error, 0.2, 1e-12);
}

// Linear growth in an Einstein-de Sitter universe: T ~ a and W = -3/2 T obey d(a(T+W)) = -T da.
TEST(EnergyTracker, LinearGrowthKeepsTheLayzerIrvineIntegral) {
  EnergyTracker tracker(true);
  const auto kinetic = [](double a) { return 7 * a; };
  EnergyReport report = tracker.add(0.02, kinetic(0.02), -1.5 * kinetic(0.02) + 0);
  EXPECT_EQ(report.error, 0);
  for (double a = 0.02; a < 1; a *= 1.04) tracker.add_kinetic(a, kinetic(a));
  // a (T + W) = -T a / 2 = -3.5 a^2; int T da = 3.5 a^2
  report = tracker.add(1, kinetic(1), -1.5 * kinetic(1));
  EXPECT_NEAR(report.integral, 3.5 * (1 - 0.02 * 0.02), 1e-9);
  EXPECT_NEAR(report.error, 0, 1e-9);
  EXPECT_NEAR(tracker.add(1, kinetic(1) * 1.1, -1.5 * kinetic(1)).error, 0.1 / 1.5, 1e-9);
}

Snapshot two_particles(bool comoving) {
  Snapshot snapshot;
  snapshot.header.comoving = comoving;
  snapshot.header.time = comoving ? 0.25 : 3, snapshot.header.box_size = 50;
  snapshot.positions = {{1, 2, 3}, {49, 25, 0}};
  snapshot.velocities = {{100, -200, 300}, {0, 0, 1}};
  snapshot.masses = {1, 2};
  snapshot.ids = {7, 8};
  return snapshot;
}

TEST(Frame, ParticlesGoInAndComeBack) {
  const Stream& stream = test::test_stream();
  for (const bool comoving : {true, false}) {
    const Snapshot before = two_particles(comoving);
    const Frame frame = make_frame(before.header, 50, {25, 25, 25});
    Particles particles;
    load_particles(stream, before, frame, particles);
    // p = a v
    EXPECT_EQ(download_particles(stream, particles).momenta[0][1], comoving ? -50 : -200);
    const OutputState state{0, before.header, stream, particles, frame, {}};
    const Snapshot after = state.snapshot();
    EXPECT_EQ(after.ids, before.ids);
    EXPECT_EQ(after.masses, before.masses);
    EXPECT_EQ(after.velocities, before.velocities);
    for (std::size_t i = 0; i < 2; ++i)
      for (std::size_t axis = 0; axis < 3; ++axis)
        EXPECT_NEAR(after.positions[i][axis], before.positions[i][axis], 1e-12);
  }
}

TEST(Frame, NewtonsConstantIsTheHeadersOrThatOfItsUnits) {
  SnapshotHeader header;
  EXPECT_NEAR(make_frame(header, 1, {}).gravitational_constant, 43.007, 0.01);
  header.gravitational_constant = 1;
  EXPECT_EQ(make_frame(header, 1, {}).gravitational_constant, 1);
}

TEST(Frame, SidesWhoseSquareIsNoNumberAreRefused) {
  for (const double side : {1e-200, 1e200, 0.0})
    EXPECT_THROW(make_frame(two_particles(false).header, side, {0, 0, 0}), Error) << side;
}

TEST(Frame, DoublingKeepsTheMiddle) {
  Frame frame = make_frame(two_particles(false).header, 8, {1, 2, 3});
  EXPECT_EQ(frame.corner, (std::array<double, 3>{-3, -2, -1}));
  double_frame(frame);
  EXPECT_EQ(frame.side, 16);
  EXPECT_EQ(frame.corner, (std::array<double, 3>{-7, -6, -5}));
  EXPECT_EQ(frame.doublings, 1);
}

TEST(Frame, ParticlesOutsideAreNamed) {
  const Stream& stream = test::test_stream();
  Particles particles;
  const Frame small = make_frame(two_particles(true).header, 40, {20, 20, 20});
  test::expect_error([&] { load_particles(stream, two_particles(true), small, particles); }, {"particle 8"});
  EXPECT_THROW(make_frame(two_particles(true).header, 0, {}), Error);
}

TEST(Film, MomentsAreEvenInWhatTheyShouldBe) {
  const Timeline universe = einstein_de_sitter();
  const auto by_a = film_times(5, Cadence::kScaleFactor, universe, 0.2, 1);
  const auto by_log = film_times(5, Cadence::kLogScaleFactor, universe, 0.0625, 1);
  const auto by_time = film_times(5, Cadence::kTime, universe, 0.04, 1);
  for (std::size_t i = 0; i < 5; ++i) {
    const double part = 0.25 * static_cast<double>(i);
    EXPECT_NEAR(by_a[i], 0.2 + 0.8 * part, 1e-12);
    EXPECT_NEAR(by_log[i], std::pow(2, static_cast<double>(i) - 4), 1e-12);
    const double time = 0.008 + 0.992 * part;  // a goes with t^(2/3)
    EXPECT_NEAR(by_time[i], std::pow(time, 2.0 / 3), 1e-6) << i;
  }
}

TEST(Film, OfAnIsolatedSetIsEvenInTime) {
  EXPECT_EQ(film_times(3, Cadence::kLogScaleFactor, Timeline::newtonian(), 0, 8), (std::vector<double>{0, 4, 8}));
  EXPECT_EQ(film_times(1, Cadence::kScaleFactor, Timeline::newtonian(), 0, 8), (std::vector<double>{8}));
  EXPECT_TRUE(film_times(0, Cadence::kTime, Timeline::newtonian(), 0, 8).empty());
}

TEST(Film, TakesPositionsBackAndLeavesTheParticles) {
  const Stream& stream = test::test_stream();
  Particles particles;
  upload_particles(stream, particles, {{0.25, 0.5, 0.01}}, {{1.0f, -2.0f, 4.0f}}, {1.0f}, {7});
  const HostParticles then = download_particles(stream, [&] {
    Particles back = drifted_back(stream, particles, 0.01);
    back.id.resize(back.size());
    back.id.fill_zero(stream);
    return back;
  }());
  EXPECT_NEAR(then.fractions[0][0], 0.24, 1e-7);
  EXPECT_NEAR(then.fractions[0][1], 0.52, 1e-7);
  EXPECT_NEAR(then.fractions[0][2], 0.97, 1e-7) << "around the edge of the box";
  EXPECT_NEAR(download_particles(stream, particles).fractions[0][0], 0.25, 1e-9);
  EXPECT_EQ(download_particles(stream, copy_of(stream, particles)).ids[0], 7u);
}

}  // namespace
}  // namespace maki
