// What a run over several sites leaves behind: each site some of the ranks of this job, joined by paths over the
// loopback.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "src/config/parse.hpp"
#include "src/io/json.hpp"
#include "src/io/snapshot_io.hpp"
#include "src/run/over_sites.hpp"
#include "src/run/run_products.hpp"
#include "src/run/start_run.hpp"
#include "tests/places.hpp"
#include "tests/sites/sites_of_ranks.hpp"
#include "tests/test_stream.hpp"

namespace maki {
namespace {

Prepared prepared(const Communicator& ranks) {
  return prepare(parse_config("[box]\nsize = \"50 Mpc/h\"\n", "test.toml",
                              {"particles_per_side=16", "initial.redshift=9", "gravity.mesh=32", "energy_interval=2",
                               "end_redshift=7", "output.redshifts=[8]", "image_pixels=32"}),
                 true, ranks);
}

// The records of all sites that the metrics have, by step.
std::map<std::string, std::string> known_to_all(const std::filesystem::path& metrics) {
  std::ifstream in(metrics);
  std::map<std::string, std::string> known;
  for (std::string line; std::getline(in, line);)
    if (const auto step = json_member(line, "step")) known[*step] = line.substr(line.find("\"told_of\""));
  return known;
}

class SitesRun : public ::testing::Test {
 protected:
  SitesRun()
      : directory_(std::filesystem::path(::testing::TempDir()) / ("maki_sites_run_" + std::to_string(world.size()))) {}
  void SetUp() override {
    if (world.size() < 2 || world.size() > 4) GTEST_SKIP() << "two sites of up to two ranks";
    if (world.rank() == 0) std::filesystem::remove_all(directory_);
    world.barrier();
  }
  void TearDown() override {
    world.barrier();
    if (world.rank() == 0) std::filesystem::remove_all(directory_);
  }
  RunResult run(Prepared& run, const std::string& name, const RunPlace& place) {
    const Stream& stream = test::test_stream();
    RunFileOptions options;
    options.directory = (directory_ / name).string();
    options.progress = nullptr;
    RunProducts files(options, {"", "Maki 0", "abc", "g++", "cpu"}, run, place);
    const SimulationOptions simulation_of = simulation_options(run);
    Simulation simulation(stream, std::move(run.initial), simulation_of, timeline_of(run), files, place);
    const RunResult result = simulation.run();
    files.finish(result, simulation.timers());
    return result;
  }

  const Communicator world = Communicator::world();
  std::filesystem::path directory_;
};

TEST_F(SitesRun, LeavesOneSetTheSameProductsAndAReport) {
  RunResult one;
  if (world.rank() == 0) {
    Prepared alone = prepared(Communicator::self());
    one = run(alone, "one", {});
  }
  const SitesOfRanks here(world, 2);
  Prepared share = prepared(here.ranks);
  keep_own_slab(share, *here.sites, here.ranks);
  const std::string site = here.sites->name(here.me);
  const RunResult many = run(share, site, {here.ranks, *here.sites});
  here.sites->close();
  EXPECT_EQ(many.particles, 4096u);
  world.barrier();
  if (world.rank() > 0) return;
  EXPECT_EQ(many.steps, one.steps);

  // The files of a snapshot, once they lie together, are one set.
  std::filesystem::copy(directory_ / "site1" / "snapshot_001.1.hdf5", directory_ / "site0");
  const Snapshot set = read_snapshot((directory_ / "site0" / "snapshot_001.hdf5").string());
  const Snapshot expected = read_snapshot((directory_ / "one" / "snapshot_001.hdf5").string());
  ASSERT_EQ(set.size(), expected.size());
  EXPECT_EQ(set.header.time, expected.header.time);
  std::map<std::uint64_t, std::size_t> rows;
  for (std::size_t i = 0; i < set.size(); ++i) rows[set.ids[i]] = i;
  ASSERT_EQ(rows.size(), set.size());
  double worst = 0;
  for (std::size_t i = 0; i < set.size(); ++i)
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const double apart = set.positions[rows.at(expected.ids[i])][axis] - expected.positions[i][axis];
      worst = std::max(worst, std::abs(apart - 50 * std::round(apart / 50)));
    }
  EXPECT_LT(worst, 50 * 1e-4);

  for (const std::string name : {"power_000.txt", "power_001.txt", "image_000.png", "image_001.png"}) {
    EXPECT_GT(test::text_of(directory_ / "site0" / name).size(), 100u) << name;
    EXPECT_EQ(test::text_of(directory_ / "site0" / name), test::text_of(directory_ / "site1" / name)) << name;
  }
  const auto known = known_to_all(directory_ / "site0" / "metrics.jsonl");
  EXPECT_GE(known.size(), many.steps);
  EXPECT_EQ(known, known_to_all(directory_ / "site1" / "metrics.jsonl"));
  const std::string report = test::text_of(directory_ / "site0" / "sites_report.txt");
  EXPECT_EQ(report, test::text_of(directory_ / "site1" / "sites_report.txt"));
  EXPECT_NE(report.find("Efficiency E(2) = "), std::string::npos) << report;
  EXPECT_EQ(report.find("transforms counted"), std::string::npos) << report;
  if (std::getenv("MAKI_SHOW_REPORT")) std::printf("%s", report.c_str());
}

}  // namespace
}  // namespace maki
