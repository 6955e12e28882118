// The pair formula in double for any force law, and the laws that the tests go through.
#pragma once

#include <string>
#include <vector>

#include "kernels/force/pair_scalar.hpp"

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

// Calls f with the PairLaw (potential on, exact root) of `k`.
template <Softening kSoftening, class F>
void with_softening(const PairParameters& k, F f) {
  if (k.split == Split::kNone) return f(PairLaw<Split::kNone, 0, kSoftening, true, true>{});
  if (k.split == Split::kS2) return f(PairLaw<Split::kS2, 0, kSoftening, true, true>{});
  if (k.order == 3) return f(PairLaw<Split::kPolynomial, 3, kSoftening, true, true>{});
  if (k.order == 4) return f(PairLaw<Split::kPolynomial, 4, kSoftening, true, true>{});
  if (k.order == 5) return f(PairLaw<Split::kPolynomial, 5, kSoftening, true, true>{});
  if (k.order == 6) return f(PairLaw<Split::kPolynomial, 6, kSoftening, true, true>{});
  return f(PairLaw<Split::kPolynomial, 8, kSoftening, true, true>{});
}

template <class F>
void with_law(const PairParameters& k, F f) {
  if (k.softening == Softening::kSpline) return with_softening<Softening::kSpline>(k, f);
  return with_softening<Softening::kPlummer>(k, f);
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
         " n=" + std::to_string(law.order) + (law.softening_kind == Softening::kSpline ? " spline" : " Plummer") +
         (law.refine_root ? "" : " coarse root");
}

}  // namespace maki::force_test
