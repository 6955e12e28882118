// A sum in about 106 bits, for reductions that must be right to the last bit of a double.
#pragma once

#include "kernels/device/macros.hpp"

namespace maki {

// The value hi + lo, |lo| <= half of the last bit of hi. Summed by sum_over() (kernels/device/thrust.cuh). Not valid
// under -ffast-math.
struct DoubleDouble {
  double hi = 0, lo = 0;

  DoubleDouble() = default;
  MAKI_HD DoubleDouble(double value) : hi(value), lo(0) {}
  MAKI_HD DoubleDouble(double high, double low) : hi(high), lo(low) {}
  MAKI_HD double value() const { return hi + lo; }
};

// a + b without error (Knuth's TwoSum), and the same for |a| >= |b| (Dekker's FastTwoSum).
MAKI_HD DoubleDouble two_sum(double a, double b) {
  const double sum = a + b, from_b = sum - a;
  return {sum, (a - (sum - from_b)) + (b - from_b)};
}
MAKI_HD DoubleDouble fast_two_sum(double a, double b) {
  const double sum = a + b;
  return {sum, b - (sum - a)};
}

// Relative error of one sum below 3.1e-32 (2.3e-32 with a double) of |a| + |b|: AccurateDWPlusDW and DWPlusFP of
// Joldes, Muller & Popescu 2017, ACM TOMS 44, 15. Infinities give nothing finite.
MAKI_HD DoubleDouble operator+(const DoubleDouble& a, const DoubleDouble& b) {
  const DoubleDouble high = two_sum(a.hi, b.hi), low = two_sum(a.lo, b.lo);
  const DoubleDouble sum = fast_two_sum(high.hi, high.lo + low.hi);
  return fast_two_sum(sum.hi, sum.lo + low.lo);
}
MAKI_HD DoubleDouble operator+(const DoubleDouble& a, double b) {
  const DoubleDouble high = two_sum(a.hi, b);
  return fast_two_sum(high.hi, high.lo + a.lo);
}

}  // namespace maki
