// Accesses to memory: loads and stores, atomics, asynchronous copies.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "tests/gpu_model/choices.hpp"
#include "tests/gpu_model/interpreter/operations.hpp"

namespace gpu_model {

namespace {

// A part of a structure may be padding, which nobody writes; a whole access is not.
void report_unwritten(Warp& w, const Instruction& i, Places& p, unsigned bytes) {
  Lanes all = p.undefined[0];
  for (unsigned n = 1; n < bytes / 4; ++n) all &= p.undefined[n];
  if (!all) return;
  fault(w, i, first_lane(all), "an uninitialised read",
        std::string("reads ") + std::to_string(bytes) + " bytes" +
            (i.space == Space::kShared ? " of shared memory" : "") + " that nobody has written");
  for (Lanes& u : p.undefined) u &= ~all;  // once is enough
}

// ---- loads and stores -----------------------------------------------------------------------------------------------
// 16-bit registers hold 16 bits.
std::uint64_t in_register(const Instruction& i, std::uint64_t v) { return i.to_bits == 16 ? v & 0xffff : v; }

void load_same(Warp& w, const Instruction& i, unsigned element, std::uint64_t v) {
  if (i.to_bits == 64)
    each_lane(w, row<std::uint64_t>(w, i.to[element]), [&](unsigned) { return v; });
  else
    each_lane(w, row<std::uint32_t>(w, i.to[element]), [n = static_cast<std::uint32_t>(v)](unsigned) { return n; });
}

template <class T>
void load(Warp& w, const Instruction& i) {
  Places p;
  find_places(w, i, Use::kRead, i.elements * sizeof(T), p);
  for (unsigned e = 0; e < i.elements; ++e) {
    if (i.to[e] == kNoRow) continue;
    const auto of_lane = [&](unsigned l) {
      T v;
      std::memcpy(&v, p.at[l] + e * sizeof v, sizeof v);
      return in_register(i, static_cast<std::uint64_t>(v));  // with its sign
    };
    if (p.same)
      load_same(w, i, e, of_lane(0));
    else if (i.to_bits == 64)
      for (Lanes m = w.active; m; m &= m - 1) row<std::uint64_t>(w, i.to[e])[first_lane(m)] = of_lane(first_lane(m));
    else
      for (Lanes m = w.active; m; m &= m - 1)
        row<std::uint32_t>(w, i.to[e])[first_lane(m)] = static_cast<std::uint32_t>(of_lane(first_lane(m)));
  }
  if (!p.any_undefined() && !w.tainted) return;
  if (p.any_undefined()) {
    w.tainted = true;
    w.taint_from = place_of(w, i);
    report_unwritten(w, i, p, i.elements * sizeof(T));
  }
  // Of a vector each element is told apart: padding is one of them.
  for (unsigned e = 0; e < i.elements; ++e)
    if (i.to[e] != kNoRow)
      set_taint(w, i.to[e], i.to_bits, w.active, p.undefined[e * sizeof(T) / 4],
                sizeof(T) == 8 ? p.undefined[(2 * e + 1) % 4] : 0);
}

template <class T>
void store(Warp& w, const Instruction& i) {
  Places p;
  find_places(w, i, Use::kWrite, i.elements * sizeof(T), p);
  for (unsigned e = 0; e < i.elements; ++e) {
    const unsigned at = e * sizeof(T);
    const char* from = row<char>(w, i.from[e]);
    const unsigned stride = i.from_bits == 64 ? 8 : 4;
    for (Lanes m = w.active; m; m &= m - 1)
      std::memcpy(p.at[first_lane(m)] + at, from + stride * first_lane(m), sizeof(T));
    if (!w.tainted || i.from[e] & kConstant) continue;
    for (unsigned part = 0; part < (sizeof(T) == 8 ? 2u : 1u); ++part)
      for (Lanes m = taint_of(w, i.from[e], part) & w.active; m; m &= m - 1)
        unwrite(w, i, first_lane(m), p.at[first_lane(m)] + at + 4 * part, std::min<unsigned>(4, sizeof(T)));
  }
}

Handler of_type(std::string_view type, bool loads) {
  return for_type(type, [&]<class T>(T) {
    // Only numbers of less than 32 bits are widened with their sign.
    using Bits =
        std::conditional_t<(sizeof(T) < 4), T, std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>>;
    return loads ? Handler{load<Bits>} : Handler{store<Bits>};
  });
}

unsigned bytes_of(std::string_view type) {
  return type.ends_with("64") ? 8 : type.ends_with("32") ? 4 : type.ends_with("16") ? 2 : 1;
}

// A parameter at a fixed place: the same for all lanes.
void load_parameter(Warp& w, const Instruction& i) {
  const auto& parameters = w.block->launch->parameters;
  for (unsigned e = 0; e < i.elements; ++e) {
    std::uint64_t v = 0;
    std::memcpy(&v, parameters.data() + i.offset + e * i.bytes, i.bytes);
    if (i.extra == 's')
      v = static_cast<std::uint64_t>(static_cast<std::int64_t>(v << (64 - 8 * i.bytes)) >> (64 - 8 * i.bytes));
    load_same(w, i, e, in_register(i, v));
    if (w.tainted) set_taint(w, i.to[e], i.to_bits, w.active, 0, 0);
  }
}

// ---- atomic operations ----------------------------------------------------------------------------------------------
// Lane by lane, in an order that is drawn: lanes that come together to one word find it so.

// clang-format off
struct CompareSwap { template <class T> static T of(T old, T expected, T v) { return old == expected ? v : old; } };
// clang-format on

template <class T, class Op>
void change(Warp& w, const Instruction& i) {
  Places p;
  find_places(w, i, Use::kAtomic, sizeof(T), p);
  const T* v = row<const T>(w, i.from[0]);
  const T* second = i.from[1] == kNoRow ? v : row<const T>(w, i.from[1]);
  T old[kLanes];
  const auto turned = static_cast<unsigned>(choices().below(kLanes));
  for (unsigned n = 0; n < kLanes; ++n) {
    const unsigned l = n ^ turned;
    if (!(w.active >> l & 1)) continue;
    std::memcpy(&old[l], p.at[l], sizeof(T));
    T changed;
    if constexpr (std::is_same_v<Op, CompareSwap>)
      changed = Op::of(old[l], v[l], second[l]);
    else
      changed = Op::of(old[l], v[l]);
    std::memcpy(p.at[l], &changed, sizeof(T));
  }
  if (p.undefined[0] | p.undefined[1])
    fault(w, i, first_lane(p.undefined[0] | p.undefined[1]), "an uninitialised read",
          "an atomic operation on memory that nobody has written");
  if (i.to[0] == kNoRow) return;
  T* to = row<T>(w, i.to[0]);
  for (Lanes m = w.active; m; m &= m - 1) to[first_lane(m)] = old[first_lane(m)];
  if (w.tainted) set_taint(w, i.to[0], 8 * sizeof(T), w.active, 0, 0);
}

template <class Op>
Handler of_integer(std::string_view type) {
  return for_type(type, []<class T>(T) -> Handler {
    if constexpr (std::is_integral_v<T> && sizeof(T) >= 4)
      return change<T, Op>;
    else
      return nullptr;
  });
}

Handler atomic(const Words& words) {
  const auto type = words.back(), op = words[words.size() - 2];
  if (op == "add" && type[0] == 'u') return of_integer<Add>(type);
  if (op == "min") return of_integer<Min>(type);
  if (op == "max") return of_integer<Max>(type);
  if (op == "cas") return of_integer<CompareSwap>(type);
  return nullptr;
}

// ---- asynchronous copies --------------------------------------------------------------------------------------------
// From global to shared memory: they land where the thread waits for them, and not before.

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
    c.instruction = place_of(w, i);
    // Another thread's use of the place before is a race already now.
    check_shared(w, i, m & -m, target, Use::kWrite, c.bytes, unused);
    ++b.copies_under_way;
    std::memset(b.landing.data() + c.to, 1, c.bytes);
    std::memset(b.shared.data() + c.to, 0xff, c.bytes);
    if (c.read) check_global(w, i, m & -m, source, Use::kRead, c.read, unused);
    w.copies[l].push_back(c);
  }
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

Handler asynchronous_copy(const Words& words, Instruction& i) {
  if (has(words, "shared") || has(words, "shared::cta")) return begin_copy;
  if (has(words, "commit_group")) return commit_copies;
  if (has(words, "wait_all")) i.extra = 0xffff;
  return has(words, "wait_group") || has(words, "wait_all") ? wait_for_copies : nullptr;
}

}  // namespace

Handler access(const Words& words, Instruction& i) {
  const auto op = words[0], type = words.back();
  const bool copies = op == "cp" && words[1] == "async", loads = op == "ld", changes = op == "atom" || op == "red";
  if (!copies && !loads && !changes && op != "st") return nullptr;
  i.taint = Taint::kOwn;
  if (copies) return asynchronous_copy(words, i);
  i.space = has(words, "shared")                          ? Space::kShared
            : has(words, "local")                         ? Space::kLocal
            : has(words, "param")                         ? Space::kParameter
            : has(words, "global") || has(words, "const") ? Space::kGlobal
                                                          : Space::kGeneric;
  i.strong =
      changes || has(words, "relaxed") || has(words, "volatile") || has(words, "acquire") || has(words, "release");
  i.bytes = static_cast<std::uint8_t>(bytes_of(type));
  if (changes) return atomic(words);
  if (i.space == Space::kParameter && i.address == kNoRow) {
    i.offset -= static_cast<std::int64_t>(kParameterWindow);
    if (type[0] == 's') i.extra = 's';
    return loads ? load_parameter : nullptr;
  }
  return of_type(type, loads);
}

}  // namespace gpu_model
