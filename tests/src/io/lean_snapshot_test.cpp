// Snapshots that hold less: fewer bits, fields and particles, in the layout of GADGET-4 or of SWIFT.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "src/io/hdf5_file.hpp"
#include "src/io/hdf5_output.hpp"
#include "src/io/snapshot.hpp"
#include "src/io/snapshot_io.hpp"
#include "tests/src/io/io_helpers.hpp"

namespace maki {
namespace {

using namespace test;
using ScaleOffset = InTempDir;
using LeanSnapshot = InTempDir;
using Subset = InTempDir;
using SwiftLayout = InTempDir;

WriteOptions lean() { return {.coordinates = CoordinateNumbers::kFixed32, .velocities = VelocityNumbers::kHalf}; }

double attribute(const std::string& path, const std::string& dataset, const char* name) {
  return read_scalar<double>(open_dataset(open_hdf5(path), "PartType1/" + dataset), name).value_or(-1);
}

std::uint64_t bytes_of(const std::string& path, const std::string& dataset) {
  return H5Dget_storage_size(open_dataset(open_hdf5(path), "PartType1/" + dataset));
}

// HDF5's own conversion.
std::vector<float> as_floats(std::vector<std::uint16_t> halves) {
  const std::size_t count = halves.size();
  halves.resize(2 * count);
  H5Tconvert(hdf5_half_type(), H5T_NATIVE_FLOAT, count, halves.data(), nullptr, H5P_DEFAULT);
  std::vector<float> floats(count);
  std::memcpy(floats.data(), halves.data(), count * sizeof(float));
  return floats;
}

TEST(Half, IsTheNearestOfAll) {
  std::vector<std::uint16_t> halves;
  for (unsigned bits = 0; bits < 0x7c00; ++bits) halves.push_back(static_cast<std::uint16_t>(bits));
  const std::vector<float> values = as_floats(halves);
  EXPECT_EQ(values.back(), 65504);
  for (std::size_t i = 0; i + 1 < values.size(); ++i) {
    const float middle = (values[i] + values[i + 1]) / 2;
    ASSERT_EQ(half_of(values[i]), i);
    ASSERT_EQ(half_of(-values[i]), i | 0x8000);
    ASSERT_EQ(half_of(std::nextafter(middle, 0.f)), i);
    ASSERT_EQ(half_of(std::nextafter(middle, 1e9f)), i + 1);
    ASSERT_EQ(half_of(middle), i % 2 == 0 ? i : i + 1);
  }
}

// What HDF5 reads of rows of three that we have put through its filter.
std::vector<double> decoded(const std::string& path, const std::vector<double>& numbers, int decimals) {
  const H5Id file = create_hdf5(path);
  const Storage storage(0, decimals);
  const std::size_t rows = numbers.size() / 3;
  const H5Id dataset = create_dataset(file, "x", H5T_IEEE_F64LE, rows, 3, storage);
  write_chunk(dataset, 0, filtered(numbers.data(), numbers.size(), sizeof(double), storage));
  std::vector<double> back(numbers.size());
  read_rows(dataset, 0, rows, H5T_NATIVE_DOUBLE, back.data());
  return back;
}

TEST_F(ScaleOffset, IsWhatHdf5Decodes) {
  std::vector<double> numbers;
  for (std::size_t i = 0; i < 3000; ++i) numbers.push_back(std::fmod(0.7371 * static_cast<double>(i), 50) - 10);
  for (const int decimals : {0, 3, 8, 14}) {
    const std::vector<double> back = decoded(dir / "s.hdf5", numbers, decimals);
    for (std::size_t i = 0; i < numbers.size(); ++i)
      ASSERT_NEAR(back[i], numbers[i], 0.5 * std::pow(10, -decimals) + 1e-14) << decimals;
  }
}

TEST_F(ScaleOffset, TakesNumbersThatAreAllAlike) {
  const std::vector<double> numbers(6, 3.25);
  EXPECT_LT(filtered(numbers.data(), numbers.size(), sizeof(double), Storage(0, 5)).size(), 32u);
  EXPECT_EQ(decoded(dir / "s.hdf5", numbers, 5), numbers);
}

// More than one chunk, a set's own masses, both layouts.
TEST_F(LeanSnapshot, ErrsAsItsAttributesSay) {
  Snapshot before = make_snapshot(100000, false);
  for (auto& x : before.positions) x = {0.98765432109 * x[0], 0.98765432109 * x[1], 0.98765432109 * x[2]};
  for (const FileLayout layout : {FileLayout::kGadget4, FileLayout::kSwift}) {
    TempDir dir;
    WriteOptions options = lean();
    options.layout = layout;
    write_snapshot(dir / "s.hdf5", before, make_provenance(), options);
    const Snapshot back = read_snapshot(dir / "s.hdf5");
    const double over_h = layout == FileLayout::kSwift ? 0.678 : 1;
    const double error = attribute(dir / "s.hdf5", "Coordinates", "MaxAbsoluteError");
    EXPECT_LE(error * over_h, 50 * 0x1p-32);
    const double relative = attribute(dir / "s.hdf5", "Velocities", "MaxRelativeError");
    EXPECT_EQ(relative, 0x1p-11);
    EXPECT_EQ(back.ids, before.ids);
    double worst = 0, worst_velocity = 0;
    for (std::size_t i = 0; i < before.size(); ++i) {
      EXPECT_FLOAT_EQ(back.masses[i] * static_cast<float>(over_h), before.masses[i]);
      for (std::size_t axis = 0; axis < 3; ++axis) {
        worst = std::max(worst, std::abs(back.positions[i][axis] - before.positions[i][axis] / over_h));
        worst_velocity =
            std::max(worst_velocity,
                     static_cast<double>(std::abs(back.velocities[i][axis] / before.velocities[i][axis] - 1)));
      }
    }
    EXPECT_LE(worst, error * (1 + 1e-6));
    EXPECT_GT(worst, 0.9 * error);
    EXPECT_LE(worst_velocity, relative * 1.001);
    EXPECT_GT(worst_velocity, 0.9 * relative);
    EXPECT_LT(static_cast<double>(bytes_of(dir / "s.hdf5", "Coordinates")), 1e5 * 3 * 34.0 / 8);
    EXPECT_EQ(bytes_of(dir / "s.hdf5", "Velocities"), 600000u);
  }
}

TEST_F(LeanSnapshot, CoordinatesStayBelowTheBox) {
  Snapshot s = make_snapshot(10);
  s.positions[4][2] = 50 * (1 - 1e-12);
  s.positions[5][1] = 50 - 6e-9;
  write_snapshot(dir / "s.hdf5", s, {}, lean());
  const std::vector<double> numbers = numbers_in(dir / "s.hdf5", "PartType1/Coordinates");
  EXPECT_EQ(numbers[4 * 3 + 2], 0);
  EXPECT_NEAR(numbers[5 * 3 + 1], 50 - 1e-8, 1e-12);
  EXPECT_LT(*std::max_element(numbers.begin(), numbers.end()), 50);
  write_snapshot(dir / "floats.hdf5", s, {}, {.coordinates = CoordinateNumbers::kFloat});
  EXPECT_EQ(read_snapshot(dir / "floats.hdf5").positions[4][2], 0);
}

TEST_F(LeanSnapshot, AFarParticleLeavesTheOthersTheirDigits) {
  Snapshot s = make_snapshot(1000);
  s.header.comoving = false;
  for (const double far : {1e4, 1e9, 1e13, 1e30}) {
    s.positions.back() = {far, -far / 3, 0};
    write_snapshot(dir / "s.hdf5", s, {}, {.coordinates = CoordinateNumbers::kFixed32, .overwrite = true});
    const Snapshot back = read_snapshot(dir / "s.hdf5");
    for (std::size_t i = 0; i < s.size(); ++i)
      for (std::size_t axis = 0; axis < 3; ++axis)
        ASSERT_NEAR(back.positions[i][axis], s.positions[i][axis], 3e-5 + 1e-15 * far * (i + 1 == s.size())) << far;
  }
}

TEST_F(LeanSnapshot, RefusesNumbersThatDoNotFit) {
  Snapshot s = make_snapshot(10);
  s.velocities[3][0] = 4e4;  // over the root of a, twice that
  expect_error([&] { write_snapshot(dir / "s.hdf5", s, {}, lean()); }, {"80000", "16 bits", "float"});
  s.velocities[3][0] = 0;
  s.header.box_size *= 1e24;
  expect_error([&] { write_snapshot(dir / "s.hdf5", s, {}, lean()); }, {"fixed32", "float"});
  expect_error(
      [&] {
        write_snapshot(dir / "s", s, {},
                       {.format = SnapshotFormat::kGadgetBinary1, .velocities = VelocityNumbers::kHalf});
      },
      {"binary", "HDF5"});
  expect_error([&] { write_snapshot(dir / "s.hdf5", s, {}, {.fields = {"Coordinate"}}); },
               {"no field 'Coordinate'", "Coordinates, Velocities"});
  EXPECT_EQ(dir.entries(), 0u);
}

TEST_F(LeanSnapshot, SaysWhatIsMissing) {
  const Snapshot s = make_snapshot(100);
  write_snapshot(dir / "ids.hdf5", s, {}, {.fields = {"Coordinates", "ParticleIDs"}});
  expect_unreadable(dir / "ids.hdf5", {"ids.hdf5", "PartType1/Velocities", "output.fields", "restart"});
  write_snapshot(dir / "no_ids.hdf5", s, {}, {.fields = {"Coordinates", "Velocities"}});
  const auto [back, report] = read_with_report(dir / "no_ids.hdf5");  // the header has the masses
  EXPECT_EQ(back.masses, s.masses);
  ASSERT_EQ(report.notes.size(), 1u);
  expect_contains(report.notes[0], {"no ids"});
  const H5Id file = open_hdf5(dir / "no_ids.hdf5");
  EXPECT_FALSE(hdf5_exists(file, "PartType1/Masses"));
}

TEST_F(Subset, IsTheSameAtAllTimesAndNested) {
  std::uint64_t few = 0, many = 0;
  for (std::uint64_t id = 0; id < 100000; ++id) {
    few += in_subset(id, 0.01);
    many += in_subset(id, 0.1);
    EXPECT_LE(in_subset(id, 0.01), in_subset(id, 0.1));
    EXPECT_TRUE(in_subset(id, 1));
  }
  EXPECT_NEAR(few, 1000, 5 * std::sqrt(1000));
  EXPECT_NEAR(many, 10000, 5 * std::sqrt(10000));
}

TEST_F(Subset, KeepsItsParticlesAsTheyAre) {
  const Snapshot s = make_snapshot(5000);
  const auto files = write_snapshot(dir / "s.hdf5", s, {}, {.files = 2, .selection = {.fraction = 0.1}});
  const auto [back, report] = read_with_report(files[0]);
  std::size_t row = 0;
  for (std::size_t i = 0; i < s.size(); ++i) {
    if (!in_subset(s.ids[i], 0.1)) continue;
    ASSERT_LT(row, back.size());
    EXPECT_EQ(back.ids[row], s.ids[i]);
    EXPECT_EQ(back.positions[row], s.positions[i]);
    EXPECT_FLOAT_EQ(back.masses[row++], s.masses[i]);
  }
  EXPECT_EQ(row, back.size());
  EXPECT_EQ(report.selection.fraction, 0.1);
  EXPECT_EQ(report.selection.of_particles, 5000u);
  ASSERT_FALSE(report.notes.empty());
  expect_contains(report.notes[0], {"of the 5000 particles", "fraction of 0.1"});
  const H5Id file = open_hdf5(files[1]), header = open_group(file, "Header");
  EXPECT_FLOAT_EQ(static_cast<float>(read_attribute<double>(header, "SubSampleFractions").at(1)), 0.1f);
  EXPECT_EQ(read_attribute<std::uint64_t>(header, "NumPart_Total").at(1), back.size());
  expect_contains(text_of(describe_file(files[0])), {"fraction of 0.1 by their IDs"});
}

TEST_F(Subset, OfFewParticlesTakesFewerFiles) {
  const auto none =
      write_snapshot(dir / "none.hdf5", make_snapshot(10), {}, {.files = 3, .selection = {.fraction = 1e-12}});
  EXPECT_EQ(none, std::vector<std::string>{dir / "none.hdf5"});
  const auto two = write_snapshot(dir / "two.hdf5", make_snapshot(2), {}, {.files = 3});
  EXPECT_EQ(two, (std::vector<std::string>{dir / "two.0.hdf5", dir / "two.1.hdf5"}));
  EXPECT_EQ(read_snapshot(two.front()).size(), 2u);
}

TEST_F(Subset, MayBeEmpty) {
  WriteOptions options = lean();
  options.selection.fraction = 1e-12;
  write_snapshot(dir / "s.hdf5", make_snapshot(10), {}, options);
  expect_unreadable(dir / "s.hdf5", {"holds no particles"});
}

// Numbers are arrays of one element, without h.
TEST_F(SwiftLayout, HoldsWhatItsReadersExpect) {
  const Snapshot s = make_snapshot(100);
  write_snapshot(dir / "s.hdf5", s, make_provenance(), {.layout = FileLayout::kSwift});
  const H5Id file = open_hdf5(dir / "s.hdf5"), header = open_group(file, "Header");
  const H5Id units = open_group(file, "Units"), cosmology = open_group(file, "Cosmology");
  EXPECT_EQ(read_attribute<double>(header, "BoxSize"), std::vector<double>(3, 50 / 0.678));
  EXPECT_EQ(read_attribute<double>(header, "Scale-factor"), std::vector<double>{0.25});
  EXPECT_EQ(read_attribute<double>(header, "NumPart_ThisFile").size(), 7u);
  EXPECT_EQ(read_attribute<double>(units, "Unit length in cgs (U_L)").size(), 1u);
  EXPECT_NEAR(read_attribute<double>(cosmology, "H0 [internal units]").at(0), 67.8, 1e-6);
  EXPECT_EQ(read_text(header, "Code"), "SWIFT");
  // 2.15 Gyr in units of Mpc / (km/s).
  EXPECT_NEAR(read_attribute<double>(header, "Time").at(0) * 977.79, 2.148, 0.01);
  EXPECT_EQ(attribute(dir / "s.hdf5", "Velocities", "U_t exponent"), -1);
  EXPECT_EQ(attribute(dir / "s.hdf5", "Coordinates", "a-scale exponent"), 1);
  const auto [back, report] = read_with_report(dir / "s.hdf5");
  EXPECT_EQ(report.format, "SWIFT HDF5");
  EXPECT_NEAR(report.mean_density_ratio, 1, 1e-3);
  EXPECT_TRUE(back.header.comoving);
  EXPECT_FALSE(back.header.units.with_h);
  EXPECT_EQ(back.header.time, 0.25);
  EXPECT_EQ(back.velocities, s.velocities);
  EXPECT_EQ(back.header.omega_baryon, 0.0482);
}

TEST_F(SwiftLayout, TheBackgroundIsKept) {
  Snapshot s = make_snapshot(100);
  s.header.omega_lambda = 0.6919, s.header.omega_radiation = 1e-4, s.header.w0 = -0.9, s.header.wa = 0.1;
  for (const FileLayout layout : {FileLayout::kSwift, FileLayout::kGadget4}) {
    const std::string path = dir / (std::to_string(static_cast<int>(layout)) + ".hdf5");
    write_snapshot(path, s, make_provenance(), {.layout = layout});
    const auto [back, report] = read_with_report(path);
    EXPECT_NEAR(back.header.hubble, s.header.hubble, 1e-15);
    EXPECT_EQ(back.header.beyond_lambda(), ", omega_radiation 0.0001, w0 -0.9, wa 0.1");
    EXPECT_NEAR(back.header.omega_curvature(), 0, 1e-15);
  }
  const H5Id cosmology = open_group(opened(dir / "1.hdf5"), "Cosmology");
  EXPECT_EQ(read_attribute<double>(cosmology, "w").at(0), -0.9 + 0.1 * 0.75);
}

TEST_F(SwiftLayout, MassiveNeutrinosAreReported) {
  const std::string path = dir / "s.hdf5";
  write_snapshot(path, make_snapshot(100), make_provenance(), {.layout = FileLayout::kSwift});
  const auto warnings = [&path] {
    ReadReport report;
    read_snapshot(path, &report);
    return std::ranges::count_if(report.notes, [](const auto& note) { return note.find("Omega_nu_0") != note.npos; });
  };
  EXPECT_EQ(warnings(), 0);
  {
    const H5Id cosmology = open_group(opened(path), "Cosmology");
    const H5Id number(H5Aopen(cosmology, "Omega_nu_0", H5P_DEFAULT), H5Aclose);
    constexpr double kDensity = 1e-3;
    ASSERT_GE(H5Awrite(number, H5T_NATIVE_DOUBLE, &kDensity), 0);
  }
  EXPECT_EQ(warnings(), 1);
}

}  // namespace
}  // namespace maki
