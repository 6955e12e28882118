// Snapshots open in h5py, yt, pynbody and swiftsimio with the right cosmology, units, positions, velocities and masses.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "src/io/snapshot_io.hpp"
#include "tests/commands.hpp"
#include "tests/places.hpp"
#include "tests/src/io/io_helpers.hpp"

namespace maki {
namespace {

using namespace test;

struct Case {
  const char* name;
  const char* package;
  bool equal_masses;
  WriteOptions options;
};

class PythonReaders : public testing::TestWithParam<Case> {};

TEST_P(PythonReaders, ShowWhatWasWritten) {
  const Case& c = GetParam();
  TempDir dir;
  const Snapshot s = make_snapshot(500, c.equal_masses);
  const auto files = write_snapshot(dir / "s.hdf5", s, make_provenance(), c.options);
  const std::size_t row = 321;
  const auto& x = s.positions[row];
  const auto& v = s.velocities[row];
  std::ofstream(dir / "expected.json") << fmt::format(
      R"({{"row": {}, "id": {}, "count": {}, "position": [{}, {}, {}], "velocity": [{}, {}, {}], "mass": {},)"
      R"( "box": {}, "redshift": {}, "omega0": {}, "omega_lambda": {}, "hubble": {}, "velocity_tolerance": {}}})",
      row, s.ids[row], s.size(), x[0], x[1], x[2], v[0], v[1], v[2], s.masses[row] * 1e10, s.header.box_size,
      s.header.redshift, s.header.omega0, s.header.omega_lambda, s.header.hubble,
      c.options.velocities == VelocityNumbers::kHalf ? 5e-4 : 1e-4);
  const auto [code, output] =
      call_shell(fmt::format("'{}' '{}/tests/src/io/open_with_python.py' {} '{}' '{}'", python(), source_directory(),
                             c.package, files[0], dir / "expected.json"));
  if (code == 77 || code == 127) GTEST_SKIP() << c.package << ": " << output;
  EXPECT_EQ(code, 0) << output;
}

const WriteOptions kLean{.coordinates = CoordinateNumbers::kFixed32, .velocities = VelocityNumbers::kHalf};
const WriteOptions kSwift{.layout = FileLayout::kSwift};
const WriteOptions kLeanSwift{.coordinates = CoordinateNumbers::kFixed32,
                              .velocities = VelocityNumbers::kHalf,
                              .layout = FileLayout::kSwift,
                              .deflate = 1};
const WriteOptions kFloats{.coordinates = CoordinateNumbers::kFloat};

INSTANTIATE_TEST_SUITE_P(
    Packages, PythonReaders,
    testing::Values(Case{"h5py", "h5py", true, {}}, Case{"h5py_deflate", "h5py", false, {.deflate = 5}},
                    Case{"yt", "yt", true, {}}, Case{"yt_own_masses", "yt", false, {}},
                    Case{"yt_multi", "yt", false, {.files = 2}}, Case{"h5py_lean", "h5py", true, kLean},
                    Case{"yt_lean", "yt", true, kLean}, Case{"pynbody_lean", "pynbody", true, kLean},
                    Case{"h5py_swift", "h5py", true, kSwift}, Case{"pynbody_swift", "pynbody", true, kSwift},
                    Case{"swiftsimio", "swiftsimio", true, kSwift},
                    Case{"swiftsimio_lean", "swiftsimio", false, kLeanSwift}, Case{"pynbody", "pynbody", true, {}},
                    Case{"pynbody_own_masses", "pynbody", false, kFloats}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace maki
