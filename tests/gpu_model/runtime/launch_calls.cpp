#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>
#include <vector>

#include "tests/gpu_model/report.hpp"
#include "tests/gpu_model/runtime/call.hpp"
#include "tests/gpu_model/runtime/modules.hpp"
#include "tests/gpu_model/runtime/streams.hpp"

using namespace gpu_model;

namespace {

// What <<<...>>> says.
struct Configuration {
  dim3 grid, block;
  std::size_t shared = 0;
  cudaStream_t stream = nullptr;
};
thread_local std::vector<Configuration> configurations;

std::size_t& dynamic_limit(Entry& e) { return e.dynamic_shared[static_cast<std::size_t>(current_device())]; }

// A call about a kernel: `body` gets its entry and its shape.
template <class F>
cudaError_t call_about(const void* function, F body) {
  return call([&](Lock&) {
    Entry* const e = find_entry(function);
    if (!e) return cudaErrorInvalidDeviceFunction;
    try {
      return body(*e, kernel_of(*e));
    } catch (const std::exception& problem) {
      report({"not modelled", e->name, problem.what()});
      return cudaErrorInvalidPtx;
    }
  });
}

// Words for the limit that a launch is over; empty: none.
std::string over_limit(const Configuration& c, const KernelShape& shape, std::size_t dynamic_limit, cudaError_t& code) {
  const dim3 &g = c.grid, &b = c.block;
  const std::uint64_t threads = std::uint64_t{b.x} * b.y * b.z;
  const auto of = [](const dim3& d) {
    return "(" + std::to_string(d.x) + "," + std::to_string(d.y) + "," + std::to_string(d.z) + ")";
  };
  code = cudaErrorInvalidConfiguration;
  if (g.x == 0 || g.y == 0 || g.z == 0 || g.x > 0x7fffffff || g.y > 65535 || g.z > 65535) return "a grid of " + of(g);
  const unsigned most = shape.max_threads ? shape.max_threads : kThreadsOfBlock;
  if (threads == 0 || threads > most || b.x > kThreadsOfBlock || b.y > kThreadsOfBlock || b.z > 64)
    return "a block of " + of(b) + " threads, at most " + std::to_string(most) + " are allowed";
  code = cudaErrorInvalidValue;
  const std::size_t allowed =
      dynamic_limit ? dynamic_limit : kSharedOfAll - std::min(kSharedOfAll, shape.static_shared);
  if (c.shared > allowed)
    return std::to_string(c.shared) + " bytes of dynamic shared memory, " + std::to_string(allowed) + " are allowed";
  return "";
}

cudaError_t launch(Entry& e, const Kernel& kernel, const Configuration& c, void** arguments) {
  const KernelShape& shape = kernel.shape;
  Stream* const stream = find_stream(c.stream);
  if (!stream) return no_handle(e.name);
  if (stream->device != current_device()) return wrong_device(e.name + ": a stream", stream->device, current_device());
  cudaError_t code = cudaSuccess;
  if (const std::string over = over_limit(c, shape, dynamic_limit(e), code); !over.empty()) {
    report({"launch over a limit", e.name, over});
    return code;
  }
  Launch l;
  l.kernel = &kernel;
  l.grid = {c.grid.x, c.grid.y, c.grid.z};
  l.block = {c.block.x, c.block.y, c.block.z};
  l.dynamic_shared = c.shared;
  l.parameters.resize(shape.block_bytes);
  for (std::size_t k = 0; k < shape.parameter_bytes.size(); ++k)
    std::memcpy(l.parameters.data() + shape.parameter_offsets[k], arguments[k], shape.parameter_bytes[k]);
  add_to(*stream, "kernel " + e.name, [l = std::move(l)](WorkNumber work) mutable {
    l.work = work;
    run(l);
    return Progress::kDone;
  });
  return cudaSuccess;
}

}  // namespace

extern "C" {

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared, CUstream_st* stream) {
  configurations.push_back({grid, block, shared, stream});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared, void* stream) {
  if (configurations.empty()) return remember(cudaErrorInvalidConfiguration);
  const Configuration c = configurations.back();
  configurations.pop_back();
  *grid = c.grid;
  *block = c.block;
  *shared = c.shared;
  *static_cast<cudaStream_t*>(stream) = c.stream;
  return cudaSuccess;
}

// Handles of kernels are their functions' addresses.
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  if (!find_entry(function)) return remember(cudaErrorInvalidDeviceFunction);
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments, std::size_t shared,
                             cudaStream_t stream) {
  return call_about(function, [&](Entry& e, const Kernel& kernel) {
    return launch(e, kernel, {grid, block, shared, stream}, arguments);
  });
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, std::size_t shared,
                               cudaStream_t stream) {
  return cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* to, const void* function) {
  return call_about(function, [&](Entry& e, const Kernel& kernel) {
    const KernelShape& shape = kernel.shape;
    *to = {};
    to->sharedSizeBytes = shape.static_shared;
    to->maxThreadsPerBlock = static_cast<int>(shape.max_threads ? shape.max_threads : kThreadsOfBlock);
    to->numRegs = 32;  // registers are not modelled
    to->ptxVersion = e.image->architecture;
    to->binaryVersion = gpu().major * 10 + gpu().minor;
    to->maxDynamicSharedSizeBytes = static_cast<int>(
        dynamic_limit(e) ? dynamic_limit(e) : kSharedOfAll - std::min(kSharedOfAll, shape.static_shared));
    return cudaSuccess;
  });
}

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute which, int value) {
  return call_about(function, [&](Entry& e, const Kernel& kernel) {
    if (which == cudaFuncAttributePreferredSharedMemoryCarveout) return cudaSuccess;  // a wish
    if (which != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0) return cudaErrorInvalidValue;
    if (kernel.shape.static_shared + static_cast<std::size_t>(value) > gpu().shared_of_block)
      return cudaErrorInvalidValue;
    dynamic_limit(e) = static_cast<std::size_t>(value);
    return cudaSuccess;
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* function, int threads,
                                                                   std::size_t shared, unsigned) {
  return call_about(function, [&](Entry&, const Kernel& kernel) {
    if (threads < 1) return cudaErrorInvalidValue;
    const KernelShape& shape = kernel.shape;
    const unsigned warps = (static_cast<unsigned>(threads) + 31) / 32;
    const std::size_t bytes = shape.static_shared + shared + kReservedShared;
    *blocks = static_cast<int>(std::min<std::size_t>(
        {gpu().blocks_of_unit, gpu().threads_of_unit / (warps * 32), gpu().shared_of_unit / bytes}));
    if (static_cast<unsigned>(threads) > (shape.max_threads ? shape.max_threads : kThreadsOfBlock)) *blocks = 0;
    return cudaSuccess;
  });
}
}
