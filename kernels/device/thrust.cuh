// How this code calls Thrust: on a stream, with temporary memory from the pool.
#pragma once

#include <cstddef>

#include "kernels/device/macros.hpp"
#include "kernels/device/memory.hpp"
#include "kernels/device/stream.hpp"

#if defined(__CUDACC__)
#include <thrust/system/cuda/execution_policy.h>
#else
#include <thrust/system/omp/execution_policy.h>
#endif
#include <thrust/functional.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/transform_reduce.h>

namespace maki {

// Thrust's temporary storage, from the pool, under the name of the calling algorithm.
struct PoolAllocator {
  using value_type = char;
  const char* name;
  char* allocate(std::ptrdiff_t bytes) {
    return static_cast<char*>(pool_allocate(name, static_cast<std::size_t>(bytes)));
  }
  void deallocate(char* block, std::size_t) { pool_release(block); }
};

#if defined(__CUDACC__)
inline auto thrust_policy(const Stream& stream, PoolAllocator& allocator) {
  return thrust::cuda::par_nosync(allocator).on(static_cast<cudaStream_t>(stream.native()));
}
#else
inline auto thrust_policy(const Stream&, PoolAllocator& allocator) { return thrust::omp::par(allocator); }
#endif

// op over f(0), ..., f(n-1), beginning with `init`; the result comes back to the host (counted, and waited for).
template <class T, class F, class Op>
T reduce_over(const Stream& stream, const char* name, std::size_t n, F f, T init, Op op) {
  PoolAllocator allocator{name};
  count_to_host(sizeof(T));
  const thrust::counting_iterator<std::size_t> first(0);
  return thrust::transform_reduce(thrust_policy(stream, allocator), first, first + static_cast<std::ptrdiff_t>(n), f,
                                  init, op);
}

}  // namespace maki
