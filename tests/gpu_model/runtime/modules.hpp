// Kernels of the program, as nvcc's code registers them before main(), and the modules that hold them.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>

#include "tests/gpu_model/interpreter/program.hpp"
#include "tests/gpu_model/runtime/call.hpp"

namespace gpu_model {

// The PTX of a translation unit: a module once a kernel of it is needed.
struct Image {
  std::string ptx;
  int architecture = 0;  // 90: compute_90
  std::optional<ptx::ModuleText> module;
};

// A __global__ function.
struct Entry {
  Image* image = nullptr;
  std::string symbol;
  std::string name;                                        // for messages
  std::unique_ptr<const Kernel> kernel;                    // decoded once it is needed: a program has many more
  std::array<std::size_t, kMostDevices> dynamic_shared{};  // bytes that it may have where it has asked for more
};

// nullptr: the function is no kernel.
Entry* find_entry(const void* function);
// Throws std::runtime_error with what is not understood.
const Kernel& kernel_of(Entry& entry);

// PTX in a fat binary: that of the newest architecture which the modelled GPU has, or else the oldest there is. Throws
// std::runtime_error where there is none, or it cannot be decompressed.
Image image_in(const void* fat_binary);

}  // namespace gpu_model
