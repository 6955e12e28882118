// Runs over ranks and over sites beside the same on one.
#include "src/run/run_options.hpp"
#include "src/simulation/simulation.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <csignal>

#include "src/io/snapshot_io.hpp"
#include "src/simulation/run_files.hpp"
#include "tests/places.hpp"
#include "tests/src/simulation/recorded_runs.hpp"
#include "tests/test_stream.hpp"

namespace maki::testing {
namespace {

using SimulationRanks = test::InSharedDir;
using IsolatedOverSites = test::ManyRanks;

// What these ranks, or sites of them, have at the end beside one rank: no more than twice the energy error and `energy`,
// and positions `apart`, rms.
void expect_like(const Communicator& ranks, const Ends& many, const Ends& one, double side, double apart,
                 double energy = 1e-4) {
  EXPECT_EQ(many.result.particles, one.result.particles);
  EXPECT_LT(many.result.worst_energy_error, 2 * one.result.worst_energy_error + energy);
  expect_same_everywhere(ranks, many.result.energy->potential);
  const auto positions = all_positions(ranks, many.state), expected = all_positions(Communicator::self(), one.state);
  ASSERT_EQ(positions.size(), expected.size());
  EXPECT_LT(rms_distance(positions, expected, side), apart);
}

TEST_F(SimulationRanks, APeriodicRunIsThatOfOneRank) {
  const Prepared run = small_box({"end_redshift=7", "gravity.mesh=32", "energy_interval=2"});
  const Ends one = run_alone(run), many = run_over_ranks(world, run);
  EXPECT_EQ(one.result.particles, run.particles);
  EXPECT_EQ(many.result.steps, one.result.steps);
  // The start is the same to the last bit where no force has a part in it.
  EXPECT_EQ(many.steps[0].energy->kinetic, one.steps[0].energy->kinetic);
  EXPECT_NEAR(many.steps[0].energy->potential, one.steps[0].energy->potential,
              1e-4 * std::fabs(one.steps[0].energy->potential));
  for (const StepMetrics& step : many.steps) EXPECT_EQ(step.particles, run.particles);
  expect_like(world, many, one, run.side, 1e-5 * run.side);
}

// Trees that are never made anew leave particles far beyond their slabs: the mesh is then not that of one site to the
// last bit, which is said once.
TEST_F(SimulationRanks, PlanesThatSitesShareAreToldOfOnce) {
  if (world.size() < 2 || world.size() > 4) GTEST_SKIP() << "two to four ranks";
  for (const char* reuse : {"gravity.reuse=1", "gravity.reuse=1000"}) {
    const bool strays = std::string(reuse).size() > 15;
    Prepared run =
        small_box({"end_redshift=7.7", "gravity.mesh=64", "energy_interval=0", "gravity.mesh_mass_bits=12", reuse});
    for (auto& velocity : run.initial.velocities) velocity[0] += 3000;  // all move by some cells
    const Ends ends = run_over_sites(world, 2, run);
    const auto told = std::count_if(ends.messages.begin(), ends.messages.end(), [](const std::string& text) {
      return text.find("beyond their site's slab") != std::string::npos;
    });
    EXPECT_EQ(told, strays ? 1 : 0) << reuse;
  }
}

// The same steps as at one site, and the same particles; what is known of all is the same everywhere.
TEST_F(SimulationRanks, APeriodicRunOverSitesIsThatOfOneRank) {
  if (world.size() > 4) GTEST_SKIP() << "up to four ranks are enough";
  const Prepared run = small_box({"end_redshift=7", "gravity.mesh=64", "energy_interval=2"});
  const Ends one = run_alone(run);
  for (int count = 2; count <= world.size(); ++count) {
    const Ends many = run_over_sites(world, count, run);
    EXPECT_EQ(many.result.steps, one.result.steps);
    for (std::size_t i = 0; i < many.steps.size(); ++i) {
      EXPECT_NEAR(many.steps[i].time, one.steps[i].time, 1e-5 * one.steps[i].time);
      expect_same_everywhere(world, many.steps[i].time);
    }
    expect_like(world, many, one, run.side, 1e-5 * run.side);
  }
}

// All particles on one rank at the start; some go to others, and some ranks may stay empty.
TEST_F(SimulationRanks, AColdSphereOnOneRankIsThatOfOneRank) {
  const Prepared run = prepared("[run]\nkind = \"isolated\"\n[initial]\nkind = \"cold_sphere\"\n",
                                {"particles=1000", "gravity.softening=0.05", "end_time=0.5", "energy_interval=5"});
  const SimulationOptions options = simulation_options(run);
  const Ends one = run_on(run, run.initial, options, {});
  const bool has_all = world.rank() == world.size() / 2;
  const Ends many = run_on(run, test::rows_of(run.initial, 0, has_all ? run.initial.size() : 0), options, world);
  expect_like(world, many, one, run.side, 1e-4 * run.side, 1e-3);
}

// Fewer particles than ranks; and particles that leave the largest box, each set aside by the rank that has it.
TEST_F(SimulationRanks, EscapersAreCountedOverRanks) {
  Prepared run = prepared("[run]\nkind = \"isolated\"\n[initial]\nkind = \"two_body\"\n",
                          {"gravity.softening=0.01", "end_time=6", "box.size=8"});
  add_particle(run.initial, {0, 0, 0.3}, {0, 0, 10}, 1e-6f, 99);
  add_particle(run.initial, {0, 0, -0.3}, {0, 0, -10}, 1e-6f, 100);
  const Ends one = run_alone(run), many = run_over_ranks(world, run);
  EXPECT_EQ(many.messages, one.messages);
  EXPECT_EQ(many.result.particles, 2u);
  EXPECT_EQ(all_positions(world, many.state).size(), 4u);
  EXPECT_LT(many.result.worst_energy_error, 1e-3);
  if (world.size() < 2 || world.size() > 4) return;
  const Ends over_sites = run_over_sites(world, world.size(), run);
  EXPECT_EQ(over_sites.messages, one.messages);
  expect_like(world, over_sites, one, 1e9, 1e-2);
}

TEST_F(SimulationRanks, ASignalToOneRankStopsAll) {
  const Prepared run = prepared("[run]\nkind = \"isolated\"\n[initial]\nkind = \"plummer\"\n",
                                {"particles=500", "gravity.softening=0.05", "end_time=5", "fixed_step=0.01"});
  RunFileOptions files_options = files_in(dir / "run");
  files_options.metrics_interval = 2;
  RunFiles files(files_options, test::make_provenance(), world);
  if (world.rank() == world.size() - 1) std::raise(SIGTERM);
  Simulation simulation(test::test_stream(), even_share(run.initial, world), simulation_options(run), timeline_of(run),
                        files, world);
  const RunResult result = simulation.run();
  files.finish(result, simulation.timers());
  EXPECT_EQ(result.stopped_by, "SIGTERM");
  EXPECT_EQ(result.steps, 1u);
  if (world.rank() == 0) {
    EXPECT_EQ(read_snapshot(files.path("stopped.hdf5")).size(), 500u);
  }
}

// An error on one rank is in the log, though the first rank cannot write it; one on all ranks is there once.
TEST_F(SimulationRanks, TheErrorOfAnyRankIsInTheLog) {
  if (world.size() < 2) GTEST_SKIP() << "needs another rank than the first";
  RunFileOptions options = files_in(dir / "run");
  options.run = "a run";
  RunFiles files(options, test::make_provenance(), world);
  files.step({}, PhaseTimers());
  if (world.rank() == world.size() - 1) files.fail("out of memory");
  world.barrier();
  files.fail("a lost rank");
  world.barrier();
  const std::string rank = "rank " + std::to_string(world.size() - 1) + ": ";
  const std::string log = test::text_of(files.path("log.txt")), metrics = test::text_of(files.path("metrics.jsonl"));
  test::expect_contains(log, {"] " + rank + "The run ends by an error: out of memory"});
  test::expect_contains(metrics, {"{\"error\": \"" + rank + "out of memory\"}\n"});
  test::expect_lacks(metrics, {"rank 1: a lost rank"});
}

// Runs of isolated sets over sites made of ranks, beside the same on one.

// No mesh, and no cutoff: every site's tree goes to all others.
TEST_F(IsolatedOverSites, APlummerSphereOverSitesIsThatOfOneRank) {
  if (world.size() > 4) GTEST_SKIP() << "up to four ranks are enough";
  const Prepared run = prepared("[run]\nkind = \"isolated\"\n[initial]\nkind = \"plummer\"\n",
                                {"particles=1500", "gravity.softening=0.05", "end_time=1", "energy_interval=4"});
  const Ends one = run_alone(run);
  for (int count = 2; count <= world.size(); ++count) {
    const Ends many = run_over_sites(world, count, run);
    ASSERT_EQ(many.result.steps, one.result.steps);
    for (std::size_t i = 0; i < many.steps.size(); ++i) {
      EXPECT_NEAR(many.steps[i].time, one.steps[i].time, 1e-3 * one.steps[i].time);
      expect_same_everywhere(world, many.steps[i].time);
    }
    // A request to stop is known to all sites two steps later.
    const auto longest = [](const Ends& run) {
      return std::max({run.steps[0].seconds, run.steps[1].seconds, run.steps[2].seconds});
    };
    EXPECT_DOUBLE_EQ(many.to_next_stop[1], 3 * longest(many));
    EXPECT_DOUBLE_EQ(one.to_next_stop[1], longest(one));
    EXPECT_EQ(many.steps[0].energy->kinetic, one.steps[0].energy->kinetic);
    EXPECT_NEAR(many.steps[0].energy->potential, one.steps[0].energy->potential,
                1e-4 * std::fabs(one.steps[0].energy->potential));
    expect_like(world, many, one, run.side, 3e-4);  // the scale length is 1
  }
}

// A rank whose lists do not fit makes them in batches in each step until all rebuild; other ranks of its site keep
// theirs meanwhile, and may import anew.
TEST_F(IsolatedOverSites, ListsInBatchesAtSomeRanks) {
  if (world.size() < 4) GTEST_SKIP() << "needs two sites of several ranks";
  const Prepared run = prepared("[run]\nkind = \"isolated\"\n[initial]\nkind = \"cold_sphere\"\n",
                                {"particles=6000", "virial_ratio=0.05", "gravity.softening=0.02", "end_time=1.6",
                                 "time.eta=0.6", "gravity.list_memory=\"70000 B\""});
  const Ends one = run_alone(run);
  const Ends ends = run_over_sites(world, 2, run);
  EXPECT_EQ(ends.result.particles, 6000u);
  EXPECT_NEAR(ends.result.worst_energy_error, one.result.worst_energy_error, 0.1 * one.result.worst_energy_error);
}

// All sites double the box together, at the start and on the way, and the run goes on as at one site.
TEST_F(IsolatedOverSites, ABoxDoublesOverSites) {
  if (world.size() > 4) GTEST_SKIP() << "up to four ranks are enough";
  Prepared run = prepared("[run]\nkind = \"isolated\"\n[initial]\nkind = \"plummer\"\n",
                          {"particles=600", "gravity.softening=0.05", "end_time=2.5", "energy_interval=1"});
  run.side /= 2;
  for (std::size_t i = 0; i < 6; ++i)
    run.initial.velocities[i] = {i < 4 ? 15.0f + static_cast<float>(i) : 0.0f, i < 4 ? 0.0f : -40.0f, 0};
  const Ends one = run_alone(run);
  ASSERT_EQ(one.messages.size(), 3u);
  for (int count = 2; count <= world.size(); ++count) {
    const Ends many = run_over_sites(world, count, run);
    EXPECT_EQ(many.messages, one.messages);
    EXPECT_EQ(many.result.steps, one.result.steps);
    expect_like(world, many, one, 1e9, 1e-3);
  }
}

// From before the box doubles, from between, and from after particles were set aside.
TEST_F(IsolatedOverSites, AnIsolatedRunOverSitesGoesOn) {
  if (world.size() < 2 || world.size() > 4) GTEST_SKIP() << "two to four sites are enough";
  Prepared run = prepared("[run]\nkind = \"isolated\"\n[initial]\nkind = \"plummer\"\n",
                          {"particles=300", "gravity.softening=0.05", "end_time=1.5", "energy_interval=4",
                           "initial.truncation_radius=10", "time.eta=0.1"});
  for (std::size_t i = 0; i < 3; ++i) run.initial.velocities[i] = {static_cast<float>(100 << i), 5, 0};
  const Ends whole = run_over_sites(world, world.size(), run, {.restart_steps = 1});
  ASSERT_GT(whole.kept.size(), 8u);
  EXPECT_LT(whole.kept.front().state.frame.doublings, whole.kept.back().state.frame.doublings);
  EXPECT_EQ(whole.kept.back().state.field.escapers, 2u);
  const auto expected = all_positions(world, whole.state);
  for (std::size_t i = 0; i < whole.kept.size(); i += whole.kept.size() / 4) {
    const Ends rest = run_over_sites(world, world.size(), run, {}, &whole.kept[i]);
    EXPECT_EQ(rest.result.steps, whole.result.steps) << i;
    EXPECT_EQ(rest.result.particles, whole.result.particles) << i;
    EXPECT_NEAR(rest.result.energy->error, whole.result.energy->error, 1e-5) << i;
    const auto found = all_positions(world, rest.state);
    ASSERT_EQ(found.size(), expected.size()) << i;
    EXPECT_LT(rms_distance(found, expected, 1e9), 3e-4) << i;
  }
}

}  // namespace
}  // namespace maki::testing
