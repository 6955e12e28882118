#include "kernels/force/evaluate_cuda.cuh"

namespace maki {

void evaluate_lists(const Stream& stream, const ForceLaw& law, bool quadrupoles, const SourceView& sources,
                    const ListView& lists, const ForceOutput& out) {
  cuda::evaluate_lists(stream, law, quadrupoles, sources, lists, out);
}

void direct_sum(const Stream& stream, const ForceLaw& law, const DirectSet& set, const ForceOutput& out) {
  cuda::direct_sum(stream, law, set, out);
}

}  // namespace maki
