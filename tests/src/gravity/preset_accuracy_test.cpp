// The three presets against the Ewald sum: on initial conditions, and (Full...) on the end of the quickstart run.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <random>

#include "src/config/parse.hpp"
#include "src/io/snapshot_io.hpp"
#include "src/run/forces.hpp"
#include "tests/force_errors.hpp"
#include "tests/places.hpp"
#include "tests/temp_dir.hpp"

namespace maki {
namespace {

using testing::ForceErrors;

// Forces of one set with several settings; the exact ones are summed once.
class Comparison {
 public:
  Comparison(const std::string& config, const Snapshot& set, std::size_t targets)
      : config_(config), set_(set), targets_(spread_targets(set.size(), targets)) {
    exact_ = forces_of(prepare(load_config(config_, kFixed), set_), ForceMethod::kEwald, targets_);
  }
  ForceErrors operator()(const char* name, std::vector<std::string> overrides) const {
    overrides.insert(overrides.end(), kFixed.begin(), kFixed.end());
    const Prepared run = prepare(load_config(config_, overrides), set_);
    const ForceErrors e =
        testing::force_errors(forces_of(run, ForceMethod::kRun, targets_).acceleration, exact_.acceleration);
    std::printf("  z %-5.3g %-10s median %.2e  99 %% %.2e  rms %.2e\n", set_.header.redshift, name, e.median, e.p99,
                e.rms);
    return e;
  }

