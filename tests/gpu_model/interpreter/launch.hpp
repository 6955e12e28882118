// Modules of PTX, and launches of their kernels.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/gpu_model/memory/work.hpp"

namespace gpu_model {

struct Kernel;  // decoded PTX
struct Module;

// Decodes a module's PTX. Variables get their addresses on `device` (each GPU has its own copy of a module).
// Throws std::runtime_error with the line that is not understood.
std::shared_ptr<const Module> load_module(std::string_view ptx, int device);
const Kernel* find_kernel(const Module& module, std::string_view name);  // nullptr: there is none

struct KernelShape {
  std::vector<std::size_t> parameter_bytes;    // of each parameter, and ...
  std::vector<std::size_t> parameter_offsets;  // ... where it lies in the parameter block
  std::size_t block_bytes = 0;                 // of the whole parameter block
  std::size_t static_shared = 0;               // bytes
  unsigned max_threads = 0;                    // __launch_bounds__, 0: none
};
KernelShape shape_of(const Kernel& kernel);

struct Launch {
  const Kernel* kernel = nullptr;
  int device = 0;
  std::array<unsigned, 3> grid{1, 1, 1}, block{1, 1, 1};
  std::size_t dynamic_shared = 0;
  std::vector<std::byte> parameters;
  WorkNumber work = 0;
};

// Runs all blocks to their end, on the calling thread. Faults are reported; throws Stopped where the kernel could not go on.
void run(const Launch& launch);

}  // namespace gpu_model
