// Atomic operations, lane by lane, in an order that is drawn: lanes that come together to one word find it so.
#include <algorithm>
#include <cstring>

#include "tests/gpu_model/choices.hpp"
#include "tests/gpu_model/interpreter/handlers.hpp"
#include "tests/gpu_model/interpreter/memory.hpp"
#include "tests/gpu_model/interpreter/operations.hpp"

namespace gpu_model {
namespace {

// clang-format off
struct Add { template <class T> static T of(T old, T v, T) { return static_cast<T>(old + v); } };
struct And { template <class T> static T of(T old, T v, T) { return old & v; } };
struct Or { template <class T> static T of(T old, T v, T) { return old | v; } };
struct Xor { template <class T> static T of(T old, T v, T) { return old ^ v; } };
struct Min { template <class T> static T of(T old, T v, T) { return std::min(old, v); } };
struct Max { template <class T> static T of(T old, T v, T) { return std::max(old, v); } };
struct Exchange { template <class T> static T of(T, T v, T) { return v; } };
struct Increment { template <class T> static T of(T old, T v, T) { return old >= v ? T{0} : old + 1; } };
struct Decrement { template <class T> static T of(T old, T v, T) { return old == 0 || old > v ? v : old - 1; } };
struct CompareSwap { template <class T> static T of(T old, T expected, T v) { return old == expected ? v : old; } };
// clang-format on

template <class T, class Op>
void change(Warp& w, const Instruction& i) {
  Places p;
  find_places(w, i, Use::kAtomic, sizeof(T), p);
  const T* v = row<const T>(w, i.from[0]);
  const T* second = i.from[1] == kNoRow ? v : row<const T>(w, i.from[1]);
  T old[kLanes];
  unsigned conflicts = 0;
  const auto turned = static_cast<unsigned>(choices().below(kLanes));
  for (unsigned n = 0; n < kLanes; ++n) {
    const unsigned l = n ^ turned;
    if (!(w.active >> l & 1)) continue;
    std::memcpy(&old[l], p.at[l], sizeof(T));
    const T changed = Op::of(old[l], v[l], second[l]);
    std::memcpy(p.at[l], &changed, sizeof(T));
  }
  // The most lanes at one address take turns.
  std::uintptr_t at[kLanes];
  for (unsigned l = 0; l < kLanes; ++l) at[l] = w.active >> l & 1 ? reinterpret_cast<std::uintptr_t>(p.at[l]) : l;
  for (unsigned l = 0; l < kLanes; ++l) {
    unsigned same = 0;
    for (unsigned n = 0; n < kLanes; ++n) same += at[n] == at[l];
    conflicts = std::max(conflicts, same);
  }
  transactions(w, i) += conflicts;
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
  if (type == "u32" || type == "b32") return change<std::uint32_t, Op>;
  if (type == "s32") return change<std::int32_t, Op>;
  if (type == "u64" || type == "b64") return change<std::uint64_t, Op>;
  if (type == "s64") return change<std::int64_t, Op>;
  return nullptr;
}

}  // namespace

Handler atomic(const Words& words, Instruction& i) {
  const auto type = words.back();
  i.kind = Class::kAtomic;
  i.taint = Taint::kOwn;
  i.strong = true;
  i.space = has(words, "shared") ? Space::kShared : has(words, "global") ? Space::kGlobal : Space::kGeneric;
  i.bytes = type.ends_with("64") ? 8 : 4;
  const auto op = words[words.size() - 2];
  if (op == "add") {
    if (type == "f32") return change<float, Add>;
    if (type == "f64") return change<double, Add>;
    return type == "s32"   ? Handler{change<std::uint32_t, Add>}
           : type == "s64" ? change<std::uint64_t, Add>
                           : of_integer<Add>(type);
  }
  if (op == "and") return of_integer<And>(type);
  if (op == "or") return of_integer<Or>(type);
  if (op == "xor") return of_integer<Xor>(type);
  if (op == "min") return of_integer<Min>(type);
  if (op == "max") return of_integer<Max>(type);
  if (op == "exch") return of_integer<Exchange>(type);
  if (op == "inc") return of_integer<Increment>(type);
  if (op == "dec") return of_integer<Decrement>(type);
  if (op == "cas") return of_integer<CompareSwap>(type);
  return nullptr;
}

}  // namespace gpu_model
