// Whole runs for comparison with known solutions.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "src/cosmology/power.hpp"
#include "src/simulation/simulation.hpp"

namespace maki {

// Keeps every energy and the states at the outputs.
struct RunRecord : RunObserver {
  void step(const StepMetrics& metrics, const PhaseTimers&, double) override { steps.push_back(metrics); }
  void output(const OutputState& state) override { outputs.push_back(state.snapshot()); }
  std::vector<StepMetrics> steps;
  std::vector<Snapshot> outputs;
  RunResult result;
};

// The `standard` preset in a periodic box: polynomial split n = 5, r_cut = 4.5 cells, interlaced PCS.
// softening in length units; one mesh cell for each particle where mesh is 0.
SimulationOptions box_options(const Snapshot& initial, double softening, double end_redshift, int mesh = 0);

// Tree without a mesh, in a box about the origin.
SimulationOptions isolated_options(const Snapshot& initial, double softening, double end);

RunRecord run(const Snapshot& initial, const SimulationOptions& options, const Timeline& timeline);

// Particle index by id.
std::map<std::uint64_t, std::size_t> index_by_id(const Snapshot& snapshot);

// |delta_k|^2 of all modes with |m| rounding to 1, 2, ..., bins, k = 2 pi m / L: mean over the modes of a bin, from
// plain sums over particles in double. bins <= 8.
std::vector<double> mode_power(const Snapshot& snapshot, int bins);

// Distance from the median position within which `fraction` of the particles lie. (Far particles move the centre of
// mass.)
double lagrangian_radius(const Snapshot& snapshot, double fraction);

}  // namespace maki
