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

template <class E>
inline constexpr int kNames = 0;  // each specialisation below is the list for one enumeration

template <>
inline constexpr std::array kNames<RunKind> = {Name<RunKind>{"cosmology", RunKind::kCosmology},
                                               Name<RunKind>{"isolated", RunKind::kIsolated}};
template <>
inline constexpr std::array kNames<Preset> = {Name<Preset>{"fast", Preset::kFast},
                                              Name<Preset>{"standard", Preset::kStandard},
                                              Name<Preset>{"precise", Preset::kPrecise}};
template <>
inline constexpr std::array kNames<InitialKind> = {Name<InitialKind>{"lpt", InitialKind::kLpt},
                                                   Name<InitialKind>{"pancake", InitialKind::kPancake},
                                                   Name<InitialKind>{"file", InitialKind::kFile},
                                                   Name<InitialKind>{"plummer", InitialKind::kPlummer},
                                                   Name<InitialKind>{"cold_sphere", InitialKind::kColdSphere},
                                                   Name<InitialKind>{"kepler_disk", InitialKind::kKeplerDisk},
                                                   Name<InitialKind>{"two_body", InitialKind::kTwoBody}};
template <>
inline constexpr std::array kNames<Method> = {Name<Method>{"tree", Method::kTree},
                                              Name<Method>{"direct", Method::kDirect}};
template <>
inline constexpr std::array kNames<Opening> = {Name<Opening>{"angle", Opening::kAngle},
                                               Name<Opening>{"error", Opening::kError}};
template <>
inline constexpr std::array kNames<ProgressKind> = {Name<ProgressKind>{"text", ProgressKind::kText},
                                                    Name<ProgressKind>{"json", ProgressKind::kJson},
                                                    Name<ProgressKind>{"none", ProgressKind::kNone}};
template <>
inline constexpr std::array kNames<ImageAxis> = {Name<ImageAxis>{"x", ImageAxis::kX},
                                                 Name<ImageAxis>{"y", ImageAxis::kY},
                                                 Name<ImageAxis>{"z", ImageAxis::kZ}};
template <>
inline constexpr std::array kNames<CoordinateNumbers> = {Name<CoordinateNumbers>{"double", CoordinateNumbers::kDouble},
                                                         Name<CoordinateNumbers>{"float", CoordinateNumbers::kFloat},
                                                         Name<CoordinateNumbers>{"fixed32",
                                                                                 CoordinateNumbers::kFixed32}};
template <>
inline constexpr std::array kNames<VelocityNumbers> = {Name<VelocityNumbers>{"float", VelocityNumbers::kFloat},
                                                       Name<VelocityNumbers>{"half", VelocityNumbers::kHalf}};
template <>
inline constexpr std::array kNames<FileLayout> = {Name<FileLayout>{"gadget4", FileLayout::kGadget4},
                                                  Name<FileLayout>{"swift", FileLayout::kSwift}};
template <>
inline constexpr std::array kNames<Cadence> = {Name<Cadence>{"scale-factor", Cadence::kScaleFactor},
                                               Name<Cadence>{"log-scale-factor", Cadence::kLogScaleFactor},
                                               Name<Cadence>{"time", Cadence::kTime}};
template <>
inline constexpr std::array kNames<PowerModel> = {Name<PowerModel>{"eisenstein-hu", PowerModel::kEisensteinHu},
                                                  Name<PowerModel>{"eisenstein-hu-nowiggle",
                                                                   PowerModel::kEisensteinHuNoWiggle},
                                                  Name<PowerModel>{"table", PowerModel::kTable},
                                                  Name<PowerModel>{"power-law", PowerModel::kPowerLaw}};
template <>
inline constexpr std::array kNames<Softening> = {Name<Softening>{"plummer", Softening::kPlummer},
                                                 Name<Softening>{"spline", Softening::kSpline}};
template <>
inline constexpr std::array kNames<Split> = {Name<Split>{"polynomial", Split::kPolynomial},
                                             Name<Split>{"s2", Split::kS2}};
template <>
inline constexpr std::array kNames<Assignment> = {Name<Assignment>{"cic", Assignment::kCic},
                                                  Name<Assignment>{"tsc", Assignment::kTsc},
                                                  Name<Assignment>{"pcs", Assignment::kPcs}};
template <>
inline constexpr std::array kNames<Interlacing> = {Name<Interlacing>{"none", Interlacing::kNone},
                                                   Name<Interlacing>{"assignment", Interlacing::kAssignment},
                                                   Name<Interlacing>{"full", Interlacing::kFull}};
template <>
inline constexpr std::array kNames<Gradient> = {Name<Gradient>{"spectral", Gradient::kSpectral},
                                                Name<Gradient>{"four-point", Gradient::kFourPoint},
                                                Name<Gradient>{"analytic", Gradient::kAnalytic}};

template <class E>
constexpr std::string_view name_of(E value) {
  for (const auto& name : kNames<E>) {
    if (name.value == value) return name.text;
  }
  return "none";
}

// The value of a key from a file or a command line.
using Value = std::variant<bool, std::int64_t, double, std::string, std::vector<double>, std::vector<std::string>>;

enum class ValueType { kSwitch, kInteger, kReal, kText, kChoice, kQuantity, kList, kTexts };

// The runs for which a key has a meaning: bits of run kinds, and of kinds of initial conditions.
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
