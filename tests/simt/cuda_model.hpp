// The CUDA execution model on the CPU. Stands in front of every tests/simt/*_test.cpp (the Makefile's -include), so
// that kernels of kernels/**/*_cuda.cuh compile unchanged with g++ and run, and are checked, without a GPU.
//
// How it runs: the blocks of a launch one after another in random order, the threads of a block as fibers. A thread
// runs until it has to wait (barrier, warp operation) or, now and then, until any of its memory accesses; who comes
// next is drawn from a seed (Options, for_seeds, MAKI_SIMT_SEED). Lanes of a warp are in lockstep only where they wait
// for each other. The same seed gives the same run.
//
// What is checked: the tests are compiled with -fsanitize=thread, and every load and store of a kernel arrives at the
// hooks in hooks.cpp. Found, whatever the order drawn (for races: by vector clocks, not by luck), and thrown as
// simt::Fault with kernel, block, thread and line:
//   * races in shared memory, and in global memory within and across blocks. __syncthreads orders a block, __syncwarp
//     the lanes of its mask; shuffles, votes and reductions order nothing. Atomics do not race with atomics;
//     an atomic after __threadfence releases to another block's atomic on the same word followed by __threadfence;
//   * reads of shared memory that the block has not written;
//   * accesses outside the extent of a DeviceBuffer, of a __shared__ variable or of the dynamic shared memory, to the
//     host's memory, to other threads' stacks, and misaligned ones;
//   * shared memory touched before wait_copies has landed the copy to it;
//   * threads of a block that do not meet at the same __syncthreads (file and line), or end without it;
//   * lanes of a mask that do not come to the same warp operation with the same mask, callers outside their mask,
//     shuffles from outside the mask.
//
// Launches of flat work (launch()) in a test's own translation unit run and are checked in the same way.
//
// What is not modelled: weak memory order (an access takes effect at once for all), caches, timing, blocks that run
// at the same time (a kernel that waits for another block hangs and is ended as endless), textures, dynamic
// parallelism, clusters, 2-D blocks, flushing of denormals, contraction to fused multiply-add. Registers and local
// arrays are not checked, nor are uninitialised reads of global memory, nor what host code does with device pointers.
// A struct copied as a whole is read as a whole: bytes of padding count as unwritten if its members were written
// one by one.
//
// __shared__ variables must be declared in functions. A kernel's arguments reach the threads by value. The result of
// a run does not depend on where memory happens to lie; MAKI_SIMT_SEED=n runs everything with another order.
#pragma once

// The standard library first: some of the names defined here are attributes there.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "tests/simt/cuda_atomics.hpp"
#include "tests/simt/cuda_language.hpp"
#include "tests/simt/cuda_math.hpp"
#include "tests/simt/cuda_vector_types.hpp"
#include "tests/simt/cuda_warp.hpp"
#include "tests/simt/model.hpp"
