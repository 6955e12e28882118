// Asynchronous copies from global to shared memory: they land where the thread waits for them, and not before.
#include <algorithm>
#include <cstring>

#include "tests/gpu_model/interpreter/handlers.hpp"
#include "tests/gpu_model/interpreter/memory.hpp"

namespace gpu_model {
namespace {

void begin_copy(Warp& w, const Instruction& i) {
  const auto* to = i.address == kNoRow ? nullptr : row<const std::uint32_t>(w, i.address);
  const auto* from = row<const std::uint64_t>(w, i.from[0]);
  const auto* read = i.from[1] == kNoRow ? nullptr : row<const std::uint32_t>(w, i.from[1]);
  Block& b = *w.block;
  Address target[kLanes], source[kLanes];
  Lanes unused[4] = {};
  for (Lanes m = w.active; m; m &= m - 1) {
    const unsigned l = first_lane(m);
    PendingCopy c;
    c.to = (to ? to[l] : 0) + static_cast<std::uint32_t>(i.offset);
    target[l] = c.to;
    c.from = source[l] = from[l];
    c.bytes = i.bytes;
    c.read = static_cast<std::uint8_t>(read ? std::min<std::uint32_t>(read[l], i.bytes) : i.bytes);
    c.group = w.copy_groups[l];
    c.instruction = static_cast<std::uint32_t>(&i - b.kernel->code.data());
    // Another thread's use of the place before is a race already now.
    check_shared(w, i, m & -m, target, Use::kWrite, c.bytes, unused);
    ++b.copies_under_way;
    std::memset(b.landing.data() + c.to, 1, c.bytes);
    std::memset(b.shared.data() + c.to, 0xff, c.bytes);
    if (c.read) check_global(w, i, m & -m, source, Use::kRead, c.read, unused);
    w.copies[l].push_back(c);
  }
  count_sectors(w, i, w.active, source);
}

void land(Warp& w, unsigned l, const PendingCopy& c) {
  Block& b = *w.block;
  const Instruction& i = b.kernel->code[c.instruction];
  std::memset(b.landing.data() + c.to, 0, c.bytes);
  --b.copies_under_way;
  Address target[kLanes], source[kLanes];
  target[l] = c.to, source[l] = c.from;
  Lanes undefined[4] = {};
  check_shared(w, i, 1u << l, target, Use::kWrite, c.bytes, undefined);
  if (c.read) std::memcpy(b.shared.data() + c.to, view(c.from), c.read);
  std::memset(b.shared.data() + c.to + c.read, 0, static_cast<std::size_t>(c.bytes - c.read));
  if (c.read) check_global(w, i, 1u << l, source, Use::kRead, c.read, undefined);
  for (unsigned n = 0; n < c.read; n += 4)
    if (undefined[n / 4]) unwrite(w, i, l, b.shared.data() + c.to + n, std::min(4u, c.read - n));
}

void commit_copies(Warp& w, const Instruction&) {
  for (Lanes m = w.active; m; m &= m - 1) ++w.copy_groups[first_lane(m)];
}

// Until no more than `extra` of the committed groups are under way; 0xffff: all copies.
void wait_for_copies(Warp& w, const Instruction& i) {
  for (Lanes m = w.active; m; m &= m - 1) {
    const unsigned l = first_lane(m);
    auto& copies = w.copies[l];
    std::size_t landed = 0;
    for (; landed < copies.size(); ++landed) {
      const bool committed = copies[landed].group < w.copy_groups[l];
      if (i.extra != 0xffff && !(committed && copies[landed].group + i.extra < w.copy_groups[l])) break;
      land(w, l, copies[landed]);
    }
    copies.erase(copies.begin(), copies.begin() + static_cast<std::ptrdiff_t>(landed));
  }
}

}  // namespace

Handler asynchronous_copy(const Words& words, Instruction& i) {
  i.taint = Taint::kOwn;
  i.kind = Class::kGlobal;
  if (has(words, "shared") || has(words, "shared::cta")) return begin_copy;
  i.kind = Class::kWarp;
  if (has(words, "commit_group")) return commit_copies;
  if (has(words, "wait_all")) i.extra = 0xffff;
  return has(words, "wait_group") || has(words, "wait_all") ? wait_for_copies : nullptr;
}

}  // namespace gpu_model
