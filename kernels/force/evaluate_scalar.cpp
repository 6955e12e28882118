// List evaluation with what every processor has.
#include "kernels/force/evaluate_cpu.hpp"
#include "kernels/force/pair_formula.hpp"

namespace maki::force_scalar {
namespace {
#include "kernels/force/simd_scalar.hpp"  // first: the vectors that the loops are written in

#include "kernels/force/evaluate_cpu.inl"
}  // namespace

const CpuKernels kKernels = {"scalar", centred, evaluate_group, direct, loop};

}  // namespace maki::force_scalar
