#include "src/config/presets.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace maki {
namespace {

using enum Assignment;
using enum Interlacing;
using enum Gradient;

// Chosen on the front of force error against time that bench/bench_accuracy measures.
constexpr std::array kPresets = {
    //            preset             theta early n  r_cut mesh assign interl. gradient   root   reuse  eta  dlna  long
    PresetNumbers{Preset::kFast, 0.8, 0.4, 3, 2.48, 1.5, kPcs, kFull, kAnalytic, false, 1.5, 0.50, 0.08, 0.04},
    PresetNumbers{Preset::kStandard, 0.7, 0.4, 4, 2.85, 1.5, kPcs, kFull, kAnalytic, false, 1.5, 0.30, 0.08, 0.02},
    PresetNumbers{Preset::kPrecise, 0.35, 0.3, 6, 5.0, 1.5, kPcs, kFull, kSpectral, true, 1.2, 0.15, 0.02, 0.01},
};

template <class T, class U>
void fill(Auto<T>& field, U value) {
  if (!field) field = static_cast<T>(value);
}

void fill_mesh(Config::Gravity& gravity, const PresetNumbers& numbers, std::uint64_t particles) {
  fill(gravity.split, Split::kPolynomial);
  fill(gravity.split_order, numbers.split_order);
  fill(gravity.r_cut, *gravity.split == Split::kS2 ? 3.0 : numbers.r_cut);
  fill(gravity.assignment, numbers.assignment);
  fill(gravity.interlacing, numbers.interlacing);
  fill(gravity.gradient, numbers.gradient);
  if (gravity.mesh) return;
  const double per_side = std::cbrt(static_cast<double>(particles));
  gravity.mesh = good_mesh(std::max({numbers.mesh_factor * per_side - 1e-6, *gravity.r_cut / kMaxReach + 0.1, 8.0}));
}

}  // namespace

const PresetNumbers& preset_numbers(Preset preset) { return kPresets[static_cast<std::size_t>(preset)]; }

double preset_max_dlna(const Config& config) {
  const PresetNumbers& numbers = preset_numbers(config.run.preset);
  return config.time.growth_exact ? numbers.max_dlna : numbers.long_dlna;
}

std::int64_t good_mesh(double least) {
  auto cells = static_cast<std::int64_t>(std::ceil(least / 2)) * 2;
  for (;; cells += 2) {
    std::int64_t rest = cells;
    for (const int prime : {2, 3, 5, 7}) {
      while (rest % prime == 0) rest /= prime;
    }
    if (rest == 1) return cells;
  }
}

void resolve_presets(Config& config, std::uint64_t particles) {
  const PresetNumbers& numbers = preset_numbers(config.run.preset);
  fill(config.gravity.theta, numbers.theta);
  fill(config.gravity.reuse_tolerance, numbers.reuse_tolerance);
  fill(config.time.eta, numbers.eta);
  if (config.run.kind == RunKind::kIsolated) {
    // Estimates are of quadrupoles' errors. A restart holds no accelerations, and runs with these keys go on to the bit.
    const bool by_angle = !config.gravity.quadrupoles || config.run.deterministic || config.gravity.reuse;
    return fill(config.gravity.opening, by_angle ? Opening::kAngle : Opening::kError);
  }
  fill(config.gravity.theta_early, std::min(*config.gravity.theta, numbers.theta_early));
  fill(config.time.max_dlna, preset_max_dlna(config));
  fill(config.time.long_dlna, numbers.long_dlna);
  fill_mesh(config.gravity, numbers, particles);
}

}  // namespace maki
