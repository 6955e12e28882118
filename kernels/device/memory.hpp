// Device memory: a pool of named blocks, copies to and from it, and the memory and processors of the host. A steady
// step asks the system for no memory, and every byte is accounted for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace maki {

class Stream;

// A block of the selected device's memory, not initialised. The pool asks the system only where no free block is large
// enough (block_pool.hpp). Throws DeviceError, which names the array, where memory is short.
void* pool_allocate(const char* name, std::size_t bytes);
void pool_release(void* block) noexcept;
// Sets the extent: the owner uses only the first `bytes` of its block, and what lies beyond is out of bounds.
void pool_set_extent(void* block, std::size_t bytes) noexcept;
// Gives unused memory back to the system.
void pool_trim();
// Limits the memory held from the system on the selected device to `bytes`: the pool returns unused memory, then
// refuses requests. 0: no limit.
void pool_set_limit(std::size_t bytes);

// For estimates: upper bound on the bytes in unfilled ends of the pool's segments.
inline constexpr double kPoolRoundingBytes = 40e6;

// While it lives, this thread's blocks come from its lane `lane` (default 0; below kLanes). A block returns to the lane
// that it came from, and only that lane hands it out again. The reason: queued work of one stream may still use a block
// that its owner has released. So each concurrent stream has its own lane, and no two streams share one at a time.
// Lanes belong to a thread. When the thread ends, and its streams with it, the next new thread takes its lanes over.
// Where streams and buffers go from thread to thread, their threads take turns (DeviceTurn).
class PoolLane {
 public:
  explicit PoolLane(int lane);
  ~PoolLane();
  PoolLane(const PoolLane&) = delete;
  PoolLane& operator=(const PoolLane&) = delete;

 private:
  int outer_;
};
inline constexpr int kLanes = 16;  // of a thread
inline constexpr int kMeshLane = 1;

// A live block as its owner sees it.
struct PoolBlock {
  const char* name;
  const char* begin;
  std::size_t bytes;  // the extent, without rounding and headroom
};

struct PoolUse {
  std::string name;
  std::size_t bytes = 0;
};

// A high-water mark: the arrays and their sizes when their sum was largest.
struct PoolPeak {
  std::vector<std::string> left_out;  // arrays whose names have these prefixes were not counted
  std::size_t bytes = 0;
  std::vector<PoolUse> arrays;  // largest first
};

struct PoolReport {
  std::size_t in_use = 0;                // bytes handed out now
  std::size_t high_water = 0;            // most bytes handed out at one time
  std::size_t reserved = 0;              // bytes held from the system
  std::size_t reserved_here = 0;         // on the selected device
  std::size_t most_reserved = 0;         // most bytes held from the system at one time
  std::uint64_t system_allocations = 0;  // requests to the system
  std::vector<PoolUse> arrays;           // live blocks by name, largest first
  std::vector<PoolPeak> peaks;           // of all arrays, then those of pool_watch()
};
// Resets all high-water marks to the present use, and adds one mark for each entry, which leaves out its prefixes.
void pool_watch(const std::vector<std::vector<std::string>>& left_out);
PoolReport pool_report();

// Host memory that the device copies from and to at full speed (page-locked); plain memory on the CPU. For staging: it
// only grows, and growing loses its contents.
class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  ~PinnedBuffer();
  PinnedBuffer(const PinnedBuffer&) = delete;
  PinnedBuffer& operator=(const PinnedBuffer&) = delete;

  // Throws DeviceError where the system cannot lock as much memory.
  void reserve(std::size_t bytes);
  char* data() { return data_; }
  std::size_t capacity() const { return capacity_; }

 private:
  void release() noexcept;
  char* data_ = nullptr;
  std::size_t capacity_ = 0;
};

// Copies; `bytes` is counted in transfer_counters(). On the CPU these are memcpy, counted likewise. After
// copy_to_device() the caller may change `from`. Up to 4 KiB are copied without a wait, unless 64 such copies are under
// way.
void copy_to_device(const Stream& stream, void* to, const void* from, std::size_t bytes);
void copy_to_host(const Stream& stream, void* to, const void* from, std::size_t bytes);  // returns when done
void copy_on_device(const Stream& stream, void* to, const void* from, std::size_t bytes);
void fill_zero(const Stream& stream, void* to, std::size_t bytes);

// As copy_to_device() and copy_to_host(), counted likewise, but without waiting. The host's side is page-locked memory
// (PinnedBuffer), not to be touched until `stream` has completed the copy. Throw DeviceError.
void queue_copy_to_device(const Stream& stream, void* to, const void* pinned, std::size_t bytes);
void queue_copy_to_host(const Stream& stream, void* pinned, const void* from, std::size_t bytes);

struct TransferCounters {
  std::uint64_t to_device = 0;  // bytes
  std::uint64_t to_host = 0;    // bytes
  std::uint64_t waits = 0;      // times that the host waited for a copy
};
TransferCounters transfer_counters();
void reset_transfer_counters();
// For results that reach the host in another way (a Thrust reduction's return value).
void count_to_host(std::size_t bytes);

// Memory that this process may still take, bytes: the kernel's MemAvailable, or the rest within the limits of this
// process's control groups where that is less. 0 where neither is known. `root` is prepended to /proc and /sys, for
// tests.
std::size_t host_memory_available(const std::string& root = "");

// Processors whose time this process's control groups (of a container, of a job) may take, as 1.5: cpu.max, or
// cpu.cfs_quota_us of the first version. Infinite without a limit. `root`: as above.
double processor_quota(const std::string& root = "");

}  // namespace maki
