#include "tests/gpu_model/runtime/modules.hpp"

#include <fatbinary_section.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <unordered_map>

namespace gpu_model {
namespace {

std::unordered_map<const void*, Entry>& entries() {
  static auto* e = new std::unordered_map<const void*, Entry>;
  return *e;
}

}  // namespace

Entry* find_entry(const void* function) {
  const auto found = entries().find(function);
  return found == entries().end() ? nullptr : &found->second;
}

const Kernel& kernel_of(Entry& entry) {
  auto& module = entry.image->module;
  if (!module) module = ptx::parse(entry.image->ptx);
  if (!entry.kernel) entry.kernel = std::make_unique<const Kernel>(decode(*module, entry.symbol));
  return *entry.kernel;
}

}  // namespace gpu_model

using namespace gpu_model;

// Called by nvcc's code before main().
extern "C" {

void** __cudaRegisterFatBinary(void* wrapper) {
  const auto& w = *static_cast<const __fatBinC_Wrapper_t*>(wrapper);
  try {
    if (w.magic != static_cast<int>(FATBINC_MAGIC))
      throw std::runtime_error("a fat binary of a format that is not known");
    return reinterpret_cast<void**>(new Image(image_in(w.data)));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "modelled GPU: %s\n", e.what());
    std::exit(2);
  }
}

void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}  // kernels may be launched until the process ends

void __cudaRegisterFunction(void** image, const char* function, char*, const char* symbol, int, uint3*, uint3*, dim3*,
                            dim3*, int*) {
  Entry& e = entries()[function];
  if (e.image) return;  // the same kernel of another translation unit
  e.image = reinterpret_cast<Image*>(image);
  e.symbol = symbol;
  e.name = demangled(symbol);
}

// The program may not copy to variables by their names (no such call is modelled): kernels find them in their module.
void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int, int) {}
}
