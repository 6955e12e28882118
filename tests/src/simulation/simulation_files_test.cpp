// The files of runs of two bodies.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>

#include "kernels/error.hpp"
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

class SimulationFiles : public testing::Test {
 protected:
  void SetUp() override {
    const std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    options_.directory = (std::filesystem::path(testing::TempDir()) / ("maki_run_" + name)).string();
    options_.progress = nullptr;
    std::filesystem::remove_all(options_.directory);
  }
  void TearDown() override { std::filesystem::remove_all(options_.directory); }
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
  RunFileOptions options_;
  Provenance provenance_{"[run]\nname = \"test\"\n", "Maki 0", "abc", "g++", "cpu"};
  Snapshot end_;
};

TEST_F(SimulationFiles, WritesLogMetricsAndSnapshots) {
  SimulationOptions options = orbit_options({}, 8, 0.1);
  options.outputs = {options.end / 2};
  std::optional<RunFiles> files(std::in_place, options_, provenance_);
  const RunResult result = run(*files, make_two_body({}), options);
  EXPECT_TRUE(exists("snapshot_000.hdf5"));
  EXPECT_TRUE(exists("snapshot_001.hdf5"));
  EXPECT_NEAR(read_snapshot(files->path("snapshot_000.hdf5")).header.time, options.end / 2, 1e-15);
  std::ifstream metrics(files->path("metrics.jsonl"));
  std::string line;
  std::size_t lines = 0;
  while (std::getline(metrics, line)) {
    lines += line.find("{\"step\": ") == 0 ? 1 : 0;
    EXPECT_EQ(line.front(), '{');
    EXPECT_EQ(line.back(), '}');
  }
  EXPECT_EQ(lines, result.steps + 1);  // and step 0
  files.reset();
  EXPECT_THROW(RunFiles(options_, provenance_), Error);  // a run is there
  options_.overwrite = true;
  EXPECT_NO_THROW(RunFiles(options_, provenance_));
}

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
  EXPECT_EQ(files.snapshots().size(), 3u);
}

TEST_F(SimulationFiles, ASnapshotThatCannotBeWrittenEndsTheRun) {
  struct Files : RunFiles {
    using RunFiles::RunFiles;
    void output(const OutputState& state) override {
      std::filesystem::create_directory(path("snapshot_000.hdf5"));
      RunFiles::output(state);
    }
  };
  SimulationOptions options = orbit_options({}, 8, 0.1);
  options.outputs = {options.end / 2};
  Files files(options_, provenance_);
  test::expect_contains(test::error_of([&] { run(files, make_two_body({}), options); }),
                        {"cannot write", "snapshot_000.hdf5", "it is a directory"});
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
  Recorder whole;
  Simulation reference(stream_, make_two_body({}), options, Timeline::newtonian(), whole);
  reference.run();
  const auto expected = by_id(reference.snapshot());
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
    for (const auto& [id, position] : by_id(end_))
      for (std::size_t axis = 0; axis < 3; ++axis) EXPECT_NEAR(position[axis], expected.at(id)[axis], 1e-5);
  }
}

TEST_F(SimulationFiles, RefusedRunsLeaveNoFiles) {
  RunFiles files(options_, provenance_);
  files.message("about to start");
  EXPECT_THROW(run(files, make_two_body({}), isolated_options(8, 1e-7, 1)), Error);
  EXPECT_TRUE(std::filesystem::is_empty(options_.directory));
}

}  // namespace
}  // namespace maki
