// The pair formula in double for any force law, the laws that the tests go through, and random lists with their forces
// in double.
#pragma once

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "kernels/force/pair_scalar.hpp"
#include "tests/kernels/force/device_lists.hpp"

namespace maki::force_test {

using Real = Scalar<double>;

struct Effect {
  double ax = 0, ay = 0, az = 0, p = 0;
};

// A cell (or with zero moments a particle) at separation (x, y, z), all in the unit of `k`.
struct Cell {
  double mass, xx, yy, zz, xy, xz, yz;
};

template <class Law>
void add_cell_with(const PairParameters& k, double x, double y, double z, const Cell& c, Effect& e) {
  PairSums<Real> sum{Real(e.ax), Real(e.ay), Real(e.az), Real(e.p)};
  const CellTerms<Real> terms{Real(c.mass), Real(c.xx), Real(c.yy), Real(c.zz),
                              Real(c.xy),   Real(c.xz), Real(c.yz), Real(0.5 * (c.xx + c.yy + c.zz))};
  add_cell<Law>(k, Real(x), Real(y), Real(z), terms, sum);
  e = {sum.ax.v, sum.ay.v, sum.az.v, sum.p.v};
}

template <class Law>
void add_point_with(const PairParameters& k, double x, double y, double z, double mass, Effect& e) {
  Real g, p;
  monopole<Law>(k, softened_square<Law>(k, Real(x), Real(y), Real(z)), Real(mass), g, p);
  if (x == 0 && y == 0 && z == 0) p = Real(mass) * own_potential<Law, Real>(k);
  e.ax += g.v * x;
  e.ay += g.v * y;
  e.az += g.v * z;
  e.p += p.v;
}

// Calls f with the PairLaw of `k` with the potential.
template <class F>
void with_law(const PairParameters& k, F f) {
  if (k.softening == Softening::kSpline) return with_split<Softening::kSpline, true>(k, f);
  return with_split<Softening::kPlummer, true>(k, f);
}

inline void add_cell_in_double(const PairParameters& k, double x, double y, double z, const Cell& c, Effect& e) {
  with_law(k, [&](auto law) { add_cell_with<decltype(law)>(k, x, y, z, c, e); });
}

inline void add_point_in_double(const PairParameters& k, double x, double y, double z, double mass, Effect& e) {
  with_law(k, [&](auto law) { add_point_with<decltype(law)>(k, x, y, z, mass, e); });
}

inline std::vector<ForceLaw> laws_for(double r_cut, double softening) {
  std::vector<ForceLaw> laws;
  for (const Softening kind : {Softening::kPlummer, Softening::kSpline}) {
    laws.push_back(make_force_law(Split::kNone, 0, 0, kind, softening));
    laws.push_back(make_force_law(Split::kS2, 0, r_cut, kind, softening));
    for (int n = 1; n <= kMaxSplitOrder; ++n)
      laws.push_back(make_force_law(Split::kPolynomial, n, r_cut, kind, softening));
  }
  return laws;
}

inline std::string name_of(const ForceLaw& law) {
  return std::string(law.split == Split::kNone ? "none"
                     : law.split == Split::kS2 ? "S2"
                                               : "polynomial") +
         " n=" + std::to_string(law.order) + (law.cloud[law.order] == 1 ? "" : " band-limited") +
         (law.softening_kind == Softening::kSpline ? " spline" : " Plummer") + (law.refine_root ? "" : " coarse root");
}

// Random particles, leaves, cells and lists for tests of the list evaluation, and their forces in double.

using RandomSet = HostLists;

// Groups of the given sizes at random places, each with a list of its own leaf, `leaves` near leaves and `cells` cells
// within `reach` sides. Masses are near `mass`; a group's box is 0.1 reach wide.
inline RandomSet random_lists(const std::vector<unsigned>& group_sizes, unsigned leaves, unsigned cells, double reach,
                              double mass, unsigned seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(-0.5, 0.5);
  RandomSet set;
  const auto place = [&](std::uint32_t centre, double width) {
    return centre + static_cast<std::uint32_t>(static_cast<std::int64_t>(uniform(random) * width * kSideToUnits));
  };
  const auto some_mass = [&] { return static_cast<float>(mass * (1.0 + uniform(random))); };
  const auto add_leaf = [&](const std::uint32_t* c, double width, double offset, unsigned count) {
    set.cell_first.push_back(static_cast<std::uint32_t>(set.particles.size()));
    set.cell_count.push_back(count);
    const std::uint32_t middle[3] = {place(c[0], offset), place(c[1], offset), place(c[2], offset)};
    for (unsigned i = 0; i < count; ++i)
      set.particles.push_back({place(middle[0], width), place(middle[1], width), place(middle[2], width), some_mass()});
    const float q = static_cast<float>(mass * width * width);
    set.cells.push_back({middle[0], middle[1], middle[2], some_mass(), q, 2 * q, 0.5f * q, 0.3f * q, -q, 0.7f * q});
    return static_cast<std::uint32_t>(set.cells.size() - 1);
  };
  for (const unsigned size : group_sizes) {
    std::uint32_t c[3];
    for (auto& x : c) x = static_cast<std::uint32_t>(random());
    const double width = 0.1 * reach;
    const std::uint32_t own = add_leaf(c, width, 0, size);
    const float half = static_cast<float>(width);
    set.groups.push_back({set.cell_first[own], size, c[0], c[1], c[2], half, half, half});
    ListRange range{set.words.size(), cells, leaves == 0 ? 0 : leaves + 1};
    for (unsigned i = 0; i < cells; ++i) set.words.push_back(add_leaf(c, 0.1 * width, 2 * reach, 1));
    for (unsigned i = 0; i < leaves; ++i) {
      if (i == leaves / 2) set.words.push_back(own);
      set.words.push_back(add_leaf(c, width, reach, 1 + i % 11));
    }
    set.ranges.push_back(range);
  }
  return set;
}

// The list's effect on particle `target` in mass / side^2 and mass / side, from exact separations, and the sum of the
// sizes of its terms, to measure errors by.
inline Effect expected(const ForceLaw& law, bool quadrupoles, const RandomSet& set, std::size_t group,
                       std::uint32_t target, double& size_a, double& size_p) {
  const PairParameters k = make_pair_parameters(law);
  const SourceParticle& t = set.particles[target];
  Effect sum;
  size_a = size_p = 0;
  const auto away = [&](std::uint32_t to, std::uint32_t from) {
    return signed_difference(to, from) / kSideToUnits / k.unit;
  };
  const auto add = [&](const Effect& e) {
    sum.ax += e.ax, sum.ay += e.ay, sum.az += e.az, sum.p += e.p;
    size_a += std::sqrt(e.ax * e.ax + e.ay * e.ay + e.az * e.az);
    size_p += std::abs(e.p);
  };
  const ListRange& range = set.ranges[group];
  for (std::uint32_t w = 0; w < range.cells + range.leaves; ++w) {
    const std::uint32_t word = set.words[range.begin + w];
    const std::uint32_t first = set.cell_first[word];
    if (w < range.cells) {
      const CellMoments& c = set.cells[word];
      const double u = quadrupoles ? 1 / (double(k.unit) * k.unit) : 0;
      Effect e;
      add_cell_in_double(k, away(c.x, t.x), away(c.y, t.y), away(c.z, t.z),
                         {c.mass, c.qxx * u, c.qyy * u, c.qzz * u, c.qxy * u, c.qxz * u, c.qyz * u}, e);
      add(e);
      continue;
    }
    for (std::uint32_t i = first; i < first + set.cell_count[word]; ++i) {
      const SourceParticle& s = set.particles[i];
      Effect e;
      add_point_in_double(k, away(s.x, t.x), away(s.y, t.y), away(s.z, t.z), s.mass, e);
      add(e);
    }
  }
  const double a = 1 / (double(k.unit) * k.unit);
  size_a *= a;
  size_p /= k.unit;
  return {sum.ax * a, sum.ay * a, sum.az * a, -sum.p / k.unit};
}

}  // namespace maki::force_test
