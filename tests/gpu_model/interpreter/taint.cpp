#include "tests/gpu_model/interpreter/operations.hpp"

namespace gpu_model {
namespace {

Lanes undefined_in(Warp& w, Row r, unsigned bits) {
  if (r == kNoRow || r & kConstant) return 0;
  return taint_of(w, r, 0) | (bits == 64 ? taint_of(w, r, 1) : 0);
}

void use(Warp& w, const Instruction& i, Lanes lanes, const char* how) {
  const Instruction& from = w.block->kernel->code[w.taint_from];
  fault(w, i, first_lane(lanes), "an uninitialised read",
        std::string("what nobody has written ") + how + "; the last such read: " + where(w, from, first_lane(lanes)));
}

}  // namespace

// Predicates lie first, one word each.
Lanes& taint_of(Warp& w, Row r, unsigned part) {
  const std::uint32_t predicates = w.block->kernel->predicate_bytes;
  return r < predicates ? w.undefined_predicates[r / 4] : w.undefined_rows[(r - predicates) / 128 + part];
}

void set_taint(Warp& w, Row r, unsigned bits, Lanes lanes, Lanes low, Lanes high) {
  Lanes& first = taint_of(w, r, 0);
  first = (first & ~lanes) | (low & lanes);
  if (bits != 64) return;
  Lanes& second = taint_of(w, r, 1);
  second = (second & ~lanes) | (high & lanes);
}

void check_guard(Warp& w, const Instruction& i) {
  if (const Lanes undefined = undefined_in(w, i.guard, 1) & w.active) {
    use(w, i, undefined, "decides a branch");
    set_taint(w, i.guard, 1, undefined, 0, 0);
  }
}

void check_address(Warp& w, const Instruction& i) {
  if (i.address & kConstant) return;
  if (const Lanes undefined = undefined_in(w, i.address, i.address_bits) & w.active) {
    use(w, i, undefined, "is an address");
    set_taint(w, i.address, i.address_bits, undefined, 0, 0);
  }
}

void pass_taint(Warp& w, const Instruction& i) {
  if (i.taint == Taint::kOwn) return;
  // Packing and unpacking keep halves apart.
  if (i.taint == Taint::kHalves && i.extra == 'p' && i.to_bits == 64) {
    set_taint(w, i.to[0], 64, w.active, undefined_in(w, i.from[0], 32), undefined_in(w, i.from[1], 32));
    return;
  }
  if (i.taint == Taint::kHalves && i.extra == 'u' && i.from_bits == 64) {
    for (unsigned part = 0; part < 2; ++part)
      if (i.to[part] != kNoRow)
        set_taint(w, i.to[part], 32, w.active, i.from[0] & kConstant ? 0 : taint_of(w, i.from[0], part), 0);
    return;
  }
  Lanes low = 0, high = 0;
  for (unsigned k = 0; k < 4; ++k) {
    const Row r = i.from[k];
    if (r == kNoRow || r & kConstant) continue;
    const bool predicate = r < w.block->kernel->predicate_bytes;
    // Which of two is chosen by something undefined is undefined; what is not chosen does not matter.
    Lanes lanes = w.active;
    if (i.taint == Taint::kHalves && i.from[2] != kNoRow && k < 2)
      lanes = k == 0 ? *row<Lanes>(w, i.from[2]) : ~*row<Lanes>(w, i.from[2]);
    const Lanes l = taint_of(w, r, 0) & lanes;
    const Lanes h = i.wide >> k & 1 ? taint_of(w, r, 1) & lanes : 0;
    if (i.taint == Taint::kHalves && !predicate)
      low |= l, high |= h;
    else
      low |= l | h, high |= l | h;
  }
  low &= w.active, high &= w.active;
  if (i.taint == Taint::kUsed && low) {
    use(w, i, low, "is computed with");
    low = high = 0;
  }
  for (unsigned e = 0; e < 2; ++e)
    if (i.to[e] != kNoRow)
      set_taint(w, i.to[e], i.to[e] < w.block->kernel->predicate_bytes ? 1 : i.to_bits, w.active, low, high);
}

}  // namespace gpu_model
