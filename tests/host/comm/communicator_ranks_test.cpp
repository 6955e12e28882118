// Every call of the communicator against the same worked out by one process; sums of any number of ranks to the bit.
#include "host/comm/communicator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "host/comm/job.hpp"
#include "host/measure/totals.hpp"
#include "kernels/device/device.hpp"
#include "kernels/error.hpp"

namespace maki {
namespace {

// What rank r contributes: every rank can work out all of it.
std::vector<double> numbers(int r, std::size_t n, unsigned seed) {
  std::mt19937_64 random(1000 * seed + r);
  std::vector<double> values(n);
  for (double& v : values) v = std::ldexp(std::uniform_real_distribution<>(-1, 1)(random), int(random() % 80) - 40);
  return values;
}
std::vector<std::uint64_t> counts(int r, std::size_t n, unsigned seed) {
  std::mt19937_64 random(1000 * seed + r);
  std::vector<std::uint64_t> values(n);
  for (auto& v : values) v = random() >> 4;
  return values;
}

class Ranks : public testing::Test {
 protected:
  const Communicator world = Communicator::world();
  const int rank = world.rank(), size = world.size();
  // Sizes around where the ways of a reduction part, and some without pattern.
  std::vector<std::size_t> lengths() const { return {0, 1, 3, 255, 256, 257, 1000, 4099, 20011}; }
};

TEST_F(Ranks, AreNumberedAndHearEachOther) {
  EXPECT_GE(rank, 0);
  EXPECT_LT(rank, size);
  std::vector<int> all(size, -1);
  world.all_gather(&rank, all.data(), sizeof(int));
  for (int r = 0; r < size; ++r) EXPECT_EQ(all[r], r);
  world.barrier();
}

TEST_F(Ranks, SumsOfDoublesAreThoseOfExtendedPrecisionOnAllRanks) {
  for (const std::size_t n : lengths()) {
    std::vector<double> sum = numbers(rank, n, n);
    world.sum(sum);
    std::vector<long double> exact(n, 0), magnitude(n, 0);
    for (int r = 0; r < size; ++r) {
      const auto values = numbers(r, n, n);
      for (std::size_t i = 0; i < n; ++i) exact[i] += values[i], magnitude[i] += std::abs(values[i]);
    }
    // One rounding of the result, and the second order of the rounding errors of single additions.
    constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
    for (std::size_t i = 0; i < n; ++i) {
      ASSERT_LE(std::abs(sum[i] - exact[i]), 0.5 * kEpsilon * std::abs(exact[i]) + 1e-18L * magnitude[i])
          << n << " " << i;
    }
    std::vector<double> all(n * size);
    world.all_gather(sum.data(), all.data(), n * sizeof(double));
    for (int r = 0; r < size; ++r) {
      if (n > 0) {
        ASSERT_EQ(std::memcmp(&all[r * n], sum.data(), n * sizeof(double)), 0) << "rank " << r;
      }
    }
  }
}

TEST_F(Ranks, SumsOfIntegersAreExact) {
  for (const std::size_t n : lengths()) {
    std::vector<std::uint64_t> sum = counts(rank, n, n), expected(n, 0);
    world.sum(sum);
    for (int r = 0; r < size; ++r) {
      const auto values = counts(r, n, n);
      for (std::size_t i = 0; i < n; ++i) expected[i] += values[i];
    }
    EXPECT_EQ(sum, expected);
  }
}

TEST_F(Ranks, LargestAndSmallest) {
  for (const std::size_t n : lengths()) {
    std::vector<double> high = numbers(rank, n, n), low = high, most = numbers(0, n, n), least = most;
    std::vector<std::uint64_t> highest = counts(rank, n, n), expected = counts(0, n, n);
    world.max(high);
    world.min(low);
    world.max(highest);
    for (int r = 1; r < size; ++r) {
      const auto values = numbers(r, n, n);
      const auto whole = counts(r, n, n);
      for (std::size_t i = 0; i < n; ++i) {
        most[i] = std::max(most[i], values[i]);
        least[i] = std::min(least[i], values[i]);
        expected[i] = std::max(expected[i], whole[i]);
      }
    }
    EXPECT_EQ(high, most);
    EXPECT_EQ(low, least);
    EXPECT_EQ(highest, expected);
  }
}

TEST_F(Ranks, SumsThatOverflowStayInfinite) {
  std::vector<double> values{std::numeric_limits<double>::max(), std::numeric_limits<double>::infinity()};
  world.sum(values);
  EXPECT_EQ(values[0], size == 1 ? std::numeric_limits<double>::max() : std::numeric_limits<double>::infinity());
  EXPECT_EQ(values[1], std::numeric_limits<double>::infinity());
}

TEST_F(Ranks, BroadcastFromEachInPieces) {
  auto parts = world.split(0, rank);
  for (const std::size_t piece : {std::size_t{1} << 30, std::size_t{1000}}) {
    parts.set_limits({.piece_bytes = piece});
    for (int root = 0; root < size; ++root) {
      for (const std::size_t n : lengths()) {
        auto data = numbers(rank, n, 7 + root);
        parts.broadcast(data.data(), n * sizeof(double), root);
        EXPECT_EQ(data, numbers(root, n, 7 + root));
      }
    }
  }
}

TEST_F(Ranks, GatheringAndReductionsInPieces) {
  auto parts = world.split(0, rank);
  parts.set_limits({.piece_bytes = 1000, .messages = 2, .bytes = 3000});
  const std::size_t n = 5003;
  const auto mine = numbers(rank, n, 3);
  std::vector<double> all(n * size), sum = mine, expected = mine;
  parts.all_gather(mine.data(), all.data(), n * sizeof(double));
  for (int r = 0; r < size; ++r) {
    EXPECT_TRUE(std::equal(all.begin() + r * n, all.begin() + (r + 1) * n, numbers(r, n, 3).begin()));
  }
  parts.sum(sum);
  world.sum(expected);
  EXPECT_EQ(sum, expected);
}

TEST_F(Ranks, SplitIntoRowsAndColumns) {
  const int across = size % 4 == 0 ? 4 : size % 2 == 0 ? 2 : 1;
  const int row = rank / across, column = rank % across;
  const auto in_row = world.split(row, column), in_column = world.split(column, row);
  EXPECT_EQ(in_row.size(), across);
  EXPECT_EQ(in_row.rank(), column);
  EXPECT_EQ(in_column.size(), size / across);
  EXPECT_EQ(in_column.rank(), row);
  std::vector<std::uint64_t> total{std::uint64_t(rank)};
  in_row.sum(total);
  in_column.sum(total);
  EXPECT_EQ(total[0], std::uint64_t(size) * (size - 1) / 2);
  const auto backwards = world.split(0, -rank);
  EXPECT_EQ(backwards.rank(), size - 1 - rank);
  const auto alone = world.split(rank, 0);
  EXPECT_EQ(alone.size(), 1);
  alone.barrier();
}

TEST_F(Ranks, CountTheirMachines) {
  const Machines machines = find_machines(world);
  EXPECT_EQ(machines.count, 1);
  EXPECT_EQ(machines.this_one, 0);
  EXPECT_EQ(machines.ranks_here, size);
  EXPECT_EQ(machines.most_ranks, size);
  EXPECT_FALSE(machines.name.empty());
  EXPECT_EQ(find_machines(Communicator::self()).ranks_here, 1);
  const auto pair = world.split(rank / 2, rank);
  EXPECT_EQ(find_machines(pair).ranks_here, pair.size());
}

TEST_F(Ranks, ShareTheirMachine) {
  EXPECT_EQ(on_this_machine().number, rank);
  EXPECT_EQ(on_this_machine().ranks, size);
  EXPECT_LT(usual_device(world), std::max(device_count(), 1));
  EXPECT_GE(usual_threads(), 0);
  const std::string text = describe_ranks(world);
  EXPECT_EQ(text.find(std::to_string(size) + (size == 1 ? " rank on " : " ranks on ")), 0u) << text;
  EXPECT_NE(text.find("between devices by "), std::string::npos) << text;
}

TEST_F(Ranks, SizesOfExchange) {
  std::vector<std::uint64_t> to(size);
  for (int r = 0; r < size; ++r) to[r] = (std::uint64_t(rank) << 40) + r;
  const auto from = world.exchange_sizes(to);
  ASSERT_EQ(from.size(), std::size_t(size));
  for (int r = 0; r < size; ++r) EXPECT_EQ(from[r], (std::uint64_t(r) << 40) + rank);
  to.push_back(0);
  EXPECT_THROW(world.exchange_sizes(to), Error);
}

TEST(SumOverRanks, OfDoubleDoublesLosesNothing) {
  const auto world = Communicator::world();
  const auto rank = static_cast<std::uint64_t>(world.rank()), size = static_cast<std::uint64_t>(world.size());
  std::array<DoubleDouble, 3> alone, shared;  // the last has its value on the last rank only
  for (std::uint64_t i = 0; i < 5000; ++i) {
    const double terms[] = {std::sin(static_cast<double>(i)) + 0.3, i % 3 == 0   ? 0x1p60
                                                                    : i % 3 == 1 ? -0x1p60
                                                                                 : 0x1p-30};
    for (std::size_t s = 0; s < 2; ++s) {
      alone[s] = alone[s] + terms[s];
      if (i % size == rank) shared[s] = shared[s] + terms[s];
    }
  }
  if (rank + 1 == size) shared[2] = {0.1, 0x1p-70};
  sum_over_ranks(world, shared);
  EXPECT_EQ(shared[0].value(), alone[0].value());
  EXPECT_EQ(shared[1].value(), alone[1].value());
  EXPECT_EQ(shared[2].hi, 0.1);
  EXPECT_EQ(shared[2].lo, 0x1p-70);
}

}  // namespace
}  // namespace maki
