// The words by which the choices of a configuration go in files and messages.
#pragma once

#include <array>
#include <string_view>

#include "src/config/config.hpp"

namespace maki {

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

}  // namespace maki
