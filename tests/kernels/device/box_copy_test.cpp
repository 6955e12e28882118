#include "kernels/device/algorithms.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <complex>
#include <numeric>
#include <vector>

#include "tests/on_device.hpp"

namespace maki {
namespace {

template <class T>
T value_of(std::size_t i) {
  if constexpr (requires(T t) { t.imag(); }) {
    using Part = typename T::value_type;
    return {static_cast<Part>(i), -static_cast<Part>(i)};
  } else {
    return static_cast<T>(i);
  }
}

// A box out of a padded array with its axes in each of the orders, into a compact and a padded one.
template <class T>
void expect_every_cell_in_every_order(const std::array<std::size_t, 3>& count) {
  const Stream& stream = test::test_stream();
  const T untouched = value_of<T>(7777777);
  std::array<std::size_t, 3> order{0, 1, 2};
  do {
    for (const std::size_t padding : {std::size_t{0}, std::size_t{3}}) {
      BoxCopy box{count, {}, {}};
      box.from_step[order[2]] = 1;
      box.from_step[order[1]] = count[order[2]] + padding;
      box.from_step[order[0]] = box.from_step[order[1]] * count[order[1]];
      box.to_step = {count[1] * (count[2] + padding), count[2] + padding, 1};
      std::vector<T> from(count[order[0]] * box.from_step[order[0]]);
      for (std::size_t i = 0; i < from.size(); ++i) from[i] = value_of<T>(i);
      test::OnDevice source(from), target(std::vector<T>(count[0] * box.to_step[0], untouched));
      copy_box(stream, box, source.data(), target.data());
      const std::vector<T> to = target.download(stream);
      for (std::size_t i = 0; i < count[0]; ++i)
        for (std::size_t j = 0; j < count[1]; ++j)
          for (std::size_t k = 0; k < box.to_step[1]; ++k)
            ASSERT_EQ(to[box.to_step[0] * i + box.to_step[1] * j + k],
                      k < count[2] ? from[box.from_step[0] * i + box.from_step[1] * j + box.from_step[2] * k]
                                   : untouched);
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

// Boxes below, at and above the size of a GPU's tiles along each axis.
TEST(BoxCopy, MovesEveryCellInEveryOrder) {
  for (const auto& count : {std::array<std::size_t, 3>{5, 11, 19}, {33, 64, 70}, {8, 40, 32}, {1, 65, 9}, {37, 3, 31}})
    expect_every_cell_in_every_order<std::complex<float>>(count);
  expect_every_cell_in_every_order<std::uint64_t>({12, 35, 41});
  expect_every_cell_in_every_order<float>({12, 35, 41});
}

// What is in cells of 2^40 less that, after 0, 1, 2 ... were added.
std::vector<std::uint64_t> added(const BoxCopy& box, std::size_t from_cells, std::size_t to_cells) {
  const Stream& stream = test::test_stream();
  std::vector<std::uint64_t> from(from_cells);
  std::iota(from.begin(), from.end(), 0);
  test::OnDevice source(from), target(std::vector<std::uint64_t>(to_cells, std::uint64_t{1} << 40));
  add_box(stream, box, source.data(), target.data());
  std::vector<std::uint64_t> sums = target.download(stream);
  for (std::uint64_t& sum : sums) sum -= std::uint64_t{1} << 40;
  return sums;
}

TEST(BoxCopy, AddsToWhatIsThere) {
  const auto sums = added({{2, 3, 4}, {12, 4, 1}, {18, 6, 1}}, 2 * 3 * 4, 2 * 3 * 6);
  for (std::size_t line = 0; line < 6; ++line)
    for (std::size_t k = 0; k < 6; ++k) EXPECT_EQ(sums[6 * line + k], k < 4 ? 4 * line + k : 0);
}

// The source's first axis becomes the target's last.
TEST(BoxCopy, AddsWhatIsTurnedOver) {
  const std::size_t rows = 34, columns = 45;
  const auto sums = added({{1, columns, rows}, {0, 1, columns}, {0, rows, 1}}, rows * columns, columns * rows);
  for (std::size_t c = 0; c < columns; ++c)
    for (std::size_t r = 0; r < rows; ++r) EXPECT_EQ(sums[rows * c + r], columns * r + c);
}

TEST(BoxCopy, AnEmptyBoxIsNoWork) {
  const Stream& stream = test::test_stream();
  const float* from = nullptr;
  float* to = nullptr;
  copy_box(stream, {{3, 0, 2}, {1, 1, 1}, {1, 1, 1}}, from, to);
  copy_box(stream, {{0, 3, 2}, {6, 2, 1}, {6, 2, 1}}, from, to);
  copy_box(stream, {{2, 2, 0}, {6, 1, 2}, {6, 2, 1}}, from, to);
}

}  // namespace
}  // namespace maki
