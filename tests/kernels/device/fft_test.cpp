#include "kernels/device/fft.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <numbers>

#include "kernels/device/buffer.hpp"
#include "kernels/error.hpp"
#include "tests/kernels/device/fft_places.hpp"
#include "tests/on_device.hpp"

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
      for (int z = 0; z < m; ++z) mesh[test::cell_at(fft, x, y, z)] = field(x, y, z);
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
  RealFft3d fft(m);
  test::OnDevice mesh(make_field(fft));
  fft.forward(stream, mesh.data());
  const std::vector<float> modes = mesh.download(stream);
  const int probes[][3] = {{0, 0, 0}, {1, 2, 3}, {m - 1, 1, m / 2}, {m / 2, m / 2, m / 2}, {m / 2 + 1, m - 2, 2}};
  for (const auto& k : probes) {
    const float* mode = &modes[test::mode_at(fft, k[0] % m, k[1] % m, k[2] % (m / 2 + 1))];
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
  test::OnDevice mesh(before);
  fft.forward(stream, mesh.data());
  fft.backward(stream, mesh.data());
  const std::vector<float> after = mesh.download(stream);
  const float scale = 1.0f / (float(m) * m * m);
  for (int row = 0; row < m * m; ++row)
    for (int z = 0; z < m; ++z) {
      const std::size_t at = test::cell_at(fft, row / m, row % m, z);
      ASSERT_NEAR(after[at] * scale, before[at], 3e-6f);
    }
}

INSTANTIATE_TEST_SUITE_P(EvenSizes, RealFft3dSizes, testing::Values(2, 4, 10, 12, 14, 22, 32, 46));

TEST(RealFft3d, RefusesOddSizes) {
  EXPECT_THROW(RealFft3d(15), Error);
  EXPECT_THROW(RealFft3d(0), Error);
}

float value(std::size_t line, int x) { return std::sin(1.7f * x + 0.3f * line) + 0.1f * ((x * 7 + line * 3) % 11); }

constexpr std::size_t kLines = 3;

std::vector<float> real_lines(const LineFft& fft) {
  std::vector<float> host(fft.real_row() * fft.padded(kLines), 0.0f);
  for (std::size_t line = 0; line < kLines; ++line)
    for (int x = 0; x < fft.cells(); ++x) host[fft.real_row() * line + x] = value(line, x);
  return host;
}

// Equal lines at different places, among different numbers of lines, after other plans.
TEST(LineFft, ALineDoesNotDependOnItsPlace) {
  const int m = 30;
  const Stream& stream = test::test_stream();
  LineFft before(m);
  const RealFft3d teaches_the_planner(m);
  LineFft after(m);
  std::vector<float> first;
  for (LineFft* fft : {&before, &after}) {
    for (std::size_t lines : {1, 5, 8, 67}) {
      std::vector<float> host(fft->complex_row() * fft->padded(lines), 0.0f);
      for (std::size_t line = 0; line < lines; ++line)
        for (int x = 0; x < 2 * m; ++x) host[fft->complex_row() * line + x] = value(0, x);
      test::OnDevice values(host);
      fft->transform(stream, LineTransform::kForward, values.data(), values.data(), lines);
      fft->transform(stream, LineTransform::kBackward, values.data(), values.data(), lines);
      fft->transform(stream, LineTransform::kForward, values.data(), values.data(), lines);
      const std::vector<float> modes = values.download(stream);
      if (first.empty()) first.assign(modes.begin(), modes.begin() + 2 * m);
      for (std::size_t line = 0; line < lines; ++line)
        ASSERT_EQ(0, std::memcmp(first.data(), &modes[fft->complex_row() * line], 2 * m * sizeof(float)));
    }
  }
}

// From one array to another as in place: of each line, `row` long, that many numbers. Returns what came out in place.
std::vector<float> expect_as_in_place(LineFft& fft, LineTransform way, std::size_t row, std::size_t numbers,
                                      const std::vector<float>& host) {
  const Stream& stream = test::test_stream();
  DeviceBuffer<float> to("test.to", host.size());
  test::OnDevice here(host), from(host);
  fft.transform(stream, way, here.data(), here.data(), kLines);
  fft.transform(stream, way, from.data(), to.data(), kLines);
  const std::vector<float> expected = here.download(stream), found = to.download(stream);
  for (std::size_t line = 0; line < kLines; ++line)
    EXPECT_EQ(0, std::memcmp(&found[row * line], &expected[row * line], numbers * sizeof(float)))
        << "way " << static_cast<int>(way) << ", line " << line;
  return expected;
}

class LineFftSizes : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(EvenSizes, LineFftSizes, testing::Values(2, 4, 14, 30, 46, 64));

TEST_P(LineFftSizes, BetweenTwoArraysAsInPlace) {
  const auto m = static_cast<std::size_t>(GetParam());
  LineFft fft(GetParam());
  const std::vector<float> modes =
      expect_as_in_place(fft, LineTransform::kRealToModes, fft.real_row(), m + 2, real_lines(fft));
  expect_as_in_place(fft, LineTransform::kModesToReal, fft.real_row(), m, modes);
  std::vector<float> host(fft.complex_row() * fft.padded(kLines));
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = value(i / 5, static_cast<int>(i % 71));
  for (const LineTransform way : {LineTransform::kForward, LineTransform::kBackward})
    expect_as_in_place(fft, way, fft.complex_row(), 2 * m, host);
}

TEST(LineFft, RefusesOddSizes) {
  EXPECT_THROW(LineFft(15), Error);
  EXPECT_THROW(LineFft(0), Error);
}

}  // namespace
}  // namespace maki
