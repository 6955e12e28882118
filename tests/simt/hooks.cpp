// Every access of instrumented code arrives here; those of kernels are checked against the shadow memory.
#include <bit>

#include "tests/simt/shadow.hpp"

namespace maki::simt {
namespace {

struct Where {
  const Region& region;
  std::uintptr_t address;
  std::size_t size;
  std::uint32_t pc;
};

[[noreturn]] MAKI_COLD void fail_race(const Where& at, Access access, const Slot& s, Access other) {
  const Pause pause;
  Report report{.kind = FaultKind::race, .pc = at.pc, .has_other = true};
  report.buffer = at.region.name;
  report.what = verb(access) + span_of(at.region, at.address, at.size);
  report.other_what = other == Access::read    ? "read there"
                      : other == Access::write ? "wrote there"
                                               : "changed it atomically";
  report.other_what += s.phase == hot.phase ? ", and nothing orders the two" : ", and nothing orders two blocks";
  report.other_pc = s.pc;
  report.other_block = block_of_phase(s.phase);
  std::uint32_t others = s.lanes;
  if (s.phase == hot.phase && s.warp == hot.warp) {
    if (s.flags & kSeveral) {
      report.other_thread = s.second_thread;
      report.other_pc = s.second;
      fail(std::move(report));
    }
    others &= ~hot.bit;
    while (others & (others - 1) && lanes_ordered(s, others & -others)) others &= others - 1;
  }
  if (others) report.other_thread = s.warp * static_cast<int>(kLanes) + std::countr_zero(others);
  fail(std::move(report));
}

[[noreturn]] MAKI_COLD void fail_at(const Where& at, FaultKind kind, Access access, const char* why,
                                    const Slot* other = nullptr, const char* other_what = "") {
  const Pause pause;
  Report report{.kind = kind, .pc = at.pc};
  report.buffer = at.region.name;
  report.what = verb(access) + span_of(at.region, at.address, at.size) + why;
  if (other) {
    report.has_other = true;
    report.other_pc = other->pc;
    report.other_thread = other->warp * static_cast<int>(kLanes) + std::countr_zero(other->lanes);
    report.other_block = running.block;
    report.other_what = other_what;
  }
  fail(std::move(report));
}

Slot older(std::uint32_t phase, std::uint32_t pc) { return {phase, 0, 0, pc, 0, 0, 0, 0}; }

inline bool of_earlier_block(std::uint32_t phase, std::uint32_t oldest) {
  return phase < hot.block_start && phase >= oldest;
}

// The others go on: one that still comes to write here makes it a race, else it is known that none does.
template <Access access>
[[noreturn]] MAKI_COLD void read_unwritten(Cell& cell, const Where& at) {
  add(cell.read, at.pc, 0);
  const Pause pause;
  wait_for_all_others();
  fail_at(at, FaultKind::unwritten, access, ", which this block has not written");
}

// Against what is known of the cell, then noted in it.
template <Access access>
inline void touch_cell(Cell& cell, const Where& at, std::uint32_t oldest, bool initialises) {
  Slot& write = cell.write;
  if (write.phase >= hot.block_start && write.flags & kInFlight)
    fail_at(at, FaultKind::unlanded_copy, access, ", where an asynchronous copy has not landed", &write,
            "started the copy");
  if (!initialises && write.phase < oldest && at.region.shared()) read_unwritten<access>(cell, at);
  if (!(access == Access::atomic && write.flags & kAtomic) && !ordered(write, oldest))
    fail_race(at, access, write, write.flags & kAtomic ? Access::atomic : Access::write);
  if constexpr (access == Access::read) {
    if (of_earlier_block(cell.read.phase, oldest)) cell.older_read = cell.read.phase, cell.older_read_pc = cell.read.pc;
    add(cell.read, at.pc, 0);
    if (of_earlier_block(cell.older_atomic, oldest)) {
      const Slot s = older(cell.older_atomic, cell.older_atomic_pc);
      if (!acquired(s)) fail_race(at, access, s, Access::atomic);
    }
    return;
  }
  if (!ordered(cell.read, oldest)) fail_race(at, access, cell.read, Access::read);
  if (of_earlier_block(cell.older_read, oldest)) {
    const Slot s = older(cell.older_read, cell.older_read_pc);
    if (!acquired(s)) fail_race(at, access, s, Access::read);
  }
  if constexpr (access == Access::atomic) {
    if (of_earlier_block(write.phase, oldest)) cell.older_atomic = write.phase, cell.older_atomic_pc = write.pc;
    if (write.flags & kAtomic)
      add(write, at.pc, kAtomic);
    else
      set_single(write, at.pc, kAtomic);
  } else {
    if (of_earlier_block(cell.older_atomic, oldest)) {
      const Slot s = older(cell.older_atomic, cell.older_atomic_pc);
      if (!acquired(s)) fail_race(at, access, s, Access::atomic);
    }
    set_single(write, at.pc, 0);
  }
  cell.read.phase = 0;
}

template <class F>
MAKI_COLD void for_bytes(Region& region, std::uintptr_t address, std::size_t size, const F& f) {
  for (std::uintptr_t a = address; a < address + size; ++a) {
    Cell& word = region.cells[(a - region.begin) / 4];
    f(bytes_of(word)[(a - region.begin) % 4]);
  }
}

template <class F>
inline void for_cells(Region& region, std::uintptr_t address, std::size_t size, const F& f) {
  if ((address | size) & 3) return for_bytes(region, address, size, f);
  Cell* cell = region.cells + (address - region.begin) / 4;
  for (Cell* end = cell + size / 4; cell != end; ++cell) {
    if (is_split(*cell))
      for_bytes(region, region.begin + static_cast<std::size_t>(cell - region.cells) * 4, 4, f);
    else
      f(*cell);
  }
}

inline Region& region_of(Access access, std::uintptr_t address, std::size_t size, std::uint32_t pc) {
  Region*& recent = hot.recent[(pc ^ pc >> 10) % std::size(hot.recent)];
  Region* region = recent;
  if (!region || address < region->begin || address + size > region->begin + region->bytes ||
      (!region->cells && access != Access::read))
    recent = region = find_region(address, size, access, pc);
  if (region->shared() && region->block != hot.block_serial) refresh(*region);
  return *region;
}

// `initialises`: does not depend on what was there.
template <Access access, bool initialises = access == Access::write>
inline void check(const void* p, std::size_t size, bool aligned, std::uint32_t pc) {
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  if (address - hot.stack < kStackBytes) return;
  ++hot.accesses;
  if (--hot.budget == 0) give_way_now();
  Region& region = region_of(access, address, size, pc);
  const Where at{region, address, size, pc};
  if (aligned && address & (size - 1)) fail_at(at, FaultKind::misaligned, access, ", a misaligned address");
  if (!region.cells) return;
  const std::uint32_t oldest = oldest_phase(region);
  for_cells(region, address, size, [&](Cell& cell) { touch_cell<access>(cell, at, oldest, initialises); });
}

}  // namespace

void check_read(const void* address, std::size_t size, std::uint32_t pc) {
  check<Access::read>(address, size, true, pc);
}

void check_atomic(const void* address, std::size_t size, bool reads, std::uint32_t pc) {
  if (reads)
    check<Access::atomic, false>(address, size, true, pc);
  else
    check<Access::atomic, true>(address, size, true, pc);
}

void check_issue(const void* shared, std::size_t size, std::uint32_t pc) {
  check<Access::write>(shared, size, true, pc);
  const auto address = reinterpret_cast<std::uintptr_t>(shared);
  for_cells(region_of(Access::write, address, size, pc), address, size, [](Cell& c) { c.write.flags |= kInFlight; });
}

void check_landing(const void* shared, std::size_t size, std::uint32_t pc) {
  const auto address = reinterpret_cast<std::uintptr_t>(shared);
  for_cells(region_of(Access::write, address, size, pc), address, size, [](Cell& c) { c.write.flags &= ~kInFlight; });
  check<Access::write>(shared, size, true, pc);
}

}  // namespace maki::simt

