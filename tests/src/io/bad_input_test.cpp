// Bad input: each message says what, where, and what to do.
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <utility>
#include <vector>

#include "src/io/gadget.hpp"
#include "src/io/hdf5_file.hpp"
#include "src/io/snapshot_io.hpp"
#include "tests/src/io/io_helpers.hpp"

namespace maki {
namespace {

using namespace test;
using BadInput = InTempDir;

TEST_F(BadInput, MissingFile) {
  expect_unreadable(dir / "no.hdf5", {"cannot read", "no.hdf5", "no such file", "check"});
  expect_unreadable(dir / std::string(300, 'a'), {"cannot read", "aaa", "too long"});
  expect_unreadable(dir.path(), {"directory"});
}

TEST_F(BadInput, UnknownFormat) {
  std::ofstream(dir / "text.hdf5") << "These are not the particles that you are looking for.\n";
  std::ofstream(dir / "empty.hdf5");
  for (const char* name : {"text.hdf5", "empty.hdf5"})
    expect_unreadable(dir / name, {name, "neither an HDF5 file nor GADGET binary"});
}

TEST_F(BadInput, ArrayOfTextIsNoText) {
  const std::string path = dir / "s.hdf5", text(6400, 'x');
  write_snapshot(path, make_snapshot(), {});
  {
    H5Id file = opened(path);
    H5Id dataset(H5Dopen2(file, "PartType1/Coordinates", H5P_DEFAULT), H5Dclose);
    for (const char* name : {"length_scaling", "Description"})
      if (H5Aexists(dataset, name) > 0) H5Adelete(dataset, name);
    const hsize_t count = 64;
    H5Id space(H5Screate_simple(1, &count, nullptr), H5Sclose), type(H5Tcopy(H5T_C_S1), H5Tclose);
    H5Tset_size(type, text.size() / count);
    H5Id attribute(H5Acreate2(dataset, "Description", type, space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
    ASSERT_GE(H5Awrite(attribute, type, text.data()), 0);
  }
  EXPECT_EQ(read_snapshot(path).size(), make_snapshot().size());
}

TEST_F(BadInput, TruncatedBinary) {
  for (const auto format : {SnapshotFormat::kGadgetBinary1, SnapshotFormat::kGadgetBinary2}) {
    for (const double share : {0.002, 0.3, 0.6, 0.999}) {
      TempDir dir;
      write_snapshot(dir / "s", make_snapshot(), {}, {.format = format});
      const auto size = static_cast<double>(std::filesystem::file_size(dir / "s"));
      std::filesystem::resize_file(dir / "s", static_cast<std::uintmax_t>(size * share));
      expect_unreadable(dir / "s", {"/s'", "the file ends at byte", "again"});
      expect_error([&] { describe_file(dir / "s"); }, {"/s'", "the file ends at byte", "again"});
    }
  }
}

TEST_F(BadInput, DamagedBinary) {
  write_snapshot(dir / "s", make_snapshot(), {}, {.format = SnapshotFormat::kGadgetBinary1});
  std::fstream file(dir / "s", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(264);
  file.write("\1\2\0\0", 4);
  file.close();
  expect_unreadable(dir / "s", {"POS ", "not closed by its length"});
}

template <class T>
void replace_in_header(const std::string& path, const char* name, const std::vector<T>& values) {
  H5Id header = open_group(opened(path), "Header");
  H5Adelete(header, name);
  write_attribute(header, name, values.data(), values.size());
}

std::size_t pass(unsigned, std::size_t, const unsigned*, std::size_t bytes, std::size_t*, void**) { return bytes; }

// Replaces the coordinates by a dataset of this shape, in one chunk that goes through a filter.
void replace_coordinates(const std::string& path, const std::vector<hsize_t>& shape, H5Z_filter_t filter) {
  H5Id group = open_group(opened(path), "PartType1");
  H5Ldelete(group, "Coordinates", H5P_DEFAULT);
  H5Id space(H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr), H5Sclose);
  H5Id properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_chunk(properties, static_cast<int>(shape.size()), shape.data());
  H5Pset_filter(properties, filter, 0, 0, nullptr);
  H5Id dataset(H5Dcreate2(group, "Coordinates", H5T_IEEE_F64LE, space, H5P_DEFAULT, properties, H5P_DEFAULT), H5Dclose);
  const std::vector<double> numbers(30, 1.0);
  ASSERT_GE(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers.data()), 0);
}

void make_masses_text(const std::string& path) {
  H5Id group = open_group(opened(path), "PartType1");
  H5Ldelete(group, "Masses", H5P_DEFAULT);
  const hsize_t count = 10;
  H5Id space(H5Screate_simple(1, &count, nullptr), H5Sclose);
  H5Id dataset(H5Dcreate2(group, "Masses", H5T_C_S1, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Dclose);
  ASSERT_TRUE(dataset.valid());
}

TEST_F(BadInput, SpoiltHdf5) {
  using Path = const std::string&;
  const std::vector<std::pair<std::vector<std::string>, std::function<void(Path)>>> faults{
      {{"s.hdf5", "without the group 'Header'"}, [](Path path) { create_hdf5(path); }},
      {{"s.hdf5", "truncated file", "incomplete", "again"},
       [](Path path) { std::filesystem::resize_file(path, std::filesystem::file_size(path) * 2 / 3); }},
      {{"s.hdf5", "particles of type 1 have no masses", "MassTable[1]", "give them a mass"},
       [](Path path) { H5Ldelete(opened(path), "PartType1/Masses", H5P_DEFAULT); }},
      {{"s.hdf5", "PartType1/Masses", "holds no numbers", "text", "write it"}, make_masses_text},
      {{"PartType1/Coordinates", "wrong size", "11 x 3"},
       [](Path path) {
         replace_in_header<std::uint32_t>(path, "NumPart_ThisFile", {0, 11, 0, 0, 0, 0});
       }},
      {{"s.hdf5", "no cube"},
       [](Path path) {
         replace_in_header<double>(path, "BoxSize", {50, 50, 100});
       }},
      {{"PartType1/Coordinates", "wrong size"},
       [](Path path) {
         replace_coordinates(path, {10, 3, 1}, H5Z_FILTER_FLETCHER32);
       }},
      {{"s.hdf5", "no memory", "of its header"}, [](Path path) {
         replace_in_header<std::uint64_t>(path, "NumPart_ThisFile", {0, 1ull << 60, 0, 0, 0, 0});
       }}};
  for (const auto& [words, spoil] : faults) {
    TempDir dir;
    write_snapshot(dir / "s.hdf5", make_snapshot(10, false), {});
    spoil(dir / "s.hdf5");
    expect_unreadable(dir / "s.hdf5", words);
  }
}

TEST_F(BadInput, AFilterThatIsNotThere) {
  write_snapshot(dir / "s.hdf5", make_snapshot(10), {});
  const H5Z_class2_t own{H5Z_CLASS_T_VERS, 300, 1, 1, "squeeze", nullptr, nullptr, pass};
  ASSERT_GE(H5Zregister(&own), 0);
  replace_coordinates(dir / "s.hdf5", {10, 3}, 300);
  EXPECT_EQ(read_snapshot(dir / "s.hdf5").size(), 10u);
  ASSERT_GE(H5Zunregister(300), 0);
  expect_unreadable(dir / "s.hdf5", {"PartType1/Coordinates", "filter 'squeeze'", "gzip"});
}

// What is read again of a snapshot that is written as it is, but for the side of its box, and what was said to it.
ReadSet read_with_box(const Snapshot& s, double box) {
  TempDir dir;
  Snapshot in_larger_box = s;  // the writer takes what lies above the box to the edge
  in_larger_box.header.box_size = 1e9;
  write_snapshot(dir / "s.hdf5", in_larger_box, {}, {});
  for (const char* group : {"Header", "Parameters"}) {
    H5Id attributes = open_group(opened(dir / "s.hdf5"), group);
    H5Adelete(attributes, "BoxSize");
    write_attribute(attributes, "BoxSize", box);
  }
  return read_with_report(dir / "s.hdf5");
}

TEST_F(BadInput, WhatARoundingPutsOutsideIsWrapped) {
  Snapshot s = make_snapshot(1000);
  s.positions[3] = {50, 1, 2};
  s.positions[4] = {-3e-6, 50.00001, 2};
  s.positions[5] = {-1e-30, 3, 4};
  const auto [again, report] = read_with_box(s, 50);
  EXPECT_EQ(again.positions[3], (std::array<double, 3>{0, 1, 2}));
  EXPECT_NEAR(again.positions[4][0], 50 - 3e-6, 1e-12);
  EXPECT_NEAR(again.positions[4][1], 0.00001, 1e-12);
  EXPECT_EQ(again.positions[5][0], 0);
  EXPECT_EQ(again.positions[6], s.positions[6]);
  ASSERT_EQ(report.notes.size(), 1u);
  expect_contains(report.notes[0], {"3 particles at the edge of the box", "id 16"});
  expect_lacks(report.notes[0], {"Warning"});
}

TEST_F(BadInput, ParticlesFasterThanLightAreToldOf) {
  Snapshot s = make_snapshot(10);
  s.velocities[3] = {2e5f, -2e5f, 2e5f};
  const auto [again, report] = read_with_box(s, 50);
  ASSERT_EQ(report.notes.size(), 1u);
  expect_contains(report.notes[0], {"1 particles of 10 move faster than light", "unit of velocities"});
}

// A set about the origin, or anywhere else, fills its box all the same.
TEST_F(BadInput, AShiftedSetIsWrapped) {
  const Snapshot s = make_snapshot(1000);
  for (const double shift : {-25.0, 1010.0}) {
    Snapshot shifted = s;
    for (auto& position : shifted.positions)
      for (double& x : position) x += shift;
    const auto [again, report] = read_with_box(shifted, 50);
    ASSERT_EQ(report.notes.size(), 1u);
    expect_contains(report.notes[0], {"Warning: ", "were wrapped into it"});
    for (std::size_t i = 0; i < 1000; ++i) {
      for (std::size_t axis = 0; axis < 3; ++axis) {
        const double x = again.positions[i][axis], off = x - s.positions[i][axis] - shift;
        ASSERT_TRUE(x >= 0 && x < 50) << x;
        ASSERT_NEAR(off, 50 * std::round(off / 50), 1e-9);
      }
    }
  }
}

TEST_F(BadInput, AWrongBoxIsRefused) {
  const Snapshot s = make_snapshot(1000);
  for (const double box : {40.0, 0.05})
    expect_error([&] { read_with_box(s, box); },
                 {"lies outside the box", "such particles of 1000", "no box for them", "BoxSize"});
  Snapshot one_far = s;
  one_far.positions[1][2] = -26;
  expect_error([&] { read_with_box(one_far, 50); },
               {"particle 1 (id 10)", "in a box of 50; 1 such particles of 1000, by up to 26"});
}

// Which is not periodic: its edges are apart.
TEST_F(BadInput, AnIsolatedSetIsNotWrapped) {
  Snapshot s = make_snapshot(10);
  s.header = isolated_header();
  s.positions[3] = {50, 1, 2};
  EXPECT_EQ(read_with_box(s, 50).set.positions[3][0], 50);
  const auto [outside, report] = read_with_box(s, 40);
  EXPECT_EQ(outside.header.box_size, 0);
  ASSERT_EQ(report.notes.size(), 1u);
  expect_contains(report.notes[0], {"BoxSize is ignored"});
}

TEST_F(BadInput, ZeroParticles) {
  write_snapshot(dir / "s.hdf5", make_snapshot(0), {});
  expect_unreadable(dir / "s.hdf5", {"s.hdf5", "holds no particles"});
  write_snapshot(dir / "binary", make_snapshot(0), {}, {.format = SnapshotFormat::kGadgetBinary1});
  expect_unreadable(dir / "binary", {"holds no particles"});
}

TEST_F(BadInput, ParticlesNearlyAtOnePointAreNotCounted) {
  Snapshot s = make_snapshot(1000);
  s.positions[800] = s.positions[17];
  s.positions[800][0] += 50 * 0x1p-31;  // two units of the last bit apart
  EXPECT_EQ(read_with_box(s, 50).report.notes, std::vector<std::string>());
}

TEST_F(BadInput, ParticlesOfASetWithAFarOneDoNotShareTheirPoints) {
  Snapshot s = make_snapshot(1000);
  s.header.comoving = false;
  s.header.box_size = 0;
  s.positions[5] = {1e12, 0, 0};
  std::vector<std::string> notes;
  check_snapshot(s, "set", notes, Communicator::self());
  EXPECT_EQ(notes, std::vector<std::string>());
  s.positions[7] = s.positions[5];
  check_snapshot(s, "set", notes, Communicator::self());
  expect_contains(notes.at(0), {"2 particles share their point"});
}

TEST_F(BadInput, IncompleteSet) {
  for (const auto format : {SnapshotFormat::kGadgetHdf5, SnapshotFormat::kGadgetBinary1}) {
    TempDir dir;
    const auto files = write_snapshot(dir / "s.hdf5", make_snapshot(), {}, {.format = format, .files = 3});
    std::filesystem::remove(files[1]);
    expect_unreadable(files[0], {"incomplete", files[1].c_str(), "of 3 files is missing"});
  }
}

// The lengths in the file have 32 bits: all of these are 0, and all numbers too. A file without its zeros takes no disk.
TEST_F(BadInput, BlocksOfWholeMultiplesOfFourGibibytes) {
  constexpr std::int32_t kMany = 1 << 30;
  gadget::BinaryHeader header{};
  header.counts[1] = kMany;
  header.totals_low[1] = kMany;
  header.mass_table[1] = header.redshift = header.files = 1;
  header.time = 0.5;
  header.box_size = 50;
  header.omega0 = 0.3;
  header.omega_lambda = header.hubble = 0.7;
  const std::uint32_t bytes = sizeof header;
  const std::string file = dir / "many";
  {
    std::ofstream out(file, std::ios::binary);
    const auto put = [&out](const auto& part) { out.write(reinterpret_cast<const char*>(&part), sizeof part); };
    put(bytes), put(header), put(bytes);
  }
  const std::uint64_t whole = 4 * 8 + sizeof header + (3 + 3 + 1) * 4 * std::uint64_t{kMany};
  std::filesystem::resize_file(file, whole);
  EXPECT_EQ(gadget::read_binary_header(file).counts[1], static_cast<std::uint64_t>(kMany));
  std::filesystem::resize_file(file, whole - 1);
  expect_error([&] { gadget::read_binary_header(file); }, {"the file ends at byte", "'ID  ' of 4294967296 bytes"});
}

TEST_F(BadInput, FilesOfDifferentSets) {
  Snapshot other = make_snapshot();
  other.header.time = 0.5;
  const auto files = write_snapshot(dir / "s.hdf5", make_snapshot(), {}, {.files = 2});
  const auto others = write_snapshot(dir / "t.hdf5", other, {}, {.files = 2});
  std::filesystem::rename(others[1], files[1]);
  expect_unreadable(files[0], {"do not belong together"});
}

}  // namespace
}  // namespace maki
