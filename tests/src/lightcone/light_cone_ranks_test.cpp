// The light cone of a box is the same set on any number of ranks, and of what the particles do between its steps.
#include "src/lightcone/light_cone.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <utility>

#include "src/lightcone/cone_state.hpp"
#include "src/run/run_options.hpp"
#include "src/run/run_products.hpp"
#include "src/run/start_run.hpp"
#include "tests/src/io/io_helpers.hpp"
#include "tests/src/lightcone/cone_reader.hpp"
#include "tests/src/simulation/recorded_runs.hpp"

namespace maki {
namespace {

using namespace test;
using LightConeOnRanks = InSharedDir;

constexpr const char* kBox = R"(
[box]
size = "400 Mpc/h"
[initial]
redshift = 1
particles_per_side = 16
[run]
deterministic = true
[lightcone]
observers = [400, 0, 123.4]
edges = [0, 0.15, 0.35]
shells = 2
nside = 16
)";

// A light cone beside a run, and where each particle was at the ends of its steps.
struct Watcher : RunObserver {
  Watcher(const LightConeOptions& options, const LightCone::Place& place, const Timeline& of)
      : timeline(of), cone(options, 0, place, make_provenance()) {}
  void drifted(const Drift& drift) override {
    for (const std::string& file : cone.drifted(drift, timeline)) files.push_back(file);
    if (after_drift) after_drift();
    if (!store) return;
    const OutputState end{0, drift.header, drift.stream, drift.particles, drift.frame, {}};
    drifts.push_back({drift.begin, drift.end, end.snapshot()});
  }
  struct Stored {
    double begin, end;
    Snapshot at_end;
  };
  Timeline timeline;
  LightCone cone;
  bool store = false;
  std::function<void()> after_drift = {};
  std::vector<std::string> files;
  std::vector<Stored> drifts;
};

// Runs the box on `ranks` and writes its light cone to `folder`.
std::unique_ptr<Watcher> run_box(const std::string& folder, const Communicator& ranks, bool store = false,
                                 const std::vector<std::string>& settings = {},
                                 const std::function<void()>& after_drift = {}) {
  Prepared run = prepare(parse_config(kBox, "test.toml", settings), true, ranks);
  const Timeline timeline = timeline_of(run);
  auto watcher =
      std::make_unique<Watcher>(light_cone_options(run, timeline), LightCone::Place{ranks, folder}, timeline);
  watcher->store = store;
  watcher->after_drift = after_drift;
  const SimulationOptions options = simulation_options(run);
  Simulation simulation(test_stream(), std::move(run.initial), options, timeline, *watcher, ranks);
  simulation.run();
  return watcher;
}

TEST_F(LightConeOnRanks, IsTheSameSetAsOnOne) {
  const auto here = run_box(dir.path(), world);
  EXPECT_EQ(here->files.size(), 8u) << "four shells, each with particles and a map";
  if (world.rank() > 0) return;
  const TempDir alone;
  run_box(alone.path(), Communicator::self());
  std::size_t particles = 0;
  for (const char* name : {"conesnap_000.hdf5", "conesnap_001.hdf5", "conesnap_002.hdf5", "conesnap_003.hdf5"}) {
    const auto wanted = read_shell(alone / name), found = read_shell(dir / name);
    EXPECT_EQ(found, wanted) << name;
    particles += found.size();
  }
  EXPECT_GT(particles, 50000u);
  for (const char* name : {"map_000.fits", "map_003.fits"}) {
    const std::string bytes = text_of(alone / name);
    EXPECT_GT(bytes.size(), 12u * 16 * 16 * 8);
    EXPECT_TRUE(bytes == text_of(dir / name)) << name;
  }
}

// Of the particles of all steps, each taken by itself: images in a shell when the light passed, counted by brute force.
void expect_every_image_once(const std::vector<std::string>& settings) {
  const TempDir folder;
  const auto run = run_box(folder.path(), Communicator::self(), true, settings);
  const Timeline& timeline = run->timeline;
  const double side = 400, near = light_distance(timeline, 0), far = light_distance(timeline, -std::log(1.35));
  const std::array<double, 3> observer = {400, 0, 123.4};
  std::map<std::uint64_t, std::array<double, 3>> places;  // of the end of the step before, not wrapped
  std::map<std::uint64_t, int> wanted, found;             // images by ID
  for (const auto& step : run->drifts) {
    const double before = light_distance(timeline, step.begin), after = light_distance(timeline, step.end);
    for (std::size_t i = 0; i < step.at_end.size(); ++i) {
      const std::array<double, 3>& end = step.at_end.positions[i];
      auto [place, first] = places.try_emplace(step.at_end.ids[i], end);
      std::array<double, 3> begin = place->second;
      for (std::size_t axis = 0; axis < 3; ++axis) begin[axis] += side * std::round((end[axis] - begin[axis]) / side);
      place->second = end;
      if (first || after >= far || before <= near) continue;
      const int reach = static_cast<int>(before / side) + 2;
      for (int n = 0; n < (2 * reach + 1) * (2 * reach + 1) * (2 * reach + 1); ++n) {
        const int w = 2 * reach + 1;
        const double image[3] = {side * (n % w - reach), side * (n / w % w - reach), side * (n / w / w - reach)};
        double from = 0, to = 0;
        for (std::size_t axis = 0; axis < 3; ++axis) {
          from += std::pow(begin[axis] + image[axis] - observer[axis], 2);
          to += std::pow(end[axis] + image[axis] - observer[axis], 2);
        }
        from = std::sqrt(from), to = std::sqrt(to);
        if (!(from < before && to >= after)) continue;
        // Where the two straight lines meet: the step in which the light passes the outermost edge decides by that.
        const double part = (before - from) / (before - from + to - after);
        wanted[step.at_end.ids[i]] += before + part * (after - before) < far ? 1 : 0;
      }
    }
  }
  std::size_t particles = 0;
  for (int k = 0; k < 4; ++k) {
    const std::string file = folder / ("conesnap_00" + std::to_string(k) + ".hdf5");
    const auto edges = read_attribute<double>(open_group(open_hdf5(file), "Header"), "ShellDistances");
    for (const ReadParticle& particle : read_shell(file)) {
      ++found[particle.id];
      ++particles;
      EXPECT_GE(particle.distance(), edges[0] - 1e-9);
      EXPECT_LT(particle.distance(), edges[1] + 1e-9);
      EXPECT_NEAR(particle.distance(), light_distance(timeline, std::log(particle.scale_factor)), 2e-3);
    }
  }
  std::size_t differ = 0;
  for (const auto& [id, count] : wanted) differ += found[id] != count;
  EXPECT_LE(differ, 3u) << "of " << particles << "; at the outermost edge the straight line is a little off";
  EXPECT_EQ(wanted.size(), 4096u);
}

TEST_F(LightConeOnRanks, HoldsEveryImageOnceAndWhereItWas) {
  if (Communicator::world().size() > 1) GTEST_SKIP() << "one rank";
  expect_every_image_once({});
  expect_every_image_once({"time.end_redshift=-0.05"});  // a step begins before z = 0 and ends after it
}

TEST_F(LightConeOnRanks, MapsAreTheMassOfTheParticles) {
  run_box(dir.path(), world);
  if (world.rank() > 0) return;
  for (int k = 0; k < 4; ++k) {
    const std::string number = "00" + std::to_string(k);
    std::vector<double> wanted(sky_pixels(16));
    const H5Id file = open_hdf5(dir / ("conesnap_" + number + ".hdf5"));
    const double mass = read_attribute<double>(open_group(file, "Header"), "MassTable").at(1);
    for (const ReadParticle& particle : read_shell(dir / ("conesnap_" + number + ".hdf5")))
      wanted[sky_pixel(16, particle.position)] += mass;
    const std::vector<double> map = read_sky_map(dir / ("map_" + number + ".fits"));
    ASSERT_EQ(map.size(), wanted.size());
    double worst = 0;
    for (std::size_t i = 0; i < map.size(); ++i) worst = std::max(worst, std::fabs(map[i] - wanted[i]));
    EXPECT_LT(worst, 1e-9 * *std::max_element(wanted.begin(), wanted.end()));
  }
}

TEST_F(LightConeOnRanks, ItsFolderIsMadeAgain) {
  const std::string folder = dir.path() + "/lightcone_00";
  bool removed = false;
  const auto watcher = run_box(folder, world, false, {}, [&] {
    if (world.rank() == 0 && !std::exchange(removed, true)) std::filesystem::remove_all(folder);
  });
  EXPECT_EQ(watcher->files.size(), 8u) << "four shells and their maps";
}

TEST_F(LightConeOnRanks, ASpoolThatIsRemovedEndsTheRunAtOnce) {
  const auto remove_spools = [&] {
    world.barrier();
    if (world.rank() == 0)
      for (const std::string& name : names_in(dir.path()))
        if (spool::rank_of(name) >= 0) std::filesystem::remove(dir.path() + "/" + name);
    world.barrier();
  };
  expect_error([&] { run_box(dir.path(), world, false, {}, remove_spools); },
               {".spool'", "removed or cut off during the run", "maki resume"});
}

// States of light cones that are read on other numbers of ranks.

constexpr int kSpools = 7;

spool::RunningMark mark_of(int rank) {
  spool::RunningMark running;
  running.add(std::vector<ShellParticle>(static_cast<std::size_t>(rank) + 1));
  return running;
}

// A folder with spools of seven ranks, all of which the state of the last rank names: so it comes about where a run has
// changed its number of ranks twice.
class StateOfOtherRanks : public InSharedDir {
 protected:
  void SetUp() override {
    ConeState state;
    for (int rank = 0; world.rank() == world.size() - 1 && rank < kSpools; ++rank) {
      spool::append(path(rank), std::vector<ShellParticle>(static_cast<std::size_t>(rank) + 1));
      state.spools[spool::name_of(0, rank)] = mark_of(rank).mark();
    }
    state.maps[0] = {0, {1, 2, 3}};
    write_cone_state(folder_, 12, state, world);
  }
  std::string path(int rank) const { return folder_ + "/" + spool::name_of(0, rank); }

