// Log, metrics and restarts of a run that goes on, and restarts that cannot be written.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <vector>

#include "kernels/error.hpp"
#include "src/io/snapshot_io.hpp"
#include "src/simulation/run_files.hpp"
#include "tests/src/simulation/resumed_runs.hpp"

namespace maki {
namespace {

using test::Case;
using test::End;
using test::expect_same;
using test::resume;
using test::run_whole;
using test::universe;

class ResumeFiles : public testing::Test {
 protected:
  void SetUp() override {
    options_.directory = (std::filesystem::path(testing::TempDir()) / "maki_resume_files").string();
    options_.progress = nullptr;
    options_.restart_steps = 4;
    std::filesystem::remove_all(options_.directory);
  }
  void TearDown() override { std::filesystem::remove_all(options_.directory); }
  std::vector<std::string> lines(const std::string& name) const {
    std::ifstream file(std::filesystem::path(options_.directory) / name);
    std::vector<std::string> all;
    for (std::string line; std::getline(file, line);) all.push_back(line);
    return all;
  }
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
  RunFileOptions options_;
  Provenance provenance_{"[run]\nname = \"test\"\n", "Maki 0", "abc", "g++", "cpu"};
};

// It ends by force after some steps, of which the last restart does not know, and leaves half a line of metrics.
TEST_F(ResumeFiles, LogAndMetricsGoOn) {
  const Case c = universe({"gravity.reuse=1"});
  End end;
  {
    RunFiles files(options_, provenance_);
    end = run_whole(c, files);
  }
  ASSERT_EQ(steps().size(), end.result.steps + 1);
  std::ofstream(options_.directory + "/metrics.jsonl", std::ios::app) << "{\"step\": 99";
  const std::vector<RestartInfo> found = find_restarts(options_.directory);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_GE(found[1].step, found[0].step + 4);
  Restart restart = read_restart(found[0]);
  EXPECT_EQ(restart.info.provenance.configuration, provenance_.configuration);
  const KeptState from{from_numbers(restart.numbers), restart.particles, restart.escapers};
  options_.resumed_at = found[0].step;
  RunFiles files(options_, provenance_);
  expect_same(resume(c, from, files), end);
  files.settle_snapshot();
  const std::vector<std::string> metrics = steps();
  ASSERT_EQ(metrics.size(), end.result.steps + 1);
  for (std::size_t i = 0; i < metrics.size(); ++i)
    EXPECT_NE(metrics[i].find("\"step\": " + std::to_string(i) + ","), std::string::npos) << metrics[i];
  EXPECT_EQ(metrics_with("\"resumed_at\": " + std::to_string(found[0].step)), 1u);
  EXPECT_EQ(metrics_with("\"file\": \"snapshot_001.hdf5\""), 1u) << "what was written after the restart comes once";
  std::size_t resumed = 0;
  for (const std::string& line : lines("log.txt")) resumed += line.find("# resumed after step") == 0 ? 1 : 0;
  EXPECT_EQ(resumed, 1u);
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
    const auto before = std::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{};
    getrlimit(RLIMIT_FSIZE, &limit);
    const rlimit small{100000, limit.rlim_max};
    if (++restarts > 1) setrlimit(RLIMIT_FSIZE, &small);
    RunFiles::restart(kept);
    setrlimit(RLIMIT_FSIZE, &limit);
    std::signal(SIGXFSZ, before);
  }
  int restarts = 0;
  std::vector<std::string> messages;
};

TEST_F(ResumeFiles, ARestartThatCannotBeWrittenEndsNoRun) {
  const Case c = universe();
  LimitedFiles files(options_, provenance_);
  EXPECT_EQ(run_whole(c, files).result.stopped_by, "");
  EXPECT_GT(files.restarts, 2);
  const std::vector<RestartInfo> found = find_restarts(options_.directory);
  ASSERT_EQ(found.size(), 1u);
  std::size_t told = 0;
  for (const std::string& text : files.messages)
    if (text.find("File too large") != std::string::npos && text.find(found[0].path) != std::string::npos) ++told;
  EXPECT_EQ(told, static_cast<std::size_t>(files.restarts - 1));
}

// The thread that writes loses its folder: the run hears of it at the end of a step, and goes on.
TEST_F(ResumeFiles, WhatTheThreadCannotWriteIsToldOfAtALaterStep) {
  struct Messages : RunFiles {
    using RunFiles::RunFiles;
    void message(const std::string& text) override { messages.push_back(text); }
    std::vector<std::string> messages;
  } files(options_, provenance_);
  constexpr std::size_t kMany = 2000000;  // it takes a while
  files.step({}, PhaseTimers(), 0);
  for (const std::uint64_t step : {1, 2}) {
    const auto kept = std::make_shared<KeptState>();
    kept->state.result.steps = step;
    kept->particles.source.resize(kMany);
    kept->particles.remainder.resize(kMany);
    for (auto& axis : kept->particles.momentum) axis.resize(kMany);
    kept->particles.id.resize(kMany);
    files.restart(kept);
    EXPECT_EQ(files.messages.size(), step - 1) << "it is under way";
    StepMetrics metrics;
    for (metrics.step = step; files.messages.size() < step; ++metrics.step) {
      if (step == 2) std::filesystem::remove_all(files.path("restart_000002"));
      files.step(metrics, PhaseTimers(), 0);
    }
  }
  EXPECT_NE(files.messages[0].find("Step 1: wrote"), std::string::npos) << files.messages[0];
  for (const char* words : {"Step 2: there is no restart", "restart_000002", "No such file", "The last one is"})
    EXPECT_NE(files.messages[1].find(words), std::string::npos) << files.messages[1];
  ASSERT_EQ(find_restarts(options_.directory).size(), 1u);
  EXPECT_EQ(find_restarts(options_.directory)[0].step, 1u);
}

}  // namespace
}  // namespace maki
