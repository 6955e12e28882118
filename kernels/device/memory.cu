#include "kernels/device/memory.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <set>

#include "kernels/device/block_pool.hpp"
#include "kernels/device/stream.hpp"
#include "kernels/error.hpp"

#if defined(__CUDACC__)
#include "kernels/device/launch.cuh"
#else
#include <sys/mman.h>
#endif

namespace maki {
namespace {

void* system_allocate(std::size_t bytes) {
#if defined(__CUDACC__)
  void* block = nullptr;
  const cudaError_t code = cudaMalloc(&block, bytes);
  if (succeeded(code)) return block;
  if (code != cudaErrorMemoryAllocation) check_cuda(code, "allocating memory on the GPU");  // an earlier error
  return nullptr;
#else
  // Large arrays on large pages: lists and meshes are read at random, where address translation costs most.
  constexpr std::size_t large_page = std::size_t{1} << 21;
  if (bytes < 2 * large_page) return std::aligned_alloc(4096, bytes);
  void* block = std::aligned_alloc(large_page, (bytes + large_page - 1) / large_page * large_page);
  if (block) madvise(block, bytes, MADV_HUGEPAGE);  // only a hint: without it the run is slower
  return block;
#endif
}

void system_release(void* block) {
#if defined(__CUDACC__)
  succeeded(cudaFree(block));
#else
  std::free(block);
#endif
}

BlockPool& pool() {
  static auto* instance = new BlockPool({system_allocate, system_release});  // buffers may outlive static destruction
  return *instance;
}

// Counters that any thread may increase.
struct Transfers {
  std::atomic<std::uint64_t> to_device{0}, to_host{0}, waits{0};
};

Transfers& transfers() {
  static Transfers counters;
  return counters;
}

// The lowest number that no living thread has.
class ThreadNumber {
 public:
  ThreadNumber() {
    const std::lock_guard lock(mutex());
    while (taken().contains(number_)) ++number_;
    taken().insert(number_);
  }
  ~ThreadNumber() {
    const std::lock_guard lock(mutex());
    taken().erase(number_);
  }
  int value() const { return number_; }

 private:
  static std::mutex& mutex() {
    static auto* instance = new std::mutex;
    return *instance;
  }
  static std::set<int>& taken() {
    static auto* instance = new std::set<int>;
    return *instance;
  }
  int number_ = 0;
};

thread_local const ThreadNumber thread_number;
thread_local int current_lane = 0;

// Small copies (results of kernels, tables of the host) go through page-locked memory: copies from or to pageable
// memory make the host wait, or are done in two steps.
constexpr std::size_t kSmallCopy = 4096;

#if defined(__CUDACC__)
thread_local PinnedBuffer small_copies;

// Slots of page-locked memory, used in turn: the caller's memory may be freed at once, and nobody waits.
class SmallUploads {
 public:
  // False where the next slot has not been read yet.
  bool queue(const Stream& stream, void* to, const void* from, std::size_t bytes) {
    memory_.reserve(kSlots * kSmallCopy);
    const std::size_t slot = next_++ % kSlots;
    if (read_[slot] && !read_[slot]->reached()) return false;
    if (!read_[slot]) read_[slot].emplace();
    void* const place = memory_.data() + slot * kSmallCopy;
    std::memcpy(place, from, bytes);
    queue_copy_to_device(stream, to, place, bytes);
    read_[slot]->set(stream);
    return true;
  }

 private:
  static constexpr std::size_t kSlots = 64;
  PinnedBuffer memory_;
  std::array<std::optional<StreamMark>, kSlots> read_;
  std::size_t next_ = 0;
};
thread_local SmallUploads small_uploads;
#endif

}  // namespace

PoolLane::PoolLane(int lane) : outer_(current_lane) { current_lane = lane; }
PoolLane::~PoolLane() { current_lane = outer_; }

void* pool_allocate(const char* name, std::size_t bytes) {
  return pool().allocate(name, bytes, thread_number.value() * kLanes + current_lane);
}
void pool_release(void* block) noexcept { pool().release(block); }
void pool_set_extent(void* block, std::size_t bytes) noexcept { pool().set_extent(block, bytes); }
void pool_watch(const std::vector<std::vector<std::string>>& left_out) { pool().watch(left_out); }
void pool_set_limit(std::size_t bytes) { pool().set_limit(bytes); }
void pool_trim() { pool().trim(); }
PoolReport pool_report() { return pool().report(); }

PinnedBuffer::~PinnedBuffer() { release(); }

void PinnedBuffer::release() noexcept {
#if defined(__CUDACC__)
  succeeded(cudaFreeHost(data_));
#else
  std::free(data_);
#endif
  data_ = nullptr;
  capacity_ = 0;
}

void PinnedBuffer::reserve(std::size_t bytes) {
  if (bytes <= capacity_) return;
  release();
#if defined(__CUDACC__)
  void* block = nullptr;
  check_cuda(cudaMallocHost(&block, bytes), "page-locked host memory for messages");
  data_ = static_cast<char*>(block);
#else
  data_ = static_cast<char*>(std::malloc(bytes));
  if (data_ == nullptr) throw DeviceError("out of memory for messages", std::to_string(bytes) + " bytes at once");
#endif
  capacity_ = bytes;
}

void copy_to_device(const Stream& stream, void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
#if defined(__CUDACC__)
  if (bytes <= kSmallCopy && small_uploads.queue(stream, to, from, bytes)) return;
#endif
  transfers().to_device += bytes;
#if defined(__CUDACC__)
  ++transfers().waits;
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, native(stream)), "copy to the device");
  stream.synchronize();  // `from` is pageable memory of the caller
#else
  if (bytes > kSmallCopy) ++transfers().waits;
  (void)stream;
  std::memcpy(to, from, bytes);
#endif
}

void copy_to_host(const Stream& stream, void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  transfers().to_host += bytes;
  ++transfers().waits;
#if defined(__CUDACC__)
  const bool small = bytes <= kSmallCopy;
  if (small) small_copies.reserve(kSmallCopy);
  void* const first = small ? small_copies.data() : to;
  check_cuda(cudaMemcpyAsync(first, from, bytes, cudaMemcpyDeviceToHost, native(stream)), "copy to the host");
  stream.synchronize();
  if (small) std::memcpy(to, first, bytes);
#else
  (void)stream;
  std::memcpy(to, from, bytes);
#endif
}

void queue_copy_to_device(const Stream& stream, void* to, const void* pinned, std::size_t bytes) {
  if (bytes == 0) return;
  transfers().to_device += bytes;
#if defined(__CUDACC__)
  check_cuda(cudaMemcpyAsync(to, pinned, bytes, cudaMemcpyHostToDevice, native(stream)), "copy to the device");
#else
  (void)stream;
  std::memcpy(to, pinned, bytes);
#endif
}

void queue_copy_to_host(const Stream& stream, void* pinned, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  transfers().to_host += bytes;
#if defined(__CUDACC__)
  check_cuda(cudaMemcpyAsync(pinned, from, bytes, cudaMemcpyDeviceToHost, native(stream)), "copy to the host");
#else
  (void)stream;
  std::memcpy(pinned, from, bytes);
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

TransferCounters transfer_counters() {
  const Transfers& t = transfers();
  return {t.to_device, t.to_host, t.waits};
}

void reset_transfer_counters() {
  Transfers& t = transfers();
  t.to_device = t.to_host = t.waits = 0;
}

void count_to_host(std::size_t bytes) {
  transfers().to_host += bytes;
  ++transfers().waits;
}

}  // namespace maki
