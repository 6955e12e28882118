// Bad input: each message says what, where, and what to do.
#include <gtest/gtest.h>

#include <fstream>
#include <limits>

#include "src/io/hdf5_file.hpp"
#include "src/io/snapshot_io.hpp"
#include "tests/src/io/io_helpers.hpp"

namespace maki {
namespace {

using test::error_of;
using test::expect_contains;
using test::make_snapshot;
using test::TempDir;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// The message for a snapshot that is written as it is and read again.
std::string read_error(const Snapshot& s, const WriteOptions& options = {}) {
  TempDir dir;
  const auto files = write_snapshot(dir / "s.hdf5", s, {}, options);
  return error_of([&] { read_snapshot(files[0]); });
}

TEST(BadInput, MissingFile) {
  TempDir dir;
  expect_contains(error_of([&] { read_snapshot(dir / "no.hdf5"); }),
                  {"cannot read", "no.hdf5", "no such file", "check"});
  expect_contains(error_of([&] { read_snapshot(dir.path()); }), {"directory"});
}

TEST(BadInput, UnknownFormat) {
  TempDir dir;
  std::ofstream(dir / "text.hdf5") << "These are not the particles that you are looking for.\n";
  std::ofstream(dir / "empty.hdf5");
  for (const char* name : {"text.hdf5", "empty.hdf5"}) {
    expect_contains(error_of([&] { read_snapshot(dir / name); }), {name, "neither an HDF5 file nor GADGET binary"});
  }
}

TEST(BadInput, ForeignHdf5) {
  TempDir dir;
  { H5Id file = create_hdf5(dir / "a.hdf5"); }
  expect_contains(error_of([&] { read_snapshot(dir / "a.hdf5"); }), {"a.hdf5", "without the group 'Header'"});
}

TEST(BadInput, TruncatedHdf5) {
  TempDir dir;
  write_snapshot(dir / "s.hdf5", make_snapshot(), {});
  std::filesystem::resize_file(dir / "s.hdf5", std::filesystem::file_size(dir / "s.hdf5") * 2 / 3);
  expect_contains(error_of([&] { read_snapshot(dir / "s.hdf5"); }),
                  {"s.hdf5", "truncated file", "incomplete", "again"});
}

TEST(BadInput, TruncatedBinary) {
  for (const auto format : {SnapshotFormat::kGadgetBinary1, SnapshotFormat::kGadgetBinary2}) {
    for (const double share : {0.002, 0.3, 0.6, 0.999}) {
      TempDir dir;
      write_snapshot(dir / "s", make_snapshot(), {}, {.format = format});
      const auto size = static_cast<double>(std::filesystem::file_size(dir / "s"));
      std::filesystem::resize_file(dir / "s", static_cast<std::uintmax_t>(size * share));
      expect_contains(error_of([&] { read_snapshot(dir / "s"); }), {"/s'", "the file ends at byte", "again"});
    }
  }
}

TEST(BadInput, DamagedBinary) {
  TempDir dir;
  write_snapshot(dir / "s", make_snapshot(), {}, {.format = SnapshotFormat::kGadgetBinary1});
  std::fstream file(dir / "s", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(264);
  file.write("\1\2\0\0", 4);
  file.close();
  expect_contains(error_of([&] { read_snapshot(dir / "s"); }), {"POS ", "not closed by its length"});
}

TEST(BadInput, TypeWithoutMasses) {
  TempDir dir;
  write_snapshot(dir / "s.hdf5", make_snapshot(10, false), {});
  {
    H5Id file(H5Fopen((dir / "s.hdf5").c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose);
    H5Ldelete(file, "PartType1/Masses", H5P_DEFAULT);
  }
  expect_contains(error_of([&] { read_snapshot(dir / "s.hdf5"); }),
                  {"s.hdf5", "particles of type 1 have no masses", "MassTable[1]", "give them a mass"});
}

TEST(BadInput, HeaderAndDataDisagree) {
  TempDir dir;
  write_snapshot(dir / "s.hdf5", make_snapshot(10), {});
  {
    H5Id file(H5Fopen((dir / "s.hdf5").c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose);
    H5Id header = open_group(file, "Header");
    H5Adelete(header, "NumPart_ThisFile");
    const std::uint32_t counts[6] = {0, 11, 0, 0, 0, 0};
    write_attribute(header, "NumPart_ThisFile", counts, 6);
  }
  expect_contains(error_of([&] { read_snapshot(dir / "s.hdf5"); }), {"PartType1/Coordinates", "wrong size", "11 x 3"});
}

TEST(BadInput, HeaderThatPromisesTooMuch) {
  TempDir dir;
  write_snapshot(dir / "s.hdf5", make_snapshot(10), {});
  {
    H5Id file(H5Fopen((dir / "s.hdf5").c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose);
    H5Id header = open_group(file, "Header");
    H5Adelete(header, "NumPart_ThisFile");
    const std::uint64_t counts[6] = {0, std::uint64_t{1} << 60, 0, 0, 0, 0};
    write_attribute(header, "NumPart_ThisFile", counts, 6);
  }
  expect_contains(error_of([&] { read_snapshot(dir / "s.hdf5"); }), {"s.hdf5", "no memory", "of its header"});
}

TEST(BadInput, NumbersThatAreNone) {
  Snapshot s = make_snapshot(10);
  s.positions[6][1] = kNan;
  expect_contains(read_error(s), {"particle 6 (id 25)", "position that is not a number", "1 such particles"});
  s = make_snapshot(10);
  s.velocities[2][0] = std::numeric_limits<float>::infinity();
  s.velocities[3][0] = kNan;
  expect_contains(read_error(s), {"particle 2 (id 13)", "velocity that is not a number", "2 such particles"});
}

TEST(BadInput, Masses) {
  for (const float mass : {0.0f, -1.0f, kNan}) {
    Snapshot s = make_snapshot(10);
    s.masses[5] = mass;
    expect_contains(read_error(s), {"particle 5 (id 22) has the mass", "positive mass"});
  }
}

TEST(BadInput, OutsideTheBox) {
  for (const double x : {-0.001, 50.001}) {
    Snapshot s = make_snapshot(10);
    s.positions[1][2] = x;
    if (x > 50) {  // the writer wraps what lies above; a smaller box shows the same
      s = make_snapshot(10);
      s.header.box_size = 100;
      TempDir dir;
      write_snapshot(dir / "s.hdf5", s, {});
      H5Id file(H5Fopen((dir / "s.hdf5").c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose);
      for (const char* group : {"Header", "Parameters"}) {
        H5Id attributes = open_group(file, group);
        H5Adelete(attributes, "BoxSize");
        write_attribute(attributes, "BoxSize", 40.0);
      }
      (void)file.close();
      expect_contains(error_of([&] { read_snapshot(dir / "s.hdf5"); }),
                      {"lies outside the box", "box of 40", "BoxSize"});
    } else {
      expect_contains(read_error(s), {"particle 1 (id 10)", "lies outside the box", "wrap"});
    }
  }
}

TEST(BadInput, UpperEdgeIsWrapped) {
  TempDir dir;
  Snapshot s = make_snapshot(10);
  write_snapshot(dir / "s.hdf5", s, {});
  {
    H5Id file(H5Fopen((dir / "s.hdf5").c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose);
    H5Id dataset = open_dataset(file, "PartType1/Coordinates");
    const double row[3] = {50, 1, 2};
    write_rows(dataset, 3, 1, H5T_NATIVE_DOUBLE, row);
  }
  ReadReport report;
  EXPECT_EQ(read_snapshot(dir / "s.hdf5", &report).positions[3][0], 0);
  ASSERT_EQ(report.notes.size(), 1u);
  expect_contains(report.notes[0], {"1 particles", "wrapped to 0", "id 16"});
}

TEST(BadInput, ZeroParticles) {
  Snapshot s = make_snapshot(0);
  expect_contains(read_error(s), {"s.hdf5", "holds no particles"});
  expect_contains(read_error(s, {.format = SnapshotFormat::kGadgetBinary1}), {"holds no particles"});
}

TEST(BadInput, TwoParticlesAtOnePoint) {
  Snapshot s = make_snapshot(1000);
  s.positions[800] = s.positions[17];
  expect_contains(read_error(s), {"two particles at one point", "ids 58 and 2407"});
  s.positions[800][0] += 50 * 0x1p-31;  // two units of the last bit apart
  EXPECT_EQ(read_error(s), "");
}

TEST(BadInput, IncompleteSet) {
  for (const auto format : {SnapshotFormat::kGadgetHdf5, SnapshotFormat::kGadgetBinary1}) {
    TempDir dir;
    const auto files = write_snapshot(dir / "s.hdf5", make_snapshot(), {}, {.format = format, .files = 3});
    std::filesystem::remove(files[1]);
    expect_contains(error_of([&] { read_snapshot(files[0]); }),
                    {"incomplete", files[1].c_str(), "of 3 files is missing"});
  }
}

TEST(BadInput, FilesOfDifferentSets) {
  TempDir dir;
  Snapshot other = make_snapshot();
  other.header.time = 0.5;
  const auto files = write_snapshot(dir / "s.hdf5", make_snapshot(), {}, {.files = 2});
  const auto others = write_snapshot(dir / "t.hdf5", other, {}, {.files = 2});
  std::filesystem::rename(others[1], files[1]);
  expect_contains(error_of([&] { read_snapshot(files[0]); }), {"do not belong together"});
}

}  // namespace
}  // namespace maki
