#include "host/comm/exact_sum.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace maki {
namespace {

double sum_of(std::initializer_list<double> values) {
  ExactSum sum;
  for (const double value : values) sum.add(value);
  return sum.value();
}

TEST(ExactSum, KeepsWhatASumOfDoublesLoses) {
  EXPECT_EQ(sum_of({}), 0);
  EXPECT_EQ(sum_of({-0.1}), -0.1);
  EXPECT_EQ(sum_of({1e308, 1, -1e308, 5e-324, -1}), 5e-324);
  EXPECT_EQ(sum_of({1, 0x1p-60, -1}), 0x1p-60);
  EXPECT_EQ(sum_of({-0x1p-1022, 0x1p-1074}), -(0x1p-1022 - 0x1p-1074));
  EXPECT_EQ(sum_of({1.7e308, 1.7e308, -1.7e308}), 1.7e308);
}

TEST(ExactSum, RoundsOnceAndTiesToEven) {
  const double next = 1 + 0x1p-52;
  EXPECT_EQ(sum_of({1, 0x1p-53}), 1);
  EXPECT_EQ(sum_of({next, 0x1p-53}), 1 + 0x1p-51);
  EXPECT_EQ(sum_of({1, 0x1p-53, 0x1p-1000}), next);
  EXPECT_EQ(sum_of({-1, -0x1p-53, -0x1p-1000}), -next);
  EXPECT_EQ(sum_of({1, 0x1p-53, -0x1p-1000}), 1);
  EXPECT_EQ(sum_of({std::numeric_limits<double>::max(), std::numeric_limits<double>::max()}),
            std::numeric_limits<double>::infinity());
}

TEST(ExactSum, PassesOnWhatIsNotFinite) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(sum_of({1, -infinity, 2}), -infinity);
  EXPECT_TRUE(std::isnan(sum_of({infinity, -infinity})));
  EXPECT_TRUE(std::isnan(sum_of({std::nan(""), 1})));
}

// Against integers of 128 bits, whose conversion to double rounds once too.
TEST(ExactSum, AgreesWithIntegersInAnyOrderAndInParts) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<double> values;
    __int128 truth = 0;
    for (int i = 0; i < 100; ++i) {
      const auto mantissa = static_cast<std::int64_t>(random()) >> 11;
      const int exponent = static_cast<int>(random() % 64);
      truth += static_cast<__int128>(mantissa) << exponent;
      values.push_back(std::ldexp(static_cast<double>(mantissa), exponent - 80));
    }
    const double expected = std::ldexp(static_cast<double>(truth), -80);
    for (int order = 0; order < 3; ++order) {
      ExactSum parts[3];
      for (std::size_t i = 0; i < values.size(); ++i) parts[random() % 3].add(values[i]);
      parts[0].add(parts[1]);
      parts[0].add(parts[2]);
      ASSERT_EQ(parts[0].value(), expected);
      std::shuffle(values.begin(), values.end(), random);
    }
  }
}

}  // namespace
}  // namespace maki
