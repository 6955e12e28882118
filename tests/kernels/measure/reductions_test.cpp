#include "kernels/measure/reductions.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>

#include "kernels/measure/double_double.hpp"
#include "tests/kernels/particles/sets.hpp"
#include "tests/test_stream.hpp"
#include "tests/threads.hpp"

namespace maki {
namespace {

using testing::upload_vectors;

constexpr int kScale = -80;
double scaled(__int128 value) { return std::ldexp(static_cast<double>(value), kScale); }

// Numbers of 40 bits on 60 places, whose sums integers of 128 bits hold.
struct Terms {
  std::mt19937_64 random{7};
  __int128 integer = 0;
  double value = 0;
  void draw() {
    integer = static_cast<__int128>(static_cast<std::int64_t>(random()) >> 24) << random() % 60;
    value = scaled(integer);
  }
};

TEST(DoubleDouble, SumsAreRightToTheLastBit) {
  Terms terms;
  for (int round = 0; round < 100; ++round) {
    DoubleDouble sum, parts[4];
    __int128 truth = 0;
    for (int i = 0; i < 1000; ++i) {
      terms.draw();
      truth += terms.integer;
      sum = sum + terms.value;
      parts[i % 4] = parts[i % 4] + DoubleDouble(terms.value);
    }
    ASSERT_EQ(sum.value(), scaled(truth));
    ASSERT_EQ(((parts[0] + parts[1]) + (parts[2] + parts[3])).value(), scaled(truth));
  }
}

TEST(DoubleDouble, SurvivesCancellation) {
  Terms terms;
  for (int round = 0; round < 100; ++round) {
    terms.draw();
    const DoubleDouble a(terms.value);
    const DoubleDouble sum = a + 0x1p-80 + DoubleDouble(-terms.value);
    ASSERT_EQ(sum.hi, 0x1p-80);
    ASSERT_EQ(sum.lo, 0);
  }
}

TEST(DoubleDouble, TwoSumLosesNothing) {
  Terms terms;
  for (int round = 0; round < 1000; ++round) {
    terms.draw();
    const __int128 first = terms.integer;
    const double a = terms.value;
    terms.draw();
    const DoubleDouble sum = two_sum(a, terms.value);
    const auto integer = [](double x) { return static_cast<__int128>(std::ldexp(x, -kScale)); };
    ASSERT_EQ(sum.hi, a + terms.value);
    ASSERT_TRUE(integer(sum.hi) + integer(sum.lo) == first + terms.integer);
    ASSERT_EQ(sum.hi + sum.lo, sum.hi);
  }
}

struct Set {
  Particles particles;
  VectorArray near{"test.near"}, far{"test.far"};
  std::vector<std::array<float, 3>> p, a, b;
  std::vector<float> mass;
};

Set random_set(const Stream& stream, std::size_t n) {
  Set set;
  std::mt19937_64 random(7);
  std::normal_distribution<float> normal;
  std::vector<std::array<double, 3>> fractions(n, {0.5, 0.5, 0.5});
  fractions[n / 2] = {0.5, 0.5, 0.125};
  std::vector<std::uint64_t> ids(n, 0);
  set.p.resize(n);
  set.a.resize(n);
  set.b.resize(n);
  for (std::size_t i = 0; i < n; ++i) {
    for (float& v : set.p[i]) v = normal(random);
    for (float& v : set.a[i]) v = normal(random);
    for (float& v : set.b[i]) v = normal(random);
    set.mass.push_back(1 + 0.1f * std::fabs(normal(random)));
  }
  upload_particles(stream, set.particles, fractions, set.p, set.mass, ids);
  upload_vectors(stream, set.a, set.near);
  upload_vectors(stream, set.b, set.far);
  return set;
}

double norm(double x, double y, double z) { return std::sqrt(x * x + y * y + z * z); }

TEST(StepReductions, AgreeWithPlainLoops) {
  const Stream& stream = test::test_stream();
  Set set = random_set(stream, 5000);
  double a_max = 0, p_max = 0, a2 = 0, log_a = 0, p2 = 0, kinetic = 0, force = 0, mass = 0, potential = 0;
  std::array<double, 3> total{}, forces{};
  for (std::size_t i = 0; i < set.p.size(); ++i) {
    const auto &p = set.p[i], &a = set.a[i], &b = set.b[i];
    const double both = norm(double{a[0]} + b[0], double{a[1]} + b[1], double{a[2]} + b[2]);
    const double speed = norm(p[0], p[1], p[2]);
    a_max = std::max(a_max, both);
    p_max = std::max(p_max, speed);
    a2 += both * both / 5000;
    log_a += std::log(both) / 5000;
    p2 += speed * speed / 5000;
    kinetic += 0.5 * set.mass[i] * speed * speed;
    force += set.mass[i] * both;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      total[axis] += double{set.mass[i]} * p[axis];
      forces[axis] += set.mass[i] * (double{a[axis]} + b[axis]);
    }
    mass += set.mass[i];
    potential += 0.5 * set.mass[i] * (double{a[0]} + b[1]);
  }
  const StepMaxima maxima = step_maxima(stream, set.particles, set.near, &set.far);
  EXPECT_NEAR(maxima.acceleration, a_max, 1e-12 * a_max);
  EXPECT_NEAR(maxima.momentum, p_max, 1e-12 * p_max);
  EXPECT_EQ(maxima.reach, std::int64_t{3} << 29);
  EXPECT_EQ(largest_reach(stream, set.particles), std::int64_t{3} << 29);
  const SquareUnits squares = square_units(stream, set.particles, set.near, &set.far, maxima, 5000);
  EXPECT_NEAR(mean_square(squares.acceleration, maxima.acceleration, 5000), a2, 1e-8 * a2);
  EXPECT_NEAR(mean_square(squares.momentum, maxima.momentum, 5000), p2, 1e-8 * p2);
  const double typical = typical_acceleration(static_cast<double>(squares.logarithm) / 5000);
  EXPECT_NEAR(typical, std::exp(log_a), 0.06 * std::exp(log_a));
  EXPECT_NEAR(reference_acceleration({maxima, squares}, 5000), std::min(std::sqrt(a2), 4 * typical), 1e-7);
  EXPECT_NEAR(kinetic_sum(stream, set.particles).value(), kinetic, 1e-12 * kinetic);
  const EnergySums energy = energy_sums(stream, set.particles, set.near.x, &set.far.y);
  EXPECT_NEAR(energy.kinetic.value(), kinetic, 1e-12 * kinetic);
  EXPECT_NEAR(energy.potential.value(), potential, 1e-9);
  EXPECT_NEAR(energy.mass.value(), mass, 1e-12 * mass);
  const MomentumSums sums = momentum_sums(stream, set.particles, set.near, &set.far);
  EXPECT_NEAR(sums.force_scale.value(), force, 1e-12 * force);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    EXPECT_NEAR(sums.momentum[axis].value(), total[axis], 1e-9);
    EXPECT_NEAR(sums.force[axis].value(), forces[axis], 1e-9);
  }
}

