#include <immintrin.h>

#include "kernels/mesh/cloud.hpp"
#include "kernels/mesh/cpu_kernels.hpp"

#define MAKI_MESH_INSTRUCTION_SET "avx2"

namespace maki::mesh_avx2 {

#include "kernels/mesh/cpu_rows_256.inl"

#include "kernels/mesh/cpu_kernels.inl"

}  // namespace maki::mesh_avx2
