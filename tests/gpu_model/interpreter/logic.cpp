// Bits, comparisons, selections, moves.
#include <algorithm>
#include <bit>

#include "tests/gpu_model/interpreter/operations.hpp"

namespace gpu_model {
namespace {

// clang-format off
struct Not { template <class T> static T of(T a) { return static_cast<T>(~a); } };
struct ShiftLeft { template <class T> static T of(T a, std::uint32_t n) { return n < 8 * sizeof(T) ? static_cast<T>(a << n) : T{0}; } };
// clang-format on
struct ShiftRight {
  template <class T>
  static T of(T a, std::uint32_t n) {
    constexpr std::uint32_t bits = 8 * sizeof(T);
    if constexpr (std::is_signed_v<T>)
      return static_cast<T>(a >> (n < bits ? n : bits - 1));
    else
      return n < bits ? static_cast<T>(a >> n) : T{0};
  }
};
struct Permute {  // bytes of a and b by the selector's nibbles
  static std::uint32_t of(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    const std::uint64_t both = a | std::uint64_t{b} << 32;
    std::uint32_t to = 0;
    for (unsigned k = 0; k < 4; ++k) {
      const unsigned s = c >> (4 * k) & 15;
      std::uint32_t byte = static_cast<std::uint32_t>(both >> (8 * (s & 7))) & 255;
      if (s & 8) byte = byte & 128 ? 255 : 0;
      to |= byte << (8 * k);
    }
    return to;
  }
};
struct FunnelLeft {
  static std::uint32_t of(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    return static_cast<std::uint32_t>((b * (std::uint64_t{1} << 32) | a) >> (32 - (c & 31)));
  }
};
struct FunnelRight {
  static std::uint32_t of(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    return static_cast<std::uint32_t>((b * (std::uint64_t{1} << 32) | a) >> (c & 31));
  }
};
struct Reverse {
  template <class T>
  static T of(T a) {
    T to = 0;
    for (unsigned k = 0; k < 8 * sizeof(T); ++k) to = static_cast<T>(to << 1 | (a >> k & 1));
    return to;
  }
};

template <class Op>
void predicates(Warp& w, const Instruction& i) {
  set_predicate(w, i.to[0], Op::of(*row<Lanes>(w, i.from[0]), *row<Lanes>(w, i.from[1])));
}
void not_predicate(Warp& w, const Instruction& i) { set_predicate(w, i.to[0], ~*row<Lanes>(w, i.from[0])); }
void move_predicate(Warp& w, const Instruction& i) { set_predicate(w, i.to[0], *row<Lanes>(w, i.from[0])); }

template <class Op>
Handler bits(std::string_view type) {
  if (type == "pred") return predicates<Op>;
  return for_whole(type, []<class T>(T) { return binary<T, Op>; });
}

template <class T, class Count>
void count_bits(Warp& w, const Instruction& i) {
  const auto* a = row<const T>(w, i.from[0]);
  each_lane(w, row<std::uint32_t>(w, i.to[0]), [&](unsigned l) { return static_cast<std::uint32_t>(Count::of(a[l])); });
}
// clang-format off
struct Population { template <class T> static int of(T a) { return std::popcount(a); } };
struct LeadingZeros { template <class T> static int of(T a) { return std::countl_zero(a); } };
struct FindTop { template <class T> static int of(T a) { return 8 * static_cast<int>(sizeof(T)) - 1 - std::countl_zero(a); } };
// How far the highest bit is from the top; -1: none is set.
struct ShiftToTop { template <class T> static int of(T a) { return a ? std::countl_zero(a) : -1; } };
// clang-format on

template <class Count>
Handler counted(std::string_view type) {
  if (type == "b32" || type == "u32") return count_bits<std::uint32_t, Count>;
  if (type == "b64" || type == "u64") return count_bits<std::uint64_t, Count>;
  return nullptr;
}

// d, a, b, c: the lowest `length` bits of a are put into b at `place`.
template <class T>
void insert_bits(Warp& w, const Instruction& i) {
  const auto *a = row<const T>(w, i.from[0]), *b = row<const T>(w, i.from[1]);
  const auto *at = row<const std::uint32_t>(w, i.from[2]), *length = row<const std::uint32_t>(w, i.from[3]);
  each_lane(w, row<T>(w, i.to[0]), [&](unsigned l) {
    const unsigned place = at[l] & 255, n = length[l] & 255, width = 8 * sizeof(T);
    if (n == 0 || place >= width) return b[l];
    const T mask = (n >= width ? ~T{0} : (T{1} << n) - 1) << place;
    return (b[l] & ~mask) | (a[l] << place & mask);
  });
}
template <class T>
void extract_bits(Warp& w, const Instruction& i) {  // unsigned
  const auto* a = row<const T>(w, i.from[0]);
  const auto *at = row<const std::uint32_t>(w, i.from[1]), *length = row<const std::uint32_t>(w, i.from[2]);
  each_lane(w, row<T>(w, i.to[0]), [&](unsigned l) {
    const unsigned place = at[l] & 255, n = length[l] & 255, width = 8 * sizeof(T);
    if (n == 0 || place >= width) return T{0};
    return (a[l] >> place) & (n >= width ? ~T{0} : (T{1} << n) - 1);
  });
}

// ---- comparisons ----------------------------------------------------------------------------------------------------
// clang-format off
struct Equal { template <class T> static bool of(T a, T b) { return a == b; } };
struct Unequal { template <class T> static bool of(T a, T b) { return a != b; } };  // of a NaN: true ("neu", and integers)
struct Less { template <class T> static bool of(T a, T b) { return a < b; } };
struct LessEqual { template <class T> static bool of(T a, T b) { return a <= b; } };
struct Greater { template <class T> static bool of(T a, T b) { return a > b; } };
struct GreaterEqual { template <class T> static bool of(T a, T b) { return a >= b; } };
struct OrderedUnequal { template <class T> static bool of(T a, T b) { return a < b || a > b; } };
struct EqualOrNan { template <class T> static bool of(T a, T b) { return !(a < b || a > b); } };
struct IsNan { template <class T> static bool of(T a, T b) { return a != a || b != b; } };
struct IsNumber { template <class T> static bool of(T a, T b) { return a == a && b == b; } };
template <class Op>
struct Unless { template <class T> static bool of(T a, T b) { return !Op::of(a, b); } };
// clang-format on

template <class T, class Op>
void compare(Warp& w, const Instruction& i) {
  const auto* a = row<const Stored<T>>(w, i.from[0]);
  const auto* b = row<const Stored<T>>(w, i.from[1]);
  alignas(64) std::int32_t flags[kLanes];
#pragma GCC ivdep
  for (unsigned l = 0; l < kLanes; ++l) flags[l] = Op::of(value<T>(a[l]), value<T>(b[l])) ? -1 : 0;
  const Lanes found = mask_of(flags);
  set_predicate(w, i.to[0], found);
  if (i.to[1] != kNoRow) set_predicate(w, i.to[1], ~found);
}

template <class Op>
Handler compared(std::string_view type) {
  return for_type(type, []<class T>(T) { return compare<T, Op>; });
}

Handler comparison(std::string_view by, std::string_view type) {
  const bool real = type[0] == 'f';
  if (by == "eq") return compared<Equal>(type);
  if (by == "ne") return real ? compared<OrderedUnequal>(type) : compared<Unequal>(type);
  if (by == "lt" || by == "lo") return compared<Less>(type);
  if (by == "le" || by == "ls") return compared<LessEqual>(type);
  if (by == "gt" || by == "hi") return compared<Greater>(type);
  if (by == "ge" || by == "hs") return compared<GreaterEqual>(type);
  if (!real) return nullptr;
  if (by == "equ") return compared<EqualOrNan>(type);
  if (by == "neu") return compared<Unequal>(type);
  if (by == "ltu") return compared<Unless<GreaterEqual>>(type);
  if (by == "leu") return compared<Unless<Greater>>(type);
  if (by == "gtu") return compared<Unless<LessEqual>>(type);
  if (by == "geu") return compared<Unless<Less>>(type);
  if (by == "num") return compared<IsNumber>(type);
  if (by == "nan") return compared<IsNan>(type);
  return nullptr;
}

template <class T>
void select(Warp& w, const Instruction& i) {
  const auto* a = row<const T>(w, i.from[0]);
  const auto* b = row<const T>(w, i.from[1]);
  alignas(64) std::int32_t first[kLanes];
  expand(*row<Lanes>(w, i.from[2]), first);
  each_lane(w, row<T>(w, i.to[0]), [&](unsigned l) { return first[l] ? a[l] : b[l]; });
}

// ---- moves ----------------------------------------------------------------------------------------------------------
template <class T>
void move(Warp& w, const Instruction& i) {
  const auto* a = row<const T>(w, i.from[0]);
  each_lane(w, row<T>(w, i.to[0]), [&](unsigned l) { return a[l]; });
}
template <class T>
void unpack(Warp& w, const Instruction& i) {
  constexpr unsigned half = 4 * sizeof(T);
  alignas(64) T v[kLanes];  // the rows may be the same one
  std::copy_n(row<const T>(w, i.from[0]), kLanes, v);
  for (const unsigned part : {0, 1})
    if (i.to[part] != kNoRow)
      each_lane(w, row<std::uint32_t>(w, i.to[part]),
                [&](unsigned l) { return static_cast<std::uint32_t>(v[l] >> part * half & ((T{1} << half) - 1)); });
}
template <class T>
void pack(Warp& w, const Instruction& i) {
  constexpr unsigned half = 4 * sizeof(T);
  const auto *a = row<const std::uint32_t>(w, i.from[0]), *b = row<const std::uint32_t>(w, i.from[1]);
  each_lane(w, row<T>(w, i.to[0]), [&](unsigned l) { return (a[l] & ((T{1} << half) - 1)) | T{b[l]} << half; });
}

// Generic addresses: windows for memory that is not global.
Address window(const Warp& w, const Instruction& i, unsigned lane) {
  if (i.extra == 's') return kSharedWindow;
  return i.extra == 'l' ? kLocalWindow + (w.number * kLanes + lane) * kLocalBytes
                        : 0;  // parameters' addresses are generic ones
}
void to_generic(Warp& w, const Instruction& i) {
  const auto* a = row<const std::uint64_t>(w, i.from[0]);
  each_lane(w, row<std::uint64_t>(w, i.to[0]), [&](unsigned l) { return a[l] + window(w, i, l); });
}
void from_generic(Warp& w, const Instruction& i) {
  const auto* a = row<const std::uint64_t>(w, i.from[0]);
  each_lane(w, row<std::uint64_t>(w, i.to[0]), [&](unsigned l) { return a[l] - window(w, i, l); });
}

Handler moved(std::string_view type, const Instruction& i) {
  if (type == "pred") return move_predicate;
  const bool wide = type.ends_with("64");
  if (i.extra == 'u') return wide ? unpack<std::uint64_t> : unpack<std::uint32_t>;
  if (i.extra == 'p') return wide ? pack<std::uint64_t> : pack<std::uint32_t>;
  return wide ? Handler{move<std::uint64_t>} : move<std::uint32_t>;
}

}  // namespace

// decode.cpp has set `extra` of a move to 'u' where its destination is a vector, and to 'p' where its source is one.
Handler logic(const Words& words, Instruction& i) {
  const auto op = words[0], type = words.back();
  if (op == "mov") {
    i.taint = Taint::kHalves;
    return moved(type, i);
  }
  if (op == "and") return bits<And>(type);
  if (op == "or") return bits<Or>(type);
  if (op == "xor") return bits<Xor>(type);
  if (op == "not") {
    if (type == "pred") return not_predicate;
    return for_whole(type, []<class T>(T) { return unary<T, Not>; });
  }
  if (op == "shl") return for_whole(type, []<class T>(T) { return shift<T, ShiftLeft>; });
  if (op == "shr") return for_whole(type, []<class T>(T) { return shift<T, ShiftRight>; });
  if (op == "shf")
    return has(words, "wrap")
               ? (words[1] == "l" ? Handler{ternary<std::uint32_t, FunnelLeft>} : ternary<std::uint32_t, FunnelRight>)
               : nullptr;
  if (op == "prmt" && words.size() == 2) return ternary<std::uint32_t, Permute>;
  if (op == "brev") return type == "b32" ? Handler{unary<std::uint32_t, Reverse>} : unary<std::uint64_t, Reverse>;
  if (op == "popc") return counted<Population>(type);
  if (op == "clz") return counted<LeadingZeros>(type);
  if (op == "bfind") return has(words, "shiftamt") ? counted<ShiftToTop>(type) : counted<FindTop>(type);
  if (op == "bfi") return type == "b32" ? Handler{insert_bits<std::uint32_t>} : insert_bits<std::uint64_t>;
  if (op == "bfe")
    return type == "u32" ? Handler{extract_bits<std::uint32_t>} : type == "u64" ? extract_bits<std::uint64_t> : nullptr;
  if (op == "setp" && (words.size() == 3 || words[2] == "ftz")) return comparison(words[1], type);
  if (op == "selp") i.taint = Taint::kHalves;
  if (op == "selp") return type.ends_with("64") ? Handler{select<std::uint64_t>} : select<std::uint32_t>;
  if (op == "cvta") {
    i.extra = has(words, "shared") ? 's' : has(words, "local") ? 'l' : has(words, "param") ? 'p' : 0;
    return words[1] == "to" ? from_generic : to_generic;
  }
  return nullptr;
}

}  // namespace gpu_model
