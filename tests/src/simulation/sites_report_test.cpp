// What a run over sites tells of its network: the metrics, and the table at the end.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/simulation/run_files.hpp"
#include "src/simulation/sites_report.hpp"
#include "tests/sites/replayed_sites.hpp"
#include "tests/src/io/io_helpers.hpp"
#include "wan/net/error.hpp"

namespace maki {
namespace {

using namespace test;

constexpr auto at(sites::Phase phase) { return static_cast<std::size_t>(phase); }

// Step n of a site: 10 n seconds of which n are waited for trees, and 0.5 for the mesh of every second step.
OwnRecord own(std::uint64_t step) {
  return {.step = step,
          .rebuilt = step == 1,
          .long_step_end = step % 2 == 0,
          .seconds = 10.0 * static_cast<double>(step),
          .force_seconds = 4,
          .tree_seconds = 6.0 * static_cast<double>(step),
          .mesh_seconds = step % 2 == 0 ? 2.0 : 0.0,
          .transform_seconds = step % 2 == 0 ? 0.5 : 0,
          .particles = 1000,
          .interactions = 5000};
}

SitesTraffic traffic(std::uint64_t step) {
  SitesTraffic traffic{};
  traffic[at(sites::Phase::kTrees)] = {1, 100, 1, 200, 7, 1, static_cast<double>(step)};
  if (step == 2) traffic[at(sites::Phase::kMesh)] = {1, 4000, 1, 3000, 0, 1, 0.5};
  return traffic;
}

SitesRecord record_of_sites(std::uint64_t step) {
  SitesRecord record;
  record.known_step = step - 1;
  record.sites = {{4, 5000, 1000, 0, 0.4}, {3, 6000, 2000, 0.4, 1}};
  return record;
}

TEST(SitesReport, TellsOfAllSites) {
  replay_sites(2, [&](sites::Sites& sites) {
    SitesReport report(sites, {});
    report.step(own(0), {}, traffic(0));
    expect_contains(report.json(), {R"("all": {})"});
    report.step(own(1), record_of_sites(1), traffic(1));
    SitesTraffic of_output = traffic(0);
    of_output[at(sites::Phase::kOutput)] = {1, 50, 1, 60, 0, 1, 0.25};
    report.output(of_output);  // the trees' messages count to the next step
    report.step(own(2), record_of_sites(2), traffic(2));
    const SiteSums& sums = report.sums();
    EXPECT_EQ(sums.steps, 2u);  // not the one before the first
    EXPECT_EQ(sums.rebuilds(), 1u);
    EXPECT_EQ(sums.mesh_steps, 1u);
    EXPECT_DOUBLE_EQ(sums.seconds, 30);
    EXPECT_DOUBLE_EQ(sums.waited(), 3.5);
    EXPECT_DOUBLE_EQ(sums.tree, 18 - 3);
    EXPECT_DOUBLE_EQ(sums.mesh, 1.5);
    EXPECT_EQ(sums.outputs[at(sites::Phase::kOutput)].bytes_sent, 50u);
    const std::string json = report.json();
    expect_contains(json, {R"("waited": 2.500000, "waits": 3)", R"("mesh": [0.500000, 1, 4000, 3000, 0])",
                           R"("output": [0.000000, 0, 0)",
                           R"("trees": [2.000000, 2, 200, 400, 14])",  // with those of the output
                           R"("own": {"seconds": 20.000000, "force": 4.000000)", R"("transform": 0.500000)",
                           R"("told_of": 1)", R"("north": {"force": 4.000000)",
                           R"("east": {"force": 3.000000, "particles": 2000)", R"("end": 1})"});
    EXPECT_EQ(std::count(json.begin(), json.end(), '{'), std::count(json.begin(), json.end(), '}'));
  });
}

SiteSums sums_of(int ranks, double seconds, double waited, double transform) {
  SiteSums sums;
  sums.ranks = ranks;
  sums.steps = 10;
  sums.mesh_steps = 5;
  sums.seconds = 10 * seconds;
  sums.transform = 10 * transform;
  sums.mesh = 20 * transform;
  sums.tree = 10 * (seconds - waited - 2 * transform);
  sums.traffic[at(sites::Phase::kTrees)].waited = 10 * waited;
  sums.traffic[at(sites::Phase::kMesh)].bytes_sent = 5000000;
  sums.kinds[2] = {10, 10, 10 * seconds, 10 * waited};
  return sums;
}

TEST(SitesTable, EfficiencyIsTheWorkOverAllRanks) {
  // Nothing is waited for: as fast as one site.
  EXPECT_DOUBLE_EQ(efficiency({sums_of(1, 2, 0, 0), sums_of(1, 2, 0, 0)}), 1);
  // Half of the time is waited for.
  EXPECT_DOUBLE_EQ(efficiency({sums_of(2, 2, 1, 0), sums_of(2, 2, 1, 0)}), 0.5);
  // The ranks of one of two sites wait for the other one: 3 ranks work 2 s, 1 rank 1 s.
  EXPECT_DOUBLE_EQ(one_site_seconds({sums_of(3, 2, 0, 0), sums_of(1, 2, 1, 0)}), (3 * 2 + 1 * 1) / 4.0);
  SiteSums coding = sums_of(1, 2, 0, 0);
  coding.coding = 10 * 0.25;  // 0.25 s of a step for messages
  EXPECT_DOUBLE_EQ(one_site_seconds({coding, coding}), 1.75);
  // Both make the transforms, of 0.5 s: one site with two ranks takes half as long for them.
  EXPECT_DOUBLE_EQ(one_site_seconds({sums_of(1, 2, 0, 0.5), sums_of(1, 2, 0, 0.5)}), 1.75);
}

TEST(SitesTable, HasPredictionsBeside) {
  const std::string text = sites_table({sums_of(2, 2, 0.5, 0.1), sums_of(1, 2, 0.25, 0.1)}, {"north", "east"},
                                       {std::uint64_t{1} << 24, 128, 0.5});
  expect_contains(text, {"E(2) = 0.", "13 exchanges", "16.7772", "7.8643", " 256     128 "});
  for (const std::string name : {"north", "east", "one site, estimate"})
    EXPECT_NE(text.find(name), std::string::npos) << name;
  expect_lacks(text, {"nan"});
}

// What Maki's model knows of such a run.
ModelledRun two_sites() {
  ModelledRun of;
  of.run.particles = 1000, of.run.cells = 1000, of.run.ranks = of.run.sites = 2;
  of.machine.emplace();
  of.machine->network = {1e-5, 1e-3, 1e10, 1e8};
  of.machine->maki.emplace();
  of.machine->maki->pair = 1e-9, of.machine->maki->interactions = 100;
  return of;
}

// RunFiles as a run at two sites calls it, steps and end, without a simulation.
TEST(SitesReportFiles, RunFilesWriteMetricsAndReport) {
  const TempDir folder;
  replay_sites(2, [&](sites::Sites& sites) {
    const RunFileOptions options{.directory = folder / sites.name(sites.me()),
                                 .overwrite = true,
                                 .progress = nullptr,
                                 .modelled = two_sites(),
                                 .facts = {1000, 32, 0.5}};
    RunFiles files(options, {"", "Maki 0", "abc", "g++", "cpu"}, {Communicator::self(), sites});
    const PhaseTimers timers;
    for (std::uint64_t step = 0; step < 3; ++step) {
      StepMetrics metrics;
      metrics.step = step;
      metrics.time = 0.5;
      metrics.seconds = 1;
      metrics.own_particles = 10;
      if (step > 0) metrics.of_sites = record_of_sites(step), metrics.traffic = traffic(step);
      metrics.of_sites.transform_seconds = 0.5, metrics.of_sites.coding_seconds = 0.25;
      if (step > 0) wan::log(wan::LogLevel::kInfo, fmt::format("the path is up again, {}", step));
      files.step(metrics, timers);
    }
    files.finish({}, timers);
    expect_contains(text_of(files.path("metrics.jsonl")),
                    {R"("sites": {"waited": 1.0)", R"("transform": 0.500000)", R"("coding": 0.250000)"});
    expect_contains(text_of(files.path("sites_report.txt")), {"Efficiency E(2)"});
    // Trees were waited for 1 and 2 s in two steps, the mesh of others 0.5 s in none that used it.
    expect_contains(text_of(files.path("log.txt")), {"Efficiency E(2)", "Links: the path is up again, 1",
                                                     "Links: the path is up again, 2", "waiting for others", "1.5000"});
  });
}

}  // namespace
}  // namespace maki
