#include "src/simulation/simulation.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <numbers>
#include <optional>

#include "kernels/error.hpp"
#include "src/ic/models.hpp"
#include "src/io/snapshot_io.hpp"
#include "src/simulation/run_files.hpp"
#include "tests/messages.hpp"
#include "tests/src/simulation/orbits.hpp"
#include "tests/test_stream.hpp"

namespace maki {
namespace {

using test::by_id;
using test::isolated_options;
using test::orbit_options;
using test::Recorder;

TEST(Simulation, OrbitComesBack) {
  const Stream& stream = test::test_stream();
  const TwoBodyParameters bodies;
  const Snapshot initial = make_two_body(bodies);
  Recorder recorder;
  Simulation run(stream, initial, orbit_options(bodies, 8, 1), Timeline::newtonian(), recorder);
  const RunResult result = run.run();
  EXPECT_EQ(result.stopped_by, "");
  EXPECT_EQ(result.steps, 400u);
  EXPECT_LT(result.worst_energy_error, 1e-3);
  EXPECT_LT(result.momentum_drift, 1e-6);
  const auto end = by_id(run.snapshot()), begin = by_id(initial);
  for (const auto& [id, position] : begin)
    for (std::size_t axis = 0; axis < 3; ++axis) EXPECT_NEAR(end.at(id)[axis], position[axis], 0.02);
}

TEST(Simulation, OutputsAreHitExactlyAndNumberedByTheList) {
  const Stream& stream = test::test_stream();
  Snapshot initial = make_two_body({});
  initial.header.time = 0.5;
  SimulationOptions options = isolated_options(8, 1e-2, 2);
  options.outputs = {1.7, 0.3, 1.1, 0.5, 1.1, 5};
  Recorder recorder;
  Simulation run(stream, initial, options, Timeline::newtonian(), recorder);
  run.run();
  EXPECT_EQ(recorder.times, (std::vector<double>{0.5, 1.1, 1.7, 2}));
  EXPECT_EQ(recorder.indices, (std::vector<int>{1, 2, 3, 4}));  // 0.3 keeps number 0; 5 is left out, with a message
  EXPECT_EQ(recorder.messages.size(), 1u);
}

// The box is made too small for the orbit, so that it has to double on the way: the orbit must not notice.
TEST(Simulation, DoublingTheBoxKeepsThePhysics) {
  const Stream& stream = test::test_stream();
  TwoBodyParameters bodies;
  bodies.eccentricity = 0.8;
  Snapshot initial = make_two_body(bodies);
  // At pericentre: |x| is 0.1 each; apocentre at 0.9 each.
  const double period = 2 * std::numbers::pi / std::sqrt(2.0);
  for (std::size_t i = 0; i < 2; ++i) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      initial.positions[i][axis] *= -1.0 / 9;
      initial.velocities[i][axis] *= -9;
    }
  }
  std::map<std::uint64_t, std::array<double, 3>> ends[2];
  for (int k = 0; k < 2; ++k) {
    const double side = k == 0 ? 1 : 8;
    SimulationOptions options = isolated_options(side, 1e-3, 0.6 * period);
    options.step_options.fixed_step = period / 2000;
    Recorder recorder;
    Simulation run(stream, initial, options, Timeline::newtonian(), recorder);
    const RunResult result = run.run();
    EXPECT_EQ(run.frame().doublings, k == 0 ? 2 : 0);
    EXPECT_EQ(run.frame().side, k == 0 ? 4 : 8);
    EXPECT_EQ(recorder.messages.size(), k == 0 ? 2u : 0u);
    EXPECT_LT(result.worst_energy_error, 2e-3);
    ends[k] = by_id(run.snapshot());
  }
  for (const auto& [id, position] : ends[0])
    for (std::size_t axis = 0; axis < 3; ++axis) EXPECT_NEAR(position[axis], ends[1].at(id)[axis], 1e-5);
}

