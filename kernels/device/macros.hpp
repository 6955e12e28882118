// The one place where the two backends differ in spelling.
#pragma once

#if defined(__CUDACC__)
#define MAKI_HD __host__ __device__ __forceinline__
#else
#define MAKI_HD inline
#endif
