#include <immintrin.h>

#include "kernels/tree/walk_cpu.hpp"

namespace maki::walk_avx2 {
#include "kernels/tree/walk_group.inl"
}  // namespace maki::walk_avx2
