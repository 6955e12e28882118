#include "kernels/measure/power_parts.cuh"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/on_device.hpp"

namespace maki {
namespace {

struct Case {
  int m, count_x, first_y, count_y, length;
  double bins_a_wave;  // 0: one bin for all
  bool two_sets = false;
};

std::vector<std::uint32_t> bins_by_square(const Case& c) {
  std::vector<std::uint32_t> bins(static_cast<std::size_t>(c.m / 2) * (c.m / 2));
  for (std::size_t n2 = 0; n2 < bins.size(); ++n2)
    bins[n2] = static_cast<std::uint32_t>(std::sqrt(static_cast<double>(n2)) * c.bins_a_wave);
  return bins;
}

// Sums of roots are rounded in the order of the modes. Powers are whole numbers here, so that they are exact.
TEST(PowerBins, EachPlanesModesAreAddedInTheirOrder) {
  const Stream& stream = test::test_stream();
  for (const Case& c : {Case{80, 5, 0, 80, 41, 1.0}, Case{80, 3, 70, 10, 41, 0.1}, Case{80, 6, 0, 41, 80, 1.0},
                        Case{48, 9, 3, 20, 48, 0.0}, Case{8, 7, 0, 8, 5, 1.0}, Case{48, 9, 3, 20, 48, 0.5, true}}) {
    SCOPED_TRACE(::testing::Message() << c.m << " " << c.bins_a_wave);
    const std::vector<std::uint32_t> bin_of = bins_by_square(c);
    const int bins = static_cast<int>(*std::max_element(bin_of.begin(), bin_of.end())) + 1;
    const int stride = c.length + 3;
    std::vector<Complex> mesh(static_cast<std::size_t>(c.count_x) * c.count_y * stride);
    for (std::size_t i = 0; i < mesh.size(); ++i)
      mesh[i] = {static_cast<float>(i * 7919 % 1009), static_cast<float>(i * 104729 % 907)};
    const std::vector<Complex> second(c.two_sets ? std::vector<Complex>(mesh.rbegin(), mesh.rend()) : mesh);
    std::vector<float> deconvolution(static_cast<std::size_t>(c.m));
    for (std::size_t n = 0; n < deconvolution.size(); ++n) deconvolution[n] = n % 3 ? 1.0f : 2.0f;

    DeviceBuffer<BinSum> sums("test.sums", static_cast<std::size_t>(c.count_x) * bins);
    test::OnDevice modes(mesh), other(second);
    test::OnDevice table(bin_of);
    test::OnDevice factors(deconvolution);
    const PowerModes part{modes.data(), {1, c.first_y, c.count_x, c.count_y}, c.length, stride};
    bin_planes(stream,
               {part, c.two_sets ? other.data() : modes.data(), sums.data(), table.data(), factors.data(), c.m, bins});
    const std::vector<BinSum> found = sums.download(stream);

    for (int plane = 0; plane < c.count_x; ++plane) {
      std::vector<BinSum> expected(static_cast<std::size_t>(bins));
      for (int j = 0; j < c.count_y; ++j)
        for (int z = 0; z < c.length; ++z) {
          const int x = 1 + plane, y = c.first_y + j;
          const auto wave = [&](int i) { return i <= c.m / 2 ? i : i - c.m; };
          const int n2 = wave(x) * wave(x) + wave(y) * wave(y) + wave(z) * wave(z);
          if (n2 == 0 || n2 >= c.m / 2 * (c.m / 2)) continue;
          const unsigned weight = y > 0 ? 2 : 1;
          const std::size_t at = (static_cast<std::size_t>(plane) * c.count_y + j) * stride + z;
          const Complex &a = mesh[at], &b = second[at];
          const double factor = deconvolution[x] * deconvolution[y] * deconvolution[z];
          BinSum& bin = expected[bin_of[n2]];
          bin.waves += weight * std::sqrt(static_cast<double>(n2));
          bin.power += weight * (a.re * b.re + a.im * b.im) * factor * factor;
          bin.modes += weight;
        }
      for (int b = 0; b < bins; ++b) {
        const BinSum& sum = found[static_cast<std::size_t>(plane) * bins + b];
        ASSERT_EQ(sum.waves, expected[b].waves) << "plane " << plane << " bin " << b;
        ASSERT_EQ(sum.power, expected[b].power) << "plane " << plane << " bin " << b;
        ASSERT_EQ(sum.modes, expected[b].modes) << "plane " << plane << " bin " << b;
      }
    }
  }
}

}  // namespace
}  // namespace maki
