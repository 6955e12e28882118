// Sums whose bits depend on neither the order of the items nor the number of ranks and threads.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "host/comm/communicator.hpp"
#include "kernels/measure/double_double.hpp"

namespace maki {

// Sum of any doubles without rounding: a fixed-point number over the whole range of doubles (Kulisch 1971, Grundlagen
// des numerischen Rechnens), 560 bytes. Slow, some 20 ns a number: for use where other sums do not suffice.
class ExactSum {
 public:
  void add(double value);
  void add(const ExactSum& other);
  // The sum over ranks, on every rank. Collective.
  static void over_ranks(const Communicator& ranks, std::span<ExactSum> sums);

  // Rounded once, to the nearest double (ties to even). Infinities and not-a-numbers propagate as in a plain sum.
  double value() const;

 private:
  // Two's complement in words of 32 bits; carries stay in the upper halves until carry().
  static constexpr int kWords = 68;
  static constexpr int kBias = 1088;  // word i counts 2^(32 i - kBias)
  void carry();
  std::array<std::int64_t, kWords> words_{};
  std::uint32_t pending_ = 0;  // numbers added since the last carry
  double not_finite_ = 0;      // sum of the infinities
};

// Sums of DoubleDouble over ranks, added without any error and then rounded to a DoubleDouble: the same bits on every
// rank. The ranks' own sums have errors of some 1e-32 a term. So value() is the exact sum rounded once, unless the
// exact sum is that close to the midpoint of two doubles. Collective.
void exact_sum(const Communicator& ranks, std::span<DoubleDouble> sums);

}  // namespace maki
