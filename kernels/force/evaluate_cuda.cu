// List evaluation and direct sum on the GPU. A group is a block: the hardware starts a block wherever one has ended,
// which balances uneven lists.
#include "kernels/force/direct_sum.cuh"
#include "kernels/force/evaluate_kernel.cuh"

namespace maki {

using namespace cuda;

void evaluate_lists(const Stream& stream, const ForceLaw& law, bool quadrupoles, const SourceView& sources,
                    const ListView& lists, const ForceOutput& out) {
  const PairParameters k = make_pair_parameters(law);
  with_law(k, out.potential != nullptr, [&](auto pair_law) {
    launch_blocks(stream, "evaluate_lists", {lists.count, kBlock, 0}, evaluate_kernel<decltype(pair_law)>, k,
                  quadrupoles, sources, lists, out);
  });
}

void direct_sum(const Stream& stream, const ForceLaw& law, const DirectSet& set, const ForceOutput& out) {
  const PairParameters k = make_pair_parameters(law);
  with_law(k, out.potential != nullptr, [&](auto pair_law) {
    launch_blocks(stream, "direct_sum", {(set.count + kDirectTargets - 1) / kDirectTargets, kDirectBlock, 0},
                  direct_kernel<decltype(pair_law)>, k, set, out);
  });
}

}  // namespace maki
