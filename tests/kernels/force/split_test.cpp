#include "kernels/force/split.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "kernels/error.hpp"
#include "kernels/force/pair_formula.hpp"
#include "tests/kernels/force/random_lists.hpp"

namespace maki::force_test {
namespace {

// Those that all tests go through, and band-limited ones.
std::vector<ForceLaw> all_laws(double softening) {
  std::vector<ForceLaw> laws = laws_for(0.1, softening);
  for (const Softening kind : {Softening::kPlummer, Softening::kSpline})
    for (int n = 1; n <= kMaxSplitOrder; ++n)
      laws.push_back(make_force_law(Split::kPolynomial, n, 0.1, kind, softening, 3.0));
  return laws;
}

// Of the cloud (1 - x^2)^n; its mass ends at the cutoff (ForceAndPotentialEndAtTheCutoff).
TEST(Split, CoefficientsFollowTheBinomialFormula) {
  for (int n = 1; n <= kMaxSplitOrder; ++n) {
    const ForceLaw law = make_force_law(Split::kPolynomial, n, 0.1, Softening::kSpline, 1e-4);
    const double normalisation = law.force[0] * 3;  // c_0 = 1 / (3 sum), so 1 / sum
    double binomial = 1;
    for (int j = 0; j <= n; ++j) {
      EXPECT_NEAR(law.force[j], normalisation * binomial * (j % 2 ? -1 : 1) / (2 * j + 3), 1e-6 * normalisation);
      binomial = binomial * (n - j) / (j + 1);
    }
    EXPECT_EQ(law.adjustment, 0);
  }
}

double power_beyond(const ForceLaw& law, double x) {
  double sum = 0;
  for (const double end = x + 100; x < end; x += 0.02) sum += 0.02 * std::pow(long_range_window(law, x), 2);
  return sum;
}

TEST(Split, BandLimitedCloudsLeaveTheLeastPowerBeyondTheMesh) {
  for (int n = 3; n <= 6; ++n) {
    const double cells = 0.7 * n, first = 1.1 * M_PI * cells;
    const ForceLaw plain = make_force_law(Split::kPolynomial, n, 0.1, Softening::kSpline, 1e-4);
    ForceLaw law = make_force_law(Split::kPolynomial, n, 0.1, Softening::kSpline, 1e-4, cells);
    const double least = power_beyond(law, first);
    EXPECT_LT(least, 0.2 * power_beyond(plain, first)) << n;
    for (int m = 0; m < n; ++m) {
      for (const double change : {-0.02, 0.02}) {
        ForceLaw other = law;
        other.cloud[m] += change;
        other.cloud[n] -= change;
        EXPECT_GT(power_beyond(other, first), least) << n << " " << m;
      }
    }
    double sum = 0;
    for (const double share : law.cloud) sum += share;
    EXPECT_EQ(sum, 1);
  }
}

TEST(Split, FewCellsTakeLowDegrees) {
  for (const double cells : {1.0, 2.0, 3.0, 12.0}) {
    const ForceLaw law = make_force_law(Split::kPolynomial, 8, 0.1, Softening::kSpline, 1e-4, cells);
    double largest = 0;
    for (const double share : law.cloud) largest = std::max(largest, std::abs(share));
    EXPECT_LT(largest, 8) << cells;
  }
}

TEST(Split, SofteningCanChange) {
  for (const ForceLaw& law : all_laws(0.003)) {
    const ForceLaw changed = with_softening(law, 0.002);
    const bool plain = law.split != Split::kPolynomial || law.cloud[law.order] == 1;
    const ForceLaw made = make_force_law(law.split, law.order, law.r_cut, law.softening_kind, 0.002, plain ? 0 : 3.0);
    EXPECT_EQ(changed.softening, made.softening);
    EXPECT_EQ(changed.force, made.force) << name_of(law);
    EXPECT_EQ(changed.potential, made.potential) << name_of(law);
  }
  EXPECT_THROW(with_softening(all_laws(0.003)[1], 0.2), Error);
}

TEST(Split, PotentialIsTheIntegralOfTheForce) {
  for (const ForceLaw& law : all_laws(0.003)) {
    for (double r = 0.0005; r < 0.099; r *= 1.13) {
      const double h = 1e-5 * r;
      const double above = potential_factor(law, (r + h) * (r + h)), below = potential_factor(law, (r - h) * (r - h));
      const double slope = (above - below) / (2 * h);
      EXPECT_NEAR(slope, -force_factor(law, r * r) * r, 1e-6 * (1 / (r * r))) << name_of(law) << " r=" << r;
    }
  }
}

TEST(Split, ForceAndPotentialEndAtTheCutoff) {
  for (const ForceLaw& law : all_laws(0.003)) {
    if (law.split == Split::kNone) continue;
    const double r_cut = law.r_cut, inside = r_cut * (1 - 1e-7);
    EXPECT_EQ(force_factor(law, r_cut * r_cut), 0) << name_of(law);
    EXPECT_EQ(potential_factor(law, r_cut * r_cut), 0) << name_of(law);
    EXPECT_NEAR(force_factor(law, inside * inside) * std::pow(r_cut, 3), 0, 1e-6) << name_of(law);
    EXPECT_NEAR(potential_factor(law, inside * inside) * r_cut, 0, 1e-6) << name_of(law);
  }
}

TEST(Split, SmallDistancesFeelOnlyTheSoftenedNewton) {
  for (const ForceLaw& law : all_laws(1e-5)) {
    const double r = 2.9e-5, eps = law.softening;
    const double s = law.softening_kind == Softening::kSpline ? r : std::hypot(r, eps);
    const double newton = std::pow(s, -3);
    EXPECT_NEAR(force_factor(law, r * r) / newton, 1, 1e-8) << name_of(law);
  }
}

TEST(Split, SplineJoinsNewtonAtItsSupport) {
  const ForceLaw law = make_force_law(Split::kNone, 0, 0, Softening::kSpline, 0.01);
  const double h = kSplineSupport * law.softening;
  for (const double q : {0.5, 1.0}) {
    const double below = q * h * (1 - 1e-9), above = q * h * (1 + 1e-9);
    EXPECT_NEAR(force_factor(law, below * below) / force_factor(law, above * above), 1, 1e-7);
    EXPECT_NEAR(potential_factor(law, below * below) / potential_factor(law, above * above), 1, 1e-7);
  }
  EXPECT_NEAR(potential_factor(law, 0) * law.softening, 1, 1e-6);  // the same depth as Plummer's
}

TEST(Split, AdjustmentIsThePlummerJump) {
  const ForceLaw law = make_force_law(Split::kPolynomial, 5, 0.1, Softening::kPlummer, 0.002);
  EXPECT_NEAR(law.adjustment, 1.5 * 0.02 * 0.02, 0.02 * 0.02 * 0.02);
}

// The long-range force of a pair is M(r) / r^2 with M the mass of the cloud inside r; the transform of the cloud is
// M(r_cut) sinc(k r_cut) - integral of M(r) d sinc(k r) / dr.
TEST(Split, WindowIsTheTransformOfTheLongRangeForce) {
  for (const ForceLaw& law : all_laws(1e-5)) {
    if (law.split == Split::kNone || law.softening_kind != Softening::kSpline) continue;
    for (const double x : {0.01, 0.5, 0.99, 1.01, 3.0, 7.7, 12.0}) {
      const double k = x / law.r_cut;
      const int steps = 20000;
      double sum = 0;
      for (int i = 0; i < steps; ++i) {
        const double r = law.r_cut * (i + 0.5) / steps, y = k * r;
        const double mass = 1 - force_factor(law, r * r) * r * r * r;
        const double slope = y < 1e-3 ? -y / 3 : (y * std::cos(y) - std::sin(y)) / (y * y);
        if (r > kSplineSupport * law.softening) sum -= mass * slope * k * law.r_cut / steps;
      }
      EXPECT_NEAR(long_range_window(law, x), sum + std::sin(x) / x, 2e-7) << name_of(law) << " x=" << x;
    }
    EXPECT_DOUBLE_EQ(long_range_window(law, 0), 1);
  }
}

TEST(Split, PotentialIntegralAgreesWithSummation) {
  for (const double softening : {0.003, 1e-6})
    for (const ForceLaw& law : all_laws(softening)) {
      const int steps = 200000;
      double sum = 0;
      for (int i = 0; i < steps; ++i) {
        const double r = law.r_cut * (i + 0.5) / steps;
        sum += 4 * M_PI * r * r * potential_factor(law, r * r) * law.r_cut / steps;
      }
      EXPECT_NEAR(potential_integral(law), sum, 1e-7 * (sum + 1e-9)) << name_of(law) << " " << softening;
    }
}

TEST(Split, RefusesWhatItCannotDo) {
  EXPECT_THROW(make_force_law(Split::kPolynomial, 0, 0.1, Softening::kPlummer, 1e-3), Error);
  EXPECT_THROW(make_force_law(Split::kPolynomial, kMaxSplitOrder + 1, 0.1, Softening::kPlummer, 1e-3), Error);
  EXPECT_THROW(make_force_law(Split::kPolynomial, 5, 0.5, Softening::kPlummer, 1e-3), Error);
  EXPECT_THROW(make_force_law(Split::kS2, 0, 0, Softening::kPlummer, 1e-3), Error);
  EXPECT_THROW(make_force_law(Split::kNone, 0, 0, Softening::kPlummer, 0), Error);
  EXPECT_THROW(make_force_law(Split::kPolynomial, 5, 0.01, Softening::kSpline, 0.004), Error);
}

constexpr double kRCut = 0.0137;

TEST(PairFormula, MonopoleIsTheLaw) {
  for (const ForceLaw& law : laws_for(kRCut, 0.0004)) {
    const PairParameters k = make_pair_parameters(law);
    for (double r = 1e-5; r < 0.016; r *= 1.07) {
      Effect e;
      const double x = 0.36 * r / k.unit, y = -0.48 * r / k.unit, z = 0.8 * r / k.unit;
      add_point_in_double(k, x, y, z, 3.0, e);
      const double a = (0.36 * e.ax - 0.48 * e.ay + 0.8 * e.az) / (k.unit * k.unit);  // towards the source
      // Float coefficients: errors are a share of Newton's force and potential at the cutoff, or here.
      const double least = std::max(r, 4e-4);
      EXPECT_NEAR(a / 3, force_factor(law, r * r) * r, 3e-6 / (least * least)) << name_of(law) << " r=" << r;
      EXPECT_NEAR(e.p / k.unit / 3, potential_factor(law, r * r), 1e-6 / least) << name_of(law) << " r=" << r;
    }
  }
}

// Beyond r_cut there is nothing, however far: to the last bit, in float too.
TEST(PairFormula, NothingBeyondTheCutoff) {
  for (const ForceLaw& law : laws_for(kRCut, 0.0004)) {
    if (law.split == Split::kNone) continue;
    const PairParameters k = make_pair_parameters(law);
    with_law(k, [&](auto pair_law) {
      using Law = decltype(pair_law);
      using Float = Scalar<float>;
      for (float r = 1.000001f * law.r_cut; r < 0.5f; r *= 1.02f) {
        const Float x(0), y(r / k.unit), zero(0);
        Float g, p;
        monopole<Law>(k, softened_square<Law>(k, x, y, zero), Float(7), g, p);
        EXPECT_EQ(g.v, 0.0f);
        EXPECT_EQ(p.v, 0.0f);
        PairSums<Float> sum;
        const CellTerms<Float> c{Float(7), Float(1), Float(2), Float(3), Float(4), Float(5), Float(6), Float(3)};
        add_cell<Law>(k, x, y, zero, c, sum);
        EXPECT_EQ(sum.ax.v, 0.0f) << name_of(law) << " r=" << r;
        EXPECT_EQ(sum.ay.v, 0.0f) << name_of(law) << " r=" << r;
        EXPECT_EQ(sum.p.v, 0.0f) << name_of(law) << " r=" << r;
      }
    });
  }
}

// A cell's terms are the second-order ones of a cloud of points that is symmetric about its centre.
TEST(PairFormula, QuadrupoleIsThatOfAPointCloud) {
  const double d[3][3] = {{0.7, 0.2, -0.4}, {-0.1, 0.9, 0.3}, {0.5, -0.6, 0.8}};
  for (const ForceLaw& law : laws_for(kRCut, 0.0004)) {
    const PairParameters k = make_pair_parameters(law);
    for (const double r : {0.00012, 0.0003, 0.00075, 0.002, 0.0065, 0.0075, 0.0102, 0.0133}) {
      const double x = 0.36 * r / k.unit, y = -0.48 * r / k.unit, z = 0.8 * r / k.unit;
      const double size = 3e-4 * r / k.unit;
      Cell cell{};
      Effect points, point, whole;
      for (const auto& axis : d) {
        const double m = 2.5, dx = size * axis[0], dy = size * axis[1], dz = size * axis[2];
        add_point_in_double(k, x + dx, y + dy, z + dz, 0.5 * m, points);
        add_point_in_double(k, x - dx, y - dy, z - dz, 0.5 * m, points);
        cell.mass += m;
        cell.xx += m * dx * dx, cell.yy += m * dy * dy, cell.zz += m * dz * dz;
        cell.xy += m * dx * dy, cell.xz += m * dx * dz, cell.yz += m * dy * dz;
      }
      add_point_in_double(k, x, y, z, cell.mass, point);
      add_cell_in_double(k, x, y, z, cell, whole);
      const double s2 = r * r + std::pow(law.softening, 2), s = std::sqrt(s2) / k.unit;
      const double scale = cell.mass * size * size / (s * s * s * s);
      const std::string where = name_of(law) + " r=" + std::to_string(r);
      EXPECT_NEAR((whole.ax - point.ax) / scale, (points.ax - point.ax) / scale, 2e-5) << where;
      EXPECT_NEAR((whole.ay - point.ay) / scale, (points.ay - point.ay) / scale, 2e-5) << where;
      EXPECT_NEAR((whole.az - point.az) / scale, (points.az - point.az) / scale, 2e-5) << where;
      EXPECT_NEAR((whole.p - point.p) / scale / s, (points.p - point.p) / scale / s, 2e-5) << where;
    }
  }
}

TEST(PairFormula, OwnTermKeepsTheSmoothPart) {
  for (const ForceLaw& law : laws_for(kRCut, 1e-6)) {
    const PairParameters k = make_pair_parameters(law);
    Effect e;
    add_point_in_double(k, 0, 0, 0, 1.0, e);
    const double r = 1e-4;  // far outside the softening, deep inside r_cut
    const double s = law.softening_kind == Softening::kSpline ? r : std::hypot(r, law.softening);
    EXPECT_NEAR(e.p / k.unit * law.r_cut, (potential_factor(law, r * r) - 1 / s) * law.r_cut, 1e-3) << name_of(law);
  }
}

}  // namespace
}  // namespace maki::force_test
