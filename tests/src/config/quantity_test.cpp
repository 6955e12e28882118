#include "src/config/quantity.hpp"

#include <gtest/gtest.h>

#include "kernels/error.hpp"

namespace maki {
namespace {

constexpr double kH = 0.7;

double length(const std::string& text, const UnitSystem& units) {
  return in_units(parse_quantity(text, Dimension::kLength), Dimension::kLength, "Mpc/h", units, kH);
}

TEST(Quantity, ReadsNumbersWithUnits) {
  EXPECT_EQ(parse_quantity("50 Mpc/h", Dimension::kLength), (Quantity{50, "Mpc/h"}));
  EXPECT_EQ(parse_quantity("50Mpc/h", Dimension::kLength), (Quantity{50, "Mpc/h"}));
  EXPECT_EQ(parse_quantity("1e10 Msun", Dimension::kMass), (Quantity{1e10, "Msun"}));
  EXPECT_EQ(parse_quantity("3", Dimension::kLength), (Quantity{3, ""}));
  EXPECT_THROW(parse_quantity("", Dimension::kLength), Error);
  EXPECT_THROW(parse_quantity("Mpc", Dimension::kLength), Error);
  EXPECT_THROW(parse_quantity("3 Mpc x", Dimension::kLength), Error);
  EXPECT_THROW(parse_quantity("inf Mpc", Dimension::kLength), Error);
  EXPECT_THROW(parse_quantity("3 min", Dimension::kLength), Error);
}

TEST(Quantity, WritesWhatItReads) {
  for (const Quantity& quantity :
       {Quantity{0.1, "kpc/h"}, Quantity{1.0 / 3, "Gpc"}, Quantity{1e300, "AU"}, Quantity{7, ""}}) {
    EXPECT_EQ(parse_quantity(to_string(quantity), Dimension::kLength), quantity);
  }
}

TEST(Quantity, ConvertsToUnitsWithAndWithoutH) {
  const UnitSystem mpc_h;
  EXPECT_EQ(length("50 Mpc/h", mpc_h), 50);  // exactly
  EXPECT_EQ(length("50", mpc_h), 50);
  EXPECT_NEAR(length("20 kpc/h", mpc_h), 0.02, 1e-17);
  EXPECT_NEAR(length("30 Mpc", mpc_h), 30 * kH, 1e-14);
  UnitSystem kpc = mpc_h;
  kpc.length_cgs *= 1e-3;
  kpc.with_h = false;
  EXPECT_NEAR(length("7 Mpc/h", kpc), 7000 / kH, 1e-10);
  EXPECT_NEAR(length("1 pc", kpc), 1e-3, 1e-17);
  EXPECT_NEAR(in_units({1e10, "Msun"}, Dimension::kMass, "", mpc_h, kH), kH, 1e-12);
  // Mpc/(km/s) is 977.79 Gyr.
  EXPECT_NEAR(in_units({977.7922, "Gyr"}, Dimension::kTime, "", mpc_h, 1), 1, 1e-6);
}

TEST(Quantity, PureNumbersTakeNoUnits) {
  const UnitSystem pure{1, 1, 1, false};
  EXPECT_EQ(in_units({0.3, ""}, Dimension::kLength, "", pure, 1), 0.3);
  EXPECT_THROW(in_units({0.3, "kpc"}, Dimension::kLength, "", pure, 1), Error);
}

TEST(Quantity, WallTimeAndMemory) {
  EXPECT_EQ(in_base({0.5, "h"}, Dimension::kWallTime, "s"), 1800);
  EXPECT_EQ(in_base({90, ""}, Dimension::kWallTime, "s"), 90);
  EXPECT_EQ(in_base({2, "GB"}, Dimension::kMemory, "B"), 2e9);
}

}  // namespace
}  // namespace maki
