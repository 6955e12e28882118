// From a law chosen at run time to the one that a kernel is compiled for: every split, order and softening, with and
// without the potential.
#pragma once

#include "kernels/force/pair_formula.hpp"

namespace maki::cuda {

// Calls f with the PairLaw of k.
template <Softening kSoftening, bool kPotential, class F>
void with_split(const PairParameters& k, F f) {
  if (k.split == Split::kNone) return f(PairLaw<Split::kNone, 0, kSoftening, kPotential, true>{});
  if (k.split == Split::kS2) return f(PairLaw<Split::kS2, 0, kSoftening, kPotential, true>{});
  switch (k.order) {
    case 3: return f(PairLaw<Split::kPolynomial, 3, kSoftening, kPotential, true>{});
    case 4: return f(PairLaw<Split::kPolynomial, 4, kSoftening, kPotential, true>{});
    case 5: return f(PairLaw<Split::kPolynomial, 5, kSoftening, kPotential, true>{});
    case 6: return f(PairLaw<Split::kPolynomial, 6, kSoftening, kPotential, true>{});
    default: return f(PairLaw<Split::kPolynomial, 8, kSoftening, kPotential, true>{});
  }
}

template <class F>
void with_law(const PairParameters& k, bool potential, F f) {
  if (k.softening == Softening::kSpline)
    return potential ? with_split<Softening::kSpline, true>(k, f) : with_split<Softening::kSpline, false>(k, f);
  return potential ? with_split<Softening::kPlummer, true>(k, f) : with_split<Softening::kPlummer, false>(k, f);
}

}  // namespace maki::cuda
