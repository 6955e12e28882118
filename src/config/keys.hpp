// The one table of configuration keys, with the names of their choices. The parser, `maki config`, messages and the
// dump of a resolved configuration all read it.
#pragma once

#include <array>
#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "src/config/config.hpp"

namespace maki {

// The name of a choice in files and messages.
template <class E>
struct Name {
  std::string_view text;
  E value;
};

// The names of all choices from the first to the last, in the order of their enumeration.
template <auto first, auto last, class... Texts>
constexpr auto names(Texts... texts) {
  static_assert(static_cast<int>(last) - static_cast<int>(first) + 1 == sizeof...(texts));
  int next = static_cast<int>(first);
  return std::array{Name{std::string_view(texts), static_cast<decltype(first)>(next++)}...};
}

constexpr auto names_of(RunKind) { return names<RunKind::kCosmology, RunKind::kIsolated>("cosmology", "isolated"); }
constexpr auto names_of(Preset) { return names<Preset::kFast, Preset::kPrecise>("fast", "standard", "precise"); }
constexpr auto names_of(InitialKind) {
  return names<InitialKind::kLpt, InitialKind::kTwoBody>("lpt", "pancake", "file", "plummer", "cold_sphere",
                                                         "kepler_disk", "two_body");
}
constexpr auto names_of(Method) { return names<Method::kTree, Method::kDirect>("tree", "direct"); }
constexpr auto names_of(Opening) { return names<Opening::kAngle, Opening::kError>("angle", "error"); }
constexpr auto names_of(ProgressKind) {
  return names<ProgressKind::kText, ProgressKind::kNone>("text", "json", "none");
}
constexpr auto names_of(ImageAxis) { return names<ImageAxis::kX, ImageAxis::kZ>("x", "y", "z"); }
constexpr auto names_of(CoordinateNumbers) {
  return names<CoordinateNumbers::kDouble, CoordinateNumbers::kFixed32>("double", "float", "fixed32");
}
constexpr auto names_of(VelocityNumbers) {
  return names<VelocityNumbers::kFloat, VelocityNumbers::kHalf>("float", "half");
}
constexpr auto names_of(FileLayout) { return names<FileLayout::kGadget4, FileLayout::kSwift>("gadget4", "swift"); }
constexpr auto names_of(Cadence) {
  return names<Cadence::kScaleFactor, Cadence::kTime>("scale-factor", "log-scale-factor", "time");
}
constexpr auto names_of(PowerModel) {
  return names<PowerModel::kEisensteinHu, PowerModel::kPowerLaw>("eisenstein-hu", "eisenstein-hu-nowiggle", "table",
                                                                 "power-law");
}
constexpr auto names_of(Softening) { return names<Softening::kPlummer, Softening::kSpline>("plummer", "spline"); }
constexpr auto names_of(Split) { return names<Split::kPolynomial, Split::kS2>("polynomial", "s2"); }
constexpr auto names_of(Assignment) { return names<Assignment::kCic, Assignment::kPcs>("cic", "tsc", "pcs"); }
constexpr auto names_of(Interlacing) {
  return names<Interlacing::kNone, Interlacing::kFull>("none", "assignment", "full");
}
constexpr auto names_of(Gradient) {
  return names<Gradient::kSpectral, Gradient::kAnalytic>("spectral", "four-point", "analytic");
}

template <class E>
inline constexpr auto kNames = names_of(E{});

template <class E>
constexpr std::string_view name_of(E value) {
  for (const auto& name : kNames<E>) {
    if (name.value == value) return name.text;
  }
  return "none";
}

// The value of a key from a file or a command line.
using Value = std::variant<bool, std::int64_t, double, std::string, std::vector<double>, std::vector<std::string>>;

enum class ValueType { kSwitch, kInteger, kReal, kText, kChoice, kQuantity, kList, kTexts, kQuantities };

// Bit masks of run kinds and of kinds of initial conditions: the runs for which a key has a meaning.
constexpr unsigned bit(RunKind kind) { return 1u << static_cast<unsigned>(kind); }
constexpr unsigned bit(InitialKind kind) { return 1u << static_cast<unsigned>(kind); }
inline constexpr unsigned kAll = ~0u;

struct Key {
  std::string section, name;
  ValueType type = ValueType::kText;
  bool has_auto = false;             // "auto" is a value
  std::vector<std::string> choices;  // of kChoice
  Dimension dimension = Dimension::kNone;
  const char* plain_unit = "";  // of a plain number, in cosmological runs; isolated runs: the run's own unit
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool above_min = false;  // min itself is outside
  unsigned run_kinds = kAll, initial_kinds = kAll;
  bool of_site = false;  // the sites of one run may each have their own
  bool hidden = false;   // not in the text of a configuration
  std::string meaning;

  // Throws Error "expected ..." on a wrong type, range or word; the parser adds file, line and key.
  void (*set)(const Key&, Config&, const Value&) = nullptr;
  // The value as TOML text.
  std::string (*get)(const Config&) = nullptr;

  std::string path() const { return section + "." + name; }
  bool applies_to(const Config& config) const {
    return (run_kinds & bit(config.run.kind)) != 0 && (initial_kinds & bit(config.initial.kind)) != 0;
  }
  // "an integer, 2 to 512", "one of \"tree\", \"direct\"", "a length such as \"50 Mpc/h\", above 0, or \"auto\"".
  std::string expectation() const;

  // Builders, for the table.
  Key& means(std::string text) { return meaning = std::move(text), *this; }
  Key& range(double low, double high) { return min = low, max = high, *this; }
  Key& at_least(double low) { return min = low, *this; }
  Key& above(double low) { return min = low, above_min = true, *this; }
  Key& unit(Dimension what, const char* plain = "") { return dimension = what, plain_unit = plain, *this; }
  Key& own() { return of_site = true, *this; }
  Key& hide() { return hidden = of_site = true, *this; }
  Key& only(RunKind kind) { return run_kinds = bit(kind), *this; }
  template <class... Kinds>
  Key& with(Kinds... kinds) {
    return initial_kinds = (bit(kinds) | ...), *this;
  }
};

// In the order in which they are printed; keys of a section stand together.
const std::vector<Key>& config_keys();
// Throws std::logic_error for a path that is not in the table.
const Key& find_key(const std::string& path);

}  // namespace maki
