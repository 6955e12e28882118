// List evaluation with AVX-512 (F, VL, DQ, BW). Only called where the processor has it.
#if defined(__x86_64__)

#include <immintrin.h>

#include "kernels/force/evaluate_cpu.hpp"
#include "kernels/force/pair_formula.hpp"

namespace maki::force_avx512 {
namespace {
#include "kernels/force/simd_avx512.hpp"  // first: the vectors that the loops are written in

#include "kernels/force/evaluate_cpu.inl"
}  // namespace

const CpuKernels kKernels = {"avx512", centred, evaluate_group, direct, loop};

}  // namespace maki::force_avx512

#endif
