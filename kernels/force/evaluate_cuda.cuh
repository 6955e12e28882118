// List evaluation and direct sum on the GPU: which kernel is launched, one being compiled for every split, order and
// softening, with and without the potential. A group is a block: the hardware starts a block wherever one has ended, which balances uneven lists.
#pragma once

#include "kernels/force/direct_sum.cuh"
#include "kernels/force/evaluate_kernel.cuh"

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

inline void evaluate_lists(const Stream& stream, const ForceLaw& law, bool quadrupoles, const SourceView& sources,
                           const ListView& lists, const ForceOutput& out) {
  const PairParameters k = make_pair_parameters(law);
  with_law(k, out.potential != nullptr, [&](auto pair_law) {
    launch_blocks(stream, "evaluate_lists", {lists.count, kBlock, 0}, evaluate_kernel<decltype(pair_law)>, k,
                  quadrupoles, sources, lists, out);
  });
}

inline void direct_sum(const Stream& stream, const ForceLaw& law, const SourceParticle* particles, std::uint32_t n,
                       std::uint32_t first, std::uint32_t count, const ForceOutput& out) {
  const PairParameters k = make_pair_parameters(law);
  with_law(k, out.potential != nullptr, [&](auto pair_law) {
    launch_blocks(stream, "direct_sum", {(count + kDirectTargets - 1) / kDirectTargets, kDirectBlock, 0},
                  direct_kernel<decltype(pair_law)>, k, particles, n, first, count, out);
  });
}

}  // namespace maki::cuda
