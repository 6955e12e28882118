// The state of a run at the end of a step, for restarts. Particles are separate (ParticleRows).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/gravity/gravity.hpp"
#include "src/io/restart.hpp"
#include "src/io/snapshot.hpp"
#include "src/simulation/frame.hpp"
#include "src/simulation/step_criterion.hpp"
#include "src/simulation/totals.hpp"

namespace maki {

struct RunResult {
  std::string stopped_by;  // empty: the end was reached
  bool site_lost = false;  // stopped because another site no longer answers
  double time = 0;         // scale factor, or time
  std::uint64_t steps = 0;
  std::uint64_t rebuilds = 0;
  std::uint64_t long_steps = 0;
  std::uint64_t particles = 0;         // of all ranks, without escapers
  std::optional<EnergyReport> energy;  // last
  double worst_energy_error = 0;       // largest |error| of all energies
  double momentum_drift = 0;           // last
  double worst_force_residual = 0;     // largest |sum m a| / sum m |a|
};

struct IntegratorState {
  double time = 0;             // of the positions, timeline
  double short_kicked_to = 0;  // momenta hold the short-range force up to here
  double long_kicked_to = 0;   // and the long-range force up to here
  double long_begin = 0;       // of the long step that has ended, or is under way
  double long_end = 0;         // of the same
  bool has_potential = false;  // forces were evaluated with potentials; resume() does the same for the same bits
  StepMeasure decisive;        // over all sites: the last measure by which a step was chosen
  // Sent by this site after the last two evaluations; the others may not have received them.
  MeasurePart sent_last, sent_before;
};

// State of a GravityField, without this rank's escapers (EscaperRows). The energy of escapers is kinetic, and potential
// as if all other particles were at their centre of mass.
struct FieldState {
  double softening = 0;        // sides, of the law in use
  std::uint64_t total = 0;     // particles of all ranks (and sites)
  std::uint64_t escapers = 0;  // of all ranks
  double escaped_energy = 0;   // of all ranks, as the next
  std::array<double, 3> escaped_momentum{};
};

// A sample of the energy that waits for the sums of other sites, which arrive one step later.
struct EnergySample {
  double a = 1;
  bool with_potential = false;
  std::uint64_t step = 0;
  double potential_unit = 1;  // of the box at that time
  double escaped = 0;         // energy of escapers, which are not in the sums
  std::array<double, 3> escaped_momentum{};
  SiteTotals sums;  // of this site
};

struct RunState {
  SnapshotHeader header;  // of the start of the run
  Frame frame;
  IntegratorState integrator;
  FieldState field;
  EnergyState energy;
  std::optional<EnergySample> sample;  // that still waits for other sites
  TreeDrifts drifts;
  RunResult result;
  int substep = 0;  // short steps of the long step under way
  MomentumTotals first_momentum;
  double removed_energy = 0;  // of escapers, already given to the EnergyTracker
  double last_kinetic_t = 0;
  std::uint64_t last_energy_step = 0;
  double elapsed = 0;                // wall-clock time in steps
  std::uint64_t outputs = 0;         // index of the next one
  double file_time = 0;              // scale factor, or time, of the state
  std::vector<std::uint32_t> slabs;  // starts of the sites' slabs in x; one site has one, 0
};

// All numbers of the state by name, as a restart holds them.
StateNumbers to_numbers(const RunState& state);
// Throws Error where one is missing.
RunState from_numbers(const StateNumbers& numbers);

// The state of a run and this rank's particles.
struct KeptState {
  RunState state;
  ParticleRows particles;
  EscaperRows escapers;
};

}  // namespace maki
