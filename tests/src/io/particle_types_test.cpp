// Files of other codes: several types of particles, masses in the table or in the data, cosmology in either group.
// The files are put together here byte by byte, not by Maki's own writers.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <optional>

#include "src/io/hdf5_file.hpp"
#include "src/io/snapshot_io.hpp"
#include "tests/src/io/io_helpers.hpp"

namespace maki {
namespace {

using namespace test;

// Types 0 (2 particles, own masses), 1 (3, table), 4 (1, own mass); particle i at (i, 2 i, 3 i), moving at (10 i, 0,
// -i) in file units, with id 100 + i.
constexpr std::array<std::uint32_t, 6> kCounts{2, 3, 0, 0, 1, 0};
constexpr std::array<double, 6> kTable{0, 0.5, 0, 0, 0, 0};
constexpr std::array<float, 6> kMasses{0.25f, 0.75f, 0.5f, 0.5f, 0.5f, 2.0f};

void expect_particles(const Snapshot& s, bool cosmology = true) {
  ASSERT_EQ(s.size(), 6u);
  const float a = 0.5f;  // the scale factor; peculiar velocities are sqrt(a) times those of the file
  for (std::size_t i = 0; i < 6; ++i) {
    const double x = static_cast<double>(i);
    EXPECT_EQ(s.positions[i], (std::array<double, 3>{x, 2 * x, 3 * x}));
    EXPECT_FLOAT_EQ(s.velocities[i][0], static_cast<float>(10 * x) * std::sqrt(a));
    EXPECT_FLOAT_EQ(s.velocities[i][2], static_cast<float>(-x) * std::sqrt(a));
    EXPECT_FLOAT_EQ(s.masses[i], kMasses[i]);
    EXPECT_EQ(s.ids[i], 100 + i);
  }
  EXPECT_EQ(s.header.omega0, cosmology ? 0.3 : 0);
  EXPECT_EQ(s.header.hubble, cosmology ? 0.7 : 0);
  EXPECT_NEAR(s.header.redshift, 1, 1e-12);
}

class Bytes {
 public:
  explicit Bytes(bool big_endian) : big_endian_(big_endian) {}
  template <class T>
  void put(T value) {
    unsigned char raw[sizeof(T)];
    std::memcpy(raw, &value, sizeof(T));
    for (std::size_t i = 0; i < sizeof(T); ++i)
      data_.push_back(static_cast<char>(raw[big_endian_ ? sizeof(T) - 1 - i : i]));
  }
  void label(const char* text, std::uint32_t bytes) {
    put<std::uint32_t>(8);
    data_.append(text, 4);
    put(bytes + 8);
    put<std::uint32_t>(8);
  }
  void pad_to(std::size_t size) { data_.resize(size); }
  std::size_t size() const { return data_.size(); }
  void save(const std::string& path) const { std::ofstream(path, std::ios::binary) << data_; }

