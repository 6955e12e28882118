// Loads and stores.
#include <cstring>
#include <type_traits>

#include "tests/gpu_model/interpreter/handlers.hpp"
#include "tests/gpu_model/interpreter/memory.hpp"
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
            (i.kind == Class::kShared ? " of shared memory" : "") + " that nobody has written");
  for (Lanes& u : p.undefined) u &= ~all;  // once is enough
}

// ---- loads and stores -----------------------------------------------------------------------------------------------
template <class T>
void load(Warp& w, const Instruction& i) {
  Places p;
  find_places(w, i, Use::kRead, i.elements * sizeof(T), p);
  for (unsigned e = 0; e < i.elements; ++e) {
    if (i.to[e] == kNoRow) continue;
    const unsigned at = e * sizeof(T);
    if (p.same) {
      T v;
      std::memcpy(&v, p.at[0] + at, sizeof v);
      const auto all = static_cast<std::uint64_t>(
          static_cast<std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>(v));
      if (i.to_bits == 64)
        each_lane(w, row<std::uint64_t>(w, i.to[e]), [&](unsigned) { return all; });
      else
        each_lane(w, row<std::uint32_t>(w, i.to[e]),
                  [&](unsigned) { return static_cast<std::uint32_t>(i.to_bits == 16 ? all & 0xffff : all); });
    } else if (i.to_bits == 64) {
      auto* to = row<std::uint64_t>(w, i.to[e]);
      for (Lanes m = w.active; m; m &= m - 1) {
        const unsigned l = first_lane(m);
        T v;
        std::memcpy(&v, p.at[l] + at, sizeof v);
        to[l] = static_cast<std::uint64_t>(
            static_cast<std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>(v));
      }
    } else {
      auto* to = row<std::uint32_t>(w, i.to[e]);
      for (Lanes m = w.active; m; m &= m - 1) {
        const unsigned l = first_lane(m);
        T v;
        std::memcpy(&v, p.at[l] + at, sizeof v);
        // 16-bit registers hold 16 bits.
        const auto wide = static_cast<std::uint32_t>(
            static_cast<std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>(v));
        to[l] = i.to_bits == 16 ? wide & 0xffff : wide;
      }
    }
  }
  if (!p.any_undefined() && !w.tainted) return;
  if (p.any_undefined()) {
    w.tainted = true;
    w.taint_from = static_cast<std::uint32_t>(&i - w.block->kernel->code.data());
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
#define ACCESS(name, T) \
  if (type == name) return loads ? Handler{load<T>} : Handler{store<T>};
  ACCESS("u8", std::uint8_t)
  ACCESS("b8", std::uint8_t)
  ACCESS("s8", std::int8_t)
  ACCESS("u16", std::uint16_t)
  ACCESS("b16", std::uint16_t)
  ACCESS("s16", std::int16_t)
  ACCESS("u32", std::uint32_t)
  ACCESS("b32", std::uint32_t)
  ACCESS("f32", std::uint32_t)
  ACCESS("s32", std::int32_t)
  ACCESS("u64", std::uint64_t)
  ACCESS("b64", std::uint64_t)
  ACCESS("s64", std::uint64_t)
  ACCESS("f64", std::uint64_t)
#undef ACCESS
  return nullptr;
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
    if (i.to_bits == 64) {
      each_lane(w, row<std::uint64_t>(w, i.to[e]), [&](unsigned) { return v; });
    } else {
      each_lane(w, row<std::uint32_t>(w, i.to[e]),
                [&](unsigned) { return static_cast<std::uint32_t>(i.to_bits == 16 ? v & 0xffff : v); });
    }
    if (w.tainted) set_taint(w, i.to[e], i.to_bits, w.active, 0, 0);
  }
}

}  // namespace

Handler access(const Words& words, Instruction& i) {
  const auto op = words[0], type = words.back();
  const bool loads = op == "ld";
  if (op == "atom" || op == "red") return atomic(words, i);
  if (op == "cp" && words[1] == "async") return asynchronous_copy(words, i);
  if (!loads && op != "st") return nullptr;
  i.taint = Taint::kOwn;
  i.space = has(words, "shared")                          ? Space::kShared
            : has(words, "local")                         ? Space::kLocal
            : has(words, "param")                         ? Space::kParameter
            : has(words, "global") || has(words, "const") ? Space::kGlobal
                                                          : Space::kGeneric;
  i.kind = i.space == Space::kShared      ? Class::kShared
           : i.space == Space::kLocal     ? Class::kLocal
           : i.space == Space::kParameter ? Class::kParameter
                                          : Class::kGlobal;
  i.strong = has(words, "relaxed") || has(words, "volatile") || has(words, "acquire") || has(words, "release");
  i.bytes = static_cast<std::uint8_t>(bytes_of(type));
  if (i.space == Space::kParameter && i.address == kNoRow) {
    i.offset -= static_cast<std::int64_t>(kParameterWindow);
    if (type[0] == 's') i.extra = 's';
    return loads ? load_parameter : nullptr;
  }
  return of_type(type, loads);
}

}  // namespace gpu_model
