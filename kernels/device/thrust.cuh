// Calls of Thrust and CUB: on a stream, with temporary memory from the pool.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/device/buffer.hpp"
#include "kernels/device/macros.hpp"
#include "kernels/device/memory.hpp"
#include "kernels/device/stream.hpp"

#if defined(__CUDACC__)
#include <thrust/system/cuda/execution_policy.h>
#include <cub/device/device_reduce.cuh>

#include "kernels/device/launch.cuh"
#else
#include <thrust/system/omp/execution_policy.h>
#endif
#include <thrust/functional.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/transform_reduce.h>

namespace maki {

// Thrust's temporary storage, taken from the pool under the name of the calling algorithm.
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

// op over f(0), ..., f(n-1), beginning with `init`; n below 2^32.
template <class F, class T, class Op>
struct Reduction {
  std::size_t n;
  F f;
  T init;
  Op op;
};

// The reduction into *out, in device memory: nothing is copied to the host, and nobody waits. (Thrust's own reduction
// waits twice: for the sum, and for its copy.)
template <class F, class T, class Op>
void reduce_into(const Stream& stream, const char* name, const Reduction<F, T, Op>& r, T* out) {
  using Index = thrust::counting_iterator<std::size_t>;
  const Index first(0);
#if defined(__CUDACC__)
  const thrust::transform_iterator<F, Index, T> values(first, r.f);
  const auto reduce = [&](void* scratch, std::size_t& bytes) {
    check_cuda(cub::DeviceReduce::Reduce(scratch, bytes, values, out, static_cast<std::uint32_t>(r.n), r.op, r.init,
                                         native(stream)),
               name);
  };
  std::size_t bytes = 0;
  reduce(nullptr, bytes);
  DeviceBuffer<char> scratch(name, bytes);
  reduce(scratch.data(), bytes);
#else
  PoolAllocator allocator{name};
  *out = thrust::transform_reduce(thrust_policy(stream, allocator), first, first + static_cast<std::ptrdiff_t>(r.n),
                                  r.f, r.init, r.op);
#endif
}

// The reduction with the result copied to the host (counted, and waited for).
template <class F, class T, class Op>
T reduce_over(const Stream& stream, const char* name, const Reduction<F, T, Op>& r) {
  T found = r.init;
#if defined(__CUDACC__)
  DeviceBuffer<T> out(name, 1);
  reduce_into(stream, name, r, out.data());
  copy_to_host(stream, &found, out.data(), sizeof found);
#else
  count_to_host(sizeof found);
  reduce_into(stream, name, r, &found);
#endif
  return found;
}

// The sum of f(0), ..., f(n-1). Independent of the order where f returns integers, DoubleDoubles, or structs of them
// with operator+.
template <class F>
auto sum_of(std::size_t n, F f) {
  using T = decltype(f(n));
  return Reduction{n, f, T{}, thrust::plus<T>()};
}
template <class F>
auto sum_over(const Stream& stream, const char* name, std::size_t n, F f) {
  return reduce_over(stream, name, sum_of(n, f));
}

}  // namespace maki
