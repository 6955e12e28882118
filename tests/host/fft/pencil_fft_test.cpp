#include "host/fft/pencil_fft.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/device/blocked_fft.hpp"
#include "kernels/device/device.hpp"
#include "kernels/error.hpp"
#include "tests/test_stream.hpp"

namespace maki {
namespace {

constexpr Pencils kAll[] = {Pencils::kReal, Pencils::kZ, Pencils::kY, Pencils::kX};

// Whole along the line; and over all ranks each (slow, middle) pair of the two cut axes is held once.
void expect_owned_once(const PencilLayout& layout, Pencils pencils) {
  const int m = layout.cells(), modes = m / 2 + 1;
  const std::array<int, 3> axes = PencilLayout::order(pencils);
  const auto length = [&](int axis) { return axis == 2 && pencils != Pencils::kReal ? modes : m; };
  const int slow = length(axes[0]), middle = length(axes[1]);
  std::vector<int> owners(static_cast<std::size_t>(slow) * middle, 0);
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    const PencilBox box = layout.box(pencils, rank);
    if (box.cells() == 0) continue;
    ASSERT_EQ(box.along[axes[2]], (PencilRange{0, length(axes[2])}));
    ASSERT_EQ(box.cells(), layout.lines(pencils, rank) * static_cast<std::size_t>(length(axes[2])));
    for (int i = box.along[axes[0]].first; i < box.along[axes[0]].end; ++i)
      for (int j = box.along[axes[1]].first; j < box.along[axes[1]].end; ++j)
        ++owners.at(static_cast<std::size_t>(i) * middle + j);
  }
  ASSERT_TRUE(std::all_of(owners.begin(), owners.end(), [](int n) { return n == 1; }))
      << "mesh " << m << ", " << layout.ranks() << " ranks";
}

TEST(PencilLayout, EveryCellIsOwnedOnceInEveryLayout) {
  for (int m = 2; m <= 64; m += 2)
    for (int ranks = 1; ranks <= 64; ++ranks)
      for (Pencils pencils : kAll) expect_owned_once(PencilLayout(m, ranks), pencils);
}

TEST(PencilLayout, AlsoOnChosenGrids) {
  for (PencilGrid grid : {PencilGrid{1, 9}, {9, 1}, {3, 3}, {2, 5}, {5, 2}})
    for (int m : {2, 8, 30})
      for (Pencils pencils : kAll) expect_owned_once(PencilLayout(m, 11, grid), pencils);
}

TEST(PencilLayout, GridsAreSquareWhereThatIsEven) {
  EXPECT_EQ(PencilLayout(256, 1).grid(), (PencilGrid{1, 1}));
  EXPECT_EQ(PencilLayout(256, 4).grid(), (PencilGrid{2, 2}));
  EXPECT_EQ(PencilLayout(256, 16).grid(), (PencilGrid{4, 4}));
  EXPECT_EQ(PencilLayout(1024, 64).grid(), (PencilGrid{8, 8}));
  const PencilGrid twelve = PencilLayout(512, 12).grid();
  EXPECT_EQ(twelve.rows * twelve.columns, 12);
  EXPECT_EQ(std::max(twelve.rows, twelve.columns), 4);
}

// A prime number of ranks beyond the mesh's planes would leave most without a part in a grid of one row.
TEST(PencilLayout, ManyRanksShareTheMeshEvenly) {
  for (int ranks : {7, 61, 67, 127}) {
    const PencilLayout layout(64, ranks);
    std::size_t most = 0;
    for (int rank = 0; rank < ranks; ++rank) most = std::max(most, layout.box(Pencils::kY, rank).cells());
    EXPECT_LE(static_cast<double>(most), 1.35 * 64 * 64 * 33 / ranks) << ranks;
  }
  const PencilLayout sparse(2, 50);
  EXPECT_TRUE(sparse.takes_part(0));
  EXPECT_EQ(sparse.box(Pencils::kReal, 49).cells(), 0u);
}

TEST(PencilLayout, BlocksDifferByOneAtMost) {
  for (int n = 1; n <= 40; ++n) {
    for (int parts = 1; parts <= 50; ++parts) {
      int end = 0;
      for (int i = 0; i < parts; ++i) {
        const PencilRange range = pencil_block(n, parts, i);
        ASSERT_EQ(range.first, end);
        ASSERT_TRUE(range.count() == n / parts || range.count() == n / parts + 1);
        end = range.end;
      }
      ASSERT_EQ(end, n);
    }
  }
}

TEST(PencilLayout, RefusesWhatCannotBe) {
  EXPECT_THROW(PencilLayout(7, 1), Error);
  EXPECT_THROW(PencilLayout(0, 1), Error);
  EXPECT_THROW(PencilLayout(8, 0), Error);
  EXPECT_THROW(PencilLayout(8, 5, PencilGrid{2, 3}), Error);
  EXPECT_THROW(PencilLayout(8, 5, PencilGrid{0, 3}), Error);
}

float value(std::size_t i, int mesh) { return std::sin(0.37f * static_cast<float>(i % 1009) + 2.0f * mesh); }

// Two meshes as PencilFft holds them on one rank.
struct Meshes {
  PencilFft fft;
  DeviceBuffer<float> mesh[2] = {DeviceBuffer<float>("test.mesh"), DeviceBuffer<float>("test.shifted")};
  const Stream& stream = test::test_stream();