 private:
  inline static const std::vector<std::string> kFixed = {"time.end_redshift=-0.5"};
  std::string config_;
  Snapshot set_;
  std::vector<std::size_t> targets_;
  SetForces exact_;
};

std::vector<std::string> s2(int mesh) {
  return {"run.preset=fast",
          "gravity.split=s2",
          "gravity.r_cut=3",
          "gravity.mesh=" + std::to_string(mesh),
          "gravity.assignment=tsc",
          "gravity.interlacing=none",
          "gravity.gradient=four-point"};
}

const std::string kQuickstart = test::source_directory() + "/configs/quickstart.toml";

TEST(PresetAccuracy, InitialConditions) {
  const Prepared small = prepare(load_config(kQuickstart, {"particles_per_side=32"}));
  const Comparison compare(kQuickstart, small.initial, 300);
  EXPECT_LE(compare("standard", {"run.preset=standard"}).rms, 3e-3);
  EXPECT_LE(compare("precise", {"run.preset=precise"}).rms, 3e-4);
  EXPECT_LE(compare("fast", {"run.preset=fast"}).rms, compare("S2, 3", s2(32)).rms);
}

// A displaced lattice of 32^3 whose first particle has `ratio` times the mass of the others.
Snapshot lattice_with_heavy(Snapshot set, float ratio, std::mt19937& random) {
  std::uniform_real_distribution<double> jitter(-0.3, 0.3);
  const double box = set.header.box_size, cell = box / 32;
  const double total = std::accumulate(set.masses.begin(), set.masses.end(), 0.0);
  for (std::size_t i = 0; i < set.size(); ++i) {
    const std::size_t site[3] = {i / 1024, i / 32 % 32, i % 32};
    for (int axis = 0; axis < 3; ++axis) {
      const double x = (static_cast<double>(site[axis]) + 0.5 + jitter(random)) * cell;
      set.positions[i][static_cast<std::size_t>(axis)] = x;
    }
    set.masses[i] = static_cast<float>(total / (static_cast<double>(set.size()) - 1 + ratio));
  }
  set.masses[0] *= ratio;
  return set;
}

// Error of a lone heavy particle over its acceleration, rms of six sets.
double heavy_error(const std::string& preset, const Snapshot& lattice, float ratio) {
  std::mt19937 random(3);
  double sum = 0;
  for (int trial = 0; trial < 6; ++trial) {
    const Snapshot set = lattice_with_heavy(lattice, ratio, random);
    const Prepared run = prepare(load_config(kQuickstart, {"run.preset=" + preset}), set);
    const ForceErrors e = testing::force_errors(forces_of(run, ForceMethod::kRun, {0}).acceleration,
                                                forces_of(run, ForceMethod::kEwald, {0}).acceleration);
    sum += e.rms * e.rms / 6;
  }
  std::printf("  %-10s mass ratio %.0e: %.2e\n", preset.c_str(), ratio, std::sqrt(sum));
  return std::sqrt(sum);
}

TEST(PresetAccuracy, OfOneHeavyParticle) {
  const Snapshot lattice = prepare(load_config(kQuickstart, {"particles_per_side=32"})).initial;
  for (const float ratio : {1e3f, 1e5f}) {
    EXPECT_LE(heavy_error("fast", lattice, ratio), 1e-2);
    EXPECT_LE(heavy_error("standard", lattice, ratio), 3e-3);
  }
}

// A tight pair has nearly all of the rms force, and the forces of all others still nearly cancel.
TEST(PresetAccuracy, OfALatticeWithATightPair) {
  std::mt19937 random(3);
  const Snapshot lattice = prepare(load_config(kQuickstart, {"particles_per_side=32"})).initial;
  Snapshot set = lattice_with_heavy(lattice, 1, random);
  const auto error = [&set] {
    return Comparison(kQuickstart, set, 300)("standard", {"gravity.softening=5 kpc/h"}).p99;
  };
  const double without = error();
  set.positions[1] = set.positions[0];
  set.positions[1][0] += 0.02;
  EXPECT_LE(error(), 1.5 * without);
}

// 2^3 of 16^3 particles are 32^3 light ones; without a deterministic mesh, and with one.
TEST(PresetAccuracy, OfAZoom) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> jitter(-0.1, 0.1);
  Snapshot set;
  const Snapshot lattice = prepare(load_config(kQuickstart, {"particles_per_side=16"})).initial;
  set.header = lattice.header;
  const double cell = set.header.box_size / 16;
  const auto add = [&](double x, double y, double z, double spacing, float mass) {
    set.positions.push_back({x + jitter(random) * spacing, y + jitter(random) * spacing, z + jitter(random) * spacing});
    set.velocities.push_back({});
    set.masses.push_back(mass);
    set.ids.push_back(set.ids.size());
  };
  const auto fill = [&](int side, double begin, double spacing, float mass, bool hole) {
    for (int i = 0; i < side * side * side; ++i) {
      const int at[3] = {i / (side * side), i / side % side, i % side};
      if (hole && std::all_of(at, at + 3, [](int k) { return k == 7 || k == 8; })) continue;
      const auto place = [&](int k) { return begin + (k + 0.5) * spacing; };
      add(place(at[0]), place(at[1]), place(at[2]), spacing, mass);
    }
  };
  fill(16, 0, cell, lattice.masses[0], true);
  fill(32, 7 * cell, cell / 16, lattice.masses[0] / 4096, false);
  const Comparison compare(kQuickstart, set, 300);
  const std::string softening = "gravity.softening=10 kpc/h";
  const double plain = compare("zoom", {"run.deterministic=false", softening}).median;
  EXPECT_LE(compare("zoom, det.", {"run.deterministic=true", softening}).median, 1.2 * plain);
}

TEST(FullPresetAccuracy, QuickstartFromBeginningToEnd) {
  const Prepared start = prepare(load_config(kQuickstart));
  const Comparison early(kQuickstart, start.initial, 1000);
  EXPECT_LE(early("standard", {"run.preset=standard"}).rms, 3e-3);
  EXPECT_LE(early("precise", {"run.preset=precise"}).rms, 3e-4);
  EXPECT_LE(early("fast", {"run.preset=fast"}).rms, early("S2, 3", s2(64)).rms);

  const test::TempDir out;
  const std::string command = test::program() + " run " + kQuickstart + " redshifts=0 image=false " +
                              "output_directory=" + (out / "run") + " > " + (out / "printed") + " 2>&1";
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  const Comparison late(kQuickstart, read_snapshot(out / "run/snapshot_000.hdf5"), 1000);
  const ForceErrors standard = late("standard", {"run.preset=standard"});
  EXPECT_LE(standard.median, 5e-4);
  EXPECT_LE(standard.p99, 5e-3);
  const ForceErrors precise = late("precise", {"run.preset=precise"});
  EXPECT_LE(precise.median, 5e-5);
  EXPECT_LE(precise.p99, 5e-4);
  const ForceErrors fast = late("fast", {"run.preset=fast"}), of_s2 = late("S2, 3", s2(64));
  EXPECT_LE(fast.median, of_s2.median);
  EXPECT_LE(fast.p99, of_s2.p99);
  EXPECT_LE(fast.rms, of_s2.rms);
}

}  // namespace
}  // namespace maki
