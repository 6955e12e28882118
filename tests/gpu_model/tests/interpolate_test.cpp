// Tiled interpolation on the GPU against sums in double precision.
#include "kernels/mesh/interpolate.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "tests/kernels/mesh/mesh_sets.hpp"
#include "tests/on_device.hpp"

namespace maki {
namespace {

using namespace test;

std::vector<float> random_mesh(int m) {
  std::mt19937 random(9);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> mesh(static_cast<std::size_t>(m) * m * (m + 2));
  for (float& v : mesh) v = uniform(random);
  return mesh;
}

// Per axis: the first cell, weights and their slopes, in double precision.
struct Axis {
  int first;
  double weight[4], slope[4];
};
Axis axis_of(int s, std::uint32_t coordinate, int m, bool shifted) {
  const double u = coordinate / kSideToUnits * m + (shifted ? 0.5 : 0.0);
  const double middle = s % 2 ? std::floor(u + 0.5) : std::floor(u);
  Axis axis{static_cast<int>(middle) - (s > 2 ? 1 : 0), {}, {}};
  for (int i = 0; i < s; ++i) {
    const double d = axis.first + i - u, x = std::abs(d), sign = d < 0 ? -1 : 1;  // slopes with respect to u
    if (s == 2) axis.weight[i] = 1 - x, axis.slope[i] = i ? 1 : -1;
    if (s == 3) axis.weight[i] = x < 0.5 ? 0.75 - x * x : 0.5 * (1.5 - x) * (1.5 - x);
    if (s == 3) axis.slope[i] = sign * (x < 0.5 ? 2 * x : 1.5 - x);
    if (s == 4) axis.weight[i] = x < 1 ? (4 - 6 * x * x + 3 * x * x * x) / 6 : std::pow(2 - x, 3) / 6;
    if (s == 4) axis.slope[i] = sign * (x < 1 ? 2 * x - 1.5 * x * x : 0.5 * (2 - x) * (2 - x));
  }
  return axis;
}

// Value and derivatives in 1 / side.
std::array<double, 4> exact(int s, const std::vector<float>& mesh, int m, bool shifted, const SourceParticle& p) {
  const Axis x = axis_of(s, p.x, m, shifted), y = axis_of(s, p.y, m, shifted), z = axis_of(s, p.z, m, shifted);
  std::array<double, 4> sum{};
  for (int i = 0; i < s; ++i)
    for (int j = 0; j < s; ++j)
      for (int k = 0; k < s; ++k) {
        const int line = (x.first + i + m) % m * m + (y.first + j + m) % m;
        const double v = mesh[static_cast<std::size_t>(line * (m + 2) + (z.first + k + m) % m)];
        sum[0] += v * x.weight[i] * y.weight[j] * z.weight[k];
        sum[1] += v * x.slope[i] * y.weight[j] * z.weight[k] * m;
        sum[2] += v * x.weight[i] * y.slope[j] * z.weight[k] * m;
        sum[3] += v * x.weight[i] * y.weight[j] * z.slope[k] * m;
      }
  return sum;
}

struct Values {
  std::vector<float> value, x, y, z, alone;
  bool operator==(const Values&) const = default;
};

// Gradient with value, and the value alone added to ones.
Values interpolated(Assignment cloud, const std::vector<float>& mesh, int m, bool shifted, const Set& set) {
  const Stream& stream = test_stream();
  const OnDevice source(set);
  OnDevice on_device(mesh), alone(std::vector<float>(set.size(), 1.0f));
  DeviceBuffer<float> value("test.value", set.size());
  VectorsOnDevice gradient(set.size());
  MeshView view{on_device.data(), MeshBox::whole(m), shifted};
  view.row = static_cast<std::size_t>(m) + 2;
  const InterpolationOutput out{gradient.view(), 1.0f, value.data(), 1.0f, false};
  interpolate(stream, cloud, view, source.data(), set.size(), out);
  interpolate(stream, cloud, view, source.data(), set.size(), {{}, 0, alone.data(), 1.0f, true});
  return {value.download(stream), gradient.x.download(stream), gradient.y.download(stream), gradient.z.download(stream),
          alone.download(stream)};
}

void expect_right(Assignment cloud, int m, const Set& set) {
  const std::vector<float> mesh = random_mesh(m);
  const int s = static_cast<int>(cloud);
  for (bool shifted : {false, true}) {
    SCOPED_TRACE(::testing::Message() << m << " cells, cloud " << s << ", shifted " << shifted << ", " << set.size());
    const Values got = interpolated(cloud, mesh, m, shifted, set);
    double worst = 0;
    for (std::size_t n = 0; n < set.size(); ++n) {
      const auto e = exact(s, mesh, m, shifted, set[n]);
      const double scale[4] = {1, 1.0 * m, 1.0 * m, 1.0 * m};
      const float mine[4] = {got.value[n], got.x[n], got.y[n], got.z[n]};
      for (int i = 0; i < 4; ++i)
        worst = std::max(worst, std::abs(mine[i] - e[static_cast<std::size_t>(i)]) / scale[i]);
      worst = std::max(worst, std::abs(got.alone[n] - 1.0 - e[0]));
    }
    EXPECT_LT(worst, 1e-6);
  }
}

TEST(InterpolateKernel, GivesTheSumsOverTheCloud) {
  for (Assignment cloud : kClouds)
    for (int m : {8, 16, 46}) {
      expect_right(cloud, m, clustered(500, true));
      Set even = cloud_of(400, 0, true);
      testing::sort_by_key(even);
      expect_right(cloud, m, even);
    }
}

TEST(InterpolateKernel, TakesParticlesInAnyOrder) {
  for (Assignment cloud : kClouds) {
    expect_right(cloud, 46, cloud_of(400, 0, true));
    expect_right(cloud, 46, drifted(clustered(400, true), 46));
  }
}

TEST(InterpolateKernel, TakesChunksOfDenseParticles) {
  Set set = cloud_of(2048 + 700, 2, true);
  testing::sort_by_key(set);
  expect_right(Assignment::kPcs, 64, set);
}

TEST(InterpolateKernel, TakesFewParticlesAndNone) {
  for (Assignment cloud : kClouds) {
    for (std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{65}})
      expect_right(cloud, 16, cloud_of(n, 1, true));
    expect_right(cloud, 46, Set(300, {0xffffffffu, 5u, 0x80000000u, 1.0f}));
  }
}

TEST(InterpolateKernel, DoesNotDependOnTheOrderOfThreads) {
  const std::vector<float> mesh = random_mesh(24);
  const Set set = drifted(clustered(300, true), 24);
  Values first;
  for (int n = 0; n < 20; ++n) {  // each launch draws another order
    const Values got = interpolated(Assignment::kPcs, mesh, 24, true, set);
    if (first.value.empty()) first = got;
    EXPECT_TRUE(first == got);
  }
}

}  // namespace
}  // namespace maki