TEST(StepReductions, MeasuresOfOneWaitAreThoseOfTwo) {
  const Stream& stream = test::test_stream();
  for (const std::size_t n : {std::size_t{1}, std::size_t{5000}}) {
    Set set = random_set(stream, n);
    const StepMaxima maxima = step_maxima(stream, set.particles, set.near, &set.far);
    const SquareUnits squares = square_units(stream, set.particles, set.near, &set.far, maxima, n);
    const std::uint64_t waits = transfer_counters().waits;
    const StepMeasures both = step_measures(stream, set.particles, set.near, &set.far);
    EXPECT_EQ(transfer_counters().waits, waits + 1);
    EXPECT_EQ(both.maxima, maxima);
    EXPECT_EQ(both.squares, squares);
  }
}

TEST(StepReductions, MeasuresOfASetAtRestAndOfOneThatIsNoNumber) {
  const Stream& stream = test::test_stream();
  Set set = random_set(stream, 100);
  set.particles.momentum.fill_zero(stream);
  EXPECT_EQ(step_measures(stream, set.particles, set.near, &set.far).squares.momentum, 0u);
  const float bad = NAN;
  copy_to_device(stream, set.particles.momentum.y.data() + 42, &bad, sizeof bad);
  copy_to_device(stream, set.near.y.data() + 33, &bad, sizeof bad);
  const StepMeasures measures = step_measures(stream, set.particles, set.near, nullptr);
  EXPECT_TRUE(std::isnan(measures.maxima.momentum));
  EXPECT_TRUE(std::isnan(measures.maxima.acceleration));
  EXPECT_EQ(measures.squares.momentum, 0u);
}

// To the last bit, in any order; the step is chosen from these.
TEST(StepReductions, DoNotDependOnTheThreadCount) {
  const Stream& stream = test::test_stream();
  Set set = random_set(stream, 100003);
  const auto bits = [](double value) { return std::bit_cast<std::uint64_t>(value); };
  const auto values = [&] {
    const StepMaxima maxima = step_maxima(stream, set.particles, set.near, &set.far);
    const SquareUnits squares = square_units(stream, set.particles, set.near, &set.far, maxima, 100003);
    const MomentumSums sums = momentum_sums(stream, set.particles, set.near, &set.far);
    std::vector<std::uint64_t> all{bits(kinetic_sum(stream, set.particles).value()), bits(maxima.acceleration),
                                   bits(maxima.momentum), squares.acceleration, squares.momentum};
    for (std::size_t axis = 0; axis < 3; ++axis)
      all.insert(all.end(), {bits(sums.momentum[axis].value()), bits(sums.force[axis].value())});
    return all;
  };
  test::expect_same_for_threads(values, {1, 2, 3, 7});
}

}  // namespace
}  // namespace maki
