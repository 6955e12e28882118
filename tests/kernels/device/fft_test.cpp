#include "kernels/device/fft.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
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

TEST(RealFft3d, WisdomIsTextThatIsUnderstood) {
  EXPECT_FALSE(learn_fft_wisdom(""));
  EXPECT_FALSE(learn_fft_wisdom("nothing of the kind"));
#if !defined(MAKI_BACKEND_CUDA)
  EXPECT_TRUE(learn_fft_wisdom(fft_wisdom()));
#endif
}

float value(std::size_t line, int x) { return std::sin(1.7f * x + 0.3f * line) + 0.1f * ((x * 7 + line * 3) % 11); }

std::complex<double> wave(int m, int k, int x) { return std::polar(1.0, -2 * std::numbers::pi * (k * x % m) / m); }

std::vector<float> real_lines(const LineFft& fft, std::size_t lines) {
  std::vector<float> host(fft.real_row() * fft.padded(lines), 0.0f);
  for (std::size_t line = 0; line < lines; ++line)
    for (int x = 0; x < fft.cells(); ++x) host[fft.real_row() * line + x] = value(line, x);
  return host;
}

class LineFftSizes : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(EvenSizes, LineFftSizes, testing::Values(2, 4, 14, 30, 46, 64));

TEST_P(LineFftSizes, RealLinesMatchThePlainSum) {
  const int m = GetParam();
  const std::size_t lines = 3;
  const Stream& stream = test::test_stream();
  LineFft fft(m);
  const std::vector<float> host = real_lines(fft, lines);
  DeviceBuffer<float> values("test.lines");
  values.upload(stream, host);
  fft.transform(stream, LineTransform::kRealToModes, values.data(), values.data(), lines);
  const std::vector<float> modes = values.download(stream);
  for (std::size_t line = 0; line < lines; ++line) {
    for (int k = 0; k <= m / 2; ++k) {
      std::complex<double> sum = 0;
      for (int x = 0; x < m; ++x) sum += double(value(line, x)) * wave(m, k, x);
      EXPECT_NEAR(modes[fft.real_row() * line + 2 * k], sum.real(), 1e-6 * m);
      EXPECT_NEAR(modes[fft.real_row() * line + 2 * k + 1], sum.imag(), 1e-6 * m);
    }
  }
  fft.transform(stream, LineTransform::kModesToReal, values.data(), values.data(), lines);
  const std::vector<float> after = values.download(stream);
  for (std::size_t line = 0; line < lines; ++line)
    for (int x = 0; x < m; ++x) EXPECT_NEAR(after[fft.real_row() * line + x] / m, value(line, x), 2e-6);
}

TEST_P(LineFftSizes, ComplexLinesMatchThePlainSum) {
  const int m = GetParam();
  const Stream& stream = test::test_stream();
  LineFft fft(m);
  std::vector<float> host(fft.complex_row() * fft.padded(2), 0.0f);
  for (std::size_t line = 0; line < 2; ++line)
    for (int x = 0; x < 2 * m; ++x) host[fft.complex_row() * line + x] = value(line, x);
  DeviceBuffer<float> values("test.lines");
  values.upload(stream, host);
  fft.transform(stream, LineTransform::kForward, values.data(), values.data(), 2);
  const std::vector<float> modes = values.download(stream);
  for (int k = 0; k < m; ++k) {
    std::complex<double> sum = 0;
    for (int x = 0; x < m; ++x) sum += std::complex<double>(value(1, 2 * x), value(1, 2 * x + 1)) * wave(m, k, x);
    EXPECT_NEAR(modes[fft.complex_row() + 2 * k], sum.real(), 2e-6 * m);
    EXPECT_NEAR(modes[fft.complex_row() + 2 * k + 1], sum.imag(), 2e-6 * m);
  }
  fft.transform(stream, LineTransform::kBackward, values.data(), values.data(), 2);
  const std::vector<float> after = values.download(stream);
  for (int x = 0; x < 2 * m; ++x) EXPECT_NEAR(after[fft.complex_row() + x] / m, value(1, x), 3e-6);
}

