// From configurations to the parameters of other rooms.
#include "src/run/setup.hpp"
#include "src/run/initial_sets.hpp"
#include "src/run/run_options.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "src/config/parse.hpp"
#include "src/config/resolve.hpp"
#include "src/ic/models.hpp"
#include "src/io/hdf5_file.hpp"
#include "src/io/snapshot_io.hpp"
#include "src/run/forces.hpp"
#include "tests/src/io/io_helpers.hpp"

namespace maki {
namespace {

using namespace test;
using PreparedRuns = InTempDir;

TEST(IsolatedBox, HoldsTheSetInItsMiddleHalf) {
  Snapshot set;
  set.positions = {{-2.9, 0.5, 0}, {1.9, -1, 0.1}};
  IsolatedBox box = isolated_box(set);
  EXPECT_EQ(box.side, 16);
  EXPECT_EQ(box.centre, (std::array<double, 3>{0, 0, 0}));
  for (auto& position : set.positions) {
    for (double& x : position) x += 1000;  // far from the origin
  }
  box = isolated_box(set);
  EXPECT_EQ(box.side, 16);
  for (const auto& position : set.positions)
    for (int axis = 0; axis < 3; ++axis) EXPECT_LT(std::abs(position[axis] - box.centre[axis]), box.side / 4);
}

TEST_F(PreparedRuns, CosmologicalLengthsBecomeSides) {
  const Prepared run =
      prepare(parse_config("[box]\nsize = \"50 Mpc/h\"\n[initial]\nparticles_per_side = 8\n", "run.toml",
                           {"softening=20", "gravity.mesh=32", "r_cut=4", "max_physical_softening=5 kpc"}));
  EXPECT_EQ(run.initial.size(), 512u);
  EXPECT_EQ(run.side, 50);
  EXPECT_EQ(run.start_redshift, 49);
  const ForceLaw law = force_law(run);
  EXPECT_NEAR(law.softening, 0.02 / 50, 1e-9);
  EXPECT_NEAR(law.r_cut, 4.0 / 32, 1e-7);
  const StepOptions steps = step_options(run.config, run.units);
  EXPECT_NEAR(steps.softening, 0.02, 1e-12);
  EXPECT_NEAR(steps.max_physical_softening, 0.005 * 0.678, 1e-12);
  EXPECT_NEAR(steps.r_cut, 50.0 / 8, 1e-12);
  EXPECT_EQ(mesh_options(run.config).cells, 32);
}

TEST_F(PreparedRuns, EveryInitialConditionCanBeMade) {
  const std::string cosmological = "[box]\nsize = \"50 Mpc/h\"\n[initial]\nparticles_per_side = 8\n";
  EXPECT_EQ(prepare(parse_config(cosmological, "t", {"initial.kind=pancake"})).initial.size(), 512u);
  const std::string isolated = "[run]\nkind = \"isolated\"\n[gravity]\nsoftening = 0.01\n";
  for (const std::string kind : {"plummer", "cold_sphere", "kepler_disk", "two_body"}) {
    std::vector<std::string> settings = {"initial.kind=" + kind};
    if (kind != "two_body") settings.push_back("initial.particles=100");
    const Prepared run = prepare(parse_config(isolated, "t", settings));
    EXPECT_GE(run.initial.size(), 2u) << kind;
    EXPECT_EQ(run.gravitational_constant, 1) << kind;
    EXPECT_EQ(std::exp2(std::round(std::log2(run.side))), run.side) << kind;
    EXPECT_EQ(force_law(run).split, Split::kNone);
  }
}

TEST_F(PreparedRuns, ModelsFollowTheConstantOfGravity) {
  const std::string text = "[run]\nkind = \"isolated\"\n[initial]\nkind = \"two_body\"\n[gravity]\nsoftening = 0.01\n";
  const Prepared one = prepare(parse_config(text, "t"));
  const Prepared four = prepare(parse_config(text, "t", {"gravitational_constant=4"}));
  EXPECT_EQ(four.initial.header.gravitational_constant, 4);
  for (int axis = 0; axis < 3; ++axis)
    EXPECT_FLOAT_EQ(four.initial.velocities[0][axis], 2 * one.initial.velocities[0][axis]);
}

// A star that has flown 10^5 scale lengths: no box for it has coordinates fine enough for this softening.
TEST_F(PreparedRuns, AFarParticleOfAnIsolatedSetBeginsSetAside) {
  Snapshot set = make_plummer({.particles = 60, .truncation_radius = 5});
  set.positions[7] = {0, 1e5, 0};
  set.velocities[7] = {0, 1000, 0};
  const Config config = parse_config("", "t",
                                     {"run.kind=isolated", "initial.kind=file", "initial.file=s", "softening=1e-3",
                                      "end_time=1", "energy_interval=1"});
  const Prepared run = prepare(config, set);
  EXPECT_EQ(run.aside, 1u);
  EXPECT_LE(run.side, 32);

  const Stream stream;
  RunObserver nobody;
  Simulation simulation(stream, set, simulation_options(run), timeline_of(run), nobody);
  const RunResult result = simulation.run();
  EXPECT_LT(result.worst_energy_error, 0.05);
  EXPECT_LT(result.momentum_drift, 1e-4);
  const Snapshot end = simulation.snapshot();
  ASSERT_EQ(end.size(), 60u);
  for (std::size_t i = 0; i < end.size(); ++i)
    if (end.ids[i] == set.ids[7]) {
      EXPECT_NEAR(end.positions[i][1], 1e5 + 1000, 1e-3);
    }
  const SetForces forces = forces_of(run, ForceMethod::kRun, {7});
  EXPECT_NEAR(forces.potential[0] * 1e5, -59.0 * set.masses[0], 1e-3);

  set.resize(12);
  for (std::size_t i = 0; i < 3; ++i) set.positions[i] = {1e6, 0, static_cast<double>(i)};
  expect_error([&] { prepare(config, set); }, {"softening", "too small for a box"});
}

// A set with lengths a thousand times as large.
Snapshot enlarged(Snapshot set) {
  set.header.box_size *= 1000;
  for (auto& position : set.positions)
    for (double& x : position) x *= 1000;
  return set;
}

const WriteOptions kBinary{.format = SnapshotFormat::kGadgetBinary1};  // whose files state no units

// A run that begins with the set of this file.
Prepared run_from(const std::string& file, std::vector<std::string> settings) {
  settings.insert(settings.end(), {"initial.kind=file", "initial.file=" + file});
  return prepare(parse_config("", "t", settings));
}

// A box in kpc/h whose file states neither units nor a cosmology.
TEST_F(PreparedRuns, UnitsOfABareBoxFollowFromTheConfigurationsDensity) {
  Snapshot set = enlarged(make_snapshot(512));
  set.header.omega0 = set.header.omega_lambda = set.header.hubble = 0;
  write_snapshot(dir / "bare", set, {}, kBinary);
  const Prepared run =
      run_from(dir / "bare", {"softening=20 kpc/h", "omega0=0.308", "omega_lambda=0.692", "hubble_param=0.678"});
  EXPECT_NEAR(run.units.length_cgs, 3.0857e21, 1e17);
  const std::string notes = text_of(run.notes);
  expect_contains(notes, {"kpc/h, 1e10 Msun/h and km/s fit its mean density"});
  expect_lacks(notes, {"Mpc/h, 1e10 Msun/h and km/s are assumed", "Warning"});
}

TEST_F(PreparedRuns, AnIsolatedSetWithoutUnitsHasThoseOfTheConfiguration) {
  Snapshot set;
  set.header.comoving = false, set.header.time = 0;
  set.header.units = {1, 1, 1, false};
  set.positions = {{-1, 0, 0}, {1, 0, 0}};
  set.velocities = {{0, -1, 0}, {0, 1, 0}};
  set.masses = {1, 1};
  set.ids = {1, 2};
  const std::string bare = dir / "bare", own = dir / "own.hdf5";
  write_snapshot(bare, set, {}, kBinary);
  write_snapshot(own, set, {}, {});
  const auto prepared = [](const std::string& file, std::vector<std::string> settings) {
    settings.insert(settings.end(), {"run.kind=isolated", "softening=0.01"});
    return run_from(file, settings);
  };
  const std::vector<std::string> kpc = {"units.length=1 kpc", "units.mass=1e10 Msun", "units.velocity=1 km/s"};
  const Prepared galaxy = prepared(bare, kpc);
  EXPECT_NEAR(galaxy.gravitational_constant, 43009, 1);
  EXPECT_NEAR(galaxy.initial.header.units.length_cgs, 3.0857e21, 1e17);
  expect_lacks(text_of(galaxy.notes), {"Warning"});
  const Prepared pure = prepared(bare, {"units.gravitational_constant=1"});
  EXPECT_EQ(pure.gravitational_constant, 1);
  EXPECT_EQ(pure.initial.header.units, (UnitSystem{1, 1, 1, false}));
  const Prepared usual = prepared(bare, {});
  EXPECT_NEAR(usual.gravitational_constant, 43.0092, 1e-4);
  expect_contains(text_of(usual.notes), {"Warning", "states no units", "G = 43.0092", "units.length"});
  expect_error([&] { prepared(bare, {kpc[0], kpc[1]}); }, {"units.velocity is missing"});
  expect_error([&] { prepared(own, kpc); }, {"own.hdf5' has its own units", "leave them out"});

  // Maki's own pure numbers have G = 1 in the file; one that states cgs units and no G means these.
  EXPECT_EQ(prepared(own, {"units.gravitational_constant=1"}).gravitational_constant, 1);
  H5Adelete(open_group(opened(own), "Parameters"), "GravityConstantInternal");
  const Prepared cgs = prepared(own, {});
  EXPECT_NEAR(cgs.gravitational_constant, 6.674e-8, 1e-11);
  expect_contains(text_of(cgs.notes), {"Warning", "cgs units and no constant of gravity"});
}

// GADGET-2 writes Omega0 and BoxSize of isolated sets too, and Time = 1 may be either's.
TEST_F(PreparedRuns, TheKindOfTheRunDecidesWhereTheHeaderFitsBoth) {
  Snapshot set = make_snapshot(8);
  const auto prepared = [&](double time, std::vector<std::string> settings) {
    set.header.time = time;
    set.header.redshift = 1 / time - 1;
    write_snapshot(dir / "set", set, {}, {.format = SnapshotFormat::kGadgetBinary1, .overwrite = true});
    settings.push_back("softening=0.1");
    return run_from(dir / "set", settings);
  };
  const std::vector<std::string> galaxys = {"run.kind=isolated", "end_time=2", "units.length=1 kpc",
                                            "units.mass=1e10 Msun", "units.velocity=1 km/s"};
  const Prepared galaxy = prepared(1, galaxys);
  EXPECT_FALSE(galaxy.initial.header.comoving);
  EXPECT_NEAR(galaxy.gravitational_constant, 43009, 1);
  expect_contains(text_of(galaxy.notes), {"fits a box of today too", "run.kind"});
  EXPECT_TRUE(prepared(1, {"end_redshift=-0.5"}).initial.header.comoving);
  expect_error([&] { prepared(0.5, galaxys); }, {"is a comoving box", "\"cosmology\""});
}

// Of GADGET's headers with Time = 0.
TEST_F(PreparedRuns, InitialRedshiftIsForFilesThatDoNotTellTheirs) {
  const std::string file = dir / "set";
  write_snapshot(file, make_snapshot(8), {}, kBinary);
  const Prepared told = run_from(file, {"initial.redshift=3"});
  const Prepared other = run_from(file, {"initial.redshift=4"});  // as where a configuration is used for a file
  EXPECT_NEAR(other.start_redshift, 3, 1e-12);
  expect_contains(text_of(other.notes), {"initial.redshift = 4 has no effect", "z = 3"});
  std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(76).write("\0\0\0\0\0\0\0\0", 8);
  expect_error([&] { run_from(file, {}); }, {"Time 0 is not", "Redshift of 3", "initial.redshift"});
  const Prepared run = run_from(file, {"initial.redshift=3"});
  EXPECT_NEAR(run.start_redshift, 3, 1e-12);
  EXPECT_EQ(run.initial.velocities, told.initial.velocities);
  expect_contains(text_of(run.notes), {"tells no scale factor: z = 3"});
}

TEST_F(PreparedRuns, ASetInACornerOfItsBoxIsWarnedOf) {
  Snapshot set = make_snapshot(64);
  write_snapshot(dir / "set", set, {}, kBinary);
  expect_lacks(text_of(run_from(dir / "set", {}).notes), {"no coordinate is above"});
  set.header.box_size *= 10;
  for (float& mass : set.masses) mass *= 1000;
  write_snapshot(dir / "corner", set, {}, kBinary);
  expect_contains(text_of(run_from(dir / "corner", {}).notes),
                  {"no coordinate is above", "in the unit of the positions"});
}

TEST_F(PreparedRuns, AComovingSetWithoutUnitsHasThoseOfTheConfigurationToo) {
  Snapshot set = make_snapshot(8);
  set.header.omega0 = 0;  // which would tell kpc from Mpc
  write_snapshot(dir / "bare", set, {}, kBinary);
  write_snapshot(dir / "in kpc", enlarged(set), {}, kBinary);
  const auto prepared = [&](const char* file, std::vector<std::string> settings) {
    settings.insert(settings.end(), {"cosmology.omega0=0.3", "cosmology.hubble_param=0.7", "time.end_redshift=0"});
    return run_from(dir / file, settings);
  };
  const Prepared kpc = prepared("in kpc", {"units.length=1 kpc/h"});
  EXPECT_NEAR(kpc.initial.header.units.length_cgs, kMpcCgs / 1000, 1e17);
  EXPECT_DOUBLE_EQ(kpc.side, 1000 * set.header.box_size);
  expect_contains(text_of(kpc.notes), {"hold for the file, which states none"});
  EXPECT_NEAR(prepared("bare", {}).initial.header.units.length_cgs, kMpcCgs, 1e20);
  expect_error([&] { prepared("bare", {"units.length=1 kpc/h"}); }, {"do not fit the cosmology", "units.length"});
}

TEST_F(PreparedRuns, TheSofteningOfAZoomFollowsItsLightParticles) {
  const auto softening_of = [](double light, std::vector<std::string>& notes) {
    Snapshot set = make_snapshot(512);
    const auto n = static_cast<std::size_t>(light * 512);
    const float all = 512 * set.masses[0], each = set.masses[0] / 64;
    for (std::size_t i = 0; i < 512; ++i)
      set.masses[i] = i < n ? each : (all - static_cast<float>(n) * each) / static_cast<float>(512 - n);
    const Prepared run = prepare(parse_config("", "t", {"initial.kind=file", "initial.file=given"}), set);
    notes = run.notes;
    return number_of(*run.config.gravity.softening, "gravity.softening", run.config, run.units);
  };
  std::vector<std::string> notes;
  EXPECT_NEAR(softening_of(0.75, notes), 50.0 / 8 / 4 / 30, 1e-6);
  expect_contains(text_of(notes), {"particles as light as the lightest"});
  EXPECT_NEAR(softening_of(0.25, notes), 50.0 / 8 / 30, 1e-6);
  expect_contains(text_of(notes), {"set it for a zoom"});
}

TEST_F(PreparedRuns, TypesThatAreNotKeptAreTold) {
  const auto notes = [](const std::array<std::uint64_t, 6>& counts) {
    ReadReport report;
    report.counts = counts;
    const Config config =
        parse_config("", "t",
                     {"initial.kind=file", "initial.file=s", "run.kind=isolated", "softening=1", "end_time=1"});
    return text_of(prepare(config, make_plummer({.particles = 8, .truncation_radius = 5}), report).notes);
  };
  expect_contains(notes({0, 1, 3, 0, 4, 0}), {"of types 2, 4 become type 1", "same softening"});
  expect_contains(notes({8, 0, 0, 0, 0, 0}), {"of type 0 become type 1", "gas"});
  expect_lacks(notes({0, 8, 0, 0, 0, 0}), {"become"});
}

TEST_F(PreparedRuns, ATableThatEndsBeforeTheBoxsWavesIsTold) {
  std::string table;
  for (double k = 0.01; k < 4; k *= 1.2) table += fmt::format("{} {}\n", k, 1e4 * k / std::pow(1 + 50 * k * k, 2));
  std::ofstream(dir / "narrow.txt") << table;
  const auto notes = [&](const std::string& size) {
    const std::string text = "[cosmology]\ntransfer = \"table\"\n[initial]\nparticles_per_side = 8\n";
    const std::vector<std::string> settings = {"transfer_table=" + (dir / "narrow.txt"), "box.size=" + size};
    return text_of(prepare(parse_config(text, "t", settings)).notes);
  };
  expect_lacks(notes("100 Mpc/h"), {"wider table"});
  expect_contains(notes("1000 Mpc/h"), {"Warning", "k = 0.00628 to 0.0326", "narrow.txt has 0.01 to", "wider table"});
  expect_contains(notes("5 Mpc/h"), {"k = 1.26 to 6.53", "wider table"});
}

TEST(SpreadTargets, AreEvenAndAscending) {
  EXPECT_EQ(spread_targets(10, 0).size(), 10u);
  EXPECT_EQ(spread_targets(10, 20).size(), 10u);
  EXPECT_EQ(spread_targets(10, 4), (std::vector<std::size_t>{0, 2, 5, 7}));
}

}  // namespace
}  // namespace maki
