#include "src/analysis/spectrum_files.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numbers>
#include <sstream>

#include "tests/places.hpp"
#include "tests/src/io/io_helpers.hpp"

namespace maki {
namespace {

PowerTable make_table() {
  PowerTable table;
  table.k = {0.1, 0.2, 0.4};
  table.power = {2000, 1500, 900};
  table.modes = {6, 0, 98};
  table.shot_noise = 0.5;
  table.mesh = 64;
  table.growth = 0.32;
  table.linear = {1900, 0, 400};
  table.nonlinear = {2000, 0, 800};
  table.folding = {1, 1, 2};
  return table;
}

TEST(PowerFile, HasGadgetsColumns) {
  test::TempDir dir;
  write_power_file(dir / "p.txt", make_table(), test::make_snapshot(1).header, test::make_provenance());
  std::ifstream in(dir / "p.txt");
  std::string comments, names;
  std::vector<std::array<double, 10>> rows;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("#")) {
      comments += line + "\n";
      names = line;
      continue;
    }
    std::istringstream numbers(line);
    rows.emplace_back();
    for (double& x : rows.back()) numbers >> x;
    EXPECT_TRUE(numbers);
  }
  std::istringstream words(names.substr(1));
  std::vector<std::string> columns(std::istream_iterator<std::string>(words), {});
  EXPECT_EQ(columns, (std::vector<std::string>{"K", "Delta2", "P", "ModeCount", "Shot", "Linear", "NonLinear",
                                               "P/Linear", "P/NonLinear", "Folding"}));
  test::expect_contains(comments, {"# Redshift 3", "# MeshSize 64", "# BoxSize 50", "# GrowthFactor 0.32", "# Bins 2",
                                   "Maki 0.1.0, commit 0123456789ab", "#   size = \"50 Mpc/h\"", "(Mpc/h)^3"});
  ASSERT_EQ(rows.size(), 2u);  // the bin without modes is left out
  const double pi2 = std::numbers::pi * std::numbers::pi;
  EXPECT_NEAR(rows[0][1], 1e-3 * 2000 / (2 * pi2), 1e-9);
  EXPECT_DOUBLE_EQ(rows[1][0], 0.4);
  EXPECT_DOUBLE_EQ(rows[1][2], 900);
  EXPECT_DOUBLE_EQ(rows[1][3], 98);
  EXPECT_NEAR(rows[1][4], 0.064 * 0.5 / (2 * pi2), 1e-9);
  EXPECT_DOUBLE_EQ(rows[1][5], 400);
  EXPECT_DOUBLE_EQ(rows[1][6], 800);
  EXPECT_DOUBLE_EQ(rows[1][7], 2.25);
  EXPECT_DOUBLE_EQ(rows[1][8], 1.125);
  EXPECT_DOUBLE_EQ(rows[1][9], 2);
}

TEST(PowerFile, RefusesToReplaceAndBadColumns) {
  test::TempDir dir;
  PowerTable table = make_table();
  const SnapshotHeader header = test::make_snapshot(1).header;
  write_power_file(dir / "p.txt", table, header, {});
  test::expect_contains(test::error_of([&] { write_power_file(dir / "p.txt", table, header, {}); }), {"exists"});
  write_power_file(dir / "p.txt", table, header, {}, true);
  table.nonlinear.pop_back();
  test::expect_contains(test::error_of([&] { write_power_file(dir / "q.txt", table, header, {}); }),
                        {"differ in length"});
  EXPECT_EQ(dir.entries(), 1u);
}

// bench/compare_power.py: exit status 0 where two spectra are as close as they have to be.
TEST(PowerFile, IsCompared) {
  if (!std::filesystem::exists(test::source_directory() + "/bench/compare_power.py") ||
      std::system("python3 -c '' 2>/dev/null") != 0)
    GTEST_SKIP() << "needs python3 and the sources";
  test::TempDir dir;
  PowerTable table = make_table();
  table.k = {0.1, 0.2, 4};  // 2 is half the Nyquist wave number of 250000 particles in a box of 50
  table.modes = {6, 18, 98};
  const auto write = [&](const char* name) {
    write_power_file(dir / name, table, test::make_snapshot(1).header, test::make_provenance());
  };
  write("a.txt");
  table.power[1] *= 1.002;
  table.power[2] *= 1.5;
  write("b.txt");
  const auto status = [&](const std::string& arguments) {
    const std::string command = "cd '" + dir.path() + "' && python3 '" + test::source_directory() +
                                "/bench/compare_power.py' a.txt b.txt " + arguments + " > out.txt";
    return std::system(command.c_str());
  };
  EXPECT_EQ(status("--limit 0.0021"), 0);
  EXPECT_NE(status("--limit 0.0019"), 0);
  std::stringstream text;
  text << std::ifstream(dir / "out.txt").rdbuf();
  test::expect_contains(text.str(), {"2.000e-03 at k = 0.2", "5.000e-01"});
}

}  // namespace
}  // namespace maki
