// List evaluation with what every processor has.
#include "kernels/force/evaluate_cpu.hpp"
#include "kernels/force/pair_formula.hpp"

namespace maki::force_scalar {
namespace {
#include "kernels/force/evaluate_cpu.inl"
#include "kernels/force/simd_scalar.hpp"
}  // namespace

const CpuKernels kKernels = {"scalar", evaluate_group, direct, loop};

}  // namespace maki::force_scalar
