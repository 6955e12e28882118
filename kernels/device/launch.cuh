// Kernels and CUDA: the one launch call of each kind (a launch always has a name, a stream and an error check), helpers
// for cooperative kernels, and CUDA's return codes as DeviceError.
#pragma once

#include <cstddef>
#include <string>

#include "kernels/device/macros.hpp"
#include "kernels/device/stream.hpp"
#include "kernels/error.hpp"

#if defined(__CUDACC__)
#include <cuda_pipeline_primitives.h>
#include <cuda_runtime.h>
#endif

namespace maki {

struct LaunchShape {
  unsigned grid = 1;
  unsigned block = 128;
  std::size_t shared_bytes = 0;  // dynamic shared memory
};

#if defined(__CUDACC__)

// What a user can do about an error of CUDA.
const char* advice_for(cudaError_t code);
// Throws DeviceError "kernel NAME failed (CUDA's message)" when the last launch did not start.
void check_launch(const char* name);
// Allows a kernel more dynamic shared memory than the default limit of 48 KiB.
void allow_shared_memory(const char* name, const void* kernel, std::size_t bytes);
// Blocks with `bytes` of shared memory each that fit on one multiprocessor; 0 where one block may not have as much.
unsigned blocks_with_shared_memory(std::size_t bytes);

namespace detail {
template <class F>
__global__ void flat_kernel(std::size_t n, F f) {
  const std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) f(i);
}
}  // namespace detail

// Flat work: f(i) for every i in [0, n), in any order, no cooperation. `f` is a MAKI_HD functor, copied by value.
template <class F>
void launch(const Stream& stream, const char* name, std::size_t n, F f) {
  if (n == 0) return;
  constexpr unsigned block = 256;
  const auto grid = static_cast<unsigned>((n + block - 1) / block);
  detail::flat_kernel<<<grid, block, 0, static_cast<cudaStream_t>(stream.native())>>>(n, f);
  check_launch(name);
}

// Cooperative work: a __global__ function with blocks, shared memory and barriers.
template <class... Parameters, class... Arguments>
void launch_blocks(const Stream& stream, const char* name, LaunchShape shape, void (*kernel)(Parameters...),
                   Arguments... arguments) {
  if (shape.grid == 0) return;
  if (shape.shared_bytes > 48 * 1024)
    allow_shared_memory(name, reinterpret_cast<const void*>(kernel), shape.shared_bytes);
  kernel<<<shape.grid, shape.block, shape.shared_bytes, static_cast<cudaStream_t>(stream.native())>>>(arguments...);
  check_launch(name);
}

// What cooperative kernels need beyond CUDA's own language.
inline constexpr unsigned kWarpSize = 32;
inline constexpr unsigned kAllLanes = 0xffffffffu;

// The block's dynamic shared memory (LaunchShape::shared_bytes), aligned to 16 bytes.
template <class T>
__device__ __forceinline__ T* dynamic_shared() {
  extern __shared__ uint4 maki_dynamic_shared[];
  return reinterpret_cast<T*>(maki_dynamic_shared);
}

// Asynchronous copies from global to shared memory; kBytes is 4, 8 or 16, and both ends are aligned to it. A thread's
// copies since its last commit form a batch. After wait_copies<n> all its batches but the last n are complete and
// visible to this thread; other threads see them after a barrier.
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

// Whether a call succeeded. CUDA keeps the code of a failed call, and the check of an unrelated launch would then
// report it; so the code is cleared here. Every call goes through this or check_cuda().
inline bool succeeded(cudaError_t code) noexcept {
  if (code != cudaSuccess) static_cast<void>(cudaGetLastError());
  return code == cudaSuccess;
}

inline void check_cuda(cudaError_t code, const char* what) {
  if (!succeeded(code)) throw DeviceError(std::string(what) + " failed", cudaGetErrorString(code), advice_for(code));
}

// Whether the work before the event is complete. Throws DeviceError where that work failed.
inline bool is_reached(cudaEvent_t event) {
  const cudaError_t code = cudaEventQuery(event);
  if (!succeeded(code) && code == cudaErrorNotReady) return false;
  check_cuda(code, "work on the GPU");
  return true;
}

inline cudaStream_t native(const Stream& stream) { return static_cast<cudaStream_t>(stream.native()); }

#else

template <class F>
void launch(const Stream&, const char* /*name*/, std::size_t n, F f) {
  // With few items (the upper levels of a tree) it does not pay to wake other threads.
#pragma omp parallel for schedule(static) if (n > 512)
  for (std::size_t i = 0; i < n; ++i) f(i);
}

#endif

}  // namespace maki