 private:
  std::string data_;
  bool big_endian_;
};

// A GADGET-2 file as its user guide describes it; type 2 has a foreign block before the masses. Or with GADGET-4's own
// header, for NTYPES = types.
std::string binary_file(const TempDir& dir, int type, bool big_endian, std::size_t types = 0) {
  Bytes out(big_endian);
  const auto block = [&](const char* label, std::uint32_t bytes, auto write) {
    if (type == 2) out.label(label, bytes);
    out.put(bytes);
    write();
    out.put(bytes);
  };
  const auto own_header = [&] {
    for (std::size_t i = 0; i < 2 * types; ++i) out.put(std::uint64_t{kCounts[i % types]});
    for (std::size_t i = 0; i < types; ++i) out.put(kTable[i]);
    out.put(0.5), out.put(1.0), out.put(20.0);  // time, redshift, box
    out.put(1), out.put(0);                     // files, padding
    out.put(std::uint64_t{0}), out.put(std::uint64_t{0});
  };
  block("HEAD", types > 0 ? static_cast<std::uint32_t>(24 * types + 48) : 256, [&] {
    if (types > 0) return own_header();
    const std::size_t end = out.size() + 256;
    for (const auto n : kCounts) out.put(n);
    for (const auto m : kTable) out.put(m);
    out.put(0.5), out.put(1.0);  // time, redshift
    out.put(0), out.put(0);      // flags
    for (const auto n : kCounts) out.put(n);
    out.put(0), out.put(1);  // cooling, files
    out.put(20.0), out.put(0.3), out.put(0.7), out.put(0.7);
    out.pad_to(end);
  });
  block("POS ", 6 * 12, [&] {
    for (int i = 0; i < 6; ++i)
      out.put(1.0f * static_cast<float>(i)), out.put(2.0f * static_cast<float>(i)),
          out.put(3.0f * static_cast<float>(i));
  });
  block("VEL ", 6 * 12, [&] {
    for (int i = 0; i < 6; ++i) out.put(10.0f * static_cast<float>(i)), out.put(0.0f), out.put(-static_cast<float>(i));
  });
  block("ID  ", 6 * 4, [&] {
    for (std::uint32_t i = 0; i < 6; ++i) out.put(100 + i);
  });
  if (type == 2) block("XTRA", 4, [&] { out.put(1.0f); });
  block("MASS", 3 * 4, [&] { out.put(0.25f), out.put(0.75f), out.put(2.0f); });
  const std::string path = dir / "other";
  out.save(path);
  return path;
}

struct Hdf5Style {
  const char* cosmology = "Header";  // group that holds it
  bool masses = true;
  bool ids = true;
};

std::string hdf5_file(const TempDir& dir, const Hdf5Style& style) {
  const std::string path = dir / "other.hdf5";
  H5Id file = create_hdf5(path);
  H5Id header = create_group(file, "Header");
  H5Id parameters = create_group(file, "Parameters");
  write_attribute(header, "NumPart_ThisFile", kCounts.data(), 6);
  write_attribute(header, "NumPart_Total", kCounts.data(), 6);
  write_attribute(header, "MassTable", kTable.data(), 6);
  write_attribute(header, "Time", 0.5);
  write_attribute(header, "Redshift", 1.0);
  write_attribute(header, "BoxSize", 20.0);
  write_attribute<std::int32_t>(header, "NumFilesPerSnapshot", 1);
  hid_t group = std::string(style.cosmology) == "Header" ? header : parameters;
  write_attribute(group, "Omega0", 0.3);
  write_attribute(group, "OmegaLambda", 0.7);
  write_attribute(group, "HubbleParam", 0.7);
  std::size_t first = 0;
  for (std::size_t type = 0; type < 6; ++type) {
    const std::size_t n = kCounts[type];
    if (n == 0) continue;
    H5Id particles = create_group(file, "PartType" + std::to_string(type));
    std::vector<float> x, v;
    std::vector<std::uint32_t> ids;
    for (std::size_t i = first; i < first + n; ++i) {
      const float f = static_cast<float>(i);
      x.insert(x.end(), {f, 2 * f, 3 * f});
      v.insert(v.end(), {10 * f, 0, -f});
      ids.push_back(static_cast<std::uint32_t>(100 + i));
    }
    write_rows(create_dataset(particles, "Coordinates", H5T_IEEE_F32BE, n, 3, 0), 0, n, H5T_NATIVE_FLOAT, x.data());
    write_rows(create_dataset(particles, "Velocities", H5T_IEEE_F64LE, n, 3, 0), 0, n, H5T_NATIVE_FLOAT, v.data());
    if (style.ids) {
      write_rows(create_dataset(particles, "ParticleIDs", H5T_STD_I32LE, n, 1, 0), 0, n, H5T_NATIVE_UINT32, ids.data());
    }
    if (style.masses && kTable[type] == 0) {
      write_rows(create_dataset(particles, "Masses", H5T_IEEE_F64LE, n, 1, 0), 0, n, H5T_NATIVE_FLOAT, &kMasses[first]);
    }
    first += n;
  }
  return path;
}

class ParticleTypes : public InTempDir {
 protected:
  const std::string path = hdf5_file(dir, {});
};

TEST_F(ParticleTypes, BinaryFilesOfBothTypesAndByteOrders) {
  for (const int type : {1, 2}) {
    for (const bool big_endian : {false, true}) {
      TempDir dir;
      ReadReport report;
      expect_particles(read_snapshot(binary_file(dir, type, big_endian), &report));
      EXPECT_EQ(report.counts, (std::array<std::uint64_t, 6>{2, 3, 0, 0, 1, 0}));
      expect_contains(report.format, {type == 1 ? "type 1" : "type 2", big_endian ? "big" : "little"});
    }
  }
}

TEST_F(ParticleTypes, BinaryFilesWithGadget4sOwnHeader) {
  for (const std::size_t types : {5u, 6u})
    for (const int type : {1, 2})
      for (const bool big_endian : {false, true}) {
        TempDir dir;
        ReadReport report;
        expect_particles(read_snapshot(binary_file(dir, type, big_endian, types), &report), false);
        expect_contains(report.format, {"GADGET-4 binary", type == 1 ? "type 1" : "type 2"});
        expect_contains(text_of(report.notes), {"no cosmology", "configuration"});
      }
}

TEST_F(ParticleTypes, Hdf5WithCosmologyInEitherGroup) {
  for (const char* group : {"Header", "Parameters"}) {
    TempDir dir;
    expect_particles(read_snapshot(hdf5_file(dir, {.cosmology = group})));
  }
}

// Removes attributes of Header that initial conditions for SWIFT lack, and adds SWIFT's names of the units.
void make_swifts(const std::string& path, std::initializer_list<const char*> lacking) {
  H5Id file = opened(path);
  H5Id header = open_group(file, "Header");
  for (const char* name : lacking) H5Adelete(header, name);
  H5Id units = create_group(file, "Units");
  write_attribute(units, "Unit length in cgs (U_L)", 3.0857e24);
  write_attribute(units, "Unit mass in cgs (U_M)", 1.9884e43);
  write_attribute(units, "Unit time in cgs (U_t)", 3.0857e19);
}

void expect_swifts(const std::string& path) {
  const auto [s, report] = read_with_report(path);
  EXPECT_EQ(report.format, "SWIFT HDF5");
  EXPECT_TRUE(s.header.comoving);
  EXPECT_FALSE(s.header.units.with_h);
  EXPECT_EQ(s.header.time, 0.5);
  EXPECT_EQ(s.velocities[5][0], 50);  // peculiar
  expect_contains(text_of(report.notes), {"SWIFT's names", "without h", "peculiar"});
}

TEST_F(ParticleTypes, InitialConditionsForSwift) {
  TempDir of_monofonic, of_swiftsimio, with_h;
  const std::string first = hdf5_file(of_monofonic, {}), second = hdf5_file(of_swiftsimio, {});
  make_swifts(first, {"Omega0", "OmegaLambda", "HubbleParam"});
  expect_swifts(first);
  make_swifts(second, {"Omega0", "OmegaLambda", "HubbleParam", "Time", "Redshift"});
  write_attribute(open_group(opened(second), "Header"), "Scale-factor", 0.5);
  expect_swifts(second);
  const std::string third = hdf5_file(with_h, {});
  make_swifts(third, {});
  expect_particles(read_snapshot(third));
}

// SWIFT has the scale factor of its initial conditions in a file of parameters.
TEST_F(ParticleTypes, InitialConditionsForSwiftWithoutAScaleFactor) {
  make_swifts(path, {"Omega0", "OmegaLambda", "HubbleParam", "Time", "Redshift"});
  ReadReport report;
  const SnapshotHeader isolated = read_snapshot(path, &report).header;
  EXPECT_FALSE(isolated.comoving);
  EXPECT_EQ(isolated.time, 0);
  expect_contains(test::text_of(report.notes), {"has no Time: 0 is taken"});
  EXPECT_TRUE(report.lacks_time);
  expect_contains(report.why_isolated, {"neither Scale-factor nor Redshift"});
  const Snapshot s = read_snapshot(path, &report, Communicator::self(), {.redshift = 1});
  EXPECT_TRUE(s.header.comoving);
  EXPECT_EQ(s.header.time, 0.5);
  EXPECT_EQ(s.velocities[5][0], 50);
}

TEST_F(ParticleTypes, NegativeIdsKeepTheirBits) {
  const std::int32_t id = -5;
  write_rows(open_dataset(open_group(opened(path), "PartType4"), "ParticleIDs"), 0, 1, H5T_NATIVE_INT32, &id);
  EXPECT_EQ(read_snapshot(path).ids[5], 0xffffffffu - 4);
  const std::int64_t wide = -5;
  {
    H5Id particles = open_group(opened(path), "PartType4");
    H5Ldelete(particles, "ParticleIDs", H5P_DEFAULT);
    write_rows(create_dataset(particles, "ParticleIDs", H5T_STD_I64LE, 1, 1, 0), 0, 1, H5T_NATIVE_INT64, &wide);
  }
  EXPECT_EQ(read_snapshot(path).ids[5], std::uint64_t{0} - 5);
}

void set_header(const std::string& path, const char* name, std::optional<double> value) {
  H5Id file = opened(path);
  H5Id header = open_group(file, "Header");
  if (H5Aexists(header, name) > 0) H5Adelete(header, name);
  if (value) write_attribute(header, name, *value);
}

// swiftsimio puts the mass of the first particle into the table, whatever the others have.
TEST_F(ParticleTypes, MassesOfTheirOwnHoldOverTheTable) {
  const std::vector<float> masses = {0.5f, 1.5f, 2.5f};
  write_rows(create_dataset(open_group(opened(path), "PartType1"), "Masses", H5T_IEEE_F32LE, 3, 1, 0), 0, 3,
             H5T_NATIVE_FLOAT, masses.data());
  const Snapshot s = read_snapshot(path);
  EXPECT_EQ(std::vector<float>(s.masses.begin() + 2, s.masses.begin() + 5), masses);
  expect_contains(text_of(describe_file(path)), {"3, masses of their own", "or kpc/h"});
}

// One of Time and Redshift gives the other; no OmegaLambda is not one of 0.
TEST_F(ParticleTypes, WhatAHeaderLacksIsDerivedAndTold) {
  set_header(path, "Redshift", {});
  expect_particles(read_snapshot(path));
  set_header(path, "Redshift", 1.0);
  set_header(path, "Time", {});
  expect_particles(read_snapshot(path));
  set_header(path, "OmegaLambda", 0.0);
  EXPECT_EQ(read_snapshot(path).header.omega_lambda, 0);
  set_header(path, "OmegaLambda", {});
  set_header(path, "HubbleParam", {});
  ReadReport report;
  EXPECT_NEAR(read_snapshot(path, &report).header.omega_lambda, 0.7, 1e-12);
  expect_contains(text_of(report.notes), {"no OmegaLambda: 0.7, of a flat", "no HubbleParam"});
}

TEST_F(ParticleTypes, UnitsUnderGizmosNames) {
  set_header(path, "UnitLength_In_CGS", 3.0857e18);
  set_header(path, "UnitMass_In_CGS", 1.9884e33);
  set_header(path, "UnitVelocity_In_CGS", 100);
  set_header(path, "Gravitational_Constant_In_Code_Inits", 4300);
  const Snapshot s = read_snapshot(path);
  EXPECT_EQ(s.header.units.length_cgs, 3.0857e18);
  EXPECT_EQ(s.header.newton(), 4300);
}

TEST_F(ParticleTypes, OthersSubsetsArePartsToo) {
  const std::array<double, 6> fractions = {1, 0.01, 1, 1, 1, 1};
  write_attribute(open_group(opened(path), "Header"), "SubSampleFractions", fractions.data(), 6);
  write_attribute(open_group(opened(path), "Header"), "OutputType", std::string("SubSampled"));
  EXPECT_EQ(read_with_report(path).report.selection.fraction, 0.01);
}

// numpy's bool in h5py is an enumeration.
TEST_F(ParticleTypes, AFlagMayBeABool) {
  {
    H5Id header = open_group(opened(path), "Header");
    H5Id type(H5Tenum_create(H5T_NATIVE_INT8), H5Tclose), one(H5Screate(H5S_SCALAR), H5Sclose);
    const std::int8_t no = 0, yes = 1;
    H5Tenum_insert(type, "FALSE", &no);
    H5Tenum_insert(type, "TRUE", &yes);
    H5Id flag(H5Acreate2(header, "ComovingIntegrationOn", type, one, H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
    H5Awrite(flag, type, &no);
  }
  EXPECT_FALSE(read_snapshot(path).header.comoving);
}

TEST_F(ParticleTypes, PkdgravsLayoutIsRefused) {
  write_attribute(create_group(opened(path), "Units"), "KpcUnit", 1.0);
  expect_unreadable(path, {"PKDGRAV3"});
}

// 2LPTic and N-GenIC write the high words at the place of type 2, others none.
TEST_F(ParticleTypes, TotalsOf32BitsAreCompleted) {
  for (const std::uint32_t high : {0u, 2u}) {
    TempDir dir;
    const std::array<std::uint32_t, 6> counts = {0, 3'000'000'000, 0, 0, 0, 0};
    const std::array<std::uint32_t, 6> totals = {0, static_cast<std::uint32_t>(9'000'000'000), high, 0, 0, 0};
    for (const char* name : {"s.0.hdf5", "s.1.hdf5", "s.2.hdf5"}) {
      H5Id file = create_hdf5(dir / name);
      H5Id header = create_group(file, "Header");
      write_attribute(header, "NumPart_ThisFile", counts.data(), 6);
      write_attribute(header, "NumPart_Total", totals.data(), 6);
      write_attribute<std::int32_t>(header, "NumFilesPerSnapshot", 3);
    }
    EXPECT_EQ(count_particles(dir / "s.0.hdf5"), 9'000'000'000);
  }
}

TEST_F(ParticleTypes, WhyASetIsIsolated) {
  set_header(path, "Redshift", 0.0);
  ReadReport report;
  EXPECT_FALSE(read_snapshot(path, &report).header.comoving);
  expect_contains(report.why_isolated, {"Time 0.5", "Redshift of 0"});
  EXPECT_FALSE(report.has_units);
}

// OUTPUT_COORDINATES_AS_INTEGERS of GADGET-4, with POSITIONS_IN_32BIT and _64BIT.
TEST_F(ParticleTypes, IntegerCoordinatesCountPartsOfTheBox) {
  for (const bool wide : {false, true}) {
    TempDir dir;
    const std::string path = hdf5_file(dir, {});
    set_header(path, "BoxSize", 32.0);  // by which the division is exact
    for (const char* name : {"PartType0", "PartType1", "PartType4"}) {
      const std::vector<double> x = numbers_in(path, name + std::string("/Coordinates"));
      std::vector<std::uint64_t> integers;
      for (const double one : x) integers.push_back(static_cast<std::uint64_t>(one * 0x1p27) << (wide ? 32 : 0));
      H5Id group = open_group(opened(path), name);
      H5Ldelete(group, "Coordinates", H5P_DEFAULT);
      write_rows(create_dataset(group, "IntCoordinates", wide ? H5T_STD_U64LE : H5T_STD_U32LE, x.size() / 3, 3, 0), 0,
                 x.size() / 3, H5T_NATIVE_UINT64, integers.data());
    }
    expect_particles(read_snapshot(path));
    set_header(path, "ComovingIntegrationOn", 0.0);
    expect_unreadable(path, {"IntCoordinates", "isolated", "COORDINATES_AS_INTEGERS"});
  }
}

TEST_F(ParticleTypes, TracersAreNamed) {
  for (const char* name : {"Coordinates", "Velocities", "Masses"})
    H5Ldelete(open_group(opened(path), "PartType4"), name, H5P_DEFAULT);
  expect_unreadable(path, {"'PartType4' have no coordinates", "holds ParticleIDs", "copy"});
}

TEST_F(ParticleTypes, WithoutMassesIsAnError) {
  expect_error([&] { read_snapshot(hdf5_file(dir, {.masses = false})); },
               {"particles of type 0 have no masses", "MassTable[0] is 0", "PartType0/Masses"});
}

TEST_F(ParticleTypes, WithoutIdsAreNumbered) {
  const auto [s, report] = read_with_report(hdf5_file(dir, {.ids = false}));
  EXPECT_EQ(s.ids, (std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6}));
  expect_contains(text_of(report.notes),
                  {"type 4 have no ids", "states no units", "km/s are assumed", "the mean density is"});
}

TEST_F(ParticleTypes, DescribedOneByOne) {
  expect_contains(text_of(describe_file(hdf5_file(dir, {}))),
                  {"particles    6", "type 0", "2, masses of their own", "3, mass 0.5 each", "PartType4/Masses"});
}

}  // namespace
}  // namespace maki
