// The rules of the shadow memory: what is ordered, and what has to be remembered. For every access, so inline.
#pragma once

#include <bit>

#include "tests/simt/runtime.hpp"

#define MAKI_COLD [[gnu::noinline, gnu::cold]]

namespace maki::simt {

// Whether the running thread knows of the accesses of `others`, lanes of its own warp.
bool lanes_ordered(const Slot& s, std::uint32_t others);
// Adds the running lane to lanes of its warp with other clocks.
void spill(Slot& s);
// The four cells of a word's bytes.
Cell* bytes_of(Cell& cell);

// Shared memory knows nothing of earlier blocks, global memory nothing of earlier launches.
inline std::uint32_t oldest_phase(const Region& region) { return region.shared() ? hot.block_start : hot.launch_start; }

// Whether all of `s` comes before the running thread's present, or is its own.
inline bool ordered(const Slot& s, std::uint32_t oldest) {
  if (s.phase != hot.phase) return s.phase < oldest || s.phase >= hot.block_start || acquired(s);
  if (s.flags & kSeveral || s.warp != hot.warp) return false;
  const std::uint32_t others = s.lanes & ~hot.bit;
  if (others == 0 || (!(s.flags & kSpilled) && s.clock <= hot.known)) return true;
  return lanes_ordered(s, others);
}

inline void set_single(Slot& s, std::uint32_t pc, std::uint8_t flags) {
  s = {hot.phase, hot.bit, hot.clock, pc, 0, 0, static_cast<std::uint8_t>(hot.warp), flags};
}

// Adds the running thread to a set of accesses of the same kind. What comes before it needs no longer be remembered.
inline void add(Slot& s, std::uint32_t pc, std::uint8_t flags) {
  if (s.phase != hot.phase) return set_single(s, pc, flags);
  if (s.flags & kSeveral) return;
  if (s.warp != hot.warp) {
    s.flags = static_cast<std::uint8_t>((s.flags & ~kSpilled) | kSeveral);
    s.second = pc;
    s.second_thread = static_cast<std::uint16_t>(hot.warp * kLanes + std::countr_zero(hot.bit));
    return;
  }
  if (!(s.flags & kSpilled) && s.clock == hot.clock) {
    s.lanes |= hot.bit;
    return;
  }
  const std::uint32_t others = s.lanes & ~hot.bit;
  if (others == 0 || lanes_ordered(s, others)) return set_single(s, pc, flags);
  spill(s);
}

inline bool is_split(const Cell& cell) { return cell.write.flags & kSplit && cell.write.phase >= hot.launch_start; }

}  // namespace maki::simt
