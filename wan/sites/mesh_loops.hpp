// The loops of the mesh codec over half rows: plain C++ that compilers make vectors of, compiled for several
// instruction sets of which the machine's is taken. All results are exact, or rounded as written: the same with each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace maki::sites {

inline constexpr int kNearBits = 27;  // of a cell in predictions: the sum of eight still has 30
inline constexpr int kWeightBits = 12;

// Feature f of cell i is first[f][i] + second[f][i], of the last `singles` ones first[f][i] alone.
struct Features {
  static constexpr int kMost = 13;
  std::array<const std::int32_t*, kMost> first{}, second{};
  std::array<float, kMost> cells{};  // of the mesh that it is the sum of
  int pairs = 0, singles = 0;
  int count() const { return pairs + singles; }
};

// to[i] = features weighted, times `scale`, to the nearest whole number, from 0 to 2^kNearBits.
void predict(const Features& features, const std::int32_t* weights, double scale, int cells, std::int32_t* to);

// to = a + b + c + d.
void add_rows(const std::array<const std::int32_t*, 4>& rows, int cells, std::int32_t* to);

// Counts of a row to its even and odd cells, (count + half) >> down << up, of which the low 31 bits; returns all bits
// that were set before `up`.
std::uint64_t split_row(const std::uint64_t* counts, int half_cells, std::uint64_t half, int down, int up,
                        std::int32_t* even, std::int32_t* odd);
// counts[2 i + odd] += (cells[i] >> down) << up for both.
void join_row(const std::int32_t* even, const std::int32_t* odd, int half_cells, int down, int up,
              std::uint64_t* counts);

// What was left of cells around, over the mean of their kind: of half rows the same cells, those before and those after
// (of the first mesh: of which they are around those of the shifted one).
struct LeftRows {
  struct Row {
    const float *at, *low, *high;
  };
  Row above, behind, first, first_above;
  const float *low, *high;  // of the row itself, for odd cells
};
void expect(const LeftRows& rows, bool odd, bool shifted, int cells, float* expected);
// For what is expected times `mean`.
void choose_codes(const float* expected, float mean, int cells, std::uint32_t* codes);

// left = zigzag((near >> down) - predicted).
void residuals(const std::int32_t* near, int down, const std::int32_t* predicted, int cells, std::uint32_t* left);
// near = (predicted + left) << up.
void restore(const std::uint32_t* left, int up, const std::int32_t* predicted, int cells, std::int32_t* near);

// ratio = left * factor.
void over_mean(const std::uint32_t* left, float factor, int cells, float* ratio);
// What is remembered of a cell: `kept` (a power of two, or 0) of what was expected, and the rest of what there was.
void remember(const float* ratio, const float* expected, float kept, int cells, float* memory);

// Sum of a[i] b[i]; `cells` is a multiple of 8.
double weighted_product(const double* a, const double* b, int cells);

}  // namespace maki::sites
