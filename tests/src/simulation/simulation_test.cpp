// Runs of two bodies, and their files.
#include "src/simulation/simulation.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <numbers>
#include <optional>
#include <string>
#include <vector>

#include "kernels/error.hpp"
#include "src/ic/models.hpp"
#include "src/io/snapshot_io.hpp"
#include "src/simulation/run_files.hpp"
#include "tests/src/simulation/recorded_runs.hpp"

namespace maki::testing {
namespace {

constexpr bool kDirect = true;

// Two bodies of reduced separation a(1 + e) at apocentre, one orbit in 400 steps.
SimulationOptions orbit_options(const TwoBodyParameters& bodies, double side, double periods) {
  const double mass = bodies.mass1 + bodies.mass2;
  const double period = 2 * std::numbers::pi * std::sqrt(std::pow(bodies.semi_major_axis, 3) / mass);
  SimulationOptions options = isolated_options(side, 1e-4, periods * period, kDirect);
  options.step_options.fixed_step = period / 400;
  return options;
}

const double kPeriod = 2 * std::numbers::pi / std::sqrt(2.0);  // of make_two_body()'s

// Where the model's bodies are at apocentre, these are at pericentre.
Snapshot two_at_pericentre(const TwoBodyParameters& bodies) {
  Snapshot pair = make_two_body(bodies);
  const double ratio = (1 + bodies.eccentricity) / (1 - bodies.eccentricity);
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t axis = 0; axis < 3; ++axis) {
      pair.positions[i][axis] /= -ratio;
      pair.velocities[i][axis] *= static_cast<float>(-ratio);
    }
  return pair;
}

auto by_id(const Snapshot& snapshot) { return all_positions(Communicator::self(), snapshot); }

// rms, along an axis.
double distance(const Snapshot& a, const Snapshot& b) { return rms_distance(by_id(a), by_id(b), 1e9); }

TEST(Simulation, OutputsAreHitExactlyAndNumberedByTheList) {
  Snapshot initial = make_two_body({});
  initial.header.time = 0.5;
  SimulationOptions options = isolated_options(8, 1e-2, 2, kDirect);
  options.outputs = {1.7, 0.3, 1.1, 0.5, 1.1, 5};
  const Ends run = run_on(initial, options, Timeline::newtonian());
  EXPECT_EQ(run.times, (std::vector<double>{0.5, 1.1, 1.7, 2}));
  EXPECT_EQ(run.outputs, (std::vector<int>{1, 2, 3, 4}));  // 0.3 keeps number 0
  EXPECT_EQ(run.messages,
            (std::vector<std::string>{"Outputs after the end of the run are left out: 1.",
                                      "Outputs before the start of the run are left out: 1; numbers begin with 001."}));
}

TEST(Simulation, LargeEnergyErrorsAreToldOfOnce) {
  for (const double steps : {8.0, 200.0}) {
    SimulationOptions options = isolated_options(8, 1e-3, 3 * kPeriod, kDirect);
    options.step_options.fixed_step = kPeriod / steps;
    const Ends run = run_on(make_two_body({.eccentricity = 0.5}), options, Timeline::newtonian());
    EXPECT_EQ(run.result.worst_energy_error > 0.01, steps < 10);
    const std::string said = test::text_of(run.messages);
    EXPECT_EQ(run.messages.size(), steps < 10 ? 1u : 0u) << said;
    EXPECT_EQ(said.find("the energy is off by") != std::string::npos, steps < 10) << said;
  }
}

// Two bodies that pass each other nearly straight: relative speed 30, impact parameter 0.05, softening 0.01.
TEST(Simulation, AnEncounterThatStepsJumpOverIsToldOf) {
  for (const double eta : {0.3, 0.02}) {
    Snapshot initial = make_two_body({});
    initial.positions = {{0, 0, 0}, {-5, 0.05, 0}};
    initial.velocities = {{-15, 0, 0}, {15, 0, 0}};
    SimulationOptions options = isolated_options(16, 1e-2, 1.0 / 3, kDirect);
    options.step_options.eta = eta;
    const Ends run = run_on(initial, options, Timeline::newtonian());
    const double deflection = run.state.velocities[1][1] - run.state.velocities[0][1];
    const double impulse = -2 * 2 * 0.05 / (30 * (0.05 * 0.05 + 0.01 * 0.01));
    EXPECT_EQ(std::fabs(deflection / impulse - 1) < 0.02, eta < 0.1) << deflection;
    const std::string said = test::text_of(run.messages);
    EXPECT_EQ(said.find("forces of the whole set rose") != std::string::npos, eta > 0.1) << said;
  }
}

// Through each other's softened core forces fall and rise again, in steps of any length.
TEST(Simulation, AResolvedPassageThroughACoreIsNotToldOf) {
  Snapshot initial = make_two_body({});
  initial.positions = {{-1, 0, 0}, {1, 0, 0}};
  initial.velocities = {{0, 0, 0}, {0, 0, 0}};
  SimulationOptions options = isolated_options(16, 0.1, 3, kDirect);
  options.step_options.fixed_step = 5e-4;
  EXPECT_EQ(test::text_of(run_on(initial, options, Timeline::newtonian()).messages), "");
}

// A tight pair has nearly all of the rms force.
TEST(Simulation, ErrorsOfForcesBesideATightPairAreToldOf) {
  Snapshot stars = make_plummer({.particles = 3000, .truncation_radius = 10});
  stars.positions[1] = stars.positions[0];
  stars.positions[1][0] += 1e-3;
  SimulationOptions options = isolated_options(64, 1e-4, 1e-6);
  options.step_options.fixed_step = 1e-6;
  options.gravity.theta = 1;
  options.error_targets = 1000;
  const auto run = [&](double largest) {
    options.largest_error = largest;
    return run_on(stars, options, Timeline::newtonian());
  };
  const ForceError found = run(0).force_errors.at(0);
  ASSERT_LT(found.rms, found.median / 4);
  const auto told = [&](double largest) { return test::text_of(run(largest).messages); };
  test::expect_lacks(told(2 * found.median), {"Warning"});
  test::expect_contains(told(found.median / 2), {"half of the particles err by more than gravity.error"});
  test::expect_contains(told(found.rms / 2), {"Warning: this is more than gravity.error"});
}

// The box is made too small for the orbit, so that it has to double on the way: the orbit must not notice.
TEST(Simulation, DoublingTheBoxKeepsThePhysics) {
  const Snapshot initial = two_at_pericentre({.eccentricity = 0.8});  // |x| is 0.1 each; apocentre at 0.9 each
  Ends ends[2];
  for (int k = 0; k < 2; ++k) {
    const double side = k == 0 ? 1 : 8;
    SimulationOptions options = isolated_options(side, 1e-3, 0.6 * kPeriod, kDirect);
    options.step_options.fixed_step = kPeriod / 2000;
    const Ends& run = ends[k] = run_on(initial, options, Timeline::newtonian());
    EXPECT_EQ(run.frame.doublings, k == 0 ? 2 : 0);
    EXPECT_EQ(run.frame.side, k == 0 ? 4 : 8);
    EXPECT_EQ(run.messages.size(), k == 0 ? 2u : 0u);
    EXPECT_LT(run.result.worst_energy_error, 2e-3);
    EXPECT_LT(run.result.momentum_drift, 1e-5);  // floats of two particles, rounded by chance in 1200 kicks: 2e-6
  }
  EXPECT_LT(distance(ends[0].state, ends[1].state), 5e-6);
}

// Both bodies leave the box that may double for any particle. They are bound: it doubles once more for them.
TEST(Simulation, TheBoxGoesOnDoublingForBoundParticles) {
  const Snapshot initial = two_at_pericentre({.eccentricity = 0.95});  // apocentre at 0.975 each
  Ends ends[2];
  for (const bool compact : {false, true}) {
    SimulationOptions options = isolated_options(compact ? 0.125 : 4, 1e-4, 0.6 * kPeriod, kDirect);
    options.step_options.fixed_step = kPeriod / 8000;
    Ends& run = ends[compact] = run_on(initial, options, Timeline::newtonian());
    EXPECT_EQ(run.frame.side, 4);
    EXPECT_EQ(run.steps.back().particles, 2u);
  }
  EXPECT_LT(distance(ends[0].state, ends[1].state), 1e-4);
}

// A binary that moves far beyond its box, and the same at rest: the same orbit, and the same error of its energy.
TEST(Simulation, TheBoxFollowsASetThatMovesAsAWhole) {
  const TwoBodyParameters bodies{.mass2 = 0.5, .eccentricity = 0.3};
  const double speed = 5;
  Ends ends[2];
  for (const bool moves : {false, true}) {
    Snapshot initial = make_two_body(bodies);
    for (auto& velocity : initial.velocities) velocity[0] += moves ? static_cast<float>(speed) : 0;
    SimulationOptions options = orbit_options(bodies, 8, 5);
    Ends& run = ends[moves] = run_on(initial, options, Timeline::newtonian());
    EXPECT_EQ(run.frame.doublings, moves ? 4 : 0);
    ASSERT_EQ(run.messages.size(), moves ? 5u : 0u);
    if (moves) {
      test::expect_contains(run.messages.back(), {"follows"});
    }
    EXPECT_EQ(run.steps.back().particles, 2u);
    for (auto& position : run.state.positions) position[0] -= moves ? speed * options.end : 0;
  }
  EXPECT_LT(distance(ends[0].state, ends[1].state), 1e-3);
  EXPECT_GT(ends[1].result.worst_energy_error, ends[0].result.worst_energy_error / 2);
  EXPECT_LT(ends[1].result.worst_energy_error, ends[0].result.worst_energy_error + 1e-4);
}

// The box does not follow a few: a cluster at rest loses the stars that it threw out, and a moving one too, but no others.
TEST(Simulation, AMovingSetLosesOnlyItsEscapers) {
  Snapshot initial = make_plummer({.seed = 3, .particles = 200, .truncation_radius = 3});
  for (auto& velocity : initial.velocities) velocity[1] -= 4;
  initial.velocities[7] = {60, 0, 0};
  SimulationOptions options = isolated_options(16, 0.05, 30, kDirect);
  options.step_options.fixed_step = 1.0 / 64;
  const Ends run = run_on(initial, options, Timeline::newtonian());
  EXPECT_EQ(run.steps.back().particles, 199u);
  for (const std::string& message : run.messages) test::expect_lacks(message, {"Warning"});
  EXPECT_EQ(run.state.size(), 200u);
  EXPECT_NEAR(by_id(run.state).at(initial.ids[7])[0], 1800, 30);
}

// The heavy body's place is not the middle, and the light ones that it holds are on the other side: the box stays with
// them, as it must not double, and only the star that leaves is lost.
TEST(Simulation, TheBoxDoesNotFollowWhereMoreWouldBeLost) {
  Snapshot initial = make_two_body({.mass2 = 1e-6});
  initial.positions = {{20, 0, 0}, {20, 31.9, 0}};
  initial.velocities = {{0, 0, 0}, {0, 50, 0}};
  for (std::uint64_t i = 0; i < 20; ++i)
    add_particle(initial, {-25 + 0.45 * static_cast<double>(i), 0, 0}, {0, 0, 0}, 1e-6f, 100 + i);
  SimulationOptions options = isolated_options(128, 1e-5, 0.1, kDirect);
  options.step_options.fixed_step = 0.01;
  const Ends run = run_on(initial, options, Timeline::newtonian());
  EXPECT_EQ(run.frame.doublings, 0);
  EXPECT_EQ(run.steps.back().particles, 21u);
}

TEST(Simulation, EscapersAreSetAsideAndKeepTheirVelocity) {
  Snapshot initial = make_two_body({});
  add_particle(initial, {0, 0, 0.3}, {0, 0, 10}, 1e-6f, 99);
  SimulationOptions options = isolated_options(8, 1e-2, 6, kDirect);
  const Ends run = run_on(initial, options, Timeline::newtonian());
  EXPECT_EQ(run.frame.doublings, 4);
  EXPECT_EQ(run.messages.size(), 5u);
  EXPECT_EQ(run.steps.back().particles, 2u);
  ASSERT_EQ(run.state.size(), 3u);
  EXPECT_NEAR(by_id(run.state).at(99)[2], 0.3 + 6 * 9.7, 2);
  EXPECT_LT(run.result.worst_energy_error, 1e-3);
  EXPECT_LT(run.result.momentum_drift, 4e-6) << "the escaper's momentum, 1e-5, is not lost";  // rounding: 2e-6
  test::expect_lacks(run.messages.back(), {"Warning"});
}

// From pericentre at 0.1 to apocentre at 1.9, where the largest box for the softening ends at 1.
TEST(Simulation, BoundParticlesThatAreSetAsideAreReported) {
  const Snapshot initial = two_at_pericentre({.mass2 = 1e-6, .eccentricity = 0.9});
  SimulationOptions options = isolated_options(0.25, 4e-7, 3, kDirect);
  options.step_options.fixed_step = 5e-4;
  const Ends run = run_on(initial, options, Timeline::newtonian());
  EXPECT_EQ(run.frame.side, 4);
  ASSERT_EQ(run.messages.size(), 5u);
  test::expect_contains(run.messages.back(), {"Warning: 1 of them would have come back: give a box.size above 4"});
  EXPECT_LT(run.result.worst_energy_error, 1e-3) << "with the energy of those set aside";
}

TEST(Simulation, StopsWhereTheObserverWants) {
  const Ends run = run_on(make_two_body({}), orbit_options({}, 8, 1), Timeline::newtonian(), {}, {.stop_after = 10});
  EXPECT_EQ(run.result.stopped_by, "the test");
  EXPECT_EQ(run.result.steps, 10u);
  EXPECT_EQ(run.outputs, (std::vector<int>{-1}));
}

TEST(Simulation, RefusesWhatCannotRun) {
  const Stream& stream = test::test_stream();
  Recorder recorder;
  SimulationOptions options = isolated_options(8, 1e-2, -1);
  EXPECT_THROW(Simulation(stream, make_two_body({}), options, Timeline::newtonian(), recorder), Error);
  options = isolated_options(8, 1e-7, 1);  // 54 units of the last bit
  EXPECT_THROW(Simulation(stream, make_two_body({}), options, Timeline::newtonian(), recorder), Error);
}

TEST(Simulation, InPiecesIsTheWholeRun) {
  SimulationOptions options = orbit_options({}, 8, 0.5);
  options.outputs = {0.3, 1.0};
  const Ends whole = run_on(make_two_body({}), options, Timeline::newtonian());
  Recorder pieces;
  Simulation stepped(test::test_stream(), make_two_body({}), options, Timeline::newtonian(), pieces);
  stepped.begin();
  while (stepped.step()) {
  }
  EXPECT_TRUE(stepped.ended());
  EXPECT_FALSE(stepped.step());
  const RunResult result = stepped.finish();
  EXPECT_EQ(result.steps, whole.result.steps);
  EXPECT_EQ(result.stopped_by, "");
  EXPECT_EQ(pieces.outputs, whole.outputs);
  EXPECT_EQ(pieces.times, whole.times);
  EXPECT_EQ(by_id(stepped.snapshot()), by_id(whole.state));
}

TEST(Simulation, APieceEndsWhereItIsAskedTo) {
  SimulationOptions options = orbit_options({}, 8, 1);
  options.outputs = {0.3};
  Recorder recorder;
  Simulation run(test::test_stream(), make_two_body({}), options, Timeline::newtonian(), recorder);
  run.begin();
  while (run.time() < 0.25) EXPECT_TRUE(run.step(0.25));
  EXPECT_EQ(run.time(), 0.25);
  EXPECT_TRUE(recorder.outputs.empty());
  EXPECT_TRUE(run.step(0.25));  // nothing is left to do
  EXPECT_EQ(run.time(), 0.25);
  while (run.time() < 0.5) run.step(0.5);
  EXPECT_EQ(recorder.times, (std::vector<double>{0.3}));
}

TEST(Simulation, StopsBetweenPieces) {
  Recorder recorder;
  Simulation run(test::test_stream(), make_two_body({}), orbit_options({}, 8, 1), Timeline::newtonian(), recorder);
  run.begin();
  run.step();
  run.synchronise();
  run.stop("the caller");
  EXPECT_FALSE(run.step());
  EXPECT_EQ(run.finish().stopped_by, "the caller");
  EXPECT_EQ(recorder.outputs, (std::vector<int>{-1}));
}

// The files of runs of two bodies.

class SimulationFiles : public ::testing::Test {
 protected:
  RunResult run(RunFiles& files, const Snapshot& initial, const SimulationOptions& options) {
    Simulation simulation(stream_, initial, options, Timeline::newtonian(), files);
    const RunResult result = simulation.run();
    files.finish(result, simulation.timers());
    end_ = simulation.snapshot();
    return result;
  }
  bool exists(const std::string& name) const {
    return std::filesystem::exists(std::filesystem::path(options_.directory) / name);
  }

