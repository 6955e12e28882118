#include "kernels/force/pair_formula.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/force/laws.hpp"

namespace maki::force_test {
namespace {

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
