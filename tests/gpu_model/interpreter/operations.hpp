// Arithmetic on rows: one loop over the lanes, which the compiler makes vector instructions of.
#pragma once

#include <cstdint>
#include <type_traits>

#include "tests/gpu_model/interpreter/warp.hpp"

namespace gpu_model {

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
template <class T, class U, class Op>
void shift(Warp& w, const Instruction& i) {  // the distance has 32 bits
  const auto* a = row<const Stored<T>>(w, i.from[0]);
  const auto* b = row<const std::uint32_t>(w, i.from[1]);
  each_lane(w, row<Stored<T>>(w, i.to[0]),
            [&](unsigned l) { return stored<T>(Op::template of<T>(value<T>(a[l]), b[l])); });
}

}  // namespace gpu_model
