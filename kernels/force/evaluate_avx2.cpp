// List evaluation with AVX2 and FMA. Only called where the processor has them.
#if defined(__x86_64__)

#include <immintrin.h>

#include "kernels/force/evaluate_cpu.hpp"
#include "kernels/force/pair_formula.hpp"

namespace maki::force_avx2 {
namespace {
#include "kernels/force/simd_avx2.hpp"  // first: the vectors that the loops are written in

#include "kernels/force/evaluate_cpu.inl"
}  // namespace

const CpuKernels kKernels = {"avx2", centred, evaluate_group, direct, loop};

}  // namespace maki::force_avx2

#endif
