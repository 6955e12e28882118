// Every format that Maki writes comes back as the same particles.
#include <gtest/gtest.h>

#include <cmath>

#include "src/io/gadget_write.hpp"
#include "src/io/hdf5_file.hpp"
#include "src/io/snapshot_io.hpp"
#include "tests/places.hpp"
#include "tests/src/io/io_helpers.hpp"

namespace maki {
namespace {

using namespace test;
using GadgetHdf5 = InTempDir;

TEST(Units, NewtonsConstant) {
  EXPECT_NEAR(UnitSystem{}.gravitational_constant(), 43.0092, 1e-4);
  EXPECT_NEAR((UnitSystem{1, 1, 1, false}).gravitational_constant(), 6.6743e-8, 1e-16);
}

// Closed forms of an open universe without Lambda, with its development angle eta, at a = 1/4.
TEST_F(GadgetHdf5, AnOpenUniverseHasItsOwnAgeAndExpansion) {
  Snapshot s = make_snapshot(10);
  s.header.omega0 = 0.3, s.header.omega_lambda = 0, s.header.hubble = 0.7;
  write_snapshot(dir / "g.hdf5", s, make_provenance());
  const double eta = std::acosh(1 + 2 * 0.7 / 0.3 * 0.25);
  const double age = 0.3 / (2 * std::pow(0.7, 1.5)) * (std::sinh(eta) - eta) * 9.77792 / 0.7;
  EXPECT_NEAR(*read_scalar<double>(open_group(open_hdf5(dir / "g.hdf5"), "Header"), "Time_GYR"), age, 1e-3 * age);
  write_snapshot(dir / "s.hdf5", s, make_provenance(), {.layout = FileLayout::kSwift});
  const H5Id file = open_hdf5(dir / "s.hdf5"), cosmology = open_group(file, "Cosmology");
  const auto rate = [&](const char* name) { return *read_scalar<double>(cosmology, name); };
  EXPECT_NEAR(rate("H [internal units]") / rate("H0 [internal units]"), std::sqrt(0.3 * 64 + 0.7 * 16), 1e-9);
}

TEST_F(GadgetHdf5, CountsOfMoreThanTwoToThe32HaveTwoWords) {
  const Snapshot s = make_snapshot(3);
  const SnapshotSource source(s);
  gadget::Part part{.particles = source,
                    .ranks = Communicator::self(),
                    .begins = {0, 3},
                    .total = (std::uint64_t{5} << 32) + 7,
                    .header = s.header};
  for (const FileLayout layout : {FileLayout::kGadget4, FileLayout::kSwift}) {
    part.options.layout = layout;
    const H5Id file = create_hdf5(dir / "s.hdf5");
    gadget::write_groups(file, part, make_provenance());
    const H5Id header = open_group(file, "Header");
    const bool halves = layout == FileLayout::kSwift;
    EXPECT_EQ(read_attribute<std::uint64_t>(header, "NumPart_Total")[1], halves ? 7u : part.total);
    EXPECT_EQ(read_attribute<std::uint32_t>(header, "NumPart_Total_HighWord")[1], halves ? 5u : 0u);
  }
}

TEST_F(GadgetHdf5, ForcesTellHowTheyScale) {
  const SnapshotHeader header = make_snapshot(1).header;
  const ExtraDataset force = acceleration_dataset({{1, 2, 3}}, header), potential = potential_dataset({1}, header);
  EXPECT_EQ(force.a_scaling, -2);
  EXPECT_EQ(force.h_scaling, 1);
  EXPECT_EQ(potential.a_scaling, -1);
  EXPECT_EQ(potential.h_scaling, 0);
}

TEST_F(GadgetHdf5, HoldsTheLayoutThatReadersExpect) {
  const Snapshot s = make_snapshot(10);
  write_snapshot(dir / "s.hdf5", s, make_provenance());
  H5Id file = open_hdf5(dir / "s.hdf5");
  H5Id header = open_group(file, "Header");
  for (const char* name : {"NumPart_ThisFile", "NumPart_Total", "NumPart_Total_HighWord", "MassTable"})
    EXPECT_EQ(read_attribute<double>(header, name).size(), 6u) << name;
  EXPECT_DOUBLE_EQ(*read_scalar<double>(header, "Time"), 0.25);
  EXPECT_FLOAT_EQ(static_cast<float>(read_attribute<double>(header, "MassTable")[1]), s.masses[0]);
  for (const char* group : {"Header", "Parameters"})
    EXPECT_DOUBLE_EQ(*read_scalar<double>(open_group(file, group), "HubbleParam"), 0.678) << group;
  EXPECT_TRUE(hdf5_exists(file, "Units"));
  // A user turns a velocity into cm/s by value * to_cgs * a^a_scaling * h^h_scaling.
  H5Id particles = open_group(file, "PartType1");
  H5Id velocities = open_dataset(particles, "Velocities");
  float row[3];
  read_rows(velocities, 9, 1, H5T_NATIVE_FLOAT, row);
  const double cgs = row[0] * *read_scalar<double>(velocities, "to_cgs") *
                     std::pow(0.25, *read_scalar<double>(velocities, "a_scaling")) *
                     std::pow(0.678, *read_scalar<double>(velocities, "h_scaling"));
  EXPECT_NEAR(cgs, s.velocities[9][0] * 1e5, 1);
  H5Id coordinates = open_dataset(particles, "Coordinates");
  EXPECT_DOUBLE_EQ(*read_scalar<double>(coordinates, "a_scaling"), 1);
  EXPECT_DOUBLE_EQ(*read_scalar<double>(coordinates, "h_scaling"), -1);
  // 3 Gyr after the big bang is z = 2.1 or so in this cosmology; z = 3 is at 2.15 Gyr.
  EXPECT_NEAR(*read_scalar<double>(header, "Time_GYR"), 2.148, 0.01);
}

TEST_F(GadgetHdf5, WithoutHIsWrittenInUnitsOverH) {
  Snapshot s = make_snapshot(10);
  s.header.units.with_h = false;
  write_snapshot(dir / "s.hdf5", s, make_provenance());
  const Snapshot back = read_snapshot(dir / "s.hdf5");
  EXPECT_TRUE(back.header.units.with_h);
  EXPECT_DOUBLE_EQ(back.header.box_size, 50 * 0.678);
  EXPECT_NEAR(back.positions[3][1], 0.678 * s.positions[3][1], 1e-12);
  EXPECT_FLOAT_EQ(back.masses[0], 0.678f * s.masses[0]);
}

TEST_F(GadgetHdf5, KeepsAnIsolatedSetAsItIs) {
  Snapshot s = make_snapshot(10, false);
  s.header = isolated_header(2.5);
  s.header.gravitational_constant = 1, s.header.units.with_h = false;
  for (auto& x : s.positions) x[0] -= 25;
  write_snapshot(dir / "s.hdf5", s, make_provenance());
  const Snapshot back = read_snapshot(dir / "s.hdf5");
  EXPECT_FALSE(back.header.comoving);
  EXPECT_EQ(back.header.redshift, 0);
  EXPECT_EQ(back.header.time, 2.5);
  EXPECT_EQ(back.header.gravitational_constant, 1);
  EXPECT_FALSE(back.header.units.with_h);
  EXPECT_EQ(back.positions, s.positions);
  EXPECT_EQ(back.velocities, s.velocities);
  EXPECT_EQ(back.masses, s.masses);
}

TEST_F(GadgetHdf5, HoldsForces) {
  const Snapshot s = make_snapshot(10);
  std::vector<std::array<double, 3>> a;
  std::vector<double> phi;
  for (int i = 0; i < 10; ++i) a.push_back({1.5 * i, -2.0 * i, 0.1 + i}), phi.push_back(-3.25 * i);
  auto acceleration = acceleration_dataset(a, s.header);
  acceleration.double_precision = true;
  write_snapshot(dir / "f.hdf5", s, {}, {}, {acceleration, potential_dataset(phi, s.header)});
  EXPECT_EQ(read_extra_dataset(dir / "f.hdf5", "Acceleration"), acceleration.values);
  EXPECT_EQ(read_extra_dataset(dir / "f.hdf5", "Potential"), phi);
  H5Id file = open_hdf5(dir / "f.hdf5");
  H5Id dataset = open_dataset(file, "PartType1/Acceleration");
  EXPECT_NEAR(*read_scalar<double>(dataset, "G"), 43.0092, 1e-4);
  EXPECT_NEAR(*read_scalar<double>(dataset, "to_cgs") / (1e10 / 3.0856776e24), 1, 1e-6);
  expect_error([&] { read_extra_dataset(dir / "f.hdf5", "Nothing"); }, {"PartType1/Nothing"});
}

TEST(GadgetBinary, UnitsAreFoundFromTheMeanDensity) {
  TempDir dir;
  Snapshot s = make_snapshot(100);
  s.header.box_size *= 1000;
  for (auto& x : s.positions) x = {1000 * x[0], 1000 * x[1], 1000 * x[2]};
  write_snapshot(dir / "s", s, {}, {.format = SnapshotFormat::kGadgetBinary1});
  const auto [back, report] = read_with_report(dir / "s");
  EXPECT_NEAR(back.header.units.length_cgs, 3.0856776e21, 1e15);
  EXPECT_NEAR(report.mean_density_ratio, 1, 1e-3);
  ASSERT_EQ(report.notes.size(), 1u);
  expect_contains(report.notes[0], {"kpc/h"});
}

// A file made by GADGET-4, where the project's data directory has it.
TEST_F(GadgetHdf5, ReadsAFileOfGadget4) {
  const std::string path = source_directory() + "/../shared/data/gadget4_ic_64.hdf5";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not here";
  const auto [s, report] = read_with_report(path);
  EXPECT_EQ(s.size(), 262144u);
  EXPECT_TRUE(s.header.comoving);
  EXPECT_NEAR(s.header.redshift, 49, 1e-9);
  EXPECT_DOUBLE_EQ(s.header.omega0, 0.308);
  EXPECT_DOUBLE_EQ(s.header.omega_baryon, 0.0482);
  EXPECT_DOUBLE_EQ(s.header.hubble, 0.678);
  EXPECT_NEAR(s.header.units.length_cgs, 3.08568e24, 1e19);
  EXPECT_NEAR(report.mean_density_ratio, 1, 2e-4);
  EXPECT_NEAR(s.masses[0], 4.07516, 1e-4);
  EXPECT_NEAR(s.positions[1][2], 1.53661, 1e-5);
  // Linear theory: the rms peculiar velocity at z = 49 is some tens of km/s.
  double sum = 0;
  for (const auto& v : s.velocities) sum += v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
  const double rms = std::sqrt(sum / static_cast<double>(s.size()));
  EXPECT_GT(rms, 10);
  EXPECT_LT(rms, 200);
}

}  // namespace
}  // namespace maki
