#include "kernels/device/memory.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <unordered_map>

#include "kernels/device/error.hpp"
#include "kernels/device/stream.hpp"

#if defined(__CUDACC__)
#include "kernels/device/cuda_check.cuh"
#else
#include <sys/mman.h>
#endif

namespace maki {
namespace {

// What the system gives: whole blocks, and never back to it before pool_trim().
void* system_allocate(std::size_t bytes) {
#if defined(__CUDACC__)
  void* block = nullptr;
  if (cudaMalloc(&block, bytes) != cudaSuccess) {
    cudaGetLastError();
    return nullptr;
  }
  return block;
#else
  // Large arrays on large pages: lists and meshes are read all over, and address translation is what that costs.
  constexpr std::size_t large_page = std::size_t{1} << 21;
  if (bytes < 2 * large_page) return std::aligned_alloc(4096, bytes);
  void* block = std::aligned_alloc(large_page, (bytes + large_page - 1) / large_page * large_page);
  if (block) madvise(block, bytes, MADV_HUGEPAGE);  // a wish: without it the run is only slower
  return block;
#endif
}

void system_release(void* block) {
#if defined(__CUDACC__)
  cudaFree(block);
#else
  std::free(block);
#endif
}

struct Live {
  std::size_t bytes;   // of the block
  std::size_t extent;  // of them that the owner uses
  const char* name;
};

struct Pool {
  std::mutex mutex;
  std::multimap<std::size_t, void*> free_blocks;  // by size
  std::unordered_map<void*, Live> live;
  std::size_t in_use = 0, high_water = 0, reserved = 0;
  std::uint64_t system_allocations = 0;
  TransferCounters transfers;
};

Pool& pool() {
  static Pool* instance = new Pool;  // never destroyed: buffers may outlive static destruction
  return *instance;
}

std::size_t rounded(std::size_t bytes) {
  const std::size_t grain = bytes < (std::size_t{1} << 20) ? 4096 : (std::size_t{1} << 16);
  return std::max<std::size_t>(grain, (bytes + grain - 1) / grain * grain);
}

void trim_locked(Pool& p) {
  for (auto& [bytes, block] : p.free_blocks) {
    system_release(block);
    p.reserved -= bytes;
  }
  p.free_blocks.clear();
}

std::string mebibytes(std::size_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

}  // namespace

void* pool_allocate(const char* name, std::size_t bytes) {
  if (bytes == 0) return nullptr;
  const std::size_t extent = bytes;
  bytes = rounded(bytes);
  Pool& p = pool();
  const std::lock_guard lock(p.mutex);
  void* block = nullptr;
  // A free block serves when it is not much too large.
  if (auto it = p.free_blocks.lower_bound(bytes); it != p.free_blocks.end() && it->first <= bytes + bytes / 4 + 65536) {
    bytes = it->first;
    block = it->second;
    p.free_blocks.erase(it);
  } else {
    block = system_allocate(bytes);
    if (!block) {
      trim_locked(p);
      block = system_allocate(bytes);
    }
    if (!block)
      throw DeviceError(std::string("no memory for the array '") + name + "'",
                        mebibytes(bytes) + " wanted, " + mebibytes(p.in_use) + " in use by this run",
                        "use fewer particles, a smaller mesh or a smaller gravity.list_memory");
    p.reserved += bytes;
    ++p.system_allocations;
  }
  p.live.emplace(block, Live{bytes, extent, name});
  p.in_use += bytes;
  p.high_water = std::max(p.high_water, p.in_use);
  return block;
}

void pool_release(void* block) noexcept {
  if (!block) return;
  Pool& p = pool();
  const std::lock_guard lock(p.mutex);
  const auto it = p.live.find(block);
  if (it == p.live.end()) return;
  p.in_use -= it->second.bytes;
  p.free_blocks.emplace(it->second.bytes, block);
  p.live.erase(it);
}

void pool_set_extent(void* block, std::size_t bytes) noexcept {
  if (!block) return;
  Pool& p = pool();
  const std::lock_guard lock(p.mutex);
  if (const auto it = p.live.find(block); it != p.live.end()) it->second.extent = std::min(bytes, it->second.bytes);
}

std::vector<PoolBlock> pool_blocks() {
  Pool& p = pool();
  const std::lock_guard lock(p.mutex);
  std::vector<PoolBlock> blocks;
  for (const auto& [block, live] : p.live) blocks.push_back({live.name, static_cast<const char*>(block), live.extent});
  std::sort(blocks.begin(), blocks.end(), [](const PoolBlock& a, const PoolBlock& b) { return a.begin < b.begin; });
  return blocks;
}

void pool_trim() {
  Pool& p = pool();
  const std::lock_guard lock(p.mutex);
  trim_locked(p);
}

PoolReport pool_report() {
  Pool& p = pool();
  const std::lock_guard lock(p.mutex);
  PoolReport report{p.in_use, p.high_water, p.reserved, p.system_allocations, {}};
  std::map<std::string, std::size_t> by_name;
  for (const auto& [block, live] : p.live) by_name[live.name] += live.bytes;
  for (const auto& [name, bytes] : by_name) report.arrays.push_back({name, bytes});
  std::stable_sort(report.arrays.begin(), report.arrays.end(),
                   [](const PoolUse& a, const PoolUse& b) { return a.bytes > b.bytes; });
  return report;
}

void copy_to_device(const Stream& stream, void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  pool().transfers.to_device += bytes;
#if defined(__CUDACC__)
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, native(stream)), "copy to the device");
  stream.synchronize();  // `from` is pageable memory of the caller
#else
  (void)stream;
  std::memcpy(to, from, bytes);
#endif
}

void copy_to_host(const Stream& stream, void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  pool().transfers.to_host += bytes;
#if defined(__CUDACC__)
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, native(stream)), "copy to the host");
  stream.synchronize();
#else
  (void)stream;
  std::memcpy(to, from, bytes);
#endif
}

void copy_on_device(const Stream& stream, void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
#if defined(__CUDACC__)
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, native(stream)), "copy on the device");
#else
  (void)stream;
  std::memcpy(to, from, bytes);
#endif
}

void fill_zero(const Stream& stream, void* to, std::size_t bytes) {
  if (bytes == 0) return;
#if defined(__CUDACC__)
  check_cuda(cudaMemsetAsync(to, 0, bytes, native(stream)), "fill with zeros");
#else
  (void)stream;
  constexpr std::size_t chunk = std::size_t{1} << 20;
  auto* base = static_cast<char*>(to);
#pragma omp parallel for schedule(static)
  for (std::size_t i = 0; i < bytes; i += chunk) std::memset(base + i, 0, std::min(chunk, bytes - i));
#endif
}

TransferCounters transfer_counters() { return pool().transfers; }
void reset_transfer_counters() { pool().transfers = {}; }
void count_to_host(std::size_t bytes) { pool().transfers.to_host += bytes; }

}  // namespace maki
