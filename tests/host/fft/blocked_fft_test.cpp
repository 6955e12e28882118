#include "host/fft/blocked_fft.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>

#include "host/fft/pencil_fft.hpp"
#include "kernels/device/device.hpp"
#include "tests/test_stream.hpp"

namespace maki {
namespace {

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
  ASSERT_TRUE(BlockedFft::is_for(m));
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

TEST(BlockedFft, IsNotForPlanesOfModesThatHaveNoRoom) { EXPECT_FALSE(BlockedFft::is_for(30)); }

}  // namespace
}  // namespace maki
