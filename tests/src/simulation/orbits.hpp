// Short runs of two bodies, and an observer that keeps what it is told.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <numbers>
#include <string>
#include <vector>

#include "src/ic/models.hpp"
#include "src/simulation/simulation.hpp"

namespace maki::test {

inline SimulationOptions isolated_options(double side, double softening, double end) {
  SimulationOptions options;
  options.side = side;
  options.end = end;
  options.step_options.softening = softening;
  options.gravity.periodic = false;
  options.gravity.direct = true;
  options.gravity.law = make_force_law(Split::kNone, 0, 0, Softening::kPlummer, softening / side);
  return options;
}

// Two bodies of reduced separation a(1 + e) at apocentre, one orbit in 400 steps.
inline SimulationOptions orbit_options(const TwoBodyParameters& bodies, double side, double periods) {
  const double mass = bodies.mass1 + bodies.mass2;
  const double period = 2 * std::numbers::pi * std::sqrt(std::pow(bodies.semi_major_axis, 3) / mass);
  SimulationOptions options = isolated_options(side, 1e-4, periods * period);
  options.step_options.fixed_step = period / 400;
  return options;
}

inline std::map<std::uint64_t, std::array<double, 3>> by_id(const Snapshot& snapshot) {
  std::map<std::uint64_t, std::array<double, 3>> positions;
  for (std::size_t i = 0; i < snapshot.size(); ++i) positions[snapshot.ids[i]] = snapshot.positions[i];
  return positions;
}

struct Recorder : RunObserver {
  void message(const std::string& text) override { messages.push_back(text); }
  void step(const StepMetrics& metrics, const PhaseTimers&, double) override { steps.push_back(metrics); }
  void output(const OutputState& state) override {
    indices.push_back(state.index);
    times.push_back(state.header.time);
  }
  std::string stop_reason(double) override { return stop_after > 0 && steps.size() > stop_after ? "the test" : ""; }
  std::vector<std::string> messages;
  std::vector<StepMetrics> steps;
  std::vector<int> indices;
  std::vector<double> times;
  std::size_t stop_after = 0;
};

}  // namespace maki::test
