// Where an access may go: buffers, shared memory, arguments, constants.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <unordered_map>

#include "kernels/device/memory.hpp"
#include "tests/simt/runtime.hpp"

namespace maki::simt {
namespace {

constexpr int kUnwrittenPattern = 0xff;  // a NaN, or a very large index
constexpr std::size_t kSharedArena = std::size_t{1} << 20, kSharedOffset = kSharedArena / 2;

struct Shadow {
  Cell* cells = nullptr;
  std::size_t count = 0;
};

struct Memory {
  std::vector<Region> buffers;  // of this launch, by address
  std::unordered_map<const void*, Shadow> shadows;
  Region dynamic{}, arguments{};
  std::vector<Region> constants;
  char* arena = nullptr;
};

Memory& memory() {
  static Memory* instance = new Memory;
  return *instance;
}

std::size_t cells_for(std::size_t bytes) { return (bytes + 3) / 4; }

Cell* shadow_of(const void* begin, std::size_t bytes) {
  Shadow& shadow = memory().shadows[begin];
  const std::size_t wanted = cells_for(bytes);
  if (wanted > shadow.count) {
    if (shadow.cells) release_reserved(shadow.cells, shadow.count * sizeof(Cell));
    shadow.count = std::max<std::size_t>(wanted, 1024);
    shadow.cells = static_cast<Cell*>(reserve(shadow.count * sizeof(Cell)));
  }
  return shadow.cells;
}

void forget_shadows() {
  for (auto& [begin, shadow] : memory().shadows) release_reserved(shadow.cells, shadow.count * sizeof(Cell));
  memory().shadows.clear();
}

bool holds(const Region& r, std::uintptr_t address) { return address - r.begin < r.bytes; }

Region* lookup(std::uintptr_t address) {
  Memory& m = memory();
  if (holds(m.dynamic, address)) return &m.dynamic;
  if (holds(m.arguments, address)) return &m.arguments;
  const auto after = std::upper_bound(m.buffers.begin(), m.buffers.end(), address,
                                      [](std::uintptr_t a, const Region& r) { return a < r.begin; });
  if (after != m.buffers.begin() && holds(*(after - 1), address)) return &*(after - 1);
  auto& statics = static_shared();
  const auto next = std::upper_bound(statics.begin(), statics.end(), address,
                                     [](std::uintptr_t a, const Region& r) { return a < r.begin; });
  if (next != statics.begin() && holds(*(next - 1), address)) return &*(next - 1);
  for (Region& r : m.constants)
    if (holds(r, address)) return &r;
  return nullptr;
}

// What an address outside everything is nearest to, for the message.
const Region* nearest(std::uintptr_t address) {
  Memory& m = memory();
  const auto arena = reinterpret_cast<std::uintptr_t>(m.arena);
  if (m.arena && address - arena < kSharedArena) return &m.dynamic;
  for (const Segment& s : segments())
    if (address >= s.begin && address < s.end) return static_shared_near(address);
  const Region* best = nullptr;
  std::uintptr_t distance = std::uintptr_t{1} << 30;  // farther away it says nothing
  for (const Region& r : m.buffers) {
    const std::uintptr_t d = address < r.begin ? r.begin - address : address - (r.begin + r.bytes);
    if (d < distance) best = &r, distance = d;
  }
  return best;
}

[[noreturn]] void fail_outside(std::uintptr_t address, std::size_t size, Access access, std::uint32_t pc,
                               const Region* region) {
  Report report{.kind = FaultKind::out_of_bounds, .pc = pc};
  report.what = verb(access) + std::to_string(size) + " bytes ";
  if (!region && is_stack(address)) {
    report.what += "on the stack of another thread";
  } else if (!region) {
    report.what += "outside every buffer, in memory of the host (kernels take their arguments by value)";
  } else if (region->kind == Region::Kind::read_only || region->kind == Region::Kind::arguments) {
    report.buffer = region->name;
    report.what += "in " + region->name + ", which can only be read";
  } else {
    report.buffer = region->name;
    report.what = verb(access) + span_of(*region, address, size) + ", which has " + std::to_string(region->bytes) +
                  " bytes";
  }
  fail(std::move(report));
}

}  // namespace

const char* verb(Access access) {
  return access == Access::read ? "reads " : access == Access::write ? "writes " : "atomically changes ";
}

std::string span_of(const Region& region, std::uintptr_t address, std::size_t size) {
  const auto offset = static_cast<std::ptrdiff_t>(address - region.begin);
  return std::to_string(size) + (size == 1 ? " byte" : " bytes") + " at offset " + std::to_string(offset) + " of '" +
         region.name + "'";
}

void* reserve(std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return memory;
}

void release_reserved(void* memory, std::size_t bytes) { munmap(memory, bytes); }

void start_launch_memory(const void* callable, std::size_t callable_bytes) {
  Memory& m = memory();
  if (!m.arena) {
    m.arena = static_cast<char*>(reserve(kSharedArena));
    for (const Segment& s : segments())
      if (!s.writable)
        m.constants.push_back({Region::Kind::read_only, s.begin, s.end - s.begin, nullptr, "the program's constants"});
  }
  if (m.shadows.size() > 4096) forget_shadows();
  m.buffers.clear();
  for (const PoolBlock& b : pool_blocks())
    if (b.bytes > 0)
      m.buffers.push_back({Region::Kind::buffer, reinterpret_cast<std::uintptr_t>(b.begin), b.bytes,
                           shadow_of(b.begin, b.bytes), b.name});
  m.dynamic = {Region::Kind::dynamic_shared, reinterpret_cast<std::uintptr_t>(m.arena + kSharedOffset),
               running.shared_bytes, shadow_of(m.arena, kMostShared), "dynamic shared memory"};
  m.arguments = {Region::Kind::arguments, reinterpret_cast<std::uintptr_t>(callable), callable_bytes, nullptr,
                 "the kernel's arguments"};
  std::fill(std::begin(hot.recent), std::end(hot.recent), nullptr);
}

void start_block_memory() {
  if (running.shared_bytes > 0) refresh(memory().dynamic);
}

void* shared_memory() { return memory().arena + kSharedOffset; }

void refresh(Region& region) {
  const Pause pause;
  region.block = hot.block_serial;
  std::memset(reinterpret_cast<void*>(region.begin), kUnwrittenPattern, region.bytes);
}

Region* find_region(std::uintptr_t address, std::size_t size, Access access, std::uint32_t pc) {
  const Pause pause;
  Region* region = lookup(address);
  if (!region) fail_outside(address, size, access, pc, nearest(address));
  if (size > region->bytes - (address - region->begin)) fail_outside(address, size, access, pc, region);
  if (!region->cells && access != Access::read) fail_outside(address, size, access, pc, region);
  return region;
}

}  // namespace maki::simt
