// Device memory: a pool of blocks with names, so that a steady step allocates nothing and every byte can be accounted for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace maki {

class Stream;

// Blocks come from the pool and return to it; the pool asks the system only when no free block is large enough.
// Contents are not initialised. Throws DeviceError naming the array when memory is short.
void* pool_allocate(const char* name, std::size_t bytes);
void pool_release(void* block) noexcept;
// The owner uses the first `bytes` of its block only: what lies beyond is out of bounds, though allocated.
void pool_set_extent(void* block, std::size_t bytes) noexcept;
// Gives all unused blocks back to the system.
void pool_trim();

// A live block as its owner sees it. In order of addresses; tests/simt checks every access of a kernel against them.
struct PoolBlock {
  const char* name;
  const char* begin;
  std::size_t bytes;  // the extent, without what rounding and headroom added
};
std::vector<PoolBlock> pool_blocks();

struct PoolUse {
  std::string name;
  std::size_t bytes = 0;
};

struct PoolReport {
  std::size_t in_use = 0;              // bytes handed out now
  std::size_t high_water = 0;          // most bytes handed out at one time
  std::size_t reserved = 0;            // bytes held from the system
  std::uint64_t system_allocations = 0;  // how often the system was asked
  std::vector<PoolUse> arrays;         // live blocks by name, largest first
};
PoolReport pool_report();

// Copies; `bytes` is counted in transfer_counters(). On the CPU these are memcpy and are counted just the same.
void copy_to_device(const Stream& stream, void* to, const void* from, std::size_t bytes);
void copy_to_host(const Stream& stream, void* to, const void* from, std::size_t bytes);  // returns when done
void copy_on_device(const Stream& stream, void* to, const void* from, std::size_t bytes);
void fill_zero(const Stream& stream, void* to, std::size_t bytes);

struct TransferCounters {
  std::uint64_t to_device = 0;  // bytes
  std::uint64_t to_host = 0;    // bytes
};
TransferCounters transfer_counters();
void reset_transfer_counters();
// For results that reach the host another way (a Thrust reduction's return value).
void count_to_host(std::size_t bytes);

}  // namespace maki
