// The three presets of accuracy, the settings for a given error of forces, and the keys at "auto" that they fill.
#pragma once

#include <cstdint>

#include "src/config/config.hpp"

namespace maki {

// r_cut stays below this part of the box: a group spans up to a quarter of the box, and the nearest image of a source
// has to be the same for all its members.
inline constexpr double kMaxReach = 0.25;

struct PresetNumbers {
  Preset preset;
  double theta;        // opening angle
  double theta_early;  // the same while forces nearly cancel (src/simulation/gravity_field.hpp)
  int split_order;     // n of the polynomial split
  double r_cut;        // mesh cells
  double mesh_factor;  // mesh cells along a side over particles along a side
  Assignment assignment;
  Interlacing interlacing;
  Gradient gradient;
  bool refine_root;        // full single precision in 1/r; without: 2e-5 rms of each pair's force
  double reuse_tolerance;  // error of kept lists over that of fresh ones
  double eta;              // time step over sqrt(softening / acceleration)
  double max_dlna;         // longest step in ln a (with factors of linear growth; without: long_dlna)
  double long_dlna;        // longest step of the mesh force in ln a where it has several short ones
};

const PresetNumbers& preset_numbers(Preset preset);
// The numbers of the preset. Where gravity.error is given, the numbers of forces are the cheapest whose measured errors
// were not larger in any box, at any redshift, or in isolated sets (bench/NOTES.md, "Settings by error"). `theta` of an
// isolated set differs.
PresetNumbers numbers_of(const Config& config);
// The smallest gravity.error.
inline constexpr double kLeastForceError = 1e-4;
// The targets of output.error_targets where gravity.error is given.
inline constexpr std::int64_t kErrorTargets = 1000;
// The longest step in ln a for the factors of kicks and drifts that time.growth_exact chooses.
double preset_max_dlna(const Config& config);

// Fills what is "auto" in gravity and time from numbers_of(). `particles` is the number in the box: its cube root sets
// the mesh.
void resolve_presets(Config& config, std::uint64_t particles);

// Sets to "auto" again the keys of `config` that still have the values that resolve_presets() chose for the resolved
// configuration `before`; other keys have changed since.
void choose_again(Config& config, const Config& before, std::uint64_t particles);

// The smallest even number >= `least` without prime factors above 7: transforms of other lengths are slow.
std::int64_t good_mesh(double least);

}  // namespace maki
