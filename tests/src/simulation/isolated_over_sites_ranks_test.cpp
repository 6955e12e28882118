// Runs of isolated sets over sites made of ranks, beside the same on one.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/src/simulation/runs_on_ranks.hpp"
#include "tests/test_stream.hpp"

namespace maki::testing {
namespace {

// No mesh, and no cutoff: every site's tree goes to all others.
TEST(IsolatedOverSites, APlummerSphereOverSitesIsThatOfOneRank) {
  const Communicator world = Communicator::world();
  if (world.size() > 4) GTEST_SKIP() << "up to four ranks are enough";
  const Prepared run = prepared("[run]\nkind = \"isolated\"\n[initial]\nkind = \"plummer\"\n",
                                {"particles=1500", "gravity.softening=0.05", "end_time=1", "energy_interval=4"});
  const Ends one = run_on(run, run.initial, simulation_options(run), {});
  for (int count = 2; count <= world.size(); ++count) {
    const Ends many = run_over_sites(world, count, run);
    EXPECT_EQ(many.result.particles, 1500u);
    ASSERT_EQ(many.result.steps, one.result.steps);
    for (std::size_t i = 0; i < many.steps.size(); ++i) {
      EXPECT_NEAR(many.steps[i].time, one.steps[i].time, 1e-3 * one.steps[i].time);
      expect_same_everywhere(world, many.steps[i].time);
    }
    EXPECT_EQ(many.steps[0].energy->kinetic, one.steps[0].energy->kinetic);
    EXPECT_NEAR(many.steps[0].energy->potential, one.steps[0].energy->potential,
                1e-4 * std::fabs(one.steps[0].energy->potential));
    EXPECT_LT(many.result.worst_energy_error, 2 * one.result.worst_energy_error + 1e-4);
    expect_same_everywhere(world, many.result.energy->potential);
    const auto positions = all_positions(world, many.state);
    ASSERT_EQ(positions.size(), 1500u);
    const double apart = rms_distance(positions, all_positions(Communicator::self(), one.state), run.side);
    EXPECT_LT(apart, 3e-4) << "the scale length is 1";
  }
}

// All sites double the box together, at the start and on the way, and the run goes on as at one site.
TEST(IsolatedOverSites, ABoxDoublesOverSites) {
  const Communicator world = Communicator::world();
  if (world.size() > 4) GTEST_SKIP() << "up to four ranks are enough";
  Prepared run = prepared("[run]\nkind = \"isolated\"\n[initial]\nkind = \"plummer\"\n",
                          {"particles=600", "gravity.softening=0.05", "end_time=2.5", "energy_interval=1"});
  run.side /= 2;
  for (std::size_t i = 0; i < 6; ++i)
    run.initial.velocities[i] = {i < 4 ? 15.0f + static_cast<float>(i) : 0.0f, i < 4 ? 0.0f : -40.0f, 0};
  const Ends one = run_on(run, run.initial, simulation_options(run), {});
  ASSERT_EQ(one.messages.size(), 3u);
  for (int count = 2; count <= world.size(); ++count) {
    const Ends many = run_over_sites(world, count, run);
    EXPECT_EQ(many.messages, one.messages);
    EXPECT_EQ(many.result.steps, one.result.steps);
    EXPECT_LT(many.result.worst_energy_error, 2 * one.result.worst_energy_error + 1e-4);
    expect_same_everywhere(world, many.result.energy->potential);
    const auto positions = all_positions(world, many.state);
    ASSERT_EQ(positions.size(), 600u);
    EXPECT_LT(rms_distance(positions, all_positions(Communicator::self(), one.state), 1e9), 1e-3);
  }
}

// Keeps every state that a restart would have.
struct Keeper : Recorder {
  using Recorder::Recorder;
  bool wants_restart(std::uint64_t) override { return true; }
  void restart(const std::shared_ptr<const KeptState>& state) override { kept.push_back(*state); }
  std::vector<KeptState> kept;
};

// From before the box doubles, from between, and from after particles were set aside.
TEST(IsolatedOverSites, AnIsolatedRunOverSitesGoesOn) {
  const Communicator world = Communicator::world();
  if (world.size() < 2 || world.size() > 4) GTEST_SKIP() << "two to four sites are enough";
  Prepared run = prepared("[run]\nkind = \"isolated\"\n[initial]\nkind = \"plummer\"\n",
                          {"particles=300", "gravity.softening=0.05", "end_time=1.5", "energy_interval=4",
                           "initial.truncation_radius=10", "time.eta=0.1"});
  for (std::size_t i = 0; i < 3; ++i) run.initial.velocities[i] = {static_cast<float>(100 << i), 5, 0};
  const Stream& stream = test::test_stream();
  Ends whole, rest;
  Keeper keeper(whole);
  SimulationOptions options;
  {
    const SitesOfRanks here(world, world.size());
    Prepared mine = run;
    mine.initial = even_share(run.initial, here.ranks);
    keep_own_slab(mine, *here.sites, here.ranks);
    options = simulation_options(mine);
    Simulation simulation(stream, std::move(mine.initial), options, timeline_of(run), keeper,
                          {here.ranks, *here.sites});
    whole.result = simulation.run();
    whole.state = simulation.snapshot();
    here.sites->close();
  }
  ASSERT_GT(keeper.kept.size(), 8u);
  EXPECT_LT(keeper.kept.front().state.frame.doublings, keeper.kept.back().state.frame.doublings);
  EXPECT_EQ(keeper.kept.back().state.field.escapers, 2u);
  const auto expected = all_positions(world, whole.state);
  for (std::size_t i = 0; i < keeper.kept.size(); i += keeper.kept.size() / 4) {
    const SitesOfRanks here(world, world.size());
    Recorder recorder(rest);
    Simulation simulation(stream, keeper.kept[i], options, timeline_of(run), recorder, {here.ranks, *here.sites});
    const RunResult result = simulation.run();
    here.sites->close();
    EXPECT_EQ(result.steps, whole.result.steps) << i;
    EXPECT_EQ(result.particles, whole.result.particles) << i;
    EXPECT_NEAR(result.energy->error, whole.result.energy->error, 1e-5) << i;
    const auto found = all_positions(world, simulation.snapshot());
    ASSERT_EQ(found.size(), expected.size()) << i;
    EXPECT_LT(rms_distance(found, expected, 1e9), 3e-4) << i;
  }
}

}  // namespace
}  // namespace maki::testing
