// What cooperative kernels need beyond the CUDA language itself. Only for CUDA code.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/device/launch.cuh"

#if defined(__CUDACC__)
#include <cuda_pipeline_primitives.h>
#endif

namespace maki {

inline constexpr unsigned kWarpSize = 32;
inline constexpr unsigned kAllLanes = 0xffffffffu;

// The block's dynamic shared memory (LaunchShape::shared_bytes), aligned to 16 bytes.
template <class T>
__device__ __forceinline__ T* dynamic_shared() {
  extern __shared__ uint4 maki_dynamic_shared[];
  return reinterpret_cast<T*>(maki_dynamic_shared);
}

// Asynchronous copies from global to shared memory; kBytes is 4, 8 or 16, both ends aligned to it. A thread's copies
// since its last commit form a batch; after wait_copies<n> all but its last n batches have landed, for this thread:
// others see them behind a barrier.
template <int kBytes>
__device__ __forceinline__ void copy_async(void* shared, const void* global) {
  static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16);
  __pipeline_memcpy_async(shared, global, kBytes);
}

__device__ __forceinline__ void commit_copies() { __pipeline_commit(); }

template <int kPending>
__device__ __forceinline__ void wait_copies() {
  __pipeline_wait_prior(kPending);
}

}  // namespace maki
