#include "kernels/measure/double_double.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>

namespace maki {
namespace {

constexpr int kScale = -80;
double scaled(__int128 value) { return std::ldexp(static_cast<double>(value), kScale); }

// Numbers of 40 bits on 60 places, whose sums integers of 128 bits hold.
struct Terms {
  std::mt19937_64 random{7};
  __int128 integer = 0;
  double value = 0;
  void draw() {
    integer = static_cast<__int128>(static_cast<std::int64_t>(random()) >> 24) << random() % 60;
    value = scaled(integer);
  }
};

TEST(DoubleDouble, SumsAreRightToTheLastBit) {
  Terms terms;
  for (int round = 0; round < 100; ++round) {
    DoubleDouble sum, parts[4];
    __int128 truth = 0;
    for (int i = 0; i < 1000; ++i) {
      terms.draw();
      truth += terms.integer;
      sum = sum + terms.value;
      parts[i % 4] = parts[i % 4] + DoubleDouble(terms.value);
    }
    ASSERT_EQ(sum.value(), scaled(truth));
    ASSERT_EQ(((parts[0] + parts[1]) + (parts[2] + parts[3])).value(), scaled(truth));
  }
}

TEST(DoubleDouble, SurvivesCancellation) {
  Terms terms;
  for (int round = 0; round < 100; ++round) {
    terms.draw();
    const DoubleDouble a(terms.value);
    const DoubleDouble sum = a + 0x1p-80 + DoubleDouble(-terms.value);
    ASSERT_EQ(sum.hi, 0x1p-80);
    ASSERT_EQ(sum.lo, 0);
  }
}

TEST(DoubleDouble, TwoSumLosesNothing) {
  Terms terms;
  for (int round = 0; round < 1000; ++round) {
    terms.draw();
    const __int128 first = terms.integer;
    const double a = terms.value;
    terms.draw();
    const DoubleDouble sum = two_sum(a, terms.value);
    const auto integer = [](double x) { return static_cast<__int128>(std::ldexp(x, -kScale)); };
    ASSERT_EQ(sum.hi, a + terms.value);
    ASSERT_TRUE(integer(sum.hi) + integer(sum.lo) == first + terms.integer);
    ASSERT_EQ(sum.hi + sum.lo, sum.hi);
  }
}

}  // namespace
}  // namespace maki
