// Conversions between types. A register may be wider than the type that is converted from or to.
#include <cmath>
#include <limits>

#include "tests/gpu_model/interpreter/handlers.hpp"
#include "tests/gpu_model/interpreter/operations.hpp"

namespace gpu_model {
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
    // Into a wider register: with its sign.
    if constexpr (std::is_integral_v<To>)
      v[l] = static_cast<ToRow>(static_cast<std::conditional_t<std::is_signed_v<To>, std::int64_t, std::uint64_t>>(to));
    else
      v[l] = to;
  }
  each_lane(w, row<ToRow>(w, i.to[0]), [&](unsigned l) { return v[l]; });
}

template <class T>
void saturate(Warp& w, const Instruction& i) {
  const auto* a = row<const T>(w, i.from[0]);
  each_lane(w, row<T>(w, i.to[0]), [&](unsigned l) { return a[l] > 0 ? (a[l] < 1 ? a[l] : T{1}) : T{0}; });
}

template <class To, class From, Rounding kHow>
Handler in_rows(const Instruction& i) {
  if constexpr (std::is_floating_point_v<To> && std::is_floating_point_v<From>) {
    return convert<To, From, kHow, To, From>;
  } else if constexpr (std::is_floating_point_v<To>) {
    return i.from_bits == 64 ? Handler{convert<To, From, kHow, To, std::uint64_t>}
                             : convert<To, From, kHow, To, std::uint32_t>;
  } else if constexpr (std::is_floating_point_v<From>) {
    return i.to_bits == 64 ? Handler{convert<To, From, kHow, std::uint64_t, From>}
                           : convert<To, From, kHow, std::uint32_t, From>;
  } else {
    if (i.to_bits == 64)
      return i.from_bits == 64 ? Handler{convert<To, From, kHow, std::uint64_t, std::uint64_t>}
                               : convert<To, From, kHow, std::uint64_t, std::uint32_t>;
    return i.from_bits == 64 ? Handler{convert<To, From, kHow, std::uint32_t, std::uint64_t>}
                             : convert<To, From, kHow, std::uint32_t, std::uint32_t>;
  }
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

template <class To>
Handler from_type(std::string_view type, Rounding how, const Instruction& i) {
  if (type == "u8") return rounded<To, std::uint8_t>(how, i);
  if (type == "s8") return rounded<To, std::int8_t>(how, i);
  if (type == "u16") return rounded<To, std::uint16_t>(how, i);
  if (type == "s16") return rounded<To, std::int16_t>(how, i);
  if (type == "u32") return rounded<To, std::uint32_t>(how, i);
  if (type == "s32") return rounded<To, std::int32_t>(how, i);
  if (type == "u64") return rounded<To, std::uint64_t>(how, i);
  if (type == "s64") return rounded<To, std::int64_t>(how, i);
  if (type == "f32") return rounded<To, float>(how, i);
  if (type == "f64") return rounded<To, double>(how, i);
  return nullptr;
}

}  // namespace

Handler conversion(const Words& words, Instruction& i) {
  if (words[0] != "cvt" || words.size() < 3) return nullptr;
  i.kind = Class::kConvert;
  Rounding how = kNone;
  if (words.size() > 3 && words[words.size() - 3] == "sat") {
    i.taint = Taint::kUsed;
    return words.back() != words[words.size() - 2] ? nullptr
           : words.back() == "f32"                 ? Handler{saturate<float>}
           : words.back() == "f64"                 ? saturate<double>
                                                   : nullptr;
  }
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
  if (to == "u8") return from_type<std::uint8_t>(from, how, i);
  if (to == "s8") return from_type<std::int8_t>(from, how, i);
  if (to == "u16") return from_type<std::uint16_t>(from, how, i);
  if (to == "s16") return from_type<std::int16_t>(from, how, i);
  if (to == "u32") return from_type<std::uint32_t>(from, how, i);
  if (to == "s32") return from_type<std::int32_t>(from, how, i);
  if (to == "u64") return from_type<std::uint64_t>(from, how, i);
  if (to == "s64") return from_type<std::int64_t>(from, how, i);
  if (to == "f32") return from_type<float>(from, how, i);
  if (to == "f64") return from_type<double>(from, how, i);
  return nullptr;
}

}  // namespace gpu_model
