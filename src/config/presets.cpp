#include "src/config/presets.hpp"

#include "kernels/tree/opening.hpp"
#include "src/config/keys.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace maki {
namespace {

using enum Assignment;
using enum Interlacing;
using enum Gradient;

// Chosen by force error against time, as measured by bench/bench_accuracy. With 1.5 cells a spacing a lattice's
// particles are at only two places in cells, whose errors add up to -1.7e-3 of the force at the lattice's Nyquist wave
// number in large boxes; 1.53 makes 49 cells to 32 particles.
constexpr std::array kPresets = {
    //            preset             theta early n  r_cut mesh assign interl. gradient   root   reuse  eta  dlna  long
    PresetNumbers{Preset::kFast, 0.8, 0.4, 3, 2.48, 1.5, kPcs, kFull, kAnalytic, false, 1.5, 0.50, 0.08, 0.04},
    PresetNumbers{Preset::kStandard, 0.7, 0.4, 4, 2.95, 1.53, kPcs, kFull, kAnalytic, false, 1.5, 0.30, 0.08, 0.02},
    PresetNumbers{Preset::kPrecise, 0.35, 0.3, 6, 5.0, 1.5, kPcs, kFull, kSpectral, true, 1.2, 0.15, 0.02, 0.01},
};

struct ErrorNumbers {
  // largest rms error over rms force, for 50 to 1000 Mpc/h and z = 49 to 0, with kept lists; the last row reaches
  // 1.3e-4
  double error;
  double theta, theta_early;
  int split_order;
  double r_cut;
  Gradient gradient;
  bool refine_root;
  double theta_isolated;  // of a Plummer sphere and a uniform sphere, opened by estimated error
};

// Loosest first.
constexpr std::array kErrors = {
    //           error   theta early n  r_cut gradient   root   isolated
    ErrorNumbers{2.4e-3, 0.8, 0.4, 3, 2.48, kAnalytic, false, 0.9},
    ErrorNumbers{1.9e-3, 0.7, 0.4, 4, 2.85, kAnalytic, false, 0.9},
    ErrorNumbers{1e-3, 0.7, 0.4, 4, 2.85, kAnalytic, true, 0.8},
    ErrorNumbers{4.2e-4, 0.6, 0.35, 5, 3.5, kAnalytic, true, 0.55},
    ErrorNumbers{2.8e-4, 0.5, 0.33, 5, 4.0, kAnalytic, true, 0.5},
    ErrorNumbers{2.3e-4, 0.4, 0.3, 6, 4.5, kSpectral, true, 0.5},
    ErrorNumbers{kLeastForceError, 0.25, 0.15, 8, 7.5, kSpectral, true, 0.4},
};
constexpr double kReuseTolerance = 1.2;  // error of kept lists over that of fresh ones
constexpr double kMeshFactor = 1.5;      // cells a particle spacing

// The keys that resolve_presets() chooses.
constexpr const char* kChosenKeys[] = {"gravity.theta",           "gravity.theta_early", "gravity.opening",
                                       "gravity.reuse_tolerance", "gravity.split",       "gravity.split_order",
                                       "gravity.r_cut",           "gravity.mesh",        "gravity.assignment",
                                       "gravity.interlacing",     "gravity.gradient",    "time.eta",
                                       "time.max_dlna",           "time.long_dlna",      "output.error_targets"};

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

PresetNumbers numbers_of(const Config& config) {
  PresetNumbers numbers = preset_numbers(config.run.preset);
  if (!config.gravity.error) return numbers;
  const auto good = [&](const ErrorNumbers& row) { return row.error <= *config.gravity.error; };
  const ErrorNumbers& row = *std::ranges::find_if(kErrors, good);
  numbers.theta = row.theta;
  if (config.run.kind == RunKind::kIsolated)
    numbers.theta = row.theta_isolated * (config.gravity.opening == Opening::kAngle ? kAngleAsGood : 1);
  numbers.theta_early = row.theta_early;
  numbers.split_order = row.split_order;
  numbers.r_cut = row.r_cut;
  numbers.mesh_factor = kMeshFactor;
  numbers.gradient = row.gradient;
  numbers.refine_root = row.refine_root;
  numbers.reuse_tolerance = kReuseTolerance;
  return numbers;
}

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
  if (config.run.kind == RunKind::kIsolated) {
    // Error estimates need quadrupoles. A restart has no accelerations, and runs with these keys have to resume with
    // the same bits.
    const bool by_angle = !config.gravity.quadrupoles || config.gravity.method == Method::kDirect ||
                          config.run.deterministic || config.gravity.reuse;
    fill(config.gravity.opening, by_angle ? Opening::kAngle : Opening::kError);
  }
  const PresetNumbers numbers = numbers_of(config);
  fill(config.output.error_targets, config.gravity.error ? kErrorTargets : 0);
  fill(config.gravity.theta, numbers.theta);
  fill(config.gravity.reuse_tolerance, numbers.reuse_tolerance);
  fill(config.time.eta, numbers.eta);
  if (config.run.kind == RunKind::kIsolated) return;
  fill(config.gravity.theta_early, std::min(*config.gravity.theta, numbers.theta_early));
  fill(config.time.max_dlna, preset_max_dlna(config));
  fill(config.time.long_dlna, numbers.long_dlna);
  fill_mesh(config.gravity, numbers, particles);
}

void choose_again(Config& config, const Config& before, std::uint64_t particles) {
  const auto free = [](Config& all, auto may) {
    for (const char* path : kChosenKeys)
      if (const Key& key = find_key(path); may(key)) key.set(key, all, std::string("auto"));
  };
  Config chosen = before;
  free(chosen, [](const Key&) { return true; });
  resolve_presets(chosen, particles);
  free(config,
       [&](const Key& key) { return key.get(config) == key.get(before) && key.get(before) == key.get(chosen); });
}

}  // namespace maki
