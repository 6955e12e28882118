// Memory: its allocation, and copies.
#include <sys/uio.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "tests/gpu_model/memory/address_space.hpp"
#include "tests/gpu_model/memory/shadow.hpp"
#include "tests/gpu_model/report.hpp"
#include "tests/gpu_model/runtime/call.hpp"
#include "tests/gpu_model/runtime/host_pages.hpp"
#include "tests/gpu_model/runtime/streams.hpp"

using namespace gpu_model;

namespace {

enum class Side { kDevice, kPageLocked, kPageable };

Address address(const void* p) { return reinterpret_cast<Address>(p); }

Side side_of(Address a) {
  if (on_device(a)) return Side::kDevice;
  const Extent* const extent = find_base(a);
  return extent && extent->kind == ExtentKind::kPageLocked ? Side::kPageLocked : Side::kPageable;
}

struct Copy {
  Address to = 0, from = 0;
  std::size_t bytes = 0;
  Side to_side = Side::kPageable, from_side = Side::kPageable;
  std::optional<XXH64_hash_t> source;  // of the host's memory when the copy was asked for
};

// Pageable memory may be gone: the system says so.
bool read_pageable(char* to, Address from, std::size_t bytes) {
  while (bytes > 0) {
    const iovec own{to, bytes}, other{reinterpret_cast<void*>(from), bytes};
    const ssize_t n = process_vm_readv(getpid(), &own, 1, &other, 1, 0);
    if (n < 0 && (errno == EPERM || errno == ENOSYS)) {  // a container that forbids it
      std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
      return true;
    }
    if (n <= 0) return false;
    to += n, from += static_cast<Address>(n), bytes -= static_cast<std::size_t>(n);
  }
  return true;
}

void carry_out(const Copy& c, WorkNumber work) {
  const bool freed = (c.from_side == Side::kPageLocked && side_of(c.from) != Side::kPageLocked) ||
                     (c.to_side == Side::kPageLocked && side_of(c.to) != Side::kPageLocked);
  if (freed) return report({"host memory freed before its copy was done", words(work), ""});
  if (!note_copy(work, c.to, c.from, c.bytes)) return;
  char* const to = own_view(c.to);
  if (c.from_side != Side::kPageable) {
    std::memmove(to, own_view(c.from), c.bytes);
  } else if (!read_pageable(to, c.from, c.bytes)) {
    return report({"host memory freed before its copy was done", words(work), ""});
  }
  if (c.source && XXH3_64bits(to, c.bytes) != *c.source)
    report({"host memory overwritten before its copy was done", words(work), std::to_string(c.bytes) + " bytes"});
}

cudaError_t not_allocated(const char* call, Address a) {
  const std::string where = whereabouts(a, next_work());
  const bool twice = where.find("was freed") != where.npos;
  report({twice ? "memory freed twice" : "freed what was not allocated", call, where});
  return cudaErrorInvalidValue;
}

template <class Allocate>
cudaError_t allocate(void** to, std::size_t bytes, Allocate memory_of) {
  return call([&](Lock&) {
    if (!to) return cudaErrorInvalidValue;
    *to = nullptr;
    if (bytes == 0) return cudaSuccess;
    *to = reinterpret_cast<void*>(memory_of(bytes));
    return *to ? cudaSuccess : cudaErrorMemoryAllocation;
  });
}

// Waits for all work of the memory's device, as the real calls do; of page-locked memory, of the device that was
// current when it was allocated.
cudaError_t release(void* memory, ExtentKind kind, const char* name) {
  return call([&](Lock& lock) {
    if (!memory) return cudaSuccess;
    const Extent* const extent = find_base(address(memory));
    if (!extent || extent->kind != kind) return not_allocated(name, address(memory));
    wait_for_device(lock, extent->device);
    return free_memory(address(memory)) ? cudaSuccess : not_allocated(name, address(memory));
  });
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** to, std::size_t bytes) {
  return allocate(to, bytes, [](std::size_t n) { return allocate_device(current_device(), n); });
}
cudaError_t cudaMallocHost(void** to, std::size_t bytes) { return allocate(to, bytes, allocate_page_locked); }
cudaError_t cudaFree(void* memory) { return release(memory, ExtentKind::kDevice, "cudaFree"); }
cudaError_t cudaFreeHost(void* memory) { return release(memory, ExtentKind::kPageLocked, "cudaFreeHost"); }

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t handle) {
  return call([&](Lock& lock) {
    Stream* const stream = find_stream(handle);
    if (!stream) return no_handle("cudaMemcpyAsync");
    if (bytes == 0) return cudaSuccess;
    Copy c{address(to), address(from), bytes, side_of(address(to)), side_of(address(from)), {}};
    const bool to_device = c.to_side == Side::kDevice, from_device = c.from_side == Side::kDevice;
    const cudaMemcpyKind is = to_device ? (from_device ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice)
                                        : (from_device ? cudaMemcpyDeviceToHost : cudaMemcpyHostToHost);
    if (kind != is && kind != cudaMemcpyDefault) {
      report(
          {"wrong direction of a copy", "cudaMemcpyAsync",
           "its source is " + whereabouts(c.from, next_work()) + ", its target is " + whereabouts(c.to, next_work())});
      return cudaErrorInvalidValue;
    }
    // What a copy before this one will write there is no change by the host.
    if (!from_device && !kept_from_host(c.from, c.bytes)) c.source = XXH3_64bits(own_view(c.from), c.bytes);
    const char* const where = to_device && from_device ? "on the device" : to_device ? "to the device" : "to the host";
    const WorkNumber work = add_to(*stream, std::string("copy ") + where, [c](WorkNumber number) {
      carry_out(c, number);
      return Progress::kDone;
    });
    // A copy to pageable memory returns when it is done.
    if (c.to_side == Side::kPageable) {
      wait_for(lock, mark_end(*stream));
    } else if (c.to_side == Side::kPageLocked) {
      keep_from_host(c.to, c.bytes, end_of(stream->index), words(work));
    }
    return cudaSuccess;
  });
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t handle) {
  return call([&](Lock&) {
    Stream* const stream = find_stream(handle);
    if (!stream) return no_handle("cudaMemsetAsync");
    const Address a = address(to);
    if (bytes == 0) return cudaSuccess;
    if (side_of(a) == Side::kPageable) {
      report({"out of bounds", "cudaMemsetAsync", whereabouts(a, next_work())});
      return cudaErrorInvalidValue;
    }
    add_to(*stream, "fill", [=](WorkNumber work) {
      if (note_write(work, a, bytes, "a fill")) std::memset(own_view(a), value, bytes);
      return Progress::kDone;
    });
    return cudaSuccess;
  });
}
}
