#include "kernels/mesh/cloud.hpp"
#include "kernels/mesh/cpu_kernels.hpp"

#define MAKI_MESH_INSTRUCTION_SET "scalar"

namespace maki::mesh_scalar {

template <int S>
static inline const std::uint32_t* load_weights(const std::uint32_t* w) {
  return w;
}

static inline std::uint64_t wide(std::uint64_t value) { return value; }

template <int S, bool kRounds>
static inline void add_row(std::uint64_t* cells, const std::uint32_t* weights, std::uint32_t units, std::uint64_t half,
                           std::uint64_t kept) {
  for (int i = 0; i < S; ++i) {
    const std::uint64_t product = static_cast<std::uint64_t>(weights[i]) * units;
    cells[i] += kRounds ? (product + half) & kept : product;
  }
}

#include "kernels/mesh/cpu_kernels.inl"

}  // namespace maki::mesh_scalar
