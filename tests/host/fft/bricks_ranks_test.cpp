#include "host/fft/particle_brick.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>

#include "host/comm/communicator.hpp"
#include "tests/test_stream.hpp"

namespace maki {
namespace {

constexpr int kCells = 12;

// The cells that [lower, upper) touches and `ghosts` more on every side, lengths in sides of the mesh; empty where the
// domain is.
PencilBox brick_around(const std::array<double, 3>& lower, const std::array<double, 3>& upper, int m, int ghosts) {
  PencilBox brick;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (!(lower[axis] < upper[axis])) return {};
    brick.along[axis].first = static_cast<int>(std::floor(lower[axis] * m)) - ghosts;
    brick.along[axis].end = static_cast<int>(std::ceil(upper[axis] * m)) + ghosts;
  }
  return brick;
}

// Bricks of `size` ranks that cover the mesh in slabs or rods with ghosts, some of them empty; and odd ones.
std::vector<PencilBox> slabs(int size, int ghosts) {
  std::vector<PencilBox> bricks;
  for (int rank = 0; rank < size; ++rank) {
    const auto lower = [&](int i) { return i * 0.9 / size + 0.05; };  // boundaries that are no cell's
    const double upper = rank % 3 == 1 ? 0.0 : 1.0;
    bricks.push_back(brick_around({lower(rank), 0, 0.3}, {lower(rank + 1), upper, 0.7}, kCells, ghosts));
  }
  return bricks;
}
std::vector<PencilBox> odd_ones(int size) {
  std::vector<PencilBox> bricks(static_cast<std::size_t>(size));
  bricks[0].along = {PencilRange{-3, 17}, {-14, 2}, {5, 6}};                 // longer than the mesh
  if (size > 1) bricks[1].along = {PencilRange{20, 30}, {0, 12}, {-2, 14}};  // an image of it
  if (size > 2) bricks[2].along = {PencilRange{3, 9}, {11, 13}, {-1, 1}};
  return bricks;
}

std::uint64_t mass(int rank, std::size_t cell) { return (std::uint64_t{1} << 33) * (rank + 1) + 17 * cell; }
int wrapped(int i) { return ((i % kCells) + kCells) % kCells; }

// Calls f(x, y, z, index in the brick) in the brick's own coordinates.
template <class F>
void for_cells(const PencilBox& brick, F f) {
  std::size_t cell = 0;
  for (int x = brick.along[0].first; x < brick.along[0].end; ++x)
    for (int y = brick.along[1].first; y < brick.along[1].end; ++y)
      for (int z = brick.along[2].first; z < brick.along[2].end; ++z) f(x, y, z, cell++);
}
std::size_t place(int x, int y, int z) {
  return (static_cast<std::size_t>(wrapped(x)) * kCells + wrapped(y)) * kCells + wrapped(z);
}

struct Case {
  const char* name;
  int ghosts;  // below 0: the odd ones
};

class Bricks : public testing::TestWithParam<Case> {
 protected:
  const Stream& stream = test::test_stream();
  const Communicator world = Communicator::world();
  const PencilLayout layout{kCells, world.size()};
  const std::vector<PencilBox> bricks =
      GetParam().ghosts < 0 ? odd_ones(world.size()) : slabs(world.size(), GetParam().ghosts);
  const PencilBox mine = bricks[static_cast<std::size_t>(world.rank())];
  const PencilBox pencils = layout.box(Pencils::kReal, world.rank());
  // Cells of the brick of `rank` that `owner` has in its pencils.
  std::size_t cells_of(const PencilBox& brick, int owner) const {
    const PencilBox held = layout.box(Pencils::kReal, owner);
    const auto in = [](PencilRange range, int i) { return i >= range.first && i < range.end; };
    std::size_t count = 0;
    for_cells(brick, [&](int x, int y, int z, std::size_t) {
      count += in(held.along[0], wrapped(x)) && in(held.along[1], wrapped(y)) && in(held.along[2], wrapped(z));
    });
    return count;
  }
};
INSTANTIATE_TEST_SUITE_P(Ghosts, Bricks, testing::Values(Case{"ghosts", 2}, Case{"none", 0}, Case{"odd", -1}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(Bricks, MassesAreSummedExactly) {
  std::vector<std::uint64_t> expected(kCells * kCells * kCells, 0);
  for (int rank = 0; rank < world.size(); ++rank)
    for_cells(bricks[static_cast<std::size_t>(rank)],
              [&](int x, int y, int z, std::size_t cell) { expected[place(x, y, z)] += mass(rank, cell); });
  BrickExchange exchange(DevicePayload(world), layout, mine);
  std::vector<std::uint64_t> host(exchange.size());
  for (std::size_t cell = 0; cell < host.size(); ++cell) host[cell] = mass(world.rank(), cell);
  constexpr std::size_t row = kCells + 3;
  DeviceBuffer<std::uint64_t> brick("test.brick"), mesh("test.mesh", layout.lines(Pencils::kReal, world.rank()) * row);
  brick.upload(stream, host);
  for (int time = 0; time < 2; ++time) exchange.sum(stream, brick.data(), mesh.data(), row);  // overwrites
  const std::vector<std::uint64_t> sums = mesh.download(stream);
  for_cells(pencils, [&](int x, int y, int z, std::size_t cell) {
    ASSERT_EQ(sums[cell / kCells * row + cell % kCells], expected[place(x, y, z)]) << x << ' ' << y << ' ' << z;
  });
}

TEST_P(Bricks, EveryBrickGetsItsCellsAndGhosts) {
  constexpr std::size_t row = kCells + 4;
  std::vector<float> host(layout.lines(Pencils::kReal, world.rank()) * row, -1.0f);
  for_cells(pencils, [&](int x, int y, int z, std::size_t cell) {
    host[cell / kCells * row + cell % kCells] = static_cast<float>(1 + place(x, y, z));
  });
  DeviceBuffer<float> mesh("test.mesh");
  mesh.upload(stream, host);
  BrickExchange exchange(DevicePayload(world), layout, mine);
  DeviceBuffer<float> brick("test.brick");
  brick.upload(stream, std::vector<float>(exchange.size(), -7.0f));
  exchange.fetch(stream, mesh.data(), row, brick.data());
  const std::vector<float> values = brick.download(stream);
  for_cells(mine, [&](int x, int y, int z, std::size_t cell) {
    ASSERT_EQ(values[cell], static_cast<float>(1 + place(x, y, z)));
  });
}

TEST_P(Bricks, SendWhatIsAnotherRanksAndNothingEmpty) {
  BrickExchange exchange(DevicePayload(world), layout, mine);
  DeviceBuffer<std::uint64_t> brick("test.brick", exchange.size());
  DeviceBuffer<std::uint64_t> mesh("test.mesh", pencils.cells());
  brick.fill_zero(stream);
  exchange.sum(stream, brick.data(), mesh.data(), kCells);
  std::uint64_t bytes = 0, messages = 0;
  for (int peer = 0; peer < world.size(); ++peer) {
    if (peer == world.rank()) continue;
    bytes += 8 * cells_of(mine, peer);
    messages += cells_of(mine, peer) > 0;
  }
  EXPECT_EQ(exchange.traffic().bytes, bytes);
  EXPECT_EQ(exchange.traffic().messages, messages);
  DeviceBuffer<float> force("test.force", pencils.cells()), values("test.values", exchange.size());
  force.fill_zero(stream);
  exchange.fetch(stream, force.data(), kCells, values.data());
  for (int peer = 0; peer < world.size(); ++peer) {
    if (peer == world.rank()) continue;
    const std::size_t cells = cells_of(bricks[static_cast<std::size_t>(peer)], world.rank());
    bytes += 4 * cells;
    messages += cells > 0;
  }
  EXPECT_EQ(exchange.traffic().bytes, bytes);
  EXPECT_EQ(exchange.traffic().messages, messages);
  EXPECT_EQ(world.traffic().empty, 0u);
}

}  // namespace
}  // namespace maki
