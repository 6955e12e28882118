// Presets, values from files, and numbers that do not fit together.
#include "src/config/resolve.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/error.hpp"
#include "src/config/parse.hpp"
#include "tests/messages.hpp"
#include "tests/places.hpp"

namespace maki {
namespace {

using namespace test;

constexpr std::uint64_t kCube64 = 64 * 64 * 64;

Config box_50(const std::vector<std::string>& settings = {}) {
  return parse_config("[box]\nsize = \"50 Mpc/h\"\n", "run.toml", settings);
}

Config resolved(Config config, std::uint64_t particles = kCube64) {
  std::vector<std::string> notes;
  resolve(config, {particles, nullptr, 0}, notes);
  return config;
}

std::string refusal(Config config, const InitialFacts& facts = {kCube64, nullptr, 0}) {
  std::vector<std::string> notes;
  return error_of([&] { resolve(config, facts, notes); });
}

// A key that another one makes idle is told; one that is left at its default is not.
TEST(IdleKeys, AreToldWhereTheyAreGiven) {
  EXPECT_TRUE(idle_keys(box_50()).empty());
  EXPECT_TRUE(idle_keys(box_50({"time.fixed_step=0.01", "run.deterministic=true", "output.image=false"})).empty());
  const std::vector<std::string> expected = {
      "time.eta has no effect: time.fixed_step is given.",
      "gravity.reuse_tolerance has no effect: gravity.reuse is given.",
      "gravity.let_compression has no effect: run.deterministic is set.",
      "output.image_low has no effect: there are neither images nor a film.",
  };
  EXPECT_EQ(idle_keys(box_50({"time.fixed_step=0.01", "time.eta=0.3", "run.deterministic=true", "gravity.reuse=2",
                              "gravity.reuse_tolerance=2", "gravity.let_compression=true", "output.image=false",
                              "output.image_low=1"})),
            expected);
  EXPECT_TRUE(idle_keys(box_50({"output.image=false", "output.film=9", "output.image_low=1"})).empty());
}

// A restart keeps what was chosen, and is read with the ranges of the keys.
TEST(Presets, ChooseNumbersWithinTheirRanges) {
  for (const char* const preset : {"fast", "standard", "precise"})
    for (const std::uint64_t side : {4, 64, 2732, 4642, 16384}) {
      const Config config = resolved(box_50({fmt::format("preset={}", preset), "softening=0.5 kpc/h",
                                             fmt::format("particles_per_side={}", side)}),
                                     side * side * side);
      EXPECT_NO_THROW(parse_config(to_toml(config), "restart")) << preset << ' ' << side;
    }
}

TEST(Presets, FillOnlyWhatIsAuto) {
  for (const Preset preset : {Preset::kFast, Preset::kStandard, Preset::kPrecise}) {
    Config config = box_50({"gravity.r_cut=5"});
    config.run.preset = preset;
    config = resolved(config);
    EXPECT_EQ(preset_numbers(preset).preset, preset);
    EXPECT_EQ(config.gravity.r_cut, 5.0);
    EXPECT_EQ(config.gravity.theta, preset_numbers(preset).theta);
    EXPECT_LE(*config.gravity.theta_early, *config.gravity.theta);
    EXPECT_EQ(*config.gravity.mesh % 2, 0);
    EXPECT_EQ(parse_config(to_toml(config), "dump"), config);
  }
}

TEST(Presets, AnErrorOfForcesSetsTheirKeysAlone) {
  double last_theta = 9, last_cut = 0;
  for (const double error : {1.0, 3e-3, 2e-3, 1e-3, 5e-4, 3e-4, 2e-4, 1e-4}) {
    const std::string setting = fmt::format("gravity.error={}", error);
    const Config config = resolved(box_50({setting}));
    const Config given = resolved(
        box_50({setting, "gravity.theta=0.55", "gravity.r_cut=4.2", "output.error_targets=7", "run.preset=fast"}));
    EXPECT_LE(*config.gravity.theta, last_theta);
    EXPECT_GE(*config.gravity.r_cut, last_cut);
    EXPECT_EQ(config.output.error_targets, kErrorTargets);
    EXPECT_EQ(config.time.eta, preset_numbers(Preset::kStandard).eta);
    EXPECT_EQ(given.gravity.theta, 0.55);
    EXPECT_EQ(given.gravity.r_cut, 4.2);
    EXPECT_EQ(given.gravity.split_order, config.gravity.split_order);
    EXPECT_EQ(given.output.error_targets, 7);
    EXPECT_EQ(given.time.eta, preset_numbers(Preset::kFast).eta);
    last_theta = *config.gravity.theta;
    last_cut = *config.gravity.r_cut;
  }
  EXPECT_EQ(last_cut, 7.5);
  EXPECT_THROW(box_50({"gravity.error=9e-5"}), Error);
  EXPECT_EQ(resolved(box_50()).output.error_targets, 0);
}

Config sphere(const std::vector<std::string>& settings) {
  const std::string text = "[run]\nkind = \"isolated\"\n[initial]\nkind = \"plummer\"\n[gravity]\nsoftening = 0.01\n";
  return parse_config(text + "[box]\nsize = 8\n", "run.toml", settings);
}

TEST(Presets, AnErrorOfForcesOnALatticeWithoutItsMeshHasTighterNumbers) {
  const auto r_cut = [](std::uint64_t particles, const char* setting = "gravity.error=1e-3") {
    return *resolved(box_50({setting}), particles).gravity.r_cut;
  };
  EXPECT_EQ(r_cut(48 * 48 * 48), 2.85);
  EXPECT_EQ(r_cut(50 * 50 * 50), 4.0);
  EXPECT_EQ(r_cut(50 * 50 * 50 + 1), 2.85);  // no lattice
  EXPECT_EQ(r_cut(48 * 48 * 48, "run.preset=fast"), 2.48);
  EXPECT_EQ(r_cut(50 * 50 * 50, "run.preset=fast"), 2.56);
}

// Cells open by angle where errors cannot be estimated, by a smaller one for as good forces.
TEST(Presets, AnErrorOfForcesMakesTheAngleSmallerWhereCellsOpenByIt) {
  const Config by_error = resolved(sphere({"gravity.error=1e-3"}));
  EXPECT_EQ(by_error.gravity.opening, Opening::kError);
  for (const char* setting : {"run.deterministic=true", "gravity.reuse=1", "gravity.opening=angle"}) {
    const Config by_angle = resolved(sphere({"gravity.error=1e-3", setting}));
    EXPECT_EQ(by_angle.gravity.opening, Opening::kAngle);
    EXPECT_LT(*by_angle.gravity.theta, 0.9 * *by_error.gravity.theta);
  }
}

TEST(Presets, AnEstimatedErrorNeedsCellsWithQuadrupoles) {
  expect_contains(refusal(sphere({"gravity.opening=error", "gravity.quadrupoles=false"})), {"gravity.quadrupoles"});
  expect_contains(refusal(box_50({"gravity.error=1e-3", "gravity.quadrupoles=false"})), {"gravity.quadrupoles"});
  EXPECT_EQ(refusal(sphere({"gravity.method=direct"})), "");
}

// What a run goes on with.
TEST(Presets, WhatWasChosenForOtherKeysIsChosenAgain) {
  const auto again = [](const Config& before, auto change) {
    Config now = before;
    change(now);
    choose_again(now, before, kCube64);
    return resolved(now);
  };
  const Config plain = resolved(box_50({"time.eta=0.21"})),
               strict = resolved(box_50({"time.eta=0.21", "gravity.error=2e-4"}));
  EXPECT_EQ(again(plain, [](Config&) {}), plain);
  EXPECT_EQ(again(plain, [](Config& c) { c.gravity.error = 2e-4; }), strict);
  EXPECT_EQ(again(strict, [](Config& c) { c.gravity.error.reset(); }), plain);
  const Config given = again(plain, [](Config& c) { c.gravity.error = 2e-4, c.gravity.theta = 0.33; });
  EXPECT_EQ(given.gravity.theta, 0.33);
  EXPECT_EQ(given.gravity.r_cut, strict.gravity.r_cut);
  EXPECT_EQ(again(resolved(sphere({})), [](Config& c) { c.gravity.reuse = 1; }).gravity.opening, Opening::kAngle);
}

TEST(Presets, TheClusterConfigurationTellsItsMesh) {
  const std::string name = source_directory() + "/configs/cluster.toml";
  const std::string text = text_of(name);
  const Config config = resolved(parse_config(text, name), std::uint64_t{1} << 30);
  EXPECT_NE(text.find("mesh has " + std::to_string(*config.gravity.mesh) + " cells a side"), std::string::npos)
      << *config.gravity.mesh;
}

TEST(Presets, MeshesSuitTheTransforms) {
  EXPECT_EQ(good_mesh(8), 8);
  EXPECT_EQ(good_mesh(63.2), 64);
  EXPECT_EQ(good_mesh(65), 70);
  EXPECT_EQ(good_mesh(2 * 131), 270);
}

TEST(Presets, MeshesHaveThreeCellsToTwoParticlesOrLittleMore) {
  struct Case {
    double factor, particles;
    std::int64_t cells;
  };
  constexpr Case kCases[] = {{1.5, 64, 96},  {1.53, 64, 98},  {1.53, 32, 50}, {1.53, 36, 56},
                             {1.53, 24, 36}, {1.53, 48, 72},  {1.53, 40, 60}, {1.5, 50, 76},
                             {1.5, 90, 136}, {1.5, 250, 378}, {1.5, 18, 28},  {1.53, 128, 196}};
  for (const auto& [factor, particles, cells] : kCases)
    EXPECT_EQ(force_mesh(factor, particles), cells) << factor << ' ' << particles;
}

TEST(Resolve, TwiceIsOnce) {
  const Config once = resolved(box_50());
  EXPECT_EQ(resolved(once), once);
}

TEST(Resolve, UnsetKeysTakeTheFilesValues) {
  SnapshotHeader header;
  static_cast<Background&>(header) = {.omega0 = 0.25, .omega_lambda = 0.75, .hubble = 0.73, .w0 = -0.9, .wa = -0.2};
  header.redshift = 49, header.box_size = 50000;
  header.units.length_cgs = 1e-3 * kMpcCgs;  // kpc/h
  Config config = parse_config("[initial]\nkind='file'\nfile='ic'\n[cosmology]\nhubble_param=0.7\n", "run.toml");
  std::vector<std::string> notes;
  resolve(config, {kCube64, &header, 0}, notes);
  EXPECT_EQ(config.cosmology.omega0, 0.25);
  EXPECT_EQ(config.cosmology.omega_lambda, 0.75);
  EXPECT_EQ(config.cosmology.hubble_param, 0.7);
  EXPECT_EQ(cosmology_parameters(config).beyond_lambda(), ", w0 -0.9, wa -0.2");
  ASSERT_EQ(notes.size(), 1u);  // the user's h is not the file's
  EXPECT_NEAR(number_of(*config.box.size, "box.size", config, header.units), 50000, 1e-8);
  EXPECT_NEAR(number_of(*config.gravity.softening, "gravity.softening", config, header.units), 50000.0 / 64 / 30, 1e-9);

  config.box.size = Quantity{51, "Mpc/h"};
  expect_contains(refusal(config, {kCube64, &header, 0}), {"box.size"});
  header.comoving = false;
  expect_contains(refusal(config, {kCube64, &header, 0}), {"run.kind"});
}

TEST(Resolve, SofteningIsAThirtiethOfTheSpacingInAnyBox) {
  for (const double mpc : {1e-9, 1e-6, 0.05, 50.0, 1e6}) {
    const Config config = resolved(box_50({fmt::format("box.size={} Mpc/h", mpc)}));
    const double softening = number_of(*config.gravity.softening, "gravity.softening", config, UnitSystem{});
    EXPECT_NEAR(softening / (mpc / 64 / 30), 1, 1e-14) << mpc;
  }
}

// As the root of the part that a close pair has of the energy of all: (2 spacings / 2.837 n softenings).
TEST(Resolve, StepsOfFewParticlesAreShort) {
  const PresetNumbers& standard = preset_numbers(Preset::kStandard);
  for (const std::uint64_t side : {4, 8, 16, 64}) {
    Config config = box_50();
    std::vector<std::string> notes;
    resolve(config, {side * side * side, nullptr, 0}, notes);
    const double part = 60 / (2.837 * static_cast<double>(side * side * side));
    const double factor = std::min(1.0, std::sqrt(0.01 / part));
    EXPECT_NEAR(*config.time.eta, factor * standard.eta, 1e-9) << side;
    EXPECT_NEAR(*config.time.long_dlna, factor * standard.long_dlna, 1e-9) << side;
    EXPECT_NEAR(*config.time.max_dlna, factor * standard.max_dlna, 1e-9) << side;
    const Config plain = resolved(box_50({"time.growth_exact=false"}), side * side * side);
    EXPECT_NEAR(*plain.time.max_dlna, factor * standard.long_dlna, 1e-9) << side;
    Config again = config;
    resolve(again, {side * side * side, nullptr, 0}, notes);
    EXPECT_EQ(again, config);
    EXPECT_EQ(notes, std::vector<std::string>());
  }
  for (const double alike : {500.0, 2.0, 1e6}) {  // so many heavy ones have nearly all of the mass, among many
    Config heavy = box_50();
    std::vector<std::string> told;
    resolve(heavy, {kCube64, nullptr, 0, alike}, told);
    const double factor = std::sqrt(0.01 * 2.837 * alike / (2 * 30 * std::cbrt(kCube64 / alike)));
    EXPECT_NEAR(*heavy.time.eta, std::clamp(factor, 0.1, 1.0) * standard.eta, 1e-9);
    EXPECT_EQ(*heavy.time.long_dlna, standard.long_dlna);
    EXPECT_EQ(told.size(), alike < 1e4 ? 1u : 0u);
    resolve(heavy, {kCube64, nullptr, 0, 0}, told);  // resumed
    EXPECT_NEAR(*heavy.time.eta, std::clamp(factor, 0.1, 1.0) * standard.eta, 1e-9);
    EXPECT_EQ(told.size(), alike < 1e4 ? 1u : 0u);
  }
  Config given = box_50({"eta=0.3", "softening=26"});
  std::vector<std::string> notes;
  resolve(given, {64, nullptr, 0}, notes);
  EXPECT_EQ(given.time.eta, 0.3);
  ASSERT_EQ(notes.size(), 1u);
  expect_contains(notes[0], {"Warning: time.eta = 0.3 is long for 64 particles"});
}

TEST(Resolve, TheGradientOfCicIsNotThatOfItsCloud) {
  std::vector<std::string> notes;
  Config config = box_50({"assignment=cic", "softening=26"});
  resolve(config, {1 << 18, nullptr, 0}, notes);
  EXPECT_EQ(config.gravity.gradient, Gradient::kFourPoint);
  EXPECT_TRUE(notes.empty());
  config = box_50({"assignment=cic", "softening=26", "gradient=analytic"});
  resolve(config, {1 << 18, nullptr, 0}, notes);
  EXPECT_EQ(config.gravity.gradient, Gradient::kAnalytic);
  ASSERT_EQ(notes.size(), 1u);
  expect_contains(notes[0], {"off by 2 to 4 %"});
}

TEST(Resolve, RefusesWhatDoesNotFitTogether) {
  EXPECT_EQ(refusal(box_50()), "");
  expect_contains(refusal(Config()), {"box.size is not set"});
  expect_contains(refusal(box_50({"end_redshift=50"})), {"ends before it starts"});
  expect_contains(refusal(box_50({"redshifts=60"})), {"output.redshifts holds 60"});
  expect_contains(refusal(box_50({"softening=900"})), {"mesh cells"});
  expect_contains(refusal(box_50({"softening=400"})), {"too large for gravity.r_cut", "use less than 0.2688"});
  expect_contains(refusal(box_50({"softening=0.001"})), {"too small"});
  expect_contains(refusal(box_50({"gravity.mesh=8", "r_cut=4"})), {"too long"});
  expect_contains(refusal(box_50({"gravity.mesh=65"})), {"odd"});
  expect_contains(refusal(box_50({"particles_per_side=33"})), {"odd"});
  expect_contains(refusal(box_50({"omega_baryon=0.5"})), {"omega_baryon"});
  expect_contains(refusal(box_50({"transfer=table"})), {"transfer_table"});
  expect_contains(refusal(box_50({"run.name="})), {"run.name is empty"});
  expect_contains(refusal(box_50({"output.subset=1e-9"})), {"leaves none of"});
  expect_contains(refusal(box_50({"initial.kind=file"})), {"initial.file"});
  expect_contains(refusal(box_50({"initial.kind=plummer"})), {"run.kind"});
}

TEST(Resolve, IsolatedSetsNeedASoftening) {
  Config config = parse_config("[run]\nkind='isolated'\n[initial]\nkind='plummer'\n", "run.toml");
  expect_contains(refusal(config, {1000, nullptr, 64}), {"gravity.softening is not set"});
  config.gravity.softening = Quantity{0.01, ""};
  EXPECT_EQ(refusal(config, {1000, nullptr, 64}), "");
  config.box.size = Quantity{32, ""};
  expect_contains(refusal(config, {1000, nullptr, 64}), {"too small"});
  config.box.size.reset();
  config.output.times = {{2, ""}};
  expect_contains(refusal(config, {1000, nullptr, 64}), {"output.times"});
  EXPECT_EQ(refusal(sphere({"output.image_width=1000", "output.image_depth=50"})), "") << "wider than the box";
  expect_contains(refusal(sphere({"output.image_width=1e9"})),
                  {"image_width = 1000000000", "a million times the box", "8"});
  expect_contains(refusal(box_50({"output.image_depth=51"})), {"image_depth = 51", "more than the box"});
}

TEST(Resolve, OutputsAtAnInterval) {
  const auto run = [](const std::vector<std::string>& settings) {
    return parse_config(
        "run.kind = \"isolated\"\ninitial.kind = \"plummer\"\ntime.end_time = \"1 Gyr\"\n"
        "[units]\nlength = \"1 kpc\"\nmass = \"1e10 Msun\"\nvelocity = \"1 km/s\"\n",
        "run.toml", settings);
  };
  const auto times = [&](const std::vector<std::string>& settings) {
    const Config config = run(settings);
    return output_times(config, run_units(config, nullptr));
  };
  EXPECT_TRUE(times({}).empty());
  const double gyr = times({"output.times=[\"1 Gyr\"]"}).at(0);
  const std::vector<double> mixed = times({"output.interval=250 Myr", "output.times=[\"0.1 Gyr\"]"});
  ASSERT_EQ(mixed.size(), 6u);
  EXPECT_DOUBLE_EQ(mixed[0], 0.1 * gyr);
  for (std::size_t i = 1; i < mixed.size(); ++i) EXPECT_NEAR(mixed[i], 0.25 * gyr * static_cast<double>(i - 1), 1e-12);
  EXPECT_EQ(times({"output.interval=0.3 Gyr"}).size(), 4u);
  EXPECT_EQ(times({"output.interval=0.1 Gyr"}).size(), 11u);  // in spite of rounding
  EXPECT_EQ(times({"output.interval=2 Gyr"}).size(), 1u);
  expect_contains(test::error_of([&] { times({"output.interval=1 yr"}); }), {"1 yr", "1e+09 snapshots", "1 Gyr"});
}

TEST(Resolve, TimesAreToldInTheUnitOfTheEnd) {
  const auto run = [](const std::string& end) {
    return parse_config(
        "run.kind = \"isolated\"\ninitial.kind = \"plummer\"\ngravity.softening = 0.01\n"
        "[units]\nlength = \"kpc\"\nmass = \"1e10 Msun\"\nvelocity = \"km/s\"\n",
        "run.toml", {"end_time=" + end});
  };
  Config config = run("0.05 Gyr");
  SnapshotHeader header;
  header.comoving = false;
  header.units = run_units(config, nullptr);
  const TimeUnit gyr = time_unit(config, header.units);
  EXPECT_NEAR(gyr.length, 1 / 0.9777922, 1e-6);
  header.time = 0.0673 * gyr.length;
  expect_contains(refusal(config, {1000, &header, 64}), {"time.end_time is 0.05 Gyr", "it starts at 0.0673 Gyr"});
  config = run("0.05");
  expect_contains(refusal(config, {1000, &header, 64}), {"time.end_time is 0.05 kpc/(km/s)"});
}

TEST(Resolve, UnitsOfIsolatedRuns) {
  Config config;
  config.run.kind = RunKind::kIsolated;
  UnitSystem units = run_units(config, nullptr);
  EXPECT_TRUE(pure_numbers(units));
  EXPECT_EQ(run_gravitational_constant(config, units, nullptr), 1);
  config.units.length = Quantity{1, "AU"};
  EXPECT_THROW(run_units(config, nullptr), Error);
  config.units.mass = Quantity{1, "Msun"};
  units = run_units(config, nullptr);
  EXPECT_NEAR(run_gravitational_constant(config, units, nullptr), 1, 1e-12);
  EXPECT_NEAR(units.velocity_cgs, 29.7847e5, 100);  // the Earth's
  config.units.length = Quantity{1, "kpc/h"};
  EXPECT_THROW(run_units(config, nullptr), Error);
}

TEST(Resolve, UnitsOfCosmologicalRunsCarryH) {
  Config config;
  config.units.length = Quantity{1, "kpc/h"};
  EXPECT_DOUBLE_EQ(run_units(config, nullptr).length_cgs, 3.085677581491367e21);
  config.units.length = Quantity{1, "kpc"};
  EXPECT_THROW(run_units(config, nullptr), Error);
  config.units.length.reset();
  config.units.mass = Quantity{1, "Msun"};
  EXPECT_THROW(run_units(config, nullptr), Error);
}

TEST(Check, ResolutionIs256UnitsOfTheLastBit) {
  EXPECT_NO_THROW(check_resolution(257.0 / 4294967296.0, 1));
  EXPECT_THROW(check_resolution(255.0 / 4294967296.0, 1), Error);
}

}  // namespace
}  // namespace maki
