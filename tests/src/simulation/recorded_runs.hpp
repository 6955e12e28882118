// Runs with what they told and where their particles ended: over ranks, and over sites made of ranks, beside the same on
// one.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "src/config/parse.hpp"
#include "src/run/over_sites.hpp"
#include "src/run/run_options.hpp"
#include "src/run/setup.hpp"
#include "src/run/start_run.hpp"
#include "src/simulation/simulation.hpp"
#include "tests/sites/sites_of_ranks.hpp"
#include "tests/src/io/io_helpers.hpp"
#include "tests/test_stream.hpp"

namespace maki::testing {

using test::even_share;

struct RecorderOptions {
  std::uint64_t restart_steps = 0;                                   // steps between states that are kept; 0: none is
  std::size_t stop_after = std::numeric_limits<std::size_t>::max();  // steps
  bool states = false;                                               // whether the sets at outputs are kept
};

// States are kept by way of the numbers that go into files.
struct Recorder : RunObserver {
  explicit Recorder(const RecorderOptions& options = {}) : options(options) {}
  void message(const std::string& text) override { messages.push_back(text); }
  void step(const StepMetrics& metrics, const PhaseTimers&) override { steps.push_back(metrics); }
  void output(const OutputState& state) override {
    outputs.push_back(state.index);
    times.push_back(state.header.time);
    if (state.force_error) force_errors.push_back(*state.force_error);
    if (options.states) states.push_back(state.snapshot());
  }
  bool wants_restart(std::uint64_t step) override {
    return options.restart_steps > 0 && step % options.restart_steps == 0;
  }
  bool wants_last_restart() override { return options.restart_steps > 0; }
  void restart(const std::shared_ptr<const KeptState>& state) override {
    kept.push_back(*state);
    kept.back().state = from_numbers(to_numbers(state->state));
  }
  std::string stop_reason(double next_seconds) override {
    to_next_stop.push_back(next_seconds);
    return steps.size() > options.stop_after ? "the test" : "";
  }

  RecorderOptions options;
  std::vector<std::string> messages;
  std::vector<StepMetrics> steps;
  std::vector<double> to_next_stop;  // seconds, after each step
  std::vector<int> outputs;
  std::vector<double> times;     // of outputs
  std::vector<Snapshot> states;  // at outputs
  std::vector<ForceError> force_errors;
  std::vector<KeptState> kept;
};

struct Ends : Recorder {
  using Recorder::Recorder;
  RunResult result;
  Frame frame;
  Snapshot state;  // this rank's share
};

inline Prepared prepared(const char* toml, const std::vector<std::string>& settings) {
  return prepare(parse_config(toml, "test.toml", settings), true, Communicator::self());
}

// 16^3 particles in 50 Mpc/h from z = 9 on.
inline Prepared small_box(std::vector<std::string> settings) {
  settings.insert(settings.begin(), {"box.size=50 Mpc/h", "particles_per_side=16", "initial.redshift=9"});
  return prepared("", settings);
}

inline void add_particle(Snapshot& set, const std::array<double, 3>& position, const std::array<float, 3>& velocity,
                         float mass, std::uint64_t id) {
  set.positions.push_back(position);
  set.velocities.push_back(velocity);
  set.masses.push_back(mass);
  set.ids.push_back(id);
}

// Of an isolated set in a box about the origin: the tree without a mesh, or the direct sum.
inline SimulationOptions isolated_options(double side, double softening, double end, bool direct = false) {
  SimulationOptions options;
  options.side = side;
  options.end = end;
  options.step_options.softening = softening;
  options.gravity.periodic = false;
  options.gravity.direct = direct;
  options.gravity.law = make_force_law(Split::kNone, 0, 0, Softening::kPlummer, softening / side);
  return options;
}

// From the share of a rank, or from a state.
template <class Start>
Ends run_on(const Start& start, const SimulationOptions& options, const Timeline& timeline, const RunPlace& place = {},
            const RecorderOptions& recorded = {}) {
  Ends ends(recorded);
  Simulation simulation(test::test_stream(), start, options, timeline, ends, place);
  ends.result = simulation.run();
  ends.frame = simulation.frame();
  ends.state = simulation.snapshot();
  return ends;
}
template <class Start>
Ends run_on(const Prepared& run, const Start& start, const SimulationOptions& options, const RunPlace& place,
            const RecorderOptions& recorded = {}) {
  return run_on(start, options, timeline_of(run), place, recorded);
}

// From its initial conditions, on one rank and over all these.
inline Ends run_alone(const Prepared& run) { return run_on(run, run.initial, simulation_options(run), {}); }
inline Ends run_over_ranks(const Communicator& ranks, const Prepared& run) {
  return run_on(run, even_share(run.initial, ranks), simulation_options(run), ranks);
}

// Options of a run's files in `directory`, without its progress.
inline RunFileOptions files_in(const std::string& directory) { return {.directory = directory, .progress = nullptr}; }

// Of all ranks, on all of them.
inline std::map<std::uint64_t, std::array<double, 3>> all_positions(const Communicator& ranks, const Snapshot& share) {
  struct Row {
    std::uint64_t id;
    std::array<double, 3> position;
  };
  std::vector<Row> mine(share.size());
  for (std::size_t i = 0; i < share.size(); ++i) mine[i] = {share.ids[i], share.positions[i]};
  std::map<std::uint64_t, std::array<double, 3>> positions;
  for (const auto& of_rank : exchange_all(ranks, std::vector(static_cast<std::size_t>(ranks.size()), mine)))
    for (const Row& row : of_rank) positions[row.id] = row.position;
  return positions;
}

// rms distance over all particles and axes, of `side` apart at most.
inline double rms_distance(const std::map<std::uint64_t, std::array<double, 3>>& a,
                           const std::map<std::uint64_t, std::array<double, 3>>& b, double side) {
  double sum = 0;
  for (const auto& [id, position] : a)
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const double d = position[axis] - b.at(id)[axis], wrapped = d - side * std::round(d / side);
      sum += wrapped * wrapped;
    }
  return std::sqrt(sum / static_cast<double>(a.size()));
}

inline void expect_same_everywhere(const Communicator& ranks, double value) {
  for (const double other : gathered(ranks, value)) EXPECT_EQ(other, value);
}

// Over `count` sites that these ranks are, each beginning with its slab, or from a state.
inline Ends run_over_sites(const Communicator& world, int count, const Prepared& run,
                           const RecorderOptions& recorded = {}, const KeptState* from = nullptr) {
  const SitesOfRanks here(world, count);
  Prepared mine = run;
  mine.initial = even_share(run.initial, here.ranks);
  keep_own_slab(mine, *here.sites, here.ranks);
  const SimulationOptions options = simulation_options(mine);
  const RunPlace place(here.ranks, *here.sites);
  Ends ends = from ? run_on(run, *from, options, place, recorded) : run_on(run, mine.initial, options, place, recorded);
  here.sites->close();
  return ends;
}

}  // namespace maki::testing
