// Runs over ranks and over sites that go on from a state: with what was on its way between sites, and what was learned.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/error.hpp"
#include "src/run/run_options.hpp"
#include "tests/src/simulation/recorded_runs.hpp"

namespace maki::testing {
namespace {

class ResumeOfMany : public test::ManyRanks {
 protected:
  void SetUp() override {
    if (world.size() < 2 || world.size() > 4) GTEST_SKIP() << "two to four ranks";
  }
  // From the beginning, or from a state.
  Ends run(int sites, std::vector<std::string> settings, const KeptState* from = nullptr,
           const RecorderOptions& recorded = {.restart_steps = 1}) {
    settings.insert(settings.begin(), {"gravity.mesh=32", "energy_interval=1", "end_redshift=5", "output.redshifts=[]",
                                       "run.deterministic=true", "sites.max_boundary_move=0", "time.max_dlna=0.02"});
    const Prepared run = small_box(settings);
    if (sites > 1) return run_over_sites(world, sites, run, recorded, from);
    const SimulationOptions options = simulation_options(run);
    return from ? run_on(run, *from, options, world, recorded)
                : run_on(run, even_share(run.initial, world), options, world, recorded);
  }
};

void expect_close(double a, double b) { EXPECT_NEAR(a, b, 1e-5 * std::fabs(b) + 1e-12); }

// An energy that the sites had not told each other yet when the state was kept is told by the run that goes on.
TEST_F(ResumeOfMany, EnergiesOnTheirWayBetweenSitesAreKept) {
  const Ends whole = run(2, {"gravity.reuse=1"});
  ASSERT_GT(whole.kept.size(), 4u);
  const KeptState& from = whole.kept[whole.kept.size() / 2];
  EXPECT_TRUE(from.state.sample.has_value());
  const Ends rest = run(2, {"gravity.reuse=1"}, &from);
  EXPECT_EQ(rest.result.steps, whole.result.steps);
  ASSERT_EQ(rest.steps.size() + from.state.result.steps, whole.result.steps);
  std::size_t energies = 0;
  for (std::size_t k = 0; k < rest.steps.size(); ++k) {
    const StepMetrics &now = rest.steps[k], &then = whole.steps[from.state.result.steps + 1 + k];
    ASSERT_EQ(now.step, then.step);
    ASSERT_EQ(now.energy.has_value(), then.energy.has_value()) << "step " << now.step;
    if (!now.energy) continue;
    ++energies;
    expect_close(now.energy->kinetic, then.energy->kinetic);
    expect_close(now.energy->potential, then.energy->potential);
    expect_close(now.energy->integral, then.energy->integral);
    EXPECT_NEAR(now.energy->error, then.energy->error, 1e-6);
    EXPECT_NEAR(now.momentum_drift, then.momentum_drift, 1e-6);
  }
  EXPECT_GT(energies, 3u);
  EXPECT_TRUE(rest.steps.front().energy.has_value());
  EXPECT_NEAR(rest.result.worst_energy_error, whole.result.worst_energy_error, 1e-6);
}

// Stopped within a long step too, a run goes on as if it had not been.
TEST_F(ResumeOfMany, AStopWithinALongStepChangesNothing) {
  const std::vector<std::string> settings = {"gravity.reuse=1", "time.max_dlna=0.01", "time.long_dlna=0.04"};
  for (const int sites : {1, 2}) {
    const Ends whole = run(sites, settings);
    std::size_t within = 0;
    for (std::size_t step = 5; step < 9; ++step) {
      const Ends stopped = run(sites, settings, nullptr, {.stop_after = step});
      EXPECT_EQ(stopped.result.steps, sites == 1 ? step : step + 3) << "sites learn of it later";
      if (stopped.kept.back().particles.long_acceleration) ++within;
      const Ends rest = run(sites, settings, &stopped.kept.back());
      EXPECT_EQ(rest.result.steps, whole.result.steps);
      EXPECT_EQ(rest.result.long_steps, whole.result.long_steps);
      EXPECT_EQ(all_positions(world, rest.state), all_positions(world, whole.state));
    }
    EXPECT_GT(within, 0u);
  }
}

// What trees sent to others allow for goes on as it was.
TEST_F(ResumeOfMany, DriftsAreKept) {
  for (const int sites : {1, 2}) {
    const Ends whole = run(sites, {"gravity.reuse=1"}, nullptr, {.restart_steps = 4});
    const KeptState& from = whole.kept[whole.kept.size() / 2];
    const Ends rest = run(sites, {"gravity.reuse=1"}, &from, {.restart_steps = 4});
    std::size_t compared = 0;
    for (const KeptState& now : rest.kept) {
      const auto then = std::find_if(whole.kept.begin(), whole.kept.end(), [&](const KeptState& kept) {
        return kept.state.result.steps == now.state.result.steps;
      });
      if (then == whole.kept.end()) continue;
      ++compared;
      EXPECT_EQ(now.state.drifts.ranks, then->state.drifts.ranks);
      EXPECT_EQ(now.state.drifts.ranks_next, then->state.drifts.ranks_next);
      EXPECT_EQ(now.state.drifts.sites, then->state.drifts.sites);
    }
    EXPECT_GT(compared, 1u);
    EXPECT_EQ(from.state.drifts.sites > 0, sites > 1);
    if (sites == 1) {
      EXPECT_GT(from.state.drifts.ranks, 0);
    }
  }
}

// From where a tree was new, step by step the same lengths and the same rebuilds.
TEST_F(ResumeOfMany, SitesRebuildAsTheyWouldHave) {
  const std::vector<std::string> settings = {"end_redshift=3", "theta_early=0.7"};
  const Ends whole = run(2, settings);
  std::size_t tried = 0;
  for (const KeptState& from : whole.kept) {
    const std::uint64_t done = from.state.result.steps;
    if (!whole.steps[done].gravity.rebuilt || tried == 2) continue;
    ++tried;
    const Ends rest = run(2, settings, &from);
    EXPECT_EQ(rest.result.steps, whole.result.steps);
    EXPECT_EQ(rest.result.long_steps, whole.result.long_steps);
    EXPECT_EQ(rest.result.rebuilds, whole.result.rebuilds);
    ASSERT_EQ(rest.steps.size() + done, whole.result.steps);
    for (std::size_t k = 0; k < rest.steps.size(); ++k) {
      const StepMetrics &now = rest.steps[k], &then = whole.steps[done + 1 + k];
      EXPECT_EQ(now.gravity.rebuilt, then.gravity.rebuilt) << "step " << now.step;
      EXPECT_NEAR(now.time, then.time, 1e-9);
    }
  }
  EXPECT_GT(tried, 0u);
}

// As where the mesh has become coarser since.
TEST_F(ResumeOfMany, SlabsThatAreTooThinAreRefused) {
  const Ends whole = run(2, {"end_redshift=7"});
  ASSERT_FALSE(whole.kept.empty());
  KeptState from = whole.kept[0];
  from.state.slabs = {0, std::uint32_t{1} << 28};
  EXPECT_THROW(run(2, {"end_redshift=7"}, &from), Error);
}

}  // namespace
}  // namespace maki::testing
