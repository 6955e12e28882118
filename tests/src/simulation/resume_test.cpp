// A run that goes on from a restart is the run that was never stopped.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/error.hpp"
#include "src/ic/models.hpp"
#include "tests/src/simulation/resumed_runs.hpp"

namespace maki {
namespace {

using test::Case;
using test::End;
using test::expect_same;
using test::Keeper;
using test::resume;
using test::run_whole;
using test::universe;

// From every boundary, before and after outputs and energies, to the same last bit.
TEST(Resume, AUniverseToTheLastBit) {
  const Case c = universe({"gravity.reuse=1"});
  Keeper whole;
  const End end = run_whole(c, whole);
  ASSERT_GT(whole.kept.size(), 5u);
  EXPECT_EQ(whole.outputs, (std::vector<int>{0, 1}));
  for (std::size_t i = 0; i < whole.kept.size(); i += i + 4 < whole.kept.size() ? 3 : 1) {
    const KeptState& from = whole.kept[i];
    Keeper rest;
    expect_same(resume(c, from, rest), end);
    ASSERT_EQ(rest.steps.size() + from.state.result.steps, end.result.steps);
    for (std::size_t k = 0; k < rest.steps.size(); ++k) {
      const StepMetrics& then = whole.steps[from.state.result.steps + 1 + k];
      EXPECT_EQ(rest.steps[k].step, then.step);
      EXPECT_EQ(rest.steps[k].time, then.time);
      EXPECT_EQ(rest.steps[k].substep, then.substep);
      EXPECT_EQ(rest.steps[k].max_acceleration, then.max_acceleration);
      EXPECT_EQ(rest.steps[k].energy.has_value(), then.energy.has_value());
    }
    EXPECT_EQ(rest.outputs, from.state.outputs == 0 ? (std::vector<int>{0, 1}) : (std::vector<int>{1}));
  }
}

// The angle follows from measures that a restart keeps: once forces no longer cancel it is the larger one, and lists are
// shorter.
TEST(Resume, WhereTheOpeningAngleChanges) {
  const Case c = universe({"gravity.reuse=1", "box.size=10 Mpc/h", "cosmology.sigma8=1.1", "gravity.theta=0.8",
                           "gravity.r_cut=4.5", "gravity.split_order=5"});
  Keeper whole;
  const End end = run_whole(c, whole);
  const double early = *c.run.config.gravity.theta_early, late = *c.run.config.gravity.theta;
  const auto larger = std::find_if(whole.steps.begin(), whole.steps.end(),
                                   [&](const StepMetrics& step) { return step.gravity.theta == late; });
  ASSERT_NE(larger, whole.steps.end());
  const auto change = static_cast<std::size_t>(larger - whole.steps.begin());
  for (std::size_t k = 0; k < whole.steps.size(); ++k)
    EXPECT_EQ(whole.steps[k].gravity.theta, k < change ? early : late);
  EXPECT_LT(whole.steps[change].gravity.mean_list, 0.9 * whole.steps[change - 1].gravity.mean_list);
  // From the last boundary before the change, and from the first after it.
  const auto after = std::find_if(whole.kept.begin(), whole.kept.end(),
                                  [&](const KeptState& kept) { return kept.state.result.steps >= change; });
  ASSERT_TRUE(after != whole.kept.begin() && after != whole.kept.end());
  for (const KeptState& from : {*(after - 1), *after}) {
    Keeper rest;
    expect_same(resume(c, from, rest), end);
  }
}

// A run that is stopped keeps its state before momenta are brought to the time of the positions.
TEST(Resume, AStoppedUniverse) {
  const Case c = universe({"gravity.reuse=1"});
  Keeper whole, stopped, rest;
  whole.keep = stopped.keep = false;
  const End end = run_whole(c, whole);
  stopped.stop_after = 7;
  EXPECT_EQ(run_whole(c, stopped).result.stopped_by, "the test");
  EXPECT_EQ(stopped.outputs.back(), -1);
  ASSERT_EQ(stopped.kept.size(), 1u);
  const End resumed = resume(c, stopped.kept[0], rest);
  EXPECT_EQ(resumed.result.stopped_by, "");
  expect_same(resumed, end);
}

// Kept lists are not part of a restart: the first forces are those of fresh ones, within the tolerance of kept ones.
TEST(Resume, WithKeptListsWithinTheErrorOfForces) {
  const Case c = universe();
  Keeper whole, rest;
  const End end = run_whole(c, whole);
  const End resumed = resume(c, whole.kept[whole.kept.size() / 2], rest);
  EXPECT_EQ(resumed.result.steps, end.result.steps);
  std::vector<std::array<double, 3>> by_id(end.state.size());
  for (std::size_t i = 0; i < end.state.size(); ++i) by_id[end.state.ids[i] % by_id.size()] = end.state.positions[i];
  double sum = 0;
  for (std::size_t i = 0; i < end.state.size(); ++i)
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const double d = resumed.state.positions[i][axis] - by_id[resumed.state.ids[i] % by_id.size()][axis];
      const double wrapped = d - c.run.side * std::round(d / c.run.side);
      sum += wrapped * wrapped;
    }
  EXPECT_LT(std::sqrt(sum / static_cast<double>(end.state.size())), 1e-6 * c.run.side);
}

// An isolated set whose box doubles and whose fastest particles are set aside.
TEST(Resume, ABoxThatDoublesAndEscapers) {
  Case c{prepare(parse_config("[run]\nkind = \"isolated\"\n[initial]\nkind = \"plummer\"\n", "test.toml",
                              {"particles=300", "gravity.softening=0.05", "end_time=1.2", "energy_interval=4",
                               "gravity.reuse=1", "output.times=[0.5]"}),
                 true, Communicator::self()),
         {}};
  for (std::size_t i = 0; i < 3; ++i) c.run.initial.velocities[i] = {0, static_cast<float>(1000 * (i + 1)), 5};
  c.options = simulation_options(c.run);
  Keeper whole;
  const End end = run_whole(c, whole);
  ASSERT_GT(whole.kept.size(), 10u);
  EXPECT_GT(whole.kept.back().escapers.size(), 0u);
  EXPECT_LT(whole.kept.front().state.frame.doublings, whole.kept.back().state.frame.doublings);
  for (std::size_t i = 0; i < whole.kept.size(); i += whole.kept.size() / 5) {
    Keeper rest;
    expect_same(resume(c, whole.kept[i], rest), end);
  }
}

TEST(Resume, OutputsOfThePastStay) {
  Case c = universe();
  Keeper whole;
  run_whole(c, whole);
  const KeptState& middle = whole.kept[whole.kept.size() / 2];
  ASSERT_EQ(middle.state.outputs, 1u);
  const auto after = [&](const std::vector<double>& redshifts) {
    Case changed = c;
    changed.options.outputs.clear();
    for (const double z : redshifts) changed.options.outputs.push_back(1 / (1 + z));
    Keeper rest;
    rest.stop_after = 0;
    resume(changed, middle, rest);
    return rest.outputs;
  };
  EXPECT_EQ(after({8.5, 6.51}), (std::vector<int>{-1}));
  EXPECT_THROW(after({}), Error);
  EXPECT_THROW(after({8.7, 8.5}), Error);
}

}  // namespace
}  // namespace maki