// Equal lines at different places, among different numbers of lines, after plans that were measured.
TEST(LineFft, ALineDoesNotDependOnItsPlace) {
  const int m = 30;
  const Stream& stream = test::test_stream();
  LineFft before(m);
  const RealFft3d teaches_the_planner(m, FftPlanning::kMeasure);
  LineFft after(m);
  std::vector<float> first;
  for (LineFft* fft : {&before, &after}) {
    for (std::size_t lines : {1, 5, 8, 67}) {
      std::vector<float> host(fft->complex_row() * fft->padded(lines), 0.0f);
      for (std::size_t line = 0; line < lines; ++line)
        for (int x = 0; x < 2 * m; ++x) host[fft->complex_row() * line + x] = value(0, x);
      DeviceBuffer<float> values("test.lines");
      values.upload(stream, host);
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

TEST_P(LineFftSizes, BetweenTwoArraysAsInPlace) {
  const int m = GetParam();
  const std::size_t lines = 3;
  const Stream& stream = test::test_stream();
  LineFft fft(m);
  const std::vector<float> host = real_lines(fft, lines);
  DeviceBuffer<float> here("test.lines"), from("test.from"), to("test.to", host.size());
  here.upload(stream, host);
  from.upload(stream, host);
  fft.transform(stream, LineTransform::kRealToModes, here.data(), here.data(), lines);
  fft.transform(stream, LineTransform::kRealToModes, from.data(), to.data(), lines);
  const auto row_of = [&](const std::vector<float>& values, std::size_t line, int numbers) {
    const auto begin = values.begin() + static_cast<long>(fft.real_row() * line);
    return std::vector<float>(begin, begin + numbers);
  };
  std::vector<float> expected = here.download(stream), found = to.download(stream);
  for (std::size_t line = 0; line < lines; ++line) EXPECT_EQ(row_of(found, line, m + 2), row_of(expected, line, m + 2));
  fft.transform(stream, LineTransform::kModesToReal, here.data(), here.data(), lines);
  fft.transform(stream, LineTransform::kModesToReal, to.data(), from.data(), lines);
  expected = here.download(stream), found = from.download(stream);
  for (std::size_t line = 0; line < lines; ++line) EXPECT_EQ(row_of(found, line, m), row_of(expected, line, m));
}

void expect_complex_lines_as_in_place(int m) {
  const std::size_t lines = 3;
  const Stream& stream = test::test_stream();
  LineFft fft(m);
  std::vector<float> host(fft.complex_row() * fft.padded(lines));
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<float>(value(i / 5, static_cast<int>(i % 71)));
  DeviceBuffer<float> here("test.lines"), from("test.from"), to("test.to", host.size());
  const auto used = [&](const DeviceBuffer<float>& buffer) {
    const std::vector<float> values = buffer.download(stream);
    std::vector<float> kept;
    for (std::size_t line = 0; line < lines; ++line)
      for (int i = 0; i < 2 * m; ++i) kept.push_back(values[fft.complex_row() * line + static_cast<std::size_t>(i)]);
    return kept;
  };
  for (const LineTransform way : {LineTransform::kForward, LineTransform::kBackward}) {
    here.upload(stream, host);
    from.upload(stream, host);
    fft.transform(stream, way, here.data(), here.data(), lines);
    fft.transform(stream, way, from.data(), to.data(), lines);
    EXPECT_EQ(used(to), used(here));
  }
}

TEST_P(LineFftSizes, ComplexLinesBetweenTwoArraysAsInPlace) { expect_complex_lines_as_in_place(GetParam()); }

TEST(LineFft, RefusesOddSizes) {
  EXPECT_THROW(LineFft(15), Error);
  EXPECT_THROW(LineFft(0), Error);
}

}  // namespace
}  // namespace maki
