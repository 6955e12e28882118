// The one launch call of each kind. A launch cannot go without a name, a stream and an error check.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/device/macros.hpp"
#include "kernels/device/stream.hpp"

#if defined(__CUDACC__)
#include <cuda_runtime.h>
#endif

namespace maki {

struct LaunchShape {
  unsigned grid = 1;
  unsigned block = 128;
  std::size_t shared_bytes = 0;  // dynamic shared memory
};

#if defined(__CUDACC__)

// Throws DeviceError "kernel NAME failed (cuda's words)" when the last launch did not start.
void check_launch(const char* name);
// Lets a kernel have more dynamic shared memory than the 48 KiB that all may have.
void allow_shared_memory(const char* name, const void* kernel, std::size_t bytes);
// Blocks that one multiprocessor has shared memory for, each with `bytes` of it; 0 where no block may have as much.
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

#else

template <class F>
void launch(const Stream&, const char* /*name*/, std::size_t n, F f) {
  // Few items (the upper levels of a tree) are not worth waking other threads.
#pragma omp parallel for schedule(static) if (n > 512)
  for (std::size_t i = 0; i < n; ++i) f(i);
}

#endif

}  // namespace maki