// ---- what the compiler calls --------------------------------------------------------------------------------------
using maki::simt::Access;
using maki::simt::check;
using maki::simt::hot;
using maki::simt::place_of;

#define MAKI_HERE place_of(__builtin_return_address(0))
#define MAKI_HOOKS(size)                                             \
  void __tsan_read##size(void* p) {                                  \
    if (hot.active) check<Access::read>(p, size, true, MAKI_HERE);   \
  }                                                                  \
  void __tsan_write##size(void* p) {                                 \
    if (hot.active) check<Access::write>(p, size, true, MAKI_HERE);  \
  }                                                                  \
  void __tsan_unaligned_read##size(void* p) {                        \
    if (hot.active) check<Access::read>(p, size, false, MAKI_HERE);  \
  }                                                                  \
  void __tsan_unaligned_write##size(void* p) {                       \
    if (hot.active) check<Access::write>(p, size, false, MAKI_HERE); \
  }

extern "C" {
MAKI_HOOKS(1)
MAKI_HOOKS(2)
MAKI_HOOKS(4)
MAKI_HOOKS(8)
MAKI_HOOKS(16)
void __tsan_read_range(void* p, unsigned long size) {
  if (hot.active && size) check<Access::read>(p, size, false, MAKI_HERE);
}
void __tsan_write_range(void* p, unsigned long size) {
  if (hot.active && size) check<Access::write>(p, size, false, MAKI_HERE);
}
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_read(void**) {}
void __tsan_vptr_update(void**, void*) {}

// Calls that copy and fill memory, by the linker's --wrap.
void* __real_memcpy(void* to, const void* from, std::size_t size);
void* __real_memmove(void* to, const void* from, std::size_t size);
void* __real_memset(void* to, int value, std::size_t size);

void* __wrap_memcpy(void* to, const void* from, std::size_t size) {
  if (hot.active && size)
    check<Access::read>(from, size, false, MAKI_HERE), check<Access::write>(to, size, false, MAKI_HERE);
  return __real_memcpy(to, from, size);
}
void* __wrap_memmove(void* to, const void* from, std::size_t size) {
  if (hot.active && size)
    check<Access::read>(from, size, false, MAKI_HERE), check<Access::write>(to, size, false, MAKI_HERE);
  return __real_memmove(to, from, size);
}
void* __wrap_memset(void* to, int value, std::size_t size) {
  if (hot.active && size) check<Access::write>(to, size, false, MAKI_HERE);
  return __real_memset(to, value, size);
}
}
