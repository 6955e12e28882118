// The keywords of the CUDA language and its built-in variables.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "tests/simt/cuda_vector_types.hpp"

// nvcc allows kernels in headers without `inline`. (__noinline__ is not here: libstdc++ uses the name itself.)
#define __global__ inline
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
// Blocks run one after another, so one copy serves. So large an alignment leaves a gap behind each variable (a block
// has at most 48 KiB of them): what is one past the end lies in no other. It also tells them from other statics.
#define __shared__ static __attribute__((aligned(65536)))

#define threadIdx (::maki::simt::thread_index())
#define blockIdx (::maki::simt::block_index())
#define blockDim (::maki::simt::block_size())
#define gridDim (::maki::simt::grid_size())
inline constexpr int warpSize = 32;

namespace maki::simt {

// Constant for the whole life of a thread, whatever it calls.
[[gnu::const]] uint3 thread_index();
[[gnu::const]] uint3 block_index();
[[gnu::const]] dim3 block_size();
[[gnu::const]] dim3 grid_size();

// The block's dynamic shared memory, aligned to 16 bytes.
void* dynamic_shared();

// Copies from global to shared memory that land in wait_copies and not before. A thread's copies since its last commit
// are a batch; wait_copies(n) lands all batches but the last n.
void copy_async(void* shared, const void* global, std::size_t bytes);
void commit_copies();
void wait_copies(int pending);

}  // namespace maki::simt
