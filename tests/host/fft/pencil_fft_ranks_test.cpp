// Transforms of pencils over ranks.
#include "host/fft/pencil_fft.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>

#include "host/comm/communicator.hpp"
#include "kernels/device/fft.hpp"
#include "kernels/error.hpp"
#include "tests/kernels/device/fft_places.hpp"
#include "tests/on_device.hpp"

namespace maki {
namespace {

// Random numbers in [-1, 1), by the cell alone.
float value(int x, int y, int z) {
  std::uint64_t h =
      (static_cast<std::uint64_t>(x) << 40) ^ (static_cast<std::uint64_t>(y) << 20) ^ static_cast<std::uint64_t>(z);
  for (int i = 0; i < 3; ++i) {
    h = (h + 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
    h ^= h >> 29;
  }
  return static_cast<float>(h >> 40) * 0x1p-23f - 1.0f;
}

// Calls f(a, b, line) for the lines of a box in the order of the layout; a and b are the slower axes' indices.
template <class F>
void for_lines(Pencils pencils, const PencilBox& box, F f) {
  const std::array<int, 3> axes = PencilLayout::order(pencils);
  std::size_t line = 0;
  for (int a = box.along[axes[0]].first; a < box.along[axes[0]].end; ++a)
    for (int b = box.along[axes[1]].first; b < box.along[axes[1]].end; ++b) f(a, b, line++);
}

// The local part of the mesh as it comes out of forward() and of backward() after it.
struct Transformed {
  std::vector<float> modes, back;
};

Transformed transform(PencilFft& fft) {
  const Stream& stream = test::test_stream();
  const int m = fft.layout().cells();
  std::vector<float> host(fft.size(), 0.0f);
  for_lines(Pencils::kReal, fft.cells(), [&](int x, int y, std::size_t line) {
    for (int z = 0; z < m; ++z) host[fft.real_row() * line + z] = value(x, y, z);
  });
  test::OnDevice mesh(host);
  Transformed result;
  fft.forward(stream, mesh.data());
  result.modes = mesh.download(stream);
  fft.backward(stream, mesh.data());
  result.back = mesh.download(stream);
  return result;
}

class PencilFftMeshes : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Meshes, PencilFftMeshes, testing::Values(8, 14, 30, 46, 64));
INSTANTIATE_TEST_SUITE_P(FewPlanes, PencilFftMeshes, testing::Values(2, 4));

// On one rank: what many have is the same to the bit.
TEST_P(PencilFftMeshes, ModesAreThoseOfOneRank) {
  const int m = GetParam();
  const Stream& stream = test::test_stream();
  RealFft3d whole(m);
  std::vector<float> host(whole.size(), 0.0f);
  for (int x = 0; x < m; ++x)
    for (int y = 0; y < m; ++y)
      for (int z = 0; z < m; ++z) host[test::cell_at(whole, x, y, z)] = value(x, y, z);
  test::OnDevice mesh(host);
  whole.forward(stream, mesh.data());
  const std::vector<float> expected = mesh.download(stream);

  PencilFft fft(Communicator::self(), m);
  const Transformed mine = transform(fft);
  const double scale = std::sqrt(m * double(m) * m / 6);  // of one component of a mode: values are even in [-1, 1)
  double squares = 0, reference = 0, largest = 0;
  for_lines(Pencils::kX, fft.modes(), [&](int ky, int kz, std::size_t line) {
    for (int kx = 0; kx < m; ++kx) {
      const float* truth = &expected[test::mode_at(whole, kx, ky, kz)];
      for (int part = 0; part < 2; ++part) {
        const double off = double(mine.modes[fft.mode_row() * line + 2 * kx + part]) - truth[part];
        squares += off * off;
        reference += double(truth[part]) * truth[part];
        largest = std::max(largest, std::abs(off) / scale);
      }
    }
  });
  EXPECT_LE(std::sqrt(squares / reference), 1e-6);
  EXPECT_LE(largest, 1e-5);

  double back_squares = 0, back_reference = 0;
  for_lines(Pencils::kReal, fft.cells(), [&](int x, int y, std::size_t line) {
    for (int z = 0; z < m; ++z) {
      const double truth = value(x, y, z);
      const double off = mine.back[fft.real_row() * line + z] / (double(m) * m * m) - truth;
      back_squares += off * off;
      back_reference += truth * truth;
    }
  });
  EXPECT_LE(std::sqrt(back_squares / back_reference), 1e-6);
}

// Every rank transforms the whole mesh alone, too, and finds its own part in it to the bit.
void expect_bits_of_one_rank(PencilFft& fft, const PencilFft& alone, const Transformed& whole) {
  const int m = fft.layout().cells(), modes = m / 2 + 1;
  const Transformed mine = transform(fft);
  for_lines(Pencils::kX, fft.modes(), [&](int ky, int kz, std::size_t line) {
    const std::size_t there = static_cast<std::size_t>(ky) * modes + kz;
    ASSERT_EQ(0, std::memcmp(&mine.modes[fft.mode_row() * line], &whole.modes[alone.mode_row() * there],
                             2 * m * sizeof(float)));
  });
  for_lines(Pencils::kReal, fft.cells(), [&](int x, int y, std::size_t line) {
    const std::size_t there = static_cast<std::size_t>(x) * m + y;
    ASSERT_EQ(0,
              std::memcmp(&mine.back[fft.real_row() * line], &whole.back[alone.real_row() * there], m * sizeof(float)));
  });
}

TEST_P(PencilFftMeshes, BitsDoNotDependOnTheNumberOfRanks) {
  const Communicator world = Communicator::world();
  PencilFft alone(Communicator::self(), GetParam());
  const Transformed whole = transform(alone);
  PencilFft fft(world, GetParam());
  expect_bits_of_one_rank(fft, alone, whole);
}

TEST(PencilFft, BitsDoNotDependOnTheGrid) {
  const Communicator world = Communicator::world();
  PencilFft alone(Communicator::self(), 10);
  const Transformed whole = transform(alone);
  for (int rows = 1; rows <= world.size(); ++rows) {
    for (int columns = 1; columns <= world.size() / rows; ++columns) {
      SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(columns));
      PencilFft fft(world, PencilLayout(10, world.size(), {rows, columns}));
      expect_bits_of_one_rank(fft, alone, whole);
    }
  }
}

// Complex numbers that `rank` has in one layout and another rank has in the next, cell by cell.
std::uint64_t change_owner(const PencilLayout& layout, Pencils from, Pencils to, int rank) {
  const PencilBox before = layout.box(from, rank), after = layout.box(to, rank);
  const auto inside = [](const PencilRange& range, int i) { return i >= range.first && i < range.end; };
  std::uint64_t gone = 0;
  for (int x = before.along[0].first; x < before.along[0].end; ++x)
    for (int y = before.along[1].first; y < before.along[1].end; ++y)
      for (int z = before.along[2].first; z < before.along[2].end; ++z)
        gone += !(inside(after.along[0], x) && inside(after.along[1], y) && inside(after.along[2], z));
  return gone;
}

TEST_P(PencilFftMeshes, SendsWhatChangesOwnerAndNoMore) {
  const Communicator world = Communicator::world();
  PencilFft fft(world, GetParam());
  const Communicator::Traffic before = world.traffic();
  transform(fft);
  const Communicator::Traffic after = world.traffic();
  const PencilLayout& layout = fft.layout();
  std::uint64_t least = 0, messages = 0;
  constexpr Pencils kWay[] = {Pencils::kZ, Pencils::kY, Pencils::kX, Pencils::kY, Pencils::kZ};
  for (int i = 0; i < 4; ++i) {
    least += change_owner(layout, kWay[i], kWay[i + 1], world.rank());
    const PencilBox mine = layout.box(kWay[i], world.rank());
    for (int peer = 0; peer < world.size(); ++peer)
      messages += peer != world.rank() && overlap(mine, layout.box(kWay[i + 1], peer)).cells() > 0;
  }
  const bool by_mpi = choose_payload_path(world).path != PayloadPath::kNccl;
  EXPECT_EQ(after.bytes - before.bytes, by_mpi ? least * 2 * sizeof(float) : 0);
  EXPECT_EQ(after.messages - before.messages, by_mpi ? messages : 0);
  EXPECT_EQ(after.empty, 0u);
  EXPECT_LE(messages, 2u * (layout.grid().rows + layout.grid().columns - 2));
}

TEST(PencilFft, RefusesOddMeshes) { EXPECT_THROW(PencilFft(Communicator::world(), 9), Error); }

}  // namespace
}  // namespace maki
