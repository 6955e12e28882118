#include "src/groups/catalogue.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <numbers>
#include <sstream>

#include "src/io/hdf5_file.hpp"
#include "tests/src/io/io_helpers.hpp"

namespace maki {
namespace {

GroupCatalogue make_catalogue() {
  GroupCatalogue catalogue;
  catalogue.header = test::make_snapshot(1).header;  // a = 1/4, a box of 50 Mpc/h
  catalogue.particles = 1000;
  for (std::uint64_t k = 0; k < 3; ++k) {
    const auto x = static_cast<double>(k);
    FofGroup g;
    g.length = 40 - k;
    g.mass = 1000 * (3 - x);
    g.position = {1 + x, 2 + x, 49.9999999999};  // a float of the last would be the side
    g.deepest_id = 70 + k;
    g.velocity = {100, -50 * x, 7};
    g.centre_of_mass = {1.5 + x, 2, 3};
    g.offset = 0.5 + x;
    g.velocity_dispersion = 200 + x;
    for (std::size_t kind = 0; kind < kSphereKinds; ++kind)
      g.spheres[kind] = {500 * (3 - x) + static_cast<double>(kind), 0.1 * static_cast<double>(kind + 1)};
    g.v_max = 300 + x, g.v_max_radius = 0.03, g.spin = 0.04, g.concentration = 5 + x;
    catalogue.groups.push_back(g);
    for (std::uint64_t i = 0; i < g.length; ++i) catalogue.member_ids.push_back(1000 * k + i);
  }
  return catalogue;
}

struct Numbers {
  std::vector<std::size_t> shape;
  std::vector<double> values;
};

Numbers read(hid_t file, const std::string& name, hid_t type) {
  H5Id dataset = open_dataset(file, name);
  H5Id found(H5Dget_type(dataset), H5Tclose);
  EXPECT_GT(H5Tequal(found, type), 0) << name;
  Numbers numbers{dataset_shape(dataset), {}};
  std::size_t count = 1;
  for (const std::size_t extent : numbers.shape) count *= extent;
  numbers.values.resize(count);
  const herr_t status = H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers.values.data());
  EXPECT_TRUE(count == 0 || status >= 0) << name;
  return numbers;
}

void expect_column(hid_t file, const std::string& name, hid_t type, const std::vector<double>& expected) {
  const Numbers found = read(file, name, type);
  ASSERT_EQ(found.values.size(), expected.size()) << name;
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(found.values[i], expected[i], 1e-6 * std::abs(expected[i])) << name << " " << i;
}

TEST(GroupCatalogue, HasGadgetsLayout) {
  test::TempDir dir;
  write_group_catalogue(dir / "g.hdf5", make_catalogue(), test::make_provenance());
  H5Id file = open_hdf5(dir / "g.hdf5");
  H5Id header = open_group(file, "Header");
  EXPECT_EQ(read_scalar<std::uint64_t>(header, "Ngroups_ThisFile"), 3u);
  EXPECT_EQ(read_scalar<std::uint64_t>(header, "Ngroups_Total"), 3u);
  EXPECT_EQ(read_scalar<std::uint64_t>(header, "Nids_Total"), 117u);
  EXPECT_EQ(read_scalar<std::uint64_t>(header, "Nsubhalos_Total"), 0u);
  EXPECT_EQ(read_scalar<std::int32_t>(header, "NumFiles"), 1);
  EXPECT_EQ(read_scalar<double>(header, "Time"), 0.25);
  EXPECT_EQ(read_scalar<double>(header, "Redshift"), 3);
  EXPECT_EQ(read_scalar<double>(header, "BoxSize"), 50);
  H5Id config = open_group(file, "Config"), parameters = open_group(file, "Parameters");
  EXPECT_EQ(read_scalar<double>(config, "FOF_LINKLENGTH"), 0.2);
  EXPECT_EQ(read_scalar<std::int32_t>(config, "FOF_GROUP_MIN_LEN"), 32);
  EXPECT_EQ(read_scalar<double>(parameters, "Omega0"), 0.308);

  expect_column(file, "Group/GroupLen", H5T_STD_I32LE, {40, 39, 38});
  expect_column(file, "Group/GroupMass", H5T_IEEE_F32LE, {3000, 2000, 1000});
  expect_column(file, "Group/GroupPos", H5T_IEEE_F32LE, {1, 2, 0, 2, 3, 0, 3, 4, 0});
  expect_column(file, "Group/GroupVel", H5T_IEEE_F32LE, {200, 0, 14, 200, -100, 14, 200, -200, 14});
  expect_column(file, "Group/GroupCMOffset", H5T_IEEE_F32LE, {0.5, 1.5, 2.5});
  expect_column(file, "Group/GroupVelDisp", H5T_IEEE_F32LE, {200, 201, 202});
  expect_column(file, "Group/Group_M_Mean200", H5T_IEEE_F32LE, {1500, 1000, 500});
  expect_column(file, "Group/Group_M_Crit500", H5T_IEEE_F32LE, {1502, 1002, 502});
  expect_column(file, "Group/Group_R_Crit200", H5T_IEEE_F32LE, {0.2, 0.2, 0.2});
  expect_column(file, "Group/Group_R_TopHat200", H5T_IEEE_F32LE, {0.4, 0.4, 0.4});
  expect_column(file, "Group/GroupVmax", H5T_IEEE_F32LE, {300, 301, 302});
  expect_column(file, "Group/GroupSpin", H5T_IEEE_F32LE, {0.04, 0.04, 0.04});
  expect_column(file, "Group/GroupConcentration", H5T_IEEE_F32LE, {5, 6, 7});
  EXPECT_EQ(read(file, "Group/GroupLenType", H5T_STD_I32LE).shape, (std::vector<std::size_t>{3, 6}));
  const Numbers offsets = read(file, "Group/GroupOffsetType", H5T_STD_I64LE);
  const Numbers ids = read(file, "IDs/ID", H5T_STD_U32LE);
  ASSERT_EQ(ids.values.size(), 117u);
  for (std::size_t k = 0; k < 3; ++k)  // a group's particles, as a user picks them out
    EXPECT_EQ(ids.values[static_cast<std::size_t>(offsets.values[6 * k + 1])], 1000.0 * static_cast<double>(k));

  H5Id velocity = open_dataset(file, "Group/GroupVel"), radius = open_dataset(file, "Group/Group_R_Mean200");
  EXPECT_EQ(read_scalar<double>(velocity, "a_scaling"), 0.5);
  EXPECT_EQ(read_scalar<double>(radius, "a_scaling"), 1);
  EXPECT_EQ(read_scalar<double>(radius, "h_scaling"), -1);
  EXPECT_EQ(read_scalar<double>(radius, "to_cgs"), UnitSystem{}.length_cgs);
}

TEST(GroupCatalogue, WideIdsAndNoGroups) {
  test::TempDir dir;
  GroupCatalogue catalogue = make_catalogue();
  catalogue.member_ids[5] = std::uint64_t{1} << 40;
  write_group_catalogue(dir / "wide.hdf5", catalogue, {});
  H5Id wide = open_hdf5(dir / "wide.hdf5");
  EXPECT_EQ(read(wide, "IDs/ID", H5T_STD_U64LE).values[5], std::pow(2.0, 40));
  catalogue.groups.clear();
  catalogue.member_ids.clear();
  write_group_catalogue(dir / "none.hdf5", catalogue, {});
  H5Id none = open_hdf5(dir / "none.hdf5");
  EXPECT_EQ(read(none, "Group/GroupLen", H5T_STD_I32LE).values.size(), 0u);
  H5Id header = open_group(none, "Header");
  EXPECT_EQ(read_scalar<std::uint64_t>(header, "Ngroups_Total"), 0u);
}

TEST(GroupCatalogue, RefusesToReplaceAndTooLongGroups) {
  test::TempDir dir;
  GroupCatalogue catalogue = make_catalogue();
  write_group_catalogue(dir / "g.hdf5", catalogue, {});
  test::expect_contains(test::error_of([&] { write_group_catalogue(dir / "g.hdf5", catalogue, {}); }), {"exists"});
  write_group_catalogue(dir / "g.hdf5", catalogue, {}, true);
  catalogue.groups[0].length = std::uint64_t{1} << 31;
  test::expect_contains(test::error_of([&] { write_group_catalogue(dir / "h.hdf5", catalogue, {}); }),
                        {"GroupLen", "2147483648"});
  EXPECT_EQ(dir.entries(), 1u);
}

TEST(MassFunctionFile, HasCountsErrorsAndTheExpectation) {
  test::TempDir dir;
  GroupCatalogue catalogue = make_catalogue();
  catalogue.groups[1].spheres[kMean200].mass = 1550;  // in the bin of the first: log10 of 1.5e13 is 13.18
  const double width = 0.2 * std::numbers::ln10;
  // dn/dlnM = exp(-ln M): the mean over a bin is known.
  write_mass_function(
      dir / "m.txt", catalogue, [](double mass) { return 1 / mass; }, test::make_provenance());
  std::ifstream in(dir / "m.txt");
  std::string comments;
  std::vector<std::array<double, 5>> rows;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("#")) {
      comments += line + "\n";
      continue;
    }
    std::istringstream numbers(line);
    rows.emplace_back();
    for (double& x : rows.back()) numbers >> x;
  }
  test::expect_contains(comments, {"# Redshift 3", "# LinkingLength 0.2", "# MinimumLength 32", "# Groups 3",
                                   "commit 0123456789ab", "solar masses/h", "Tinker08"});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_DOUBLE_EQ(rows[0][0], 12.7);  // 5e12
  EXPECT_DOUBLE_EQ(rows[1][0], 13.1);
  EXPECT_EQ(rows[1][4], 2);
  EXPECT_NEAR(rows[1][1], 2 / (125000 * width), 1e-11);
  EXPECT_NEAR(rows[1][2], std::sqrt(2) / (125000 * width), 1e-11);
  const double low = std::pow(10, 13.0 - 10), high = std::pow(10, 13.2 - 10);
  EXPECT_NEAR(rows[1][3], (1 / low - 1 / high) / width, 1e-4 * rows[1][3]);
}

}  // namespace
}  // namespace maki
