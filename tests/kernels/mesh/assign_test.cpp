#include "kernels/mesh/assign.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include "kernels/device/buffer.hpp"
#include "kernels/device/fft.hpp"
#include "kernels/device/instruction_set.hpp"
#include "kernels/error.hpp"
#include "kernels/mesh/cloud.hpp"
#include "tests/kernels/mesh/mesh_sets.hpp"
#include "tests/kernels/particles/sets.hpp"
#include "tests/on_device.hpp"
#include "tests/test_stream.hpp"
#include "tests/threads.hpp"

namespace maki {
namespace {

using test::counts_by_the_book, test::kClouds;

// Of those that the processor has; on a GPU once.
template <class Test>
void with_each_instruction_set(Test test) {
  const InstructionSet best = instruction_set();
#if defined(MAKI_BACKEND_CUDA)
  const auto sets = {best};
#else
  const auto sets = {InstructionSet::kScalar, InstructionSet::kAvx2, InstructionSet::kAvx512};
#endif
  for (const InstructionSet set : sets) {
    SCOPED_TRACE(name_of(set));
    if (use_instruction_set(set)) test();
  }
  use_instruction_set(best);
}

// Of m^3 cells each, without padding.
struct Meshes {
  MassUnit unit;
  std::vector<float> mesh, shifted;
};

std::vector<float> cells_of(const RealFft3d& fft, const DeviceBuffer<float>& mesh) {
  const std::vector<float> all = mesh.download(test::test_stream());
  const auto m = static_cast<std::size_t>(fft.cells());
  std::vector<float> cells;
  for (std::size_t row = 0; row < m * m; ++row) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>((row / m * fft.lines() + row % m) * fft.row());
    cells.insert(cells.end(), first, first + fft.cells());
  }
  return cells;
}

Meshes assign_both(Assignment cloud, int m, const std::vector<SourceParticle>& particles, int mass_bits = 0) {
  const Stream& stream = test::test_stream();
  RealFft3d fft(m);
  MassAssigner assigner(cloud, fft);
  const test::OnDevice source(particles);
  DeviceBuffer<float> mesh("test.mesh", fft.size()), shifted("test.shifted", fft.size());
  Meshes out;
  out.unit = choose_mass_unit(stream, cloud, m, source.data(), particles.size(), mass_bits);
  for (int pass = 0; pass < 2; ++pass)  // the second finds the work space as the first left it
    assigner.assign(stream, source.data(), particles.size(), out.unit, mesh.data(), shifted.data());
  out.mesh = cells_of(fft, mesh);
  out.shifted = cells_of(fft, shifted);
  return out;
}

void expect_mesh(const std::vector<std::int64_t>& counts, const std::vector<float>& mesh, int m, const MassUnit& unit) {
  int wrong = 0;
  for (int row = 0; row < m * m; ++row)
    for (int z = 0; z < m; ++z) {
      const auto sum = static_cast<std::int64_t>(unit.rounded(static_cast<std::uint64_t>(counts[row * m + z])));
      const float expected = static_cast<float>(sum - unit.mean) * static_cast<float>(unit.quantum);
      wrong += mesh[row * m + z] != expected;
    }
  EXPECT_EQ(wrong, 0) << "of " << m * m * m << " cells";
}

double spline(int order, double x) {
  x = std::abs(x);
  if (order == 2) return x < 1 ? 1 - x : 0;
  if (order == 3) return x < 0.5 ? 0.75 - x * x : x < 1.5 ? 0.5 * (1.5 - x) * (1.5 - x) : 0;
  return x < 1 ? (4 - 6 * x * x + 3 * x * x * x) / 6 : x < 2 ? std::pow(2 - x, 3) / 6 : 0;
}

template <int S>
void check_weights(int bits) {
  std::mt19937 random(7);
  const double scale = std::exp2(bits);
  const std::uint32_t m = 50;
  for (int trial = 0; trial < 20000; ++trial) {
    const std::uint32_t p = trial == 0 ? 0u : trial == 1 ? ~0u : static_cast<std::uint32_t>(random());
    for (std::uint32_t half_cells : {0u, 1u}) {
      const MeshPosition u = mesh_position<S>(p, m, half_cells);
      std::uint32_t w[S], sum = 0;
      float f[S];
      integer_weights<S>(u.fraction, bits, w);
      float_weights<S>(u.fraction, f);
      const double at = p * std::exp2(-32) * m + 0.5 * half_cells;
      for (int i = 0; i < S; ++i) {
        const double expected = spline(S, u.first + i - at);
        sum += w[i];
        const bool is_rest = S == 4 ? i == 1 || i == 2 : i == kRestCell<S>;
        ASSERT_NEAR(w[i], expected * scale, is_rest ? 2.1 : 1.05 + scale * 3.1e-5) << at;
        ASSERT_NEAR(f[i], expected, 2e-7) << at;
      }
      ASSERT_EQ(sum, 1u << bits);
    }
  }
}

TEST(CloudWeights, AreSplinesAndSumExactly) {
  for (int bits : {10, 13, 15}) {
    check_weights<2>(bits);
    check_weights<3>(bits);
    check_weights<4>(bits);
  }
}

template <int S>
void check_mirror(int bits) {
  std::uint32_t w[S], mirrored[S];
  for (std::uint32_t t = 1; t < 1u << 14; ++t) {
    integer_weights<S>(t << 17, bits, w);
    integer_weights<S>(((1u << 15) - t) << 17, bits, mirrored);
    for (int i = 0; i < S; ++i) ASSERT_EQ(w[i], mirrored[S - 1 - i]) << t << " of 2^15, " << bits << " bits";
  }
}

TEST(CloudWeights, AreMirroredWherePositionsAre) {
  for (int bits : {10, 13, 15}) {
    check_mirror<3>(bits);
    check_mirror<4>(bits);
  }
}

// Of shares and of sums, by all instruction sets.
TEST(MassAssigner, RoundsAsThePlainLoopDoes) {
  with_each_instruction_set([] {
    for (Assignment cloud : kClouds)
      for (bool equal : {true, false}) {
        const auto particles = testing::clumped_set(900, 1, equal);
        const Meshes got = assign_both(cloud, 16, particles, 9);
        EXPECT_GT(got.unit.shed_bits, 0);
        EXPECT_GT(got.unit.dropped_bits, got.unit.shed_bits);
        expect_mesh(counts_by_the_book(cloud, particles, 16, 0, got.unit), got.mesh, 16, got.unit);
        expect_mesh(counts_by_the_book(cloud, particles, 16, 1, got.unit), got.shifted, 16, got.unit);
      }
  });
}

TEST(MassAssigner, GivesTheCountsOfThePlainLoop) {
  for (int m : {8, 10, 30, 46, 64})
    for (Assignment cloud : kClouds)
      for (bool equal : {true, false}) {
        SCOPED_TRACE(::testing::Message() << m << " cells, cloud " << static_cast<int>(cloud) << ", equal " << equal);
        const auto particles = testing::clumped_set(3001, 1, equal);
        const Meshes got = assign_both(cloud, m, particles);
        expect_mesh(counts_by_the_book(cloud, particles, m, 0, got.unit), got.mesh, m, got.unit);
        expect_mesh(counts_by_the_book(cloud, particles, m, 1, got.unit), got.shifted, m, got.unit);
      }
}

TEST(MassAssigner, CountsHoldTheWholeMass) {
  for (bool equal : {true, false}) {
    const auto particles = testing::clumped_set(2000, 1, equal);
    const Meshes got = assign_both(Assignment::kPcs, 16, particles);
    double mass = 0;
    std::int64_t units = 0, counts = 0;
    for (const auto& p : particles) {
      mass += p.mass;
      units += units_of(p.mass, got.unit.equal_units, got.unit.units_per_mass);
    }
    for (std::int64_t c : counts_by_the_book(Assignment::kPcs, particles, 16, 0, got.unit)) counts += c;
    EXPECT_EQ(counts, units << got.unit.bits);
    EXPECT_NEAR(static_cast<double>(counts) * got.unit.quantum, mass, 1e-6 * mass);
    EXPECT_LT(got.unit.largest_cell, 9.2233720368547758e18);
  }
}

// Sets too large for a test: 10^11 particles on 4096^3 cells, of one mass, and of two that are 5.4 apart, whose units do
// not fit into 64 bits.
TEST(MassAssigner, UnitsOfLargeSetsKeepTheirBits) {
  const std::uint64_t n = 100'000'000'000;
  MassTotals alike{n, {1e-11f, 1e-11f}, {}, 0}, two{n, {1e-12f, 5.4e-12f}, {}, n / 2};
  const double finest = std::exp2(29 - std::ilogb(5.4e-12f));
  for (int part = 0; part < 64; ++part)
    two.finest_units.add(
        UnitSum(n / 128 * (static_cast<std::uint64_t>(5.4e-12 * finest) + static_cast<std::uint64_t>(1e-12 * finest))));
  for (const MassTotals& totals : {alike, two}) {
    const MassUnit unit = choose_mass_unit(Assignment::kPcs, 4096, totals);
    EXPECT_EQ(unit.bits, 12);
    EXPECT_LT(unit.largest_cell, 0x1p63);
    const double mean = totals.range.smallest == totals.range.largest ? 1e-11 : 3.2e-12;
    EXPECT_NEAR(unit.mean_mass / mean, 1, 1e-3);
    EXPECT_NEAR(static_cast<double>(unit.mean) * unit.quantum * 0x1p36 / (static_cast<double>(n) * mean), 1, 1e-3);
  }
}

TEST(MassAssigner, DoesNotDependOnOrderThreadsOrInstructionSet) {
  for (bool equal : {true, false}) {
    auto particles = testing::clumped_set(20000, 1, equal);
    const auto meshes = [&] {
      const Meshes both = assign_both(Assignment::kPcs, 48, particles);
      return std::pair(both.mesh, both.shifted);
    };
    const auto first = meshes();
    std::shuffle(particles.begin(), particles.end(), std::mt19937(3));
    test::expect_same_for_threads(meshes, {1, 3});
    with_each_instruction_set([&] { EXPECT_TRUE(meshes() == first); });
  }
}

// OpenMP gives fewer threads than asked for where a limit or OMP_DYNAMIC says so, and in a parallel region.
TEST(MassAssigner, TakesAnyNumberOfThreadsThatItGets) {
  const auto particles = testing::clumped_set(20000, 1, false);
  const Meshes whole = assign_both(Assignment::kPcs, 48, particles);
  Meshes within;
#pragma omp parallel num_threads(2)
#pragma omp single
  within = assign_both(Assignment::kPcs, 48, particles);
  EXPECT_EQ(whole.mesh, within.mesh);
  EXPECT_EQ(whole.shifted, within.shifted);
}

TEST(MassAssigner, HoldsAllParticlesInOnePlace) {
  const std::vector<SourceParticle> particles(100000, SourceParticle{0x7fffffffu, 5u, 0xffffff00u, 2.5f});
  const Meshes got = assign_both(Assignment::kTsc, 8, particles);
  const auto counts = counts_by_the_book(Assignment::kTsc, particles, 8, 0, got.unit);
  expect_mesh(counts, got.mesh, 8, got.unit);
  EXPECT_GE(*std::min_element(counts.begin(), counts.end()), 0);
}

TEST(MassUnit, StatesItsBound) {
  const Stream& stream = test::test_stream();
  const auto particles = testing::clumped_set(1000, 1, true);
  const test::OnDevice source(particles);
  const MassUnit unit = choose_mass_unit(stream, Assignment::kPcs, 256, source.data(), particles.size());
  EXPECT_EQ(unit.bits, 15);
  EXPECT_EQ(unit.equal_units, 1u << 30);
  EXPECT_NEAR(unit.quantum * std::exp2(45), 0.37, 1e-7);
}

TEST(MassUnit, TakesMasslessParticlesAndRefusesImpossibleMasses) {
  const Stream& stream = test::test_stream();
  const auto unit_for = [&](std::vector<float> masses) {
    std::vector<SourceParticle> particles;
    for (float m : masses) particles.push_back({1u, 2u, 3u, m});
    const test::OnDevice source(particles);
    return choose_mass_unit(stream, Assignment::kPcs, 16, source.data(), particles.size());
  };
  EXPECT_EQ(unit_for({1.0f, 0.0f}).equal_units, 0u);
  EXPECT_NO_THROW(unit_for({0.0f, 0.0f}));
  EXPECT_NO_THROW(unit_for({1e10f, 1e4f, 3e3f}));
  EXPECT_THROW(unit_for({1.0f, -1.0f}), Error);
  EXPECT_THROW(unit_for({1.0f, NAN}), Error);
  EXPECT_THROW(unit_for({1.0f, INFINITY}), Error);
  EXPECT_THROW(unit_for({1.0f, 1e-12f}), Error);
}

}  // namespace
}  // namespace maki
