// Arithmetic: add, sub, mul, mad, fma, div, rem, min, max, abs, neg, sqrt, ...
#include <cmath>
#include <limits>

#include "tests/gpu_model/interpreter/operations.hpp"

namespace gpu_model {

namespace {

// clang-format off
struct Sub { template <class T> static T of(T a, T b) { return static_cast<T>(a - b); } };
struct Mul { template <class T> static T of(T a, T b) { return static_cast<T>(a * b); } };
struct Mad { template <class T> static T of(T a, T b, T c) { return static_cast<T>(a * b + c); } };
struct Neg { template <class T> static T of(T a) { return static_cast<T>(-a); } };
struct Sqrt { template <class T> static T of(T a) { return std::sqrt(a); } };
struct Reciprocal { template <class T> static T of(T a) { return T{1} / a; } };
struct ReciprocalRoot { template <class T> static T of(T a) { return T{1} / std::sqrt(a); } };
// clang-format on

struct Fma {
  static float of(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
  static double of(double a, double b, double c) { return __builtin_fma(a, b, c); }
};
// The second number with the sign of the first.
struct CopySign {
  template <class T>
  static T of(T sign, T size) {
    return std::copysign(size, sign);
  }
};
struct Abs {
  template <class T>
  static T of(T a) {
    if constexpr (std::is_floating_point_v<T>)
      return std::fabs(a);
    else
      return static_cast<T>(a < 0 ? T{0} - a : a);
  }
};
// By zero: all bits, as GPUs do. The most negative number by -1 traps on a processor.
struct Div {
  template <class T>
  static T of(T a, T b) {
    if constexpr (std::is_floating_point_v<T>)
      return a / b;
    else if (b == 0)
      return static_cast<T>(~T{0});
    else if (std::is_signed_v<T> && b == static_cast<T>(-1))
      return static_cast<T>(T{0} - a);
    else
      return static_cast<T>(a / b);
  }
};
struct Rem {
  template <class T>
  static T of(T a, T b) {
    if (b == 0) return a;
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return 0;
    return static_cast<T>(a % b);
  }
};
struct MulHigh {
  template <class T>
  static T of(T a, T b) {
    using Wide =
        std::conditional_t<sizeof(T) == 8, std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>,
                           std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>;
    return static_cast<T>((static_cast<Wide>(a) * static_cast<Wide>(b)) >> (8 * sizeof(T)));
  }
};

template <class Op>
Handler real(std::string_view type) {
  if (type == "f32") return unary<float, Op>;
  if (type == "f64") return unary<double, Op>;
  return nullptr;
}
template <class Op>
Handler binary_of(std::string_view type) {
  return for_type(type, []<class T>(T) { return binary<T, Op>; });
}
template <class Op>
Handler whole(std::string_view type) {
  return for_whole(type, []<class T>(T) { return binary<T, Op>; });
}
// Sums, products and opposites of whole numbers are taken modulo 2^n: unsigned.
template <class T>
using Modulo = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type;
template <class Op>
Handler sum(std::string_view type) {
  return for_type(type, []<class T>(T) { return binary<Modulo<T>, Op>; });
}

template <class Narrow, class Wide>
void wide_product(Warp& w, const Instruction& i) {
  const auto* a = row<const Stored<Narrow>>(w, i.from[0]);
  const auto* b = row<const Stored<Narrow>>(w, i.from[1]);
  using U = std::make_unsigned_t<Wide>;
  each_lane(w, row<U>(w, i.to[0]), [&](unsigned l) {
    return static_cast<U>(static_cast<Wide>(value<Narrow>(a[l])) * static_cast<Wide>(value<Narrow>(b[l])));
  });
}
Handler wide(std::string_view type) {
  if (type == "u16") return wide_product<std::uint16_t, std::uint32_t>;
  if (type == "s16") return wide_product<std::int16_t, std::int32_t>;
  if (type == "u32") return wide_product<std::uint32_t, std::uint64_t>;
  if (type == "s32") return wide_product<std::int32_t, std::int64_t>;
  return nullptr;
}

// Two products of 16-bit halves of `a` with the lower bytes of `b`, added to `c`.
void dot_product_2(Warp& w, const Instruction& i) {
  const auto* a = row<const std::uint32_t>(w, i.from[0]);
  const auto* b = row<const std::uint32_t>(w, i.from[1]);
  const auto* c = row<const std::uint32_t>(w, i.from[2]);
  each_lane(w, row<std::uint32_t>(w, i.to[0]),
            [&](unsigned l) { return c[l] + (a[l] & 0xffff) * (b[l] & 0xff) + (a[l] >> 16) * (b[l] >> 8 & 0xff); });
}

}  // namespace

Handler arithmetic(const Words& words, Instruction& i) {
  const auto op = words[0], type = words.back();
  for (const char* other : {"rz", "rm", "rp", "sat", "cc"})
    if (has(words, other)) return nullptr;
  if (type[0] == 'f') i.taint = Taint::kUsed;
  if (op == "add") return sum<Add>(type);
  if (op == "sub") return sum<Sub>(type);
  if (op == "fma")
    return type == "f32" ? Handler{ternary<float, Fma>} : type == "f64" ? Handler{ternary<double, Fma>} : nullptr;
  if (op == "mul" || op == "mad") {
    if (op == "mad") return words[1] == "lo" && type == "s32" ? ternary<std::uint32_t, Mad> : nullptr;
    return has(words, "wide") ? wide(type) : has(words, "hi") ? whole<MulHigh>(type) : sum<Mul>(type);
  }
  if (op == "min") return binary_of<Min>(type);
  if (op == "max") return binary_of<Max>(type);
  if (op == "abs") return for_type(type, []<class T>(T) { return unary<T, Abs>; });
  if (op == "neg") return for_type(type, []<class T>(T) { return unary<Modulo<T>, Neg>; });
  if (op == "copysign")
    return type == "f32"   ? Handler{binary<float, CopySign>}
           : type == "f64" ? Handler{binary<double, CopySign>}
                           : nullptr;
  if (op == "div") return binary_of<Div>(type);
  if (op == "rem") return whole<Rem>(type);
  if (op == "dp2a") return words[1] == "lo" && has(words, "u32") ? dot_product_2 : nullptr;
  if (op == "sqrt") return real<Sqrt>(type);
  if (op == "rcp") return real<Reciprocal>(type);
  if (op == "rsqrt") return real<ReciprocalRoot>(type);
  return nullptr;
}

// Conversions between types. A register may be wider than the type that is converted from or to.

namespace {

enum Rounding { kNone, kToZero, kNearest, kDown, kUp };

// Out of range: the nearest number there is. A NaN: zero.
template <class To, class From>
To whole_number(From v) {
  constexpr auto lowest = static_cast<From>(std::numeric_limits<To>::min());
  constexpr auto highest = static_cast<From>(std::numeric_limits<To>::max());
  if (v != v) return 0;
  if (v <= lowest) return std::numeric_limits<To>::min();
  if (v >= highest) return std::numeric_limits<To>::max();
  return static_cast<To>(v);
}

template <class To, class From, Rounding kHow>
To converted(From v) {
  if constexpr (std::is_floating_point_v<From>) {
    if constexpr (kHow == kNearest)
      v = std::nearbyint(v);
    else if constexpr (kHow == kDown)
      v = std::floor(v);
    else if constexpr (kHow == kUp)
      v = std::ceil(v);
    else if constexpr (kHow == kToZero)
      v = std::trunc(v);
    if constexpr (std::is_integral_v<To>)
      return whole_number<To>(v);
    else
      return static_cast<To>(v);
  } else {
    return static_cast<To>(v);
  }
}

template <class To, class From, Rounding kHow, class ToRow, class FromRow>
void convert(Warp& w, const Instruction& i) {
  const auto* a = row<const FromRow>(w, i.from[0]);
  alignas(64) ToRow v[kLanes];  // the rows may be the same one
#pragma GCC ivdep
  for (unsigned l = 0; l < kLanes; ++l) {
    const To to = converted<To, From, kHow>(static_cast<From>(a[l]));
    v[l] = static_cast<ToRow>(to);  // into a wider register: with its sign
  }
  each_lane(w, row<ToRow>(w, i.to[0]), [&](unsigned l) { return v[l]; });
}

// f(S{}) of what a row of so many bits holds for each lane of a type.
template <class T, class F>
Handler for_row(unsigned bits, const F& f) {
  if constexpr (std::is_floating_point_v<T>)
    return f(T{});
  else
    return bits == 64 ? f(std::uint64_t{}) : f(std::uint32_t{});
}

template <class To, class From, Rounding kHow>
Handler in_rows(const Instruction& i) {
  return for_row<To>(i.to_bits, [&]<class ToRow>(ToRow) {
    return for_row<From>(i.from_bits,
                         []<class FromRow>(FromRow) -> Handler { return convert<To, From, kHow, ToRow, FromRow>; });
  });
}

template <class To, class From>
Handler rounded(Rounding how, const Instruction& i) {
  if constexpr (!std::is_floating_point_v<From>) {
    return in_rows<To, From, kNone>(i);
  } else {
    switch (how) {
      case kToZero: return in_rows<To, From, kToZero>(i);
      case kNearest: return in_rows<To, From, kNearest>(i);
      case kDown: return in_rows<To, From, kDown>(i);
      case kUp: return in_rows<To, From, kUp>(i);
      default: return std::is_integral_v<To> ? nullptr : in_rows<To, From, kNone>(i);
    }
  }
}

}  // namespace

Handler conversion(const Words& words, Instruction& i) {
  if (words[0] != "cvt" || words.size() < 3) return nullptr;
  Rounding how = kNone;
  for (std::size_t k = 1; k + 2 < words.size(); ++k) {
    if (words[k] == "rzi")
      how = kToZero;
    else if (words[k] == "rni")
      how = kNearest;
    else if (words[k] == "rmi")
      how = kDown;
    else if (words[k] == "rpi")
      how = kUp;
    else if (words[k] != "rn" && words[k] != "ftz")
      return nullptr;
  }
  const auto from = words.back(), to = words[words.size() - 2];
  if (to[0] == 'f' || from[0] == 'f') i.taint = Taint::kUsed;
  return for_type(to, [&]<class To>(To) {
    return for_type(from, [&]<class From>(From) { return rounded<To, From>(how, i); });
  });
}

}  // namespace gpu_model
