#include "src/simulation/step_criterion.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/src/simulation/einstein_de_sitter.hpp"

namespace maki {
namespace {

using maki::testing::einstein_de_sitter;

TEST(StepCriterion, FollowsTheFormula) {
  StepOptions options;
  options.softening = 0.02;
  options.eta = 0.03;
  options.max_dlna = 1;
  const StepMeasure measure{5000, 0, 0};
  EXPECT_NEAR(short_step(options, Timeline::newtonian(), 0, measure), 0.03 * std::sqrt(0.02 / 5000), 1e-15);
  // a = 1/4: a^3 under the root, H = 100 a^-1.5 = 800 km/s/(Mpc/h).
  const double t = std::log(0.25);
  EXPECT_NEAR(short_step(options, einstein_de_sitter(), t, measure), 800 * 0.03 * std::sqrt(0.02 / 5000 / 64), 1e-12);
}

TEST(StepCriterion, PhysicalCapShrinksTheSofteningLate) {
  StepOptions options;
  options.softening = 0.02;
  options.max_physical_softening = 0.005;
  EXPECT_EQ(softening_at(options, 0.1), 0.02);
  EXPECT_EQ(softening_at(options, 0.25), 0.02);
  EXPECT_EQ(softening_at(options, 1), 0.005);
}

TEST(StepCriterion, LimitsHold) {
  StepOptions options;
  options.softening = 1;
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

}  // namespace
}  // namespace maki