  const std::string folder_ = dir.path();
};

TEST_F(StateOfOtherRanks, GivesEachSpoolToTheRankThatSeesToIt) {
  const auto spools = reopen_spools(folder_, read_cone_states(folder_, 12, world), world);
  for (int rank = 0; rank < kSpools; ++rank) {
    const auto found = spools.find(spool::name_of(0, rank));
    ASSERT_EQ(found != spools.end(), rank % world.size() == world.rank()) << rank;
    if (found == spools.end()) continue;
    EXPECT_EQ(found->second.mark(), mark_of(rank).mark());
  }
  EXPECT_EQ(damage_of_cone(folder_, 12, world), "");
}

TEST_F(StateOfOtherRanks, IsDamagedWhereASpoolOrAStateIs) {
  expect_contains(damage_of_cone(folder_, 11, world), {"no state of step 11"});
  world.barrier();
  if (world.rank() == 0) spool::cut(path(3), 100);
  world.barrier();
  expect_contains(damage_of_cone(folder_, 12, world), {"conesnap_000.3.spool' has been cut off"});
  world.barrier();
  if (world.rank() == 0) spool::cut(path(3), 0);
  world.barrier();
  expect_contains(damage_of_cone(folder_, 12, world), {"conesnap_000.3.spool"});
}

}  // namespace
}  // namespace maki
