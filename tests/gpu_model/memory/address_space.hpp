// Addresses that a kernel may use: device memory of all modelled GPUs, blocks that Maki's pool has cut from it,
// page-locked host memory.
//
// Device memory is mapped twice. The program gets the first address, which nobody can read or write (a host that
// follows a device pointer faults, and is told so); the model uses view(address), which is kView further on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tests/gpu_model/memory/work.hpp"

namespace gpu_model {

using Address = std::uintptr_t;

enum class ExtentKind { kDevice, kPoolBlock, kPageLocked };

struct Extent {
  Address begin = 0, end = 0;
  ExtentKind kind = ExtentKind::kDevice;
  int device = 0;
  WorkNumber made = 0;    // the first work that may use it, and ...
  WorkNumber gone = ~0u;  // ... the first that may not
  std::string name;       // of a pool's block
  bool cut = false;       // a piece of device memory that the pool has cut up: only its blocks may be used
};

// One range for all devices' memory. Both views and the shadow are reserved at the start.
inline constexpr Address kDeviceBegin = 0x10'0000'0000'00;         // 2^44
inline constexpr std::size_t kDeviceBytes = std::size_t{1} << 38;  // 256 GiB of addresses
inline constexpr Address kView = Address{1} << 40;                 // from an address to the model's own view of it
inline bool on_device(Address a) { return a - kDeviceBegin < kDeviceBytes; }
// Where the model reads and writes what the program calls `a`: device memory through its second mapping, else `a`
// itself.
inline char* view(Address a) { return reinterpret_cast<char*>(on_device(a) ? a + kView : a); }

inline constexpr int kPoison = 0xff;  // of each byte: numbers of it are NaNs
// 256-byte aligned; 0 when the modelled GPU's memory is full. Poisoned where it is given out.
Address allocate_device(int device, std::size_t bytes);
Address allocate_page_locked(std::size_t bytes);
bool free_memory(Address a);  // false: not what one of these gave, or freed already. No queued work may use it.

// Blocks of the program's own pool, by name; to be called by hooks around its functions.
void pool_block_made(Address a, std::size_t bytes, const std::string& name);
void pool_block_extent(Address a, std::size_t bytes);
void pool_block_gone(Address a);

// The innermost extent that holds `a` and that `work` may use, or nullptr. Stays valid until the next call that makes
// or frees memory. `Extent::end` bounds how far an access may go.
const Extent* find_extent(Address a, WorkNumber work);
// Whether the memory is another GPU's than that on which `work` is done.
bool belongs_to_another_gpu(const Extent& extent, WorkNumber work);
// Device memory or page-locked memory that holds `a` now, cut up or not.
const Extent* find_base(Address a);
std::size_t device_bytes_used(int device);
// Words for messages about an address that may not be used: "12 bytes behind the pool's block lists.words (4096
// bytes)", "in memory that was freed (...)", "the host's memory".
std::string whereabouts(Address a, WorkNumber work);

}  // namespace gpu_model
