#include "kernels/mesh/mesh.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>

#include "kernels/error.hpp"
#include "tests/kernels/mesh/field_of.hpp"
#include "tests/kernels/mesh/pair_error.hpp"
#include "tests/kernels/particles/sets.hpp"
#include "tests/on_device.hpp"
#include "tests/test_stream.hpp"
#include "tests/threads.hpp"

namespace maki {
namespace {

using test::Field;

constexpr Gradient kGradients[] = {Gradient::kSpectral, Gradient::kFourPoint, Gradient::kAnalytic};
constexpr Interlacing kInterlacings[] = {Interlacing::kNone, Interlacing::kAssignment, Interlacing::kFull};

ForceLaw polynomial_law(int order, double r_cut) {
  return make_force_law(Split::kPolynomial, order, r_cut, Softening::kPlummer, 1e-4 * r_cut);
}

Field long_range(const MeshOptions& options, const ForceLaw& law, const std::vector<SourceParticle>& particles,
                 bool potential = true) {
  ParticleMesh mesh(options, law);
  return test::field_of(mesh, particles, potential);
}

// The table's rows in docs/design.md, "Force split": no worse than the prototype by more than a fifth.
TEST(ParticleMesh, PairErrorIsThatOfTheDesign) {
  for (int i : {0, 2, 5, 6, 7, 8, 9}) {
    const test::PairErrorRow row = test::pair_error_table()[i];
    const double error = test::pair_error(row, 6, 90);
    EXPECT_LT(error, 1.2 * row.prototype) << row.label;
    EXPECT_GT(error, 0.7 * row.prototype) << row.label;
  }
}

// With both ends interlaced the analytic gradient comes within a factor of two of the spectral one, with a third of the
// transforms.
TEST(ParticleMesh, AnalyticGradientIsNearlyAsGood) {
  test::PairErrorRow row = test::pair_error_table()[5];
  row.gradient = Gradient::kAnalytic;
  EXPECT_LT(test::pair_error(row, 6, 90), 8e-4);
}

// Long waves are resolved: what the mesh has to correct there is small.
TEST(InfluenceFunction, TendsToTheContinuumAtLongWaves) {
  const ForceLaw law = polynomial_law(5, 4.5 / 32);
  for (Gradient gradient : kGradients)
    for (Interlacing interlacing : kInterlacings)
      for (Influence kind : {Influence::kForce, Influence::kPotential}) {
        const auto g = influence_function({32, Assignment::kPcs, gradient, interlacing}, law, kind);
        ASSERT_EQ(g.size(), 17u * 17u * 17u);
        EXPECT_EQ(g[0], 0.0f);
        const double k = 2 * std::numbers::pi;
        EXPECT_NEAR(g[1], 4 * std::numbers::pi / (k * k) * long_range_window(law, k * law.r_cut), 2e-2 * g[1]);
        EXPECT_EQ(g[1], g[17]);
        EXPECT_EQ(g[1], g[17 * 17]);
        for (float value : g) ASSERT_TRUE(std::isfinite(value));
      }
}

// A second mesh by half a cell tells nothing of waves of two cells: there both kinds sum over all images.
TEST(InfluenceFunction, OfTheNyquistPlanesIsThatWithoutInterlacing) {
  const ForceLaw law = polynomial_law(4, 3.0 / 8);
  for (const Gradient gradient : kGradients) {
    const auto full = influence_function({8, Assignment::kPcs, gradient, Interlacing::kFull}, law, Influence::kForce);
    const auto none = influence_function({8, Assignment::kPcs, gradient, Interlacing::kNone}, law, Influence::kForce);
    bool others_differ = false;
    for (std::size_t i = 0; i < full.size(); ++i) {
      const bool nyquist = i % 5 == 4 || i / 5 % 5 == 4 || i / 25 == 4;
      if (nyquist)
        EXPECT_NEAR(full[i], none[i], 1e-6 * std::fabs(none[i])) << i;
      else
        others_differ |= std::fabs(full[i] - none[i]) > 1e-4 * std::fabs(none[i]);
    }
    EXPECT_TRUE(others_differ);
  }
}

TEST(ParticleMesh, PotentialIsThatOfThePair) {
  // phi differs between two targets by the work of the exact long-range force along the line between them.
  const double r_cut = 6.0 / 32;
  const ForceLaw law = polynomial_law(6, r_cut);
  constexpr auto at = testing::to_fixed;
  const std::vector<SourceParticle> particles = {{at(0.51), at(0.47), at(0.93), 1.0f},
                                                 {at(0.55), at(0.5), at(0.95), 0.0f},
                                                 {at(0.71), at(0.6), at(1.1), 0.0f}};
  double work = 0;
  constexpr int steps = 400;
  const Vector3 from{0.04, 0.03, 0.02}, to{0.2, 0.13, 0.17};
  for (int s = 0; s < steps; ++s) {
    const double t = (s + 0.5) / steps;
    const Vector3 d{from[0] + t * (to[0] - from[0]), from[1] + t * (to[1] - from[1]), from[2] + t * (to[2] - from[2])};
    const Vector3 a = test::exact_long_range(law, d);
    for (int c = 0; c < 3; ++c) work += a[c] * (to[c] - from[c]) / steps;
  }
  for (Gradient gradient : kGradients)
    for (Interlacing interlacing : kInterlacings) {
      const Field f = long_range({32, Assignment::kPcs, gradient, interlacing}, law, particles);
      EXPECT_NEAR(f.potential[1] - f.potential[2], work, 2e-3 / r_cut);
    }
}

TEST(ParticleMesh, PlaneWaveHasItsKnownForce) {
  // Masses 1 + cos(2 pi x) on a lattice: phi = -4 pi / k^2 W cos, a = -4 pi / k W sin, for unit mean density.
  const int side = 32;
  const double k = 2 * std::numbers::pi;
  std::vector<SourceParticle> particles;
  for (int i = 0; i < side * side * side; ++i) {
    const int c[3] = {i / (side * side), i / side % side, i % side};
    SourceParticle p{static_cast<std::uint32_t>(c[0]) << 27, static_cast<std::uint32_t>(c[1]) << 27,
                     static_cast<std::uint32_t>(c[2]) << 27, 0};
    p.mass = static_cast<float>((1 + 0.5 * std::cos(k * c[0] / side)) / (side * side * side));
    particles.push_back(p);
  }
  const ForceLaw law = polynomial_law(5, 0.15);
  const double w = long_range_window(law, k * 0.15);
  for (Gradient gradient : kGradients)
    for (Interlacing interlacing : kInterlacings) {
      const Field f = long_range({32, Assignment::kPcs, gradient, interlacing}, law, particles);
      for (std::size_t i = 0; i < particles.size(); i += 97) {
        const double x = particles[i].x / kSideToUnits;
        ASSERT_NEAR(f.x[i], -4 * std::numbers::pi / k * 0.5 * w * std::sin(k * x), 2e-4);
        ASSERT_NEAR(f.potential[i], -4 * std::numbers::pi / (k * k) * 0.5 * w * std::cos(k * x), 2e-4);
        ASSERT_NEAR(f.y[i], 0, 2e-5);
        ASSERT_NEAR(f.z[i], 0, 2e-5);
      }
    }
}

double momentum_error(const MeshOptions& options, const std::vector<SourceParticle>& particles) {
  const Field f = long_range(options, polynomial_law(5, 4.5 / options.cells), particles, false);
  double sum[3] = {}, scale = 0;
  for (std::size_t i = 0; i < particles.size(); ++i) {
    const double m = particles[i].mass;
    sum[0] += m * f.x[i], sum[1] += m * f.y[i], sum[2] += m * f.z[i];
    scale += m * std::sqrt(double(f.x[i]) * f.x[i] + double(f.y[i]) * f.y[i] + double(f.z[i]) * f.z[i]);
  }
  return std::sqrt(sum[0] * sum[0] + sum[1] * sum[1] + sum[2] * sum[2]) / scale;
}

// Assignment and interpolation alike, and a gradient that is odd in k: action is reaction. That holds with both ends
// interlaced or neither. Interlacing one of them, or the derivative of the cloud, leaves a small rest.
TEST(ParticleMesh, ConservesMomentum) {
  for (const auto& particles : {testing::random_set(4000, 11, 1), testing::uniform_set(4000, 11)}) {
    for (Gradient gradient : {Gradient::kSpectral, Gradient::kFourPoint})
      for (Interlacing interlacing : {Interlacing::kNone, Interlacing::kFull})
        EXPECT_LT(momentum_error({32, Assignment::kPcs, gradient, interlacing}, particles), 3e-6);
    EXPECT_LT(momentum_error({32, Assignment::kPcs, Gradient::kSpectral, Interlacing::kAssignment}, particles), 1e-4);
    EXPECT_LT(momentum_error({32, Assignment::kPcs, Gradient::kAnalytic, Interlacing::kFull}, particles), 1e-4);
  }
}

// Alone, and as one of three that weighs 1e5 times the others. Left are roundings of the transforms.
TEST(ParticleMesh, AHeavyParticleDoesNotPullItself) {
  constexpr int kCells = 32;
  const double r_cut = 3.0 / kCells;
  const ForceLaw law = polynomial_law(4, r_cut);
  std::mt19937 random(5);
  const auto any = [&] { return static_cast<std::uint32_t>(random()); };
  for (Assignment cloud : {Assignment::kCic, Assignment::kTsc, Assignment::kPcs})
    for (Gradient gradient : kGradients)
      for (Interlacing interlacing : kInterlacings)
        for (int trial = 0; trial < 4; ++trial) {
          std::vector<SourceParticle> particles = {{any(), any(), any(), 1.0f}};
          const std::uint32_t far = 1u << 31;  // where the mesh carries their whole pull, the same from either side
          if (trial > 1) {
            particles.push_back({particles[0].x + far, particles[0].y, particles[0].z, 1e-5f});
            particles.push_back({particles[0].x + far, particles[0].y + far, particles[0].z, 1e-5f});
          }
          const Field f = long_range({kCells, cloud, gradient, interlacing}, law, particles, false);
          EXPECT_LT(std::hypot(f.x[0], f.y[0], f.z[0]) * r_cut * r_cut, 2e-6)
              << static_cast<int>(cloud) << static_cast<int>(gradient) << static_cast<int>(interlacing);
        }
}

// Acceleration of the first particle with a unit of mass that was chosen for a mass of 1e5 (the others': 1), once with
// that mass and once with hardly any: all others pull it alike. Roundings of the transforms would make that 7e-2; left
// are those of the cells' masses.
TEST(ParticleMesh, AHeavyParticleFeelsTheOthersAsALightOneDoes) {
  const Stream& stream = test::test_stream();
  constexpr int kCells = 32;
  const double r_cut = 3.0 / kCells;
  auto particles = testing::random_set(20000, 11, 1);
  DeviceBuffer<SourceParticle> source("test.source");
  test::VectorsOnDevice a(particles.size());
  for (Assignment cloud : {Assignment::kTsc, Assignment::kPcs})
    for (Interlacing interlacing : kInterlacings) {
      ParticleMesh mesh({kCells, cloud, Gradient::kAnalytic, interlacing}, polynomial_law(4, r_cut));
      MassUnit unit;
      const auto first = [&](float mass) {
        particles[0].mass = mass;
        source.upload(stream, particles);
        if (mass > 1) unit = choose_mass_unit(stream, cloud, kCells, source.data(), particles.size());
        mesh.long_range(stream, source.data(), particles.size(), unit, a.view(), nullptr);
        return a.download(stream)[0];
      };
      const auto heavy = first(1e5f), light = first(0.01f);
      for (std::size_t axis = 0; axis < 3; ++axis)
        EXPECT_NEAR(light[axis] * r_cut * r_cut, heavy[axis] * r_cut * r_cut, cloud == Assignment::kPcs ? 8e-3 : 2e-2)
            << static_cast<int>(cloud) << static_cast<int>(interlacing);
    }
}

TEST(ParticleMesh, DoesNotDependOnThreadCountAndKeepsItsMemory) {
  const auto particles = testing::clumped_set(5000, 11, true);
  const Stream& stream = test::test_stream();
  const std::size_t before = pool_report().in_use;
  ParticleMesh mesh({24, Assignment::kPcs, Gradient::kSpectral, Interlacing::kAssignment}, polynomial_law(5, 0.2));
  EXPECT_GT(pool_report().in_use - before, 24u * 24u * 26u * 8u);
  const test::OnDevice source(particles);
  test::VectorsOnDevice a(particles.size());
  std::uint64_t allocations = 0;
  const auto forces = [&] {
    mesh.long_range(stream, source.data(), particles.size(), test::unit_of(mesh, source), a.view(), nullptr);
    if (allocations == 0) allocations = pool_report().system_allocations;
    return a.x.download(stream);
  };
  test::expect_same_for_threads(forces, {3, 3, 1, 2});
  EXPECT_EQ(pool_report().system_allocations, allocations);
}

// Masses never change in a run, so their unit is chosen once; after that nothing goes to the host.
TEST(ParticleMesh, AMassUnitChosenBeforeGivesTheSameBits) {
  for (bool equal : {true, false}) {
    auto particles = testing::clumped_set(3000, 11, equal);
    const Stream& stream = test::test_stream();
    ParticleMesh mesh({24, Assignment::kPcs, Gradient::kAnalytic, Interlacing::kFull}, polynomial_law(5, 0.2));
    test::OnDevice source(particles);
    const MassUnit unit =
        choose_mass_unit(stream, mesh.options().assignment, mesh.options().cells, source.data(), particles.size());
    std::shuffle(particles.begin(), particles.end(), std::mt19937(4));
    for (auto& p : particles) p.x += 0x12345678u;
    source.upload(stream, particles);
    test::VectorsOnDevice a(particles.size()), b(particles.size());
    mesh.long_range(stream, source.data(), particles.size(), test::unit_of(mesh, source), a.view(), nullptr);
    const TransferCounters before = transfer_counters();
    mesh.long_range(stream, source.data(), particles.size(), unit, b.view(), nullptr);
    EXPECT_EQ(transfer_counters().to_host, before.to_host);
    EXPECT_EQ(transfer_counters().to_device, before.to_device);
    EXPECT_EQ(a.download(stream), b.download(stream));
  }
}

TEST(ParticleMesh, RefusesWhatMakesNoSense) {
  const ForceLaw law = polynomial_law(5, 0.1);
  EXPECT_THROW(ParticleMesh({6}, law), Error);
  EXPECT_THROW(ParticleMesh({33}, law), Error);
  EXPECT_THROW(ParticleMesh({8}, law), Error);  // r_cut 0.8 cells
  for (const int cells : {82, 94, 110})         // 1 cell, where a float of 1 / cells is less
    EXPECT_NO_THROW(check_mesh_options({cells}, polynomial_law(4, 1.0 / cells))) << cells;
  EXPECT_THROW(ParticleMesh({32}, make_force_law(Split::kNone, 0, 0, Softening::kPlummer, 1e-3)), Error);
}

// Particles of one mass have no self-force taken off.
TEST(ParticleMesh, AtPointsThatAreItsParticlesItHasTheirForces) {
  const auto particles = testing::clumped_set(2000, 11, true);
  const Stream& stream = test::test_stream();
  test::OnDevice source(particles);
  for (const Gradient gradient : {Gradient::kSpectral, Gradient::kFourPoint, Gradient::kAnalytic}) {
    ParticleMesh mesh({16, Assignment::kPcs, gradient, Interlacing::kFull}, polynomial_law(5, 0.24));
    test::VectorsOnDevice a(particles.size()), b(500);
    DeviceBuffer<float> phi("test.potential", particles.size()), phi_there("test.potential", 500);
    mesh.long_range(stream, source.data(), particles.size(), test::unit_of(mesh, source), a.view(), phi.data());
    mesh.long_range_at(stream, {source.data(), particles.size()}, {source.data() + 100, 500}, b.view(),
                       phi_there.data());
    const auto all = a.y.download(stream), some = b.y.download(stream);
    const auto all_phi = phi.download(stream), some_phi = phi_there.download(stream);
    for (std::size_t i = 0; i < some.size(); ++i) {
      ASSERT_EQ(some[i], all[i + 100]);
      ASSERT_EQ(some_phi[i], all_phi[i + 100]);
    }
  }
}

}  // namespace
}  // namespace maki
