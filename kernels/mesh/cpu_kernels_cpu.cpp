// Which instruction set the mesh kernels use.
#include <atomic>
#include <cstring>

#include "kernels/mesh/cpu_kernels.hpp"

namespace maki {
namespace {

const MeshKernels* supported(const char* instruction_set) {
  const bool any = instruction_set == nullptr;
  const auto asked = [&](const char* name) { return any || std::strcmp(instruction_set, name) == 0; };
  if (asked("avx512") && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw"))
    return &mesh_avx512::kKernels;
  if (asked("avx2") && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return &mesh_avx2::kKernels;
  return asked("scalar") ? &mesh_scalar::kKernels : nullptr;
}

std::atomic<const MeshKernels*>& current() {
  static std::atomic<const MeshKernels*> kernels{supported(nullptr)};
  return kernels;
}

}  // namespace

const MeshKernels& mesh_kernels() { return *current().load(std::memory_order_relaxed); }

bool use_mesh_kernels(const char* instruction_set) {
  const MeshKernels* kernels = supported(instruction_set);
  if (kernels) current() = kernels;
  return kernels != nullptr;
}

}  // namespace maki
