// Snapshots open in h5py, yt, pynbody and swiftsimio with the right cosmology, units, positions, velocities and masses.
// The interpreter is python3, or what the environment variable MAKI_PYTHON names.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "src/io/snapshot_io.hpp"
#include "tests/places.hpp"
#include "tests/src/io/io_helpers.hpp"

namespace maki {
namespace {

struct Outcome {
  int code;
  std::string text;
};

Outcome run_command(const std::string& command) {
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (!pipe) return {127, "no shell"};
  Outcome outcome{0, ""};
  std::array<char, 4096> buffer;
  while (std::size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe)) outcome.text.append(buffer.data(), n);
  const int status = pclose(pipe);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 127;
  return outcome;
}

struct Case {
  const char* name;
  const char* package;
  bool equal_masses;
  WriteOptions options;
};

class PythonReaders : public testing::TestWithParam<Case> {};

TEST_P(PythonReaders, ShowWhatWasWritten) {
  const Case& c = GetParam();
  test::TempDir dir;
  const Snapshot s = test::make_snapshot(500, c.equal_masses);
  const auto files = write_snapshot(dir / "s.hdf5", s, test::make_provenance(), c.options);
  const std::size_t row = 321;
  const auto& x = s.positions[row];
  const auto& v = s.velocities[row];
  std::ofstream(dir / "expected.json") << fmt::format(
      R"({{"row": {}, "id": {}, "count": {}, "position": [{}, {}, {}], "velocity": [{}, {}, {}], "mass": {},)"
      R"( "box": {}, "redshift": {}, "omega0": {}, "omega_lambda": {}, "hubble": {}, "velocity_tolerance": {}}})",
      row, s.ids[row], s.size(), x[0], x[1], x[2], v[0], v[1], v[2], s.masses[row] * 1e10, s.header.box_size,
      s.header.redshift, s.header.omega0, s.header.omega_lambda, s.header.hubble,
      c.options.velocities == VelocityNumbers::kHalf ? 5e-4 : 1e-4);
  const char* interpreter = std::getenv("MAKI_PYTHON");
  const Outcome outcome = run_command(fmt::format("'{}' '{}/tests/src/io/open_with_python.py' {} '{}' '{}'",
                                                  interpreter ? interpreter : "python3", test::source_directory(),
                                                  c.package, files[0], dir / "expected.json"));
  if (outcome.code == 77 || outcome.code == 127) GTEST_SKIP() << c.package << ": " << outcome.text;
  EXPECT_EQ(outcome.code, 0) << outcome.text;
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
