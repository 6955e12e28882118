#include "kernels/mesh/cloud.hpp"
#include "kernels/mesh/cpu_kernels.hpp"

#define MAKI_MESH_INSTRUCTION_SET "scalar"

namespace maki::mesh_scalar {

template <int S>
static inline const std::uint32_t* load_weights(const std::uint32_t* w) {
  return w;
}

template <int S>
static inline void add_row(std::uint64_t* cells, const std::uint32_t* weights, std::uint32_t units) {
  for (int i = 0; i < S; ++i) cells[i] += static_cast<std::uint64_t>(weights[i]) * units;
}

#include "kernels/mesh/cpu_kernels.inl"

}  // namespace maki::mesh_scalar
