#include "kernels/device/algorithms.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "tests/on_device.hpp"

namespace maki {
namespace {

using Keys = std::vector<std::uint64_t>;

void expect_sorted_as_by_the_standard_library(const Keys& keys) {
  const Stream& stream = test::test_stream();
  std::vector<std::uint32_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0u);
  test::OnDevice k(keys);
  test::OnDevice v(order);
  sort_by_key(stream, k, v);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return keys[a] < keys[b]; });
  Keys sorted;
  for (const std::uint32_t i : order) sorted.push_back(keys[i]);
  EXPECT_EQ(k.download(stream), sorted);
  EXPECT_EQ(v.download(stream), order);
}

TEST(SortByKey, RandomKeysOfAllBits) {
  std::mt19937_64 random(1);
  for (const std::size_t n : {0u, 1u, 2u, 3u, 1000u, 16385u, 50000u}) {
    Keys keys(n);
    for (auto& k : keys) k = random();
    expect_sorted_as_by_the_standard_library(keys);
  }
}

TEST(SortByKey, EqualKeysKeepTheirOrder) {
  std::mt19937_64 random(2);
  Keys keys(40000);
  for (auto& k : keys) k = (random() % 7) << 60 | (random() % 3) << 30;
  expect_sorted_as_by_the_standard_library(keys);
  expect_sorted_as_by_the_standard_library(Keys(20000, ~0ull));
}

// One digit, or an odd number of digits, of the keys differs.
TEST(SortByKey, KeysThatDifferInFewBits) {
  std::mt19937_64 random(3);
  for (const int shift : {0, 5, 11, 33, 53})
    for (const std::uint64_t range : {2ull, 2048ull, 1ull << 30}) {
      Keys keys(5000);
      for (auto& k : keys) k = (random() % range << shift) + (1ull << 62);
      expect_sorted_as_by_the_standard_library(keys);
    }
}

template <class Out>
void expect_scanned(std::size_t n, std::uint32_t largest) {
  const Stream& stream = test::test_stream();
  std::mt19937 random(5);
  std::vector<std::uint32_t> in(n);
  for (auto& v : in) v = random() % largest;
  DeviceBuffer<Out> sums("out", n + 1);
  test::OnDevice source(in);
  exclusive_scan(stream, source.data(), sums.data(), n);
  std::vector<Out> expected(n + 1, 0);
  for (std::size_t i = 0; i < n; ++i) expected[i + 1] = expected[i] + in[i];
  EXPECT_EQ(sums.download(stream), expected);
}

TEST(ExclusiveScan, SumsOfWhatComesBefore) {
  for (const std::size_t n : {0u, 1u, 2u, 1000u, 70001u}) {
    expect_scanned<std::uint32_t>(n, 1000);
    expect_scanned<std::uint64_t>(n, 4000000000u);
  }
}

}  // namespace
}  // namespace maki