TEST(Simulation, EscapersAreSetAsideAndKeepTheirVelocity) {
  const Stream& stream = test::test_stream();
  Snapshot initial = make_two_body({});
  initial.positions.push_back({0, 0, 0.3});
  initial.velocities.push_back({0, 0, 10});
  initial.masses.push_back(1e-6f);
  initial.ids.push_back(99);
  SimulationOptions options = isolated_options(8, 1e-2, 6);
  Recorder recorder;
  Simulation run(stream, initial, options, Timeline::newtonian(), recorder);
  const RunResult result = run.run();
  EXPECT_EQ(run.frame().doublings, 4);
  EXPECT_EQ(recorder.messages.size(), 5u);
  EXPECT_EQ(recorder.steps.back().particles, 2u);
  const Snapshot end = run.snapshot();
  ASSERT_EQ(end.size(), 3u);
  EXPECT_NEAR(by_id(end).at(99)[2], 0.3 + 6 * 9.7, 2);
  EXPECT_LT(result.worst_energy_error, 1e-3);
}

TEST(Simulation, StopsWhereTheObserverWants) {
  const Stream& stream = test::test_stream();
  Recorder recorder;
  recorder.stop_after = 10;
  Simulation run(stream, make_two_body({}), orbit_options({}, 8, 1), Timeline::newtonian(), recorder);
  const RunResult result = run.run();
  EXPECT_EQ(result.stopped_by, "the test");
  EXPECT_EQ(result.steps, 10u);
  EXPECT_EQ(recorder.indices, (std::vector<int>{-1}));
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
  const Stream& stream = test::test_stream();
  SimulationOptions options = orbit_options({}, 8, 0.5);
  options.outputs = {0.3, 1.0};
  Recorder whole, pieces;
  Simulation run(stream, make_two_body({}), options, Timeline::newtonian(), whole);
  const RunResult expected = run.run();
  Simulation stepped(stream, make_two_body({}), options, Timeline::newtonian(), pieces);
  stepped.begin();
  while (stepped.long_step()) {
  }
  EXPECT_TRUE(stepped.ended());
  EXPECT_FALSE(stepped.long_step());
  const RunResult result = stepped.finish();
  EXPECT_EQ(result.steps, expected.steps);
  EXPECT_EQ(result.stopped_by, "");
  EXPECT_EQ(pieces.indices, whole.indices);
  EXPECT_EQ(pieces.times, whole.times);
  EXPECT_EQ(by_id(stepped.snapshot()), by_id(run.snapshot()));
}

TEST(Simulation, APieceEndsWhereItIsAskedTo) {
  const Stream& stream = test::test_stream();
  SimulationOptions options = orbit_options({}, 8, 1);
  options.outputs = {0.3};
  Recorder recorder;
  Simulation run(stream, make_two_body({}), options, Timeline::newtonian(), recorder);
  run.begin();
  while (run.time() < 0.25) EXPECT_TRUE(run.long_step(0.25));
  EXPECT_EQ(run.time(), 0.25);
  EXPECT_TRUE(recorder.indices.empty());
  EXPECT_TRUE(run.long_step(0.25));  // nothing is left to do
  EXPECT_EQ(run.time(), 0.25);
  while (run.time() < 0.5) run.long_step(0.5);
  EXPECT_EQ(recorder.times, (std::vector<double>{0.3}));
}

TEST(Simulation, StopsBetweenPieces) {
  const Stream& stream = test::test_stream();
  Recorder recorder;
  Simulation run(stream, make_two_body({}), orbit_options({}, 8, 1), Timeline::newtonian(), recorder);
  run.begin();
  run.long_step();
  run.synchronise();
  run.stop("the caller");
  EXPECT_FALSE(run.long_step());
  EXPECT_EQ(run.finish().stopped_by, "the caller");
  EXPECT_EQ(recorder.indices, (std::vector<int>{-1}));
}

}  // namespace
}  // namespace maki