  const Stream& stream_ = test::test_stream();
  test::TempDir folder_;
  RunFileOptions options_ = files_in(folder_ / "run");
  Provenance provenance_ = test::make_provenance();
  Snapshot end_;
};

// A run that goes on from a restart has the snapshots before it, and the lines about them.
TEST_F(SimulationFiles, SnapshotsAreCompleteBeforeARestart) {
  struct Files : RunFiles {
    using RunFiles::RunFiles;
    void restart(const std::shared_ptr<const KeptState>& kept) override {
      RunFiles::restart(kept);
      for (int i = 0; i < outputs; ++i)
        EXPECT_TRUE(std::filesystem::exists(path(fmt::format("snapshot_00{}.hdf5", i))));
      ++restarts;
    }
    void output(const OutputState& state) override {
      RunFiles::output(state);
      ++outputs;
    }
    int outputs = 0, restarts = 0;
  };
  SimulationOptions options = orbit_options({}, 8, 0.1);
  options.outputs = {options.end / 3, options.end / 2};
  options_.restart_steps = 1;
  Files files(options_, provenance_);
  run(files, make_two_body({}), options);
  EXPECT_EQ(files.outputs, 3);
  EXPECT_GT(files.restarts, 3);
  EXPECT_TRUE(std::filesystem::exists(files.path("snapshot_002.hdf5")));
}

// What it was stopped in is what it goes on from.
TEST_F(SimulationFiles, AStateThatContinuesIsWhole) {
  options_.snapshots = {.coordinates = CoordinateNumbers::kFloat,
                        .fields = {"Coordinates"},
                        .selection = {.fraction = 0.5}};
  RunFiles files(options_, provenance_);
  std::ofstream(files.path("stop")).put('x');
  run(files, make_two_body({}), orbit_options({}, 8, 0.25));
  EXPECT_EQ(read_snapshot(files.path("stopped.hdf5")).positions, end_.positions);
}

TEST_F(SimulationFiles, SignalStopFileAndTimeLimitEndInAStateThatContinues) {
  const SimulationOptions options = orbit_options({}, 8, 0.25);
  const Ends whole = run_on(make_two_body({}), options, Timeline::newtonian());
  options_.overwrite = true;
  for (int how = 0; how < 3; ++how) {
    options_.time_limit = how == 2 ? 1e-9 : 0;
    std::optional<RunFiles> files(std::in_place, options_, provenance_);
    if (how == 0) std::raise(SIGTERM);
    if (how == 1) std::ofstream(files->path("stop")).put('x');
    const RunResult stopped = run(*files, make_two_body({}), options);
    files.reset();
    EXPECT_NE(stopped.stopped_by, "");
    EXPECT_EQ(stopped.steps, 1u);
    ASSERT_TRUE(exists("stopped.hdf5"));

    options_.time_limit = 0;
    RunFiles more(options_, provenance_);
    Snapshot state = read_snapshot(more.path("stopped.hdf5"));
    state.header.gravitational_constant = 1;
    EXPECT_EQ(run(more, state, options).stopped_by, "");
    EXPECT_LT(distance(end_, whole.state), 5e-6);
  }
}

TEST_F(SimulationFiles, RefusedRunsLeaveNoFiles) {
  {
    RunFiles files(options_, provenance_);
    files.message("about to start");
    EXPECT_THROW(run(files, make_two_body({}), isolated_options(8, 1e-7, 1)), Error);
  }
  EXPECT_TRUE(std::filesystem::is_empty(options_.directory));
}

}  // namespace
}  // namespace maki::testing
