// The allocator behind pool_allocate(): blocks cut from large segments, with names, lanes and high-water marks.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kernels/device/memory.hpp"

namespace maki {

// The source of segments; allocate returns nullptr when there is no more memory.
struct SystemMemory {
  void* (*allocate)(std::size_t bytes);
  void (*release)(void* block);
};

// Best fit: a request takes the smallest free block of its lane (PoolLane, memory.hpp) that is large enough. The rest
// of the block stays free, and free neighbours are merged. So arrays that grow slowly, and the scratch of successive
// phases, reuse the same memory. Requests below 1 MiB have segments of their own, so that they do not fragment the
// memory of large arrays. Each device has memory and lanes of its own; `device` is the selected one.
class BlockPool {
 public:
  explicit BlockPool(SystemMemory system) : system_(system) {}

  // pool_allocate() and the others of memory.hpp. allocate() throws DeviceError, which names the array.
  void* allocate(const char* name, std::size_t bytes, int lane, int device = 0);
  void release(void* block) noexcept;
  void set_extent(void* block, std::size_t bytes) noexcept;
  std::vector<PoolBlock> blocks();
  PoolReport report(int device = 0);
  void watch(const std::vector<std::vector<std::string>>& left_out);
  void set_limit(std::size_t bytes, int device = 0);
  void trim();

 private:
  struct Kind {
    int device, lane;
    bool small;
    auto operator<=>(const Kind&) const = default;
  };
  struct Block {
    std::size_t bytes;
    const char* segment;  // its first byte
    Kind kind;
    const char* name;    // nullptr: free
    std::size_t extent;  // bytes that the owner uses
  };
  using Blocks = std::map<char*, Block>;
  using FreeBlocks = std::set<std::pair<std::size_t, char*>>;
  struct Held {
    std::size_t reserved = 0, limit = 0;  // 0: no limit
  };
  struct Watch {
    std::vector<std::string> left_out;
    std::size_t now = 0, peak = 0;
    std::vector<std::pair<std::string_view, std::size_t>> arrays;  // at the peak
    bool counts(std::string_view name) const;
  };

  static bool splits_much(const Block& block, std::size_t wanted);
  Blocks::iterator take_free(std::size_t bytes, Kind kind);
  Blocks::iterator add_segment(std::size_t bytes, Kind kind);
  void* ask_system(std::size_t bytes, int device);
  void join_with_next(Blocks::iterator block);
  void add_use(const char* name, std::ptrdiff_t bytes);
  void trim_locked();
  std::vector<PoolUse> sorted_table(const std::vector<std::pair<std::string_view, std::size_t>>& arrays) const;

  SystemMemory system_;
  std::mutex mutex_;
  Blocks blocks_;  // by address, free ones too
  std::map<Kind, FreeBlocks> free_;
  std::unordered_map<std::string_view, std::size_t> by_name_;
  std::vector<Watch> watches_{1};  // the first counts all arrays
  std::map<int, Held> held_;       // of each device
  std::size_t in_use_ = 0, reserved_ = 0, most_reserved_ = 0;
  std::uint64_t system_allocations_ = 0;
};

}  // namespace maki
