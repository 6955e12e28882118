// What a warp's lanes do together: shuffles, votes, reductions, matches, and the barriers.
#include <algorithm>

#include "tests/gpu_model/interpreter/operations.hpp"

namespace gpu_model {
namespace {

// Lanes that name another mask come on their own. False: the group waits for others.
bool together(Warp& w, const Instruction& i, Row mask_row, Lanes& mask) {
  const auto* masks = row<const std::uint32_t>(w, mask_row);
  mask = masks[first_lane(w.active)];
  Lanes same = 0;
  for (Lanes m = w.active; m; m &= m - 1)
    if (masks[first_lane(m)] == mask) same |= m & -m;
  if (same != w.active) {
    w.groups.push_back({place_of(w, i), w.active & ~same, Group::kReady, 0});
    w.stop = std::min(w.stop, place_of(w, i));
    set_active(w, same);
  }
  return meet(w, i, mask);
}

enum Way { kUp, kDown, kButterfly, kIndex };

template <Way kWay>
void shuffle(Warp& w, const Instruction& i) {
  Lanes mask = 0;
  if (!together(w, i, i.from[3], mask)) return;
  const auto* a = row<const std::uint32_t>(w, i.from[0]);
  const auto* b = row<const std::uint32_t>(w, i.from[1]);
  const auto* c = row<const std::uint32_t>(w, i.from[2]);
  const Lanes source_undefined = w.tainted && !(i.from[0] & kConstant) ? taint_of(w, i.from[0], 0) : 0;
  std::uint32_t v[kLanes] = {};
  Lanes in_range = 0, undefined = 0;
  for (Lanes m = w.active; m; m &= m - 1) {
    const unsigned l = first_lane(m), by = b[l] & 31, clamp = c[l] & 31, segment = c[l] >> 8 & 31;
    const int limit = static_cast<int>((l & segment) | (clamp & ~segment));
    const int from = kWay == kUp          ? static_cast<int>(l) - static_cast<int>(by)
                     : kWay == kDown      ? static_cast<int>(l + by)
                     : kWay == kButterfly ? static_cast<int>(l ^ by)
                                          : static_cast<int>((l & segment) | (by & ~segment));
    const bool inside = kWay == kUp ? from >= limit : from <= limit;
    const unsigned source = inside ? static_cast<unsigned>(from) : l;
    if (!(mask >> source & 1))
      fatal(w, i, l, "a lane missing from a mask",
            "a shuffle reads lane " + std::to_string(source) + ", which its mask leaves out");
    v[l] = a[source];
    in_range |= static_cast<Lanes>(inside) << l;
    undefined |= (source_undefined >> source & 1) << l;
  }
  each_lane(w, row<std::uint32_t>(w, i.to[0]), [&](unsigned l) { return v[l]; });
  if (w.tainted) set_taint(w, i.to[0], 32, w.active, undefined, 0);
  if (i.to[1] != kNoRow) {
    set_predicate(w, i.to[1], in_range);
    if (w.tainted) set_taint(w, i.to[1], 1, w.active, 0, 0);
  }
}

template <char kKind>
void vote(Warp& w, const Instruction& i) {
  Lanes mask = 0;
  if (!together(w, i, i.from[1], mask)) return;
  const Lanes p = (*row<Lanes>(w, i.from[0]) ^ (i.negated ? ~0u : 0)) & mask;
  if constexpr (kKind == 'b') {
    each_lane(w, row<std::uint32_t>(w, i.to[0]), [&](unsigned) { return p; });
  } else {
    const bool yes = kKind == 'y' ? p != 0 : p == mask;
    set_predicate(w, i.to[0], yes ? ~0u : 0);
  }
}

template <class Op>
void reduce(Warp& w, const Instruction& i) {
  Lanes mask = 0;
  if (!together(w, i, i.from[1], mask)) return;
  const auto* a = row<const std::uint32_t>(w, i.from[0]);
  std::uint32_t all = a[first_lane(mask)];
  for (Lanes m = mask & (mask - 1); m; m &= m - 1) all = Op::of(all, a[first_lane(m)]);
  each_lane(w, row<std::uint32_t>(w, i.to[0]), [&](unsigned) { return all; });
}

void match_any(Warp& w, const Instruction& i) {
  Lanes mask = 0;
  if (!together(w, i, i.from[1], mask)) return;
  const auto* a = row<const std::uint32_t>(w, i.from[0]);
  std::uint32_t v[kLanes] = {};
  for (Lanes m = mask; m; m &= m - 1)
    for (Lanes n = mask; n; n &= n - 1)
      if (a[first_lane(n)] == a[first_lane(m)]) v[first_lane(m)] |= n & -n;
  each_lane(w, row<std::uint32_t>(w, i.to[0]), [&](unsigned l) { return v[l]; });
}

void warp_barrier(Warp& w, const Instruction& i) {
  Lanes mask = 0;
  if (together(w, i, i.from[0], mask)) note_meeting(w, mask);
}

void trap(Warp& w, const Instruction& i) {
  fatal(w, i, first_lane(w.active), "a trap", "the kernel ends the launch itself");
}

}  // namespace

Handler of_warp(const Words& words, Instruction& i) {
  const auto op = words[0], type = words.back();
  if (op == "nanosleep") return nothing;
  if (op == "trap") return trap;
  if (op == "membar" || op == "fence") {
    i.barrier = true;
    return has(words, "cta") ? nothing : fence;  // barriers are what orders a block's threads here
  }
  i.jumps = true;
  if (op == "shfl" && has(words, "sync") && type == "b32") {
    if (has(words, "up")) return shuffle<kUp>;
    if (has(words, "down")) return shuffle<kDown>;
    if (has(words, "bfly")) return shuffle<kButterfly>;
    if (has(words, "idx")) return shuffle<kIndex>;
  }
  if (op == "vote") {
    if (has(words, "ballot")) return vote<'b'>;
    if (has(words, "any")) return vote<'y'>;
    if (has(words, "all")) return vote<'l'>;
  }
  if (op == "redux") {
    if (has(words, "add")) return reduce<Add>;
    if (has(words, "or")) return reduce<Or>;
    if (has(words, "min") && type == "u32") return reduce<Min>;
  }
  if (op == "match" && has(words, "any") && type == "b32") return match_any;
  i.barrier = op == "bar" || op == "barrier";
  if (op == "bar" && words.size() > 2 && words[1] == "warp") return warp_barrier;
  if (i.barrier) {
    return has(words, "popc") || has(words, "and") ? nullptr : wait_at_barrier;
  }
  if (op == "ret" || op == "exit") return end_lanes;
  if (op == "bra") return branch;
  i.jumps = false;
  return nullptr;
}

}  // namespace gpu_model