  explicit Meshes(int m) : fft(Communicator::self(), m) {
    const auto cells = static_cast<std::size_t>(m);
    for (int i = 0; i < 2; ++i) {
      std::vector<float> host(fft.size(), 0.0f);
      for (std::size_t line = 0; line < cells * cells; ++line)
        for (std::size_t z = 0; z < cells; ++z) host[line * fft.real_row() + z] = value(line * cells + z, i);
      mesh[i].upload(stream, host);
    }
  }
};

// What a change does to a mode: the second mesh's mode is added, and its place is told apart.
void change_line(float* a, float* b, std::size_t m, int y, int z) {
  const float factor = 1.0f / static_cast<float>(1 + y + 3 * z);
  for (std::size_t i = 0; i < 2 * m; ++i) {
    a[i] = factor * (a[i] + b[i]);
    b[i] = factor * b[i];
  }
}

class BlockedFfts : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Meshes, BlockedFfts, testing::Values(8, 16, 40, 88));

// The steps one after another of PencilFft, to the bit.
TEST_P(BlockedFfts, IsThePencilsTransformThereAndBack) {
  const int m = GetParam();
  if (std::string(backend_name()) != "cpu") GTEST_SKIP() << "for processors";
  const auto cells = static_cast<std::size_t>(m);
  Meshes expected(m);
  const PencilFft& fft = expected.fft;
  for (auto& mesh : expected.mesh) expected.fft.forward(expected.stream, mesh.data());
  for (int y = 0; y < m; ++y)
    for (int z = 0; z <= m / 2; ++z) {
      const std::size_t line = static_cast<std::size_t>(y) * (cells / 2 + 1) + static_cast<std::size_t>(z);
      const std::size_t first = line * fft.mode_row();
      change_line(expected.mesh[0].data() + first, expected.mesh[1].data() + first, cells, y, z);
    }
  for (auto& mesh : expected.mesh) expected.fft.backward(expected.stream, mesh.data());

  for (std::size_t back : {2u, 1u}) {
    Meshes found(m);
    std::vector<std::uint8_t> wanted(cells, 1);
    if (back == 1)
      for (std::size_t x = 0; x < cells; ++x) wanted[x] = x % 3 != 1 && x != 0;
    BlockedFft blocked(m);
    ASSERT_EQ(blocked.lines(), cells);
    float* const meshes[] = {found.mesh[0].data(), found.mesh[1].data()};
    for (float* mesh : meshes) blocked.forward_planes(found.stream, mesh);
    blocked.along_x(found.stream, meshes, back, wanted, [&](const ModeLines& lines) {
      for (int i = 0; i < lines.count_y; ++i)
        change_line(lines.values[0] + static_cast<std::size_t>(i) * blocked.mode_row(),
                    lines.values[1] + static_cast<std::size_t>(i) * blocked.mode_row(), cells, lines.first_y + i,
                    lines.z);
    });
    for (std::size_t i = 0; i < back; ++i) {
      blocked.backward_planes(found.stream, meshes[i], wanted);
      for (std::size_t line = 0; line < cells * cells; ++line) {
        if (!wanted[line / cells]) continue;
        const float* const truth = expected.mesh[i].data() + line * fft.real_row();
        ASSERT_EQ(std::memcmp(meshes[i] + line * fft.real_row(), truth, cells * sizeof(float)), 0)
            << "mesh " << i << ", line " << line;
      }
    }
  }
}

}  // namespace
}  // namespace maki
