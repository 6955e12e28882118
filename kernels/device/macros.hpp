// The one place where the two backends differ in spelling.
#pragma once

#if defined(__CUDACC__)
#define MAKI_HD __host__ __device__ __forceinline__
#else
#define MAKI_HD inline
#endif

// As MAKI_HD, but always inlined, for headers that units of several instruction sets share.
#if defined(__CUDACC__)
#define MAKI_HD_ALWAYS __host__ __device__ __forceinline__
#else
#define MAKI_HD_ALWAYS inline __attribute__((always_inline))
#endif
