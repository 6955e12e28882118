#include <immintrin.h>

#include "kernels/mesh/cloud.hpp"
#include "kernels/mesh/cpu_kernels.hpp"

#define MAKI_MESH_INSTRUCTION_SET "avx512"

namespace maki::mesh_avx512 {

#include "kernels/mesh/cpu_rows_256.inl"

#include "kernels/mesh/cpu_kernels.inl"

}  // namespace maki::mesh_avx512
