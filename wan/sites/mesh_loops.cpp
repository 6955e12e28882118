#include "wan/sites/mesh_loops.hpp"

#include <bit>

#include "wan/sites/each_isa.hpp"
#include "wan/sites/residual_code.hpp"

// The test of these loops has them a second time.
#ifndef MAKI_LOOPS_NAMESPACE
#define MAKI_LOOPS_NAMESPACE maki::sites
#endif
namespace MAKI_LOOPS_NAMESPACE {
namespace {

constexpr double kMostNear = (1 << kNearBits) - 1;

// Products of 16 and 28 bits: these sums are exact, whatever the order and the instructions.
template <int Pairs, int Singles>
MAKI_INLINE void predict_from(const Features& features, const std::int32_t* weights, double scale, int cells,
                              std::int32_t* __restrict to) {
  std::array<const std::int32_t*, Pairs> a, b;
  std::array<const std::int32_t*, Singles> c;
  std::array<double, Pairs + Singles> w;
  for (std::size_t f = 0; f < Pairs; ++f) a[f] = features.first[f], b[f] = features.second[f];
  for (std::size_t f = 0; f < Singles; ++f) c[f] = features.first[Pairs + f];
  for (std::size_t f = 0; f < Pairs + Singles; ++f) w[f] = weights[f] * scale;
  for (int i = 0; i < cells; ++i) {
    double sum = 0.5;
#pragma GCC unroll 16
    for (std::size_t f = 0; f < Pairs; ++f) sum += w[f] * (a[f][i] + b[f][i]);
#pragma GCC unroll 16
    for (std::size_t f = 0; f < Singles; ++f) sum += w[Pairs + f] * c[f][i];
    sum = sum > 0 ? sum : 0;
    sum = sum < kMostNear ? sum : kMostNear;
    to[i] = static_cast<std::int32_t>(sum);
  }
}

}  // namespace

MAKI_EACH_ISA void predict(const Features& features, const std::int32_t* weights, double scale, int cells,
                           std::int32_t* to) {
  switch (features.pairs * 16 + features.singles) {
    case 3 * 16 + 6: return predict_from<3, 6>(features, weights, scale, cells, to);
    case 4 * 16 + 6: return predict_from<4, 6>(features, weights, scale, cells, to);
    case 6 * 16 + 6: return predict_from<6, 6>(features, weights, scale, cells, to);
    case 7 * 16 + 6: return predict_from<7, 6>(features, weights, scale, cells, to);
    default: __builtin_unreachable();
  }
}

MAKI_EACH_ISA void add_rows(const std::array<const std::int32_t*, 4>& rows, int cells, std::int32_t* __restrict to) {
  const std::int32_t *a = rows[0], *b = rows[1], *c = rows[2], *d = rows[3];
  for (int i = 0; i < cells; ++i) to[i] = a[i] + b[i] + c[i] + d[i];
}

MAKI_EACH_ISA std::uint64_t split_row(const std::uint64_t* counts, int half_cells, std::uint64_t half, int down, int up,
                                      std::int32_t* __restrict even, std::int32_t* __restrict odd) {
  std::uint64_t any = 0;
  for (int i = 0; i < half_cells; ++i) {
    const std::uint64_t a = (counts[2 * i] + half) >> down, b = (counts[2 * i + 1] + half) >> down;
    any |= a | b;
    even[i] = static_cast<std::int32_t>((a << up) & 0x7fffffff);
    odd[i] = static_cast<std::int32_t>((b << up) & 0x7fffffff);
  }
  return any;
}

MAKI_EACH_ISA void join_row(const std::int32_t* __restrict even, const std::int32_t* __restrict odd, int half_cells,
                            int down, int up, std::uint64_t* __restrict counts) {
  for (int i = 0; i < half_cells; ++i) {
    counts[2 * i] += static_cast<std::uint64_t>(static_cast<std::uint32_t>(even[i]) >> down) << up;
    counts[2 * i + 1] += static_cast<std::uint64_t>(static_cast<std::uint32_t>(odd[i]) >> down) << up;
  }
}

namespace {

template <bool Odd, bool Shifted>
MAKI_INLINE void expect_from(const LeftRows& rows, int cells, float* __restrict expected) {
  const auto [above, behind, first, first_above, low, high] = rows;
  for (int i = 0; i < cells; ++i) {
    const float a = 2 * above.at[i] + (above.low[i] + above.high[i]);
    const float b = 2 * behind.at[i] + (behind.low[i] + behind.high[i]);
    float sum = a + b;
    if (Shifted) sum = 0.5f * sum + ((first.low[i] + first.at[i]) + (first_above.low[i] + first_above.at[i]));
    if (Odd) sum = 0.5f * sum + 2 * (low[i] + high[i]);
    expected[i] = 0.125f * sum;
  }
}

}  // namespace

// Here and below products are by powers of two, or are what is stored: each rounding is as written, also where a
// machine multiplies and adds at once.
MAKI_EACH_ISA void expect(const LeftRows& rows, bool odd, bool shifted, int cells, float* expected) {
  if (odd && shifted) return expect_from<true, true>(rows, cells, expected);
  if (shifted) return expect_from<false, true>(rows, cells, expected);
  if (odd) return expect_from<true, false>(rows, cells, expected);
  expect_from<false, false>(rows, cells, expected);
}

MAKI_EACH_ISA void choose_codes(const float* expected, float mean, int cells, std::uint32_t* __restrict codes) {
  for (int i = 0; i < cells; ++i) codes[i] = ResidualCode::code_of(expected[i] * mean);
}

MAKI_EACH_ISA void residuals(const std::int32_t* near, int down, const std::int32_t* predicted, int cells,
                             std::uint32_t* __restrict left) {
  for (int i = 0; i < cells; ++i) {
    const std::int32_t difference = (near[i] >> down) - predicted[i];
    left[i] = static_cast<std::uint32_t>((difference * 2) ^ (difference >> 31));
  }
}

MAKI_EACH_ISA void restore(const std::uint32_t* left, int up, const std::int32_t* predicted, int cells,
                           std::int32_t* __restrict near) {
  constexpr std::uint32_t kMask = (1u << kNearBits) - 1;
  for (int i = 0; i < cells; ++i) {
    const std::uint32_t value = static_cast<std::uint32_t>(predicted[i]) + (left[i] >> 1 ^ (0 - (left[i] & 1)));
    near[i] = static_cast<std::int32_t>(value << up & kMask);
  }
}

MAKI_EACH_ISA void over_mean(const std::uint32_t* left, float factor, int cells, float* __restrict ratio) {
  constexpr std::uint32_t kMask = 0x7fffffff;
  for (int i = 0; i < cells; ++i) ratio[i] = factor * static_cast<float>(static_cast<std::int32_t>(left[i] & kMask));
}

MAKI_EACH_ISA void remember(const float* ratio, const float* expected, float kept, int cells,
                            float* __restrict memory) {
  for (int i = 0; i < cells; ++i) memory[i] = ratio[i] + kept * (expected[i] - ratio[i]);
}

MAKI_EACH_ISA double weighted_product(const double* a, const double* b, int cells) {
  constexpr int kLanes = 8;
  double sums[kLanes] = {};
  for (int i = 0; i < cells; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

}  // namespace MAKI_LOOPS_NAMESPACE
