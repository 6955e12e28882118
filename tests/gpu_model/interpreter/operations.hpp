// What carries out operations: how it is found, what of nobody's values reaches it, its accesses to memory, and loops
// over rows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <vector>

#include "tests/gpu_model/interpreter/program.hpp"
#include "tests/gpu_model/interpreter/warp.hpp"

namespace gpu_model {

using Words = std::vector<std::string_view>;
inline bool has(const Words& words, std::string_view w) {
  return std::find(words.begin(), words.end(), w) != words.end();
}

// Each returns nullptr where the operation is not one of its own. They fill in what they need besides (extra, space,
// ...).
Handler arithmetic(const Words& words, Instruction& i);  // arithmetic.cpp
Handler logic(const Words& words, Instruction& i);       // logic.cpp: bits, comparisons, selections, moves
Handler conversion(const Words& words, Instruction& i);  // arithmetic.cpp
Handler access(const Words& words, Instruction& i);      // access.cpp: loads, stores, atomics, asynchronous copies
Handler of_warp(const Words& words, Instruction& i);     // warp_operations.cpp

// Registers that hold what nobody has written. Copies of structures take their padding along, so that reading such
// bytes is no fault yet: they are followed through moves, and reported where they are used: in arithmetic with real
// numbers, as an address, to decide a branch.

// For a warp with tainted == true, before the instruction is carried out by its active lanes.
void pass_taint(Warp& w, const Instruction& i);
void check_guard(Warp& w, const Instruction& i);
void check_address(Warp& w, const Instruction& i);
// Lanes whose register is (or is not) what nobody has written; `part`: of a 64-bit row the lower or upper half.
Lanes& taint_of(Warp& w, Row r, unsigned part);
void set_taint(Warp& w, Row r, unsigned bits, Lanes lanes, Lanes undefined_low, Lanes undefined_high);

// Accesses of a kernel to memory: where an address leads, and who was there before.

enum class Use : std::uint8_t { kRead, kWrite, kAtomic };

// The places in the host's memory of the active lanes' accesses of `bytes` bytes, all of them checked: bounds,
// alignment, races. `undefined`: for each word of the access the lanes that read there what nobody has written. Throws
// Stopped.
struct Places {
  char* at[kLanes];
  bool same = false;  // all lanes read one place
  Lanes undefined[4] = {};
  bool any_undefined() const { return undefined[0] | undefined[1] | undefined[2] | undefined[3]; }
};
void find_places(Warp& w, const Instruction& i, Use use, unsigned bytes, Places& places);
// For stores of undefined values: the bytes count as unwritten.
void unwrite(Warp& w, const Instruction& i, unsigned lane, const char* place, unsigned bytes);

// Accesses of some lanes to shared memory (addresses count from its begin) or to global memory. `undefined`: for each
// word of the access the lanes that find there what nobody has written.
void check_global(Warp& w, const Instruction& i, Lanes lanes, const Address* a, Use use, unsigned bytes,
                  Lanes* undefined);
void check_shared(Warp& w, const Instruction& i, Lanes lanes, const Address* a, Use use, unsigned bytes,
                  Lanes* undefined);

Cell* cells_of_bytes(Block& b, Address word, bool shared);  // of single bytes of a word

// membar, fence: what the thread has done comes before what others do after they have seen an atomic access of it.
void fence(Warp& w, const Instruction& i);
void see_others(Block& b);  // at a fence, and at a barrier, which every compiler makes one of
void release_clocks();      // for a new launch

// Arithmetic on rows: one loop over the lanes, which the compiler makes vector instructions of.

// What a row holds for each lane of a type: 4 bytes for the shorter ones.
template <class T>
using Stored =
    std::conditional_t<sizeof(T) == 8, T, std::conditional_t<std::is_floating_point_v<T>, float, std::uint32_t>>;

template <class T>
inline T value(const Stored<T>& s) {
  return static_cast<T>(s);
}
template <class T>
inline Stored<T> stored(T v) {
  if constexpr (sizeof(T) < 4) {
    return static_cast<std::make_unsigned_t<T>>(v);
  } else {
    return static_cast<Stored<T>>(v);
  }
}

// f(lane) is stored to lane `lane` of the row where it is active.
template <class S, class F>
inline void each_lane(Warp& w, S* to, const F& f) {
  if (w.active == ~0u) {
#pragma GCC ivdep
    for (unsigned l = 0; l < kLanes; ++l) to[l] = f(l);
  } else {
#pragma GCC ivdep
    for (unsigned l = 0; l < kLanes; ++l) {
      const S v = f(l);
      to[l] = w.lane[l] ? v : to[l];
    }
  }
}

// Of a predicate the bits of active lanes.
inline void set_predicate(Warp& w, Row r, Lanes lanes) {
  Lanes& to = *row<Lanes>(w, r);
  to = (to & ~w.active) | (lanes & w.active);
}

// f(T{}) of the type that PTX names so (bits are unsigned numbers); nullptr where there is none.
template <class F>
Handler for_type(std::string_view type, const F& f) {
  if (type == "u8" || type == "b8") return f(std::uint8_t{});
  if (type == "s8") return f(std::int8_t{});
  if (type == "u16" || type == "b16") return f(std::uint16_t{});
  if (type == "s16") return f(std::int16_t{});
  if (type == "u32" || type == "b32") return f(std::uint32_t{});
  if (type == "s32") return f(std::int32_t{});
  if (type == "u64" || type == "b64") return f(std::uint64_t{});
  if (type == "s64") return f(std::int64_t{});
  if (type == "f32") return f(float{});
  if (type == "f64") return f(double{});
  return nullptr;
}
template <class F>
Handler for_whole(std::string_view type, const F& f) {
  return for_type(type, [&]<class T>(T t) -> Handler {
    if constexpr (std::is_integral_v<T>) return f(t);
    return nullptr;
  });
}

// What several kinds of instructions do with two values.
// clang-format off
struct Add { template <class T> static T of(T a, T b) { return static_cast<T>(a + b); } };
struct And { template <class T> static T of(T a, T b) { return static_cast<T>(a & b); } };
struct Or { template <class T> static T of(T a, T b) { return static_cast<T>(a | b); } };
struct Xor { template <class T> static T of(T a, T b) { return static_cast<T>(a ^ b); } };
// Of a number and a NaN the number.
struct Min { template <class T> static T of(T a, T b) { return a < b || b != b ? a : b; } };
struct Max { template <class T> static T of(T a, T b) { return a > b || b != b ? a : b; } };
// clang-format on

template <class T, class Op>
void unary(Warp& w, const Instruction& i) {
  const auto* a = row<const Stored<T>>(w, i.from[0]);
  each_lane(w, row<Stored<T>>(w, i.to[0]), [&](unsigned l) { return stored<T>(Op::of(value<T>(a[l]))); });
}

template <class T, class Op>
void binary(Warp& w, const Instruction& i) {
  const auto* a = row<const Stored<T>>(w, i.from[0]);
  const auto* b = row<const Stored<T>>(w, i.from[1]);
  each_lane(w, row<Stored<T>>(w, i.to[0]),
            [&](unsigned l) { return stored<T>(Op::of(value<T>(a[l]), value<T>(b[l]))); });
}

template <class T, class Op>
void ternary(Warp& w, const Instruction& i) {
  const auto* a = row<const Stored<T>>(w, i.from[0]);
  const auto* b = row<const Stored<T>>(w, i.from[1]);
  const auto* c = row<const Stored<T>>(w, i.from[2]);
  each_lane(w, row<Stored<T>>(w, i.to[0]),
            [&](unsigned l) { return stored<T>(Op::of(value<T>(a[l]), value<T>(b[l]), value<T>(c[l]))); });
}

// Integer operations that trap or shift too far on a processor are asked for active lanes only.
template <class T, class Op>
void shift(Warp& w, const Instruction& i) {  // the distance has 32 bits
  const auto* a = row<const Stored<T>>(w, i.from[0]);
  const auto* b = row<const std::uint32_t>(w, i.from[1]);
  each_lane(w, row<Stored<T>>(w, i.to[0]),
            [&](unsigned l) { return stored<T>(Op::template of<T>(value<T>(a[l]), b[l])); });
}

}  // namespace gpu_model
