// Runs whose states are kept, and that go on from them.
#pragma once

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "src/config/parse.hpp"
#include "src/config/resolve.hpp"
#include "src/run/setup.hpp"
#include "src/simulation/simulation.hpp"
#include "tests/test_stream.hpp"

namespace maki::test {

// Keeps the states of all boundaries, by way of the numbers that go into files.
struct Keeper : RunObserver {
  void step(const StepMetrics& metrics, const PhaseTimers&, double) override { steps.push_back(metrics); }
  void output(const OutputState& state) override { outputs.push_back(state.index); }
  bool wants_restart(std::uint64_t) override { return keep; }
  void restart(const std::shared_ptr<const KeptState>& state) override {
    kept.push_back(*state);
    kept.back().state = from_numbers(to_numbers(state->state));
  }
  std::string stop_reason(double) override { return steps.size() > stop_after ? "the test" : ""; }

  bool keep = true;
  std::size_t stop_after = std::numeric_limits<std::size_t>::max();
  std::vector<StepMetrics> steps;
  std::vector<int> outputs;
  std::vector<KeptState> kept;
};

struct End {
  RunResult result;
  Snapshot state;
};

struct Case {
  Prepared run;
  SimulationOptions options;
  Timeline timeline() const {
    return run.initial.header.comoving ? Timeline::comoving(cosmology_parameters(run.config), run.units)
                                       : Timeline::newtonian();
  }
};

inline Case universe(const std::vector<std::string>& settings = {}) {
  std::vector<std::string> all = {
      "particles_per_side=16",           "initial.redshift=9",     "gravity.mesh=32",   "energy_interval=3",
      "max_physical_softening=20 kpc/h", "output.redshifts=[8.5]", "time.max_dlna=0.02"};
  all.insert(all.end(), settings.begin(), settings.end());
  Case c{prepare(parse_config("[box]\nsize = \"50 Mpc/h\"\n[time]\nend_redshift = 6.5\n", "test.toml", all), true,
                 Communicator::self()),
         {}};
  c.options = simulation_options(c.run);
  return c;
}

inline End finish(Simulation& simulation) {
  End end;
  end.result = simulation.run();
  end.state = simulation.snapshot();
  return end;
}

inline End run_whole(const Case& c, RunObserver& observer) {
  const Stream& stream = test::test_stream();
  Simulation simulation(stream, c.run.initial, c.options, c.timeline(), observer);
  return finish(simulation);
}

inline End resume(const Case& c, const KeptState& from, RunObserver& observer) {
  const Stream& stream = test::test_stream();
  Simulation simulation(stream, from, c.options, c.timeline(), observer);
  return finish(simulation);
}

inline void expect_same(const End& a, const End& b) {
  EXPECT_EQ(a.state.ids, b.state.ids);
  EXPECT_EQ(a.state.positions, b.state.positions);
  EXPECT_EQ(a.state.velocities, b.state.velocities);
  EXPECT_EQ(a.state.masses, b.state.masses);
  EXPECT_EQ(a.result.steps, b.result.steps);
  EXPECT_EQ(a.result.long_steps, b.result.long_steps);
  EXPECT_EQ(a.result.time, b.result.time);
  EXPECT_EQ(a.result.particles, b.result.particles);
  EXPECT_EQ(a.result.worst_energy_error, b.result.worst_energy_error);
  EXPECT_EQ(a.result.momentum_drift, b.result.momentum_drift);
  ASSERT_EQ(a.result.energy.has_value(), b.result.energy.has_value());
  if (a.result.energy) {
    EXPECT_EQ(a.result.energy->error, b.result.energy->error);
  }
}

}  // namespace maki::test
