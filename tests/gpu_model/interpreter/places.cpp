// Where the lanes' addresses lead.
#include <algorithm>

#include "tests/gpu_model/interpreter/operations.hpp"
#include "tests/gpu_model/memory/shadow.hpp"

namespace gpu_model {

namespace {

void addresses(Warp& w, const Instruction& i, Address* a) {
  if (i.address == kNoRow) {
    for (unsigned l = 0; l < kLanes; ++l) a[l] = static_cast<Address>(i.offset);
  } else if (i.address_bits == 32) {
    const auto* base = row<const std::uint32_t>(w, i.address);
    for (unsigned l = 0; l < kLanes; ++l) a[l] = base[l] + static_cast<std::uint32_t>(i.offset);
  } else {
    const auto* base = row<const std::uint64_t>(w, i.address);
    for (unsigned l = 0; l < kLanes; ++l) a[l] = base[l] + static_cast<std::uint64_t>(i.offset);
  }
}

char* find_local(Warp& w, const Instruction& i, unsigned l, Address a, Use use, unsigned bytes, Lanes* undefined) {
  const std::size_t each = w.block->kernel->local_bytes;
  if (a >= each || a + bytes > each)
    fatal(w, i, l, "out of bounds", "an access to local memory that is not the thread's own");
  if (a % bytes) fatal(w, i, l, "misaligned", "an access of " + std::to_string(bytes) + " bytes to local memory");
  const std::size_t at = l * each + a;
  for (unsigned n = 0; n < bytes; ++n) {
    if (use == Use::kWrite)
      w.local_written[at + n] = 1;
    else if (!w.local_written[at + n])
      undefined[(a % 4 + n) / 4] |= 1u << l;
  }
  return w.local.data() + at;
}

// Generic addresses are sorted by their windows.
Lanes lanes_in(const Warp& w, Space space, const Instruction& i, Lanes active, Address* a) {
  if (i.space != Space::kGeneric) return i.space == space ? active : 0;
  const Address window = space == Space::kShared  ? kSharedWindow
                         : space == Space::kLocal ? kLocalWindow
                                                  : kParameterWindow;
  Lanes found = 0;
  for (Lanes m = active; m; m &= m - 1)
    if (Address& x = a[first_lane(m)]; x - window < kWindowBytes) {
      found |= m & -m;
      if (space == Space::kShared) x -= window;
      if (space == Space::kLocal) x -= window + (w.number * kLanes + first_lane(m)) * kLocalBytes;
    }
  return found;
}

}  // namespace

void find_places(Warp& w, const Instruction& i, Use use, unsigned bytes, Places& places) {
  Address a[kLanes];
  addresses(w, i, a);
  if (w.tainted && i.address != kNoRow) check_address(w, i);
  Block& b = *w.block;
  const unsigned first = first_lane(w.active);
  bool same = use == Use::kRead && (i.space == Space::kShared || i.space == Space::kGlobal);
  for (Lanes m = w.active; same && m; m &= m - 1) same = a[first_lane(m)] == a[first];
  // Where all read one word, two of them stand for all: whoever wrote it, one of the two is another.
  Lanes lanes = same && (w.active & (w.active - 1)) ? 1u << first | 1u << (31 - __builtin_clz(w.active)) : w.active;
  const Lanes asked = lanes;
  if (const Lanes shared = lanes_in(w, Space::kShared, i, lanes, a)) {
    check_shared(w, i, shared, a, use, bytes, places.undefined);
    for (Lanes m = shared; m; m &= m - 1) places.at[first_lane(m)] = b.shared.data() + a[first_lane(m)];
    lanes &= ~shared;
  }
  if (const Lanes local = lanes_in(w, Space::kLocal, i, lanes, a)) {
    for (Lanes m = local; m; m &= m - 1)
      places.at[first_lane(m)] = find_local(w, i, first_lane(m), a[first_lane(m)], use, bytes, places.undefined);
    lanes &= ~local;
  }
  if (const Lanes parameters = lanes_in(w, Space::kParameter, i, lanes, a)) {
    for (Lanes m = parameters; m; m &= m - 1) {
      const std::size_t at = a[first_lane(m)] - kParameterWindow;
      if (at + bytes > b.launch->parameters.size())
        fatal(w, i, first_lane(m), "out of bounds", "reads behind the kernel's parameters");
      places.at[first_lane(m)] = reinterpret_cast<char*>(const_cast<std::byte*>(b.launch->parameters.data())) + at;
    }
    lanes &= ~parameters;
  }
  if (lanes) {
    check_global(w, i, lanes, a, use, bytes, places.undefined);
    for (Lanes m = lanes; m; m &= m - 1) places.at[first_lane(m)] = view(a[first_lane(m)]);
  }
  places.same = same;
  if (!same) return;
  for (char*& at : places.at) at = places.at[first];
  for (Lanes& u : places.undefined)
    if (u & asked) u = w.active;
}

void unwrite(Warp& w, const Instruction&, unsigned, const char* place, unsigned bytes) {
  Block& b = *w.block;
  const auto in = [&](const auto& v) {
    return place >= reinterpret_cast<const char*>(v.data()) &&
           place < reinterpret_cast<const char*>(v.data() + v.size());
  };
  if (in(w.local)) {
    std::fill_n(w.local_written.begin() + (place - w.local.data()), bytes, 0);
    return;
  }
  const bool shared = in(b.shared);
  const Address a = shared ? static_cast<Address>(place - b.shared.data()) : reinterpret_cast<Address>(place) - kView;
  if (!shared && !on_device(a)) return;
  Cell& c = shared ? b.shared_cells[a / 4] : cell_of(a & ~Address{3});
  for (Address n = a; n < a + std::min(bytes, 4u); ++n) {
    if (c.write.flags & Access::kBytes)
      cells_of_bytes(b, n & ~Address{3}, shared)[n % 4].write.bytes = 0;
    else
      c.write.bytes = static_cast<std::uint8_t>(c.write.bytes & ~(1u << n % 4));
  }
}

}  // namespace gpu_model
