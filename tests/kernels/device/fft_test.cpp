#include "kernels/device/fft.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstdio>
#include <numbers>

#include "kernels/device/buffer.hpp"
#include "kernels/error.hpp"
#include "tests/test_stream.hpp"

namespace maki {
namespace {

// value at (x, y, z) of a field without symmetry
float field(int x, int y, int z) {
  return std::sin(1.7f * x + 0.3f) + std::cos(2.9f * y * z) + 0.1f * ((x * 7 + y * 3 + z * 5) % 11);
}

std::vector<float> make_field(const RealFft3d& fft) {
  const int m = fft.cells();
  std::vector<float> mesh(fft.size(), 0.0f);
  for (int x = 0; x < m; ++x)
    for (int y = 0; y < m; ++y)
      for (int z = 0; z < m; ++z) mesh[(static_cast<std::size_t>(x) * m + y) * fft.row() + z] = field(x, y, z);
  return mesh;
}

std::complex<double> plain_mode(int m, int kx, int ky, int kz) {
  std::complex<double> sum = 0;
  for (int x = 0; x < m; ++x)
    for (int y = 0; y < m; ++y)
      for (int z = 0; z < m; ++z)
        sum += double(field(x, y, z)) * std::polar(1.0, -2 * std::numbers::pi * ((kx * x + ky * y + kz * z) % m) / m);
  return sum;
}

class RealFft3dSizes : public testing::TestWithParam<int> {};

TEST_P(RealFft3dSizes, ModesMatchThePlainSum) {
  const int m = GetParam();
  const Stream& stream = test::test_stream();
  RealFft3d fft(m, FftPlanning::kEstimate);
  DeviceBuffer<float> mesh("test.mesh");
  mesh.upload(stream, make_field(fft));
  fft.forward(stream, mesh.data());
  const std::vector<float> modes = mesh.download(stream);
  const int probes[][3] = {{0, 0, 0}, {1, 2, 3}, {m - 1, 1, m / 2}, {m / 2, m / 2, m / 2}, {m / 2 + 1, m - 2, 2}};
  for (const auto& k : probes) {
    const std::size_t line = static_cast<std::size_t>(k[0] % m) * m + k[1] % m;
    const float* mode = &modes[line * fft.row() + 2 * (k[2] % (m / 2 + 1))];
    const auto expected = plain_mode(m, k[0] % m, k[1] % m, k[2] % (m / 2 + 1));
    EXPECT_NEAR(mode[0], expected.real(), 1e-5 * m * m * m) << k[0] << ' ' << k[1] << ' ' << k[2];
    EXPECT_NEAR(mode[1], expected.imag(), 1e-5 * m * m * m) << k[0] << ' ' << k[1] << ' ' << k[2];
  }
}

TEST_P(RealFft3dSizes, ThereAndBackIsTheNumberOfCells) {
  const int m = GetParam();
  const Stream& stream = test::test_stream();
  RealFft3d fft(m);
  const std::vector<float> before = make_field(fft);
  DeviceBuffer<float> mesh("test.mesh");
  mesh.upload(stream, before);
  fft.forward(stream, mesh.data());
  fft.backward(stream, mesh.data());
  const std::vector<float> after = mesh.download(stream);
  const float scale = 1.0f / (float(m) * m * m);
  for (int row = 0; row < m * m; ++row)
    for (int z = 0; z < m; ++z) ASSERT_NEAR(after[row * fft.row() + z] * scale, before[row * fft.row() + z], 3e-6f);
}

INSTANTIATE_TEST_SUITE_P(EvenSizes, RealFft3dSizes, testing::Values(2, 4, 10, 12, 14, 22, 32, 46));

TEST(RealFft3d, RefusesOddSizes) {
  EXPECT_THROW(RealFft3d(15), Error);
  EXPECT_THROW(RealFft3d(0), Error);
}

TEST(RealFft3d, WisdomSurvivesAFile) {
  const std::string path = testing::TempDir() + "maki_fft_wisdom";
  EXPECT_FALSE(load_fft_wisdom(path + ".missing"));
  save_fft_wisdom(path);
#if !defined(MAKI_BACKEND_CUDA)
  EXPECT_TRUE(load_fft_wisdom(path));
  EXPECT_THROW(save_fft_wisdom("/nonexistent/wisdom"), Error);
#endif
  std::remove(path.c_str());
}

}  // namespace
}  // namespace maki
