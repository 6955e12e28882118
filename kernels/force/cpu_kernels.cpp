// Which instruction set this machine runs. The sets are a property of the processor, asked once.
#include "kernels/force/evaluate_cpu.hpp"

namespace maki {
namespace {

struct Available {
  const CpuKernels* sets[4] = {};
  Available() {
    int n = 0;
#if defined(__x86_64__)
    __builtin_cpu_init();
    const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (avx512 && avx2) sets[n++] = &force_avx512::kKernels;
    if (avx2) sets[n++] = &force_avx2::kKernels;
#endif
    sets[n] = &force_scalar::kKernels;
  }
};

}  // namespace

const CpuKernels* const* all_cpu_kernels() {
  static const Available available;
  return available.sets;
}

const CpuKernels& cpu_kernels() { return *all_cpu_kernels()[0]; }

}  // namespace maki
