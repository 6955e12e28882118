// Periodic boxes with known solutions: quick versions. cosmology_full_test.cpp holds the long ones.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/device/device.hpp"
#include "kernels/measure/step_reductions.hpp"
#include "src/simulation/frame.hpp"
#include "tests/physics/cosmology_runs.hpp"
#include "tests/test_stream.hpp"

namespace maki {
namespace {

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
  const RunRecord record = run(initial, options, standard_timeline());
  EXPECT_LE(record.result.worst_energy_error, 1e-3);
  EXPECT_LE(record.result.momentum_drift, 1e-4);
  EXPECT_LE(record.steps.back().force_residual, 1e-4);
  EXPECT_LT(record.result.long_steps, record.result.steps);  // the mesh force is taken less often
  EXPECT_EQ(record.outputs.back().header.time, 1);
}

// sum m a of the mesh vanishes mode by mode, up to the rounding of single-precision transforms.
TEST(Cosmology, MeshForceHasNoNetForce) {
  const Stream& stream = test::test_stream();
  const Snapshot initial = standard_universe(16);
  const SimulationOptions options = box_options(initial, 0.1, 0, 32);
  Particles particles;
  load_particles(stream, initial, make_frame(initial.header, options.side, options.centre), particles);
  PhaseTimers timers;
  Gravity gravity(options.gravity, timers);
  gravity.long_range(stream, particles, false);
  const MomentumSums mesh = momentum_sums(stream, particles, gravity.long_acceleration(), nullptr);
  for (const DoubleDouble& force : mesh.force) EXPECT_LE(std::fabs(force.value()), 1e-5 * mesh.force_scale.value());
}

TEST(Cosmology, OneAndTwoThreadsAgree) {
  const Snapshot initial = standard_universe(16);
  const SimulationOptions options = box_options(initial, 0.04 * 50 / 16, 9, 32);
  const int threads = thread_count();
  select_device(0, 1);
  const RunRecord one = run(initial, options, standard_timeline());
  select_device(0, 2);
  const RunRecord two = run(initial, options, standard_timeline());
  select_device(0, threads);
  EXPECT_EQ(one.result.steps, two.result.steps);
  const Snapshot &a = one.outputs.back(), &b = two.outputs.back();
  const auto place = index_by_id(b);
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t axis = 0; axis < 3; ++axis)
      EXPECT_NEAR(a.positions[i][axis], b.positions[place.at(a.ids[i])][axis], 1e-5);
}

TEST(Cosmology, ContinuesFromASnapshotOnItsWay) {
  const Snapshot initial = standard_universe(16);
  SimulationOptions options = box_options(initial, 0.1, 19, 32);
  options.outputs = {1.0 / 31};
  const RunRecord whole = run(initial, options, standard_timeline());
  ASSERT_EQ(whole.outputs.size(), 2u);
  options.outputs.clear();
  const RunRecord rest = run(whole.outputs[0], options, standard_timeline());
  const Snapshot &a = whole.outputs[1], &b = rest.outputs[0];
  const auto place = index_by_id(b);
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t axis = 0; axis < 3; ++axis)
      worst = std::max(worst, std::fabs(a.positions[i][axis] - b.positions[place.at(a.ids[i])][axis]));
  EXPECT_LE(worst, 0.02);  // lists and steps begin afresh: equal to the force error (particles move by 0.2)
}

}  // namespace
}  // namespace maki
