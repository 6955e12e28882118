#include "tests/gpu_model/memory/address_space.hpp"
#include "tests/gpu_model/report.hpp"
#include "tests/gpu_model/runtime/call.hpp"
#include "tests/gpu_model/runtime/streams.hpp"

using namespace gpu_model;

namespace {

Address address(const void* p) { return reinterpret_cast<Address>(p); }

cudaError_t not_allocated(const char* call, Address a) {
  const std::string where = whereabouts(a, next_work());
  const bool twice = where.find("was freed") != where.npos;
  report({twice ? "memory freed twice" : "freed what was not allocated", call, where});
  return cudaErrorInvalidValue;
}

cudaError_t allocate_host(void** to, std::size_t bytes) {
  return call([&](Lock&) {
    if (!to) return cudaErrorInvalidValue;
    *to = nullptr;
    if (bytes == 0) return cudaSuccess;
    *to = reinterpret_cast<void*>(allocate_page_locked(bytes));
    return *to ? cudaSuccess : cudaErrorMemoryAllocation;
  });
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** to, std::size_t bytes) {
  return call([&](Lock&) {
    if (!to) return cudaErrorInvalidValue;
    *to = nullptr;
    if (bytes == 0) return cudaSuccess;
    *to = reinterpret_cast<void*>(allocate_device(current_device(), bytes));
    return *to ? cudaSuccess : cudaErrorMemoryAllocation;
  });
}

// Waits for all work of the device, as the real one does.
cudaError_t cudaFree(void* memory) {
  return call([&](Lock& lock) {
    if (!memory) return cudaSuccess;
    const Extent* const extent = find_base(address(memory));
    if (!extent || extent->kind != ExtentKind::kDevice) return not_allocated("cudaFree", address(memory));
    wait_for_device(lock, extent->device);
    return free_device(address(memory)) ? cudaSuccess : not_allocated("cudaFree", address(memory));
  });
}

cudaError_t cudaMallocHost(void** to, std::size_t bytes) { return allocate_host(to, bytes); }
cudaError_t cudaHostAlloc(void** to, std::size_t bytes, unsigned) { return allocate_host(to, bytes); }

// Waits as cudaFree() does, for the device that was current when the memory was allocated.
cudaError_t cudaFreeHost(void* memory) {
  return call([&](Lock& lock) {
    if (!memory) return cudaSuccess;
    const Extent* const extent = find_base(address(memory));
    if (!extent || extent->kind != ExtentKind::kPageLocked) return not_allocated("cudaFreeHost", address(memory));
    wait_for_device(lock, extent->device);
    return free_page_locked(address(memory)) ? cudaSuccess : not_allocated("cudaFreeHost", address(memory));
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* to, const void* pointer) {
  return call([&](Lock&) {
    *to = {};
    const Extent* const extent = find_base(address(pointer));
    to->device = extent && extent->device >= 0 ? extent->device : current_device();
    to->hostPointer = const_cast<void*>(pointer);
    if (!extent) return cudaSuccess;  // cudaMemoryTypeUnregistered
    to->type = extent->kind == ExtentKind::kPageLocked ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
    to->devicePointer = const_cast<void*>(pointer);
    if (to->type == cudaMemoryTypeDevice) to->hostPointer = nullptr;
    return cudaSuccess;
  });
}
}
