// The loops of the mesh codec have the same bits on every machine: as compiled for this one's instructions beside what
// the compiler makes of them for any.
#include "wan/sites/mesh_loops.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "wan/sites/each_isa.hpp"
#include "wan/sites/residual_code.hpp"
#undef MAKI_EACH_ISA
#define MAKI_EACH_ISA
namespace maki::sites::plain {
using sites::Features;
using sites::kNearBits;
using sites::LeftRows;
using sites::ResidualCode;
}  // namespace maki::sites::plain
#define MAKI_LOOPS_NAMESPACE maki::sites::plain
#include "wan/sites/mesh_loops.cpp"

namespace maki::sites {
namespace {

constexpr int kCells = 203;

template <class T>
std::vector<T> numbers(std::mt19937& random, double most) {
  std::uniform_real_distribution<double> exponent(0, std::log2(most));
  std::vector<T> all;
  for (int i = 0; i < kCells + 8; ++i) all.push_back(static_cast<T>(std::exp2(exponent(random))));
  return all;
}

TEST(MeshLoops, PredictionsAreExact) {
  std::mt19937 random(1);
  for (int turn = 0; turn < 200; ++turn) {
    std::vector<std::vector<std::int32_t>> rows;
    for (int i = 0; i < 20; ++i) rows.push_back(numbers<std::int32_t>(random, turn % 2 ? 0x1p27 : 300));
    Features features;
    features.pairs = std::array{3, 4, 6, 7}[static_cast<std::size_t>(turn % 4)];
    features.singles = 6;
    std::vector<std::int32_t> weights;
    for (int f = 0; f < features.count(); ++f) {
      features.first[static_cast<std::size_t>(f)] = rows[static_cast<std::size_t>(f)].data() + f % 3;
      features.second[static_cast<std::size_t>(f)] = rows[static_cast<std::size_t>(f + 7)].data() + f % 2;
      weights.push_back(static_cast<std::int32_t>(random() % 4001) - 1500);
    }
    const int up = static_cast<int>(random() % 12);
    std::vector<std::int32_t> found(kCells), plain(kCells), expected;
    predict(features, weights.data(), std::ldexp(1.0, -kWeightBits - up), kCells, found.data());
    plain::predict(features, weights.data(), std::ldexp(1.0, -kWeightBits - up), kCells, plain.data());
    for (int i = 0; i < kCells; ++i) {
      std::int64_t sum = 0;
      for (int f = 0; f < features.count(); ++f) {
        const auto at = static_cast<std::size_t>(f);
        std::int64_t value = features.first[at][i];
        if (f < features.pairs) value += features.second[at][i];
        sum += weights[at] * value;
      }
      const std::int64_t half = std::int64_t{1} << (kWeightBits + up - 1);
      sum = std::max<std::int64_t>(sum + half, 0) >> (kWeightBits + up);
      expected.push_back(static_cast<std::int32_t>(std::min<std::int64_t>(sum, (1 << kNearBits) - 1)));
    }
    EXPECT_EQ(found, expected);
    EXPECT_EQ(plain, expected);
  }
}

TEST(MeshLoops, ExpectationsHaveTheSameBits) {
  std::mt19937 random(2);
  for (int turn = 0; turn < 200; ++turn) {
    std::vector<std::vector<float>> rows;
    for (int i = 0; i < 14; ++i) rows.push_back(numbers<float>(random, 0x1p40));
    const auto row = [&](std::size_t i) {
      return LeftRows::Row{rows[i].data(), rows[i + 1].data(), rows[i].data() + 1};
    };
    const LeftRows around{row(0), row(2), row(4), row(6), rows[8].data(), rows[8].data() + 1};
    const float kept = turn % 3 ? 0.25f : 0.5f, mean = rows[9][0];
    std::vector<std::uint32_t> left = numbers<std::uint32_t>(random, 0x1p31);
    std::array<std::vector<float>, 2> expected, ratio, memory;
    std::array<std::vector<std::uint32_t>, 2> codes;
    for (std::size_t i = 0; i < 2; ++i) {
      for (auto* to : {&expected[i], &ratio[i], &memory[i]}) to->resize(kCells);
      codes[i].resize(kCells);
    }
    expect(around, turn & 1, turn & 2, kCells, expected[0].data());
    plain::expect(around, turn & 1, turn & 2, kCells, expected[1].data());
    choose_codes(expected[0].data(), mean, kCells, codes[0].data());
    plain::choose_codes(expected[1].data(), mean, kCells, codes[1].data());
    over_mean(left.data(), 1 / mean, kCells, ratio[0].data());
    plain::over_mean(left.data(), 1 / mean, kCells, ratio[1].data());
    remember(ratio[0].data(), expected[0].data(), kept, kCells, memory[0].data());
    plain::remember(ratio[1].data(), expected[1].data(), kept, kCells, memory[1].data());
    EXPECT_EQ(expected[0], expected[1]);
    EXPECT_EQ(codes[0], codes[1]);
    EXPECT_EQ(memory[0], memory[1]);
    for (const std::uint32_t code : codes[0]) {
      EXPECT_LT(code >> ResidualCode::kTableShift, static_cast<std::uint32_t>(ResidualCode::kTables));
      EXPECT_LE(code & ((1u << ResidualCode::kTableShift) - 1), 28u);
    }
  }
}

TEST(MeshLoops, CellsComeBack) {
  std::mt19937 random(3);
  for (const int up : {0, 3}) {
    std::vector<std::int32_t> near = numbers<std::int32_t>(random, 0x1p27 - 1);
    std::vector<std::int32_t> predicted = numbers<std::int32_t>(random, 0x1p27 - 1);
    for (std::int32_t& cell : near) cell = cell >> up << up;
    for (std::int32_t& cell : predicted) cell >>= up;
    std::vector<std::uint32_t> left(near.size());
    std::vector<std::int32_t> back(near.size());
    const int cells = static_cast<int>(near.size());
    residuals(near.data(), up, predicted.data(), cells, left.data());
    restore(left.data(), up, predicted.data(), cells, back.data());
    EXPECT_EQ(back, near);
  }
}

}  // namespace
}  // namespace maki::sites
