// A run that goes on from a restart is the run that was never stopped.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "kernels/error.hpp"
#include "src/io/snapshot_io.hpp"
#include "src/run/run_options.hpp"
#include "src/simulation/run_files.hpp"
#include "tests/places.hpp"
#include "tests/small_disk.hpp"
#include "tests/src/simulation/recorded_runs.hpp"

namespace maki::testing {
namespace {

Prepared universe(std::vector<std::string> settings = {}) {
  settings.insert(settings.begin(), {"gravity.mesh=32", "energy_interval=3", "max_physical_softening=20 kpc/h",
                                     "output.redshifts=[8.5]", "time.end_redshift=6.5", "time.max_dlna=0.02"});
  return small_box(settings);
}

// From the start, with the states of all boundaries.
Ends run_whole(const Prepared& run) {
  return run_on(run, run.initial, simulation_options(run), {}, {.restart_steps = 1});
}

Ends resume(const Prepared& run, const KeptState& from) { return run_on(run, from, simulation_options(run), {}); }

// From the start, or from a state.
template <class Start>
Ends run_with(RunFiles& files, const Prepared& run, const Start& start) {
  Simulation simulation(test::test_stream(), start, simulation_options(run), timeline_of(run), files);
  Ends ends;
  ends.result = simulation.run();
  ends.state = simulation.snapshot();
  return ends;
}

void expect_same(const Ends& a, const Ends& b) {
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

// From every boundary, before and after outputs and energies, and from the end, to the same last bit.
TEST(Resume, AUniverseToTheLastBit) {
  const Prepared run = universe({"gravity.reuse=1"});
  const Ends whole = run_whole(run);
  ASSERT_GT(whole.kept.size(), 5u);
  EXPECT_EQ(whole.outputs, (std::vector<int>{0, 1}));
  for (std::size_t i = 0; i < whole.kept.size(); i += i + 4 < whole.kept.size() ? 3 : 1) {
    const KeptState& from = whole.kept[i];
    const Ends rest = resume(run, from);
    expect_same(rest, whole);
    ASSERT_EQ(rest.steps.size() + from.state.result.steps, whole.result.steps);
    for (std::size_t k = 0; k < rest.steps.size(); ++k) {
      const StepMetrics& then = whole.steps[from.state.result.steps + 1 + k];
      EXPECT_EQ(rest.steps[k].step, then.step);
      EXPECT_EQ(rest.steps[k].time, then.time);
      EXPECT_EQ(rest.steps[k].substep, then.substep);
      EXPECT_EQ(rest.steps[k].max_acceleration, then.max_acceleration);
      EXPECT_EQ(rest.steps[k].energy.has_value(), then.energy.has_value());
    }
    EXPECT_EQ(rest.outputs,
              std::vector<int>(whole.outputs.begin() + static_cast<int>(from.state.outputs), whole.outputs.end()));
  }
  EXPECT_EQ(whole.kept.back().state.outputs, 2u) << "that of the end";
}

TEST(Resume, ALaterEndGoesOnAsFromAnOutput) {
  const Ends first = run_whole(universe({"gravity.reuse=1", "time.end_redshift=7"}));
  const Prepared longer = universe({"gravity.reuse=1", "output.redshifts=[8.5,7]"});
  expect_same(resume(longer, first.kept.back()), run_whole(longer));
}

// The angle follows from measures that a restart keeps: once forces no longer cancel it is the larger one, and lists
// are shorter.
TEST(Resume, WhereTheOpeningAngleChanges) {
  const Prepared run = universe({"gravity.reuse=1", "box.size=10 Mpc/h", "cosmology.sigma8=1.1", "gravity.theta=0.8",
                                 "gravity.r_cut=4.5", "gravity.split_order=5"});
  const Ends whole = run_whole(run);
  const double early = *run.config.gravity.theta_early, late = *run.config.gravity.theta;
  const auto larger = std::find_if(whole.steps.begin(), whole.steps.end(),
                                   [&](const StepMetrics& step) { return step.gravity.theta == late; });
  ASSERT_NE(larger, whole.steps.end());
  const auto change = static_cast<std::size_t>(larger - whole.steps.begin());
  for (std::size_t k = 0; k < whole.steps.size(); ++k)
    EXPECT_EQ(whole.steps[k].gravity.theta, k < change ? early : late);
  EXPECT_LT(whole.steps[change].gravity.mean_list, 0.9 * whole.steps[change - 1].gravity.mean_list);
  // From the last boundary before the change, and from the first after it.
  const auto after = std::find_if(whole.kept.begin(), whole.kept.end(),
                                  [&](const KeptState& kept) { return kept.state.result.steps >= change; });
  ASSERT_TRUE(after != whole.kept.begin() && after != whole.kept.end());
  for (const KeptState& from : {*(after - 1), *after}) expect_same(resume(run, from), whole);
}

// A run that is stopped keeps its state before momenta are brought to the time of the positions.
TEST(Resume, AStoppedUniverse) {
  const Prepared run = universe({"gravity.reuse=1", "time.max_dlna=0.01", "time.long_dlna=0.04"});
  const Ends whole = run_alone(run);
  std::size_t within = 0;
  for (std::size_t step = 6; step < 12; ++step) {
    const Ends stopped = run_on(run, run.initial, simulation_options(run), {}, {.stop_after = step});
    EXPECT_EQ(stopped.result.stopped_by, "the test");
    EXPECT_EQ(stopped.result.steps, step);
    EXPECT_EQ(stopped.outputs.back(), -1);
    ASSERT_EQ(stopped.kept.size(), 1u);
    if (stopped.kept[0].particles.long_acceleration) ++within;
    const Ends resumed = resume(run, stopped.kept[0]);
    EXPECT_EQ(resumed.result.stopped_by, "");
    expect_same(resumed, whole);
    EXPECT_EQ(resumed.steps.front().substep, whole.steps[step + 1].substep);
  }
  EXPECT_GT(within, 1u) << "stopped within a long step";
}

// Outputs and an end that came into the rest of the long step in which the run was stopped are met exactly.
TEST(Resume, ALongStepEndsAtANewTarget) {
  const std::vector<std::string> settings = {"gravity.reuse=1", "time.max_dlna=0.01", "time.long_dlna=0.04"};
  const Prepared run = universe(settings);
  const Ends stopped = run_on(run, run.initial, simulation_options(run), {}, {.stop_after = 8});
  const KeptState& from = stopped.kept.at(0);
  ASSERT_TRUE(from.particles.long_acceleration);
  const double begin = from.state.integrator.time, length = from.state.integrator.long_end - begin;
  const auto moment = [&](double part) { return std::exp(begin + part * length); };
  const auto changed = [&](std::vector<double> times, double end) {
    SimulationOptions options = simulation_options(run);
    options.outputs.insert(options.outputs.end(), times.begin(), times.end());
    options.end = end;
    RecorderOptions recorded;
    recorded.states = true;
    return run_on(run, from, options, {}, recorded);
  };
  const std::vector<double> outputs = {moment(0.1), moment(0.2), moment(0.9)};
  const Ends with_outputs = changed(outputs, moment(20));
  ASSERT_EQ(with_outputs.times.size(), 4u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(with_outputs.times[i], outputs[i], 1e-12);
  const Ends ended = changed({}, moment(0.6));
  EXPECT_NEAR(ended.result.time, moment(0.6), 1e-12);
  const Ends there = changed({moment(0.6)}, moment(20));
  EXPECT_EQ(ended.states.back().ids, there.states.front().ids);
  EXPECT_EQ(ended.states.back().positions, there.states.front().positions);
  EXPECT_EQ(ended.states.back().velocities, there.states.front().velocities);
}

// Kept lists are not part of a restart: the first forces are those of fresh ones, within the tolerance of kept ones.
TEST(Resume, WithKeptListsWithinTheErrorOfForces) {
  const Prepared run = universe();
  const Ends whole = run_whole(run), resumed = resume(run, whole.kept[whole.kept.size() / 2]);
  EXPECT_EQ(resumed.result.steps, whole.result.steps);
  const Communicator self = Communicator::self();
  EXPECT_LT(rms_distance(all_positions(self, resumed.state), all_positions(self, whole.state), run.side),
            1e-6 * run.side);
}

// An isolated set whose box doubles and whose fastest particles are set aside.
TEST(Resume, ABoxThatDoublesAndEscapers) {
  Prepared run = prepared("[run]\nkind = \"isolated\"\n[initial]\nkind = \"plummer\"\n",
                          {"particles=300", "gravity.softening=0.05", "end_time=1.2", "energy_interval=4",
                           "gravity.reuse=1", "output.times=[0.5]"});
  for (std::size_t i = 0; i < 3; ++i) run.initial.velocities[i] = {0, static_cast<float>(1000 * (i + 1)), 5};
  const Ends whole = run_whole(run);
  ASSERT_GT(whole.kept.size(), 10u);
  EXPECT_GT(whole.kept.back().escapers.size(), 0u);
  EXPECT_LT(whole.kept.front().state.frame.doublings, whole.kept.back().state.frame.doublings);
  for (std::size_t i = 0; i < whole.kept.size(); i += whole.kept.size() / 5)
    expect_same(resume(run, whole.kept[i]), whole);
}

TEST(Resume, OutputsOfThePastStay) {
  const Prepared run = universe();
  const Ends whole = run_whole(run);
  const KeptState& middle = whole.kept[whole.kept.size() / 2];
  ASSERT_EQ(middle.state.outputs, 1u);
  const auto after = [&](const std::vector<double>& redshifts) {
    SimulationOptions options = simulation_options(run);
    options.outputs.clear();
    for (const double z : redshifts) options.outputs.push_back(1 / (1 + z));
    return run_on(run, middle, options, {}, {.stop_after = 0}).outputs;
  };
  EXPECT_EQ(after({8.5, 6.51}), (std::vector<int>{-1}));
  EXPECT_THROW(after({}), Error);
  EXPECT_THROW(after({8.7, 8.5}), Error);
}

// Log, metrics and restarts of a run that goes on, and restarts that cannot be written.

class ResumeFiles : public ::testing::Test {
 protected:
  ResumeFiles() { options_.restart_steps = 4; }
  std::vector<std::string> lines(const std::string& name) const { return test::lines_of(folder_ / ("run/" + name)); }
  // Those of steps in metrics.jsonl.
  std::vector<std::string> steps() const {
    std::vector<std::string> all = lines("metrics.jsonl");
    std::erase_if(all, [](const std::string& line) { return line.find("{\"step\": ") != 0; });
    return all;
  }
  std::size_t metrics_with(const std::string& words) const {
    const std::vector<std::string> all = lines("metrics.jsonl");
    return static_cast<std::size_t>(
        std::count_if(all.begin(), all.end(), [&](const std::string& line) { return line.find(words) != line.npos; }));
  }
  test::TempDir folder_;
  RunFileOptions options_ = files_in(folder_ / "run");
  Provenance provenance_ = test::make_provenance();
};

// It ends by force after some steps, of which the last restart does not know, and leaves half a line of metrics.
TEST_F(ResumeFiles, LogAndMetricsGoOn) {
  const Prepared run = universe({"gravity.reuse=1"});
  Ends end;
  {
    RunFiles files(options_, provenance_);
    end = run_with(files, run, run.initial);
  }
  ASSERT_EQ(steps().size(), end.result.steps + 1);
  std::ofstream(options_.directory + "/metrics.jsonl", std::ios::app) << "{\"step\": 99";
  const std::vector<RestartInfo> found = find_restarts(options_.directory);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[1].step, end.result.steps);
  Restart restart = read_restart(found[0]);
  EXPECT_EQ(restart.info.provenance.configuration, provenance_.configuration);
  const KeptState from{from_numbers(restart.numbers), restart.particles, restart.escapers};
  options_.resumed_at = found[0].step;
  RunFiles files(options_, provenance_);
  expect_same(run_with(files, run, from), end);
  files.settle_snapshot();
  const std::vector<std::string> metrics = steps();
  ASSERT_EQ(metrics.size(), end.result.steps + 1);
  for (std::size_t i = 0; i < metrics.size(); ++i)
    test::expect_contains(metrics[i], {"\"step\": " + std::to_string(i) + ","});
  EXPECT_EQ(metrics_with("\"resumed_at\": " + std::to_string(found[0].step)), 1u);
  EXPECT_EQ(metrics_with("\"file\": \"snapshot_001.hdf5\""), 1u) << "what was written after the restart comes once";
  EXPECT_EQ(std::ranges::count_if(lines("log.txt"),
                                  [](const std::string& line) { return line.starts_with("# resumed after step"); }),
            1);
  EXPECT_EQ(read_snapshot(files.path("snapshot_001.hdf5")).positions, end.state.positions);
}

// Files may not grow while restarts are written.
struct LimitedFiles : RunFiles {
  using RunFiles::RunFiles;
  void message(const std::string& text) override {
    messages.push_back(text);
    RunFiles::message(text);
  }
  void restart(const std::shared_ptr<const KeptState>& kept) override {
    settle_snapshot();
    settle_restart();
    const test::SmallFiles small(100000, ++restarts > 1);
    RunFiles::restart(kept);
  }
  int restarts = 0;
  std::vector<std::string> messages;
};

TEST_F(ResumeFiles, ARestartThatCannotBeWrittenEndsNoRun) {
  const Prepared run = universe();
  LimitedFiles files(options_, provenance_);
  EXPECT_EQ(run_with(files, run, run.initial).result.stopped_by, "");
  EXPECT_GT(files.restarts, 2);
  const std::vector<RestartInfo> found = find_restarts(options_.directory);
  ASSERT_EQ(found.size(), 1u);
  std::size_t told = 0;
  for (const std::string& text : files.messages)
    if (text.find("File too large") != std::string::npos && text.find(found[0].path) != std::string::npos) ++told;
  EXPECT_EQ(told, static_cast<std::size_t>(files.restarts - 1));
}

// The snapshot loses its folder while it is written, unless it is fast.
TEST_F(ResumeFiles, ADirectoryThatIsRemovedEndsNoRun) {
  struct Removed : RunFiles {
    using RunFiles::RunFiles;
    void output(const OutputState& state) override {
      RunFiles::output(state);
      std::error_code not_empty;  // the thread has given a file its name meanwhile
      for (int tries = 0; state.index == 0 && tries < 10000 && std::filesystem::exists(directory()); ++tries)
        std::filesystem::remove_all(directory(), not_empty);
    }
  } files(options_, provenance_);
  const Prepared run = universe();
  EXPECT_EQ(run_with(files, run, run.initial).result.stopped_by, "");
  files.settle_snapshot();
  EXPECT_FALSE(find_restarts(options_.directory).empty());
  EXPECT_GT(steps().size(), 0u);
}

// The thread that writes loses its folder: the run hears of it at the end of a step, and goes on.
TEST_F(ResumeFiles, WhatTheThreadCannotWriteIsToldOfAtALaterStep) {
  struct Messages : RunFiles {
    using RunFiles::RunFiles;
    void message(const std::string& text) override { messages.push_back(text); }
    std::vector<std::string> messages;
  } files(options_, provenance_);
  constexpr std::size_t kMany = 2000000;  // it takes a while
  files.step({}, PhaseTimers());
  const auto what_is_told = [&](std::uint64_t step, bool loses_folder) {
    const auto kept = std::make_shared<KeptState>();
    kept->state.result.steps = step;
    maki::resize(kept->particles, kMany);
    const std::size_t before = files.messages.size();
    files.restart(kept);
    EXPECT_EQ(files.messages.size(), before) << "it is under way";
    StepMetrics metrics;
    for (metrics.step = step; files.messages.size() == before; ++metrics.step) {
      std::error_code not_empty;
      if (loses_folder) std::filesystem::remove_all(files.path(restart_folder::name_of(step)), not_empty);
      files.step(metrics, PhaseTimers());
    }
    return files.messages.back();
  };
  std::string told = what_is_told(1, false);
  test::expect_contains(told, {"Step 1: wrote"});
  std::uint64_t step = 1;
  do told = what_is_told(++step, true);  // once more where the thread was faster
  while (told.find(": wrote") != told.npos && step < 50);
  test::expect_contains(told,
                        {"there is no restart", restart_folder::name_of(step), "No such file", "The last one is"});
  const auto kept = find_restarts(options_.directory);
  ASSERT_FALSE(kept.empty());
  EXPECT_LT(kept.back().step, step);
}

}  // namespace
}  // namespace maki::testing
