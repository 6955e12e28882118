// What a run tells: metrics, log lines and progress; and what it hears: requests to stop.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <string>

#include "src/simulation/metrics.hpp"
#include "src/simulation/progress.hpp"
#include "src/simulation/run_files.hpp"
#include "src/simulation/step_log.hpp"
#include "src/simulation/stop_request.hpp"
#include "tests/messages.hpp"
#include "tests/places.hpp"
#include "tests/temp_dir.hpp"
#include "wan/net/error.hpp"

namespace maki {
namespace {

using namespace test;
using StopRequests = InTempDir;

StepMetrics example() {
  StepMetrics metrics;
  metrics.step = 12;
  metrics.time = 0.5;
  metrics.dlna = 0.01;
  metrics.long_step_end = true;
  metrics.gravity.rebuilt = true;
  metrics.gravity.interactions = 123456789012;
  metrics.gravity.groups = 200;
  metrics.gravity.rewalked_groups = 3;
  return metrics;
}

std::string line_of(const StepMetrics& metrics, const PhaseTimers& timers) {
  return to_json(metrics, {record_of(metrics, timers)});
}

TEST(Metrics, LineIsAnObjectWithTheFieldsOfItsKind) {
  const PhaseTimers timers;
  StepMetrics metrics = example();
  std::string line = line_of(metrics, timers);
  expect_contains(line, {"\"step\": 12", "\"z\": 1,", "\"rebuilt\": true", "\"interactions\": 123456789012"});
  expect_lacks(line, {"energy_error"});
  metrics.energy = EnergyReport{1, -2, 3, 1e-5};
  metrics.comoving = false;
  line = line_of(metrics, timers);
  expect_lacks(line, {"\"z\""});
  expect_contains(line, {"\"energy_error\": 1e-05"});
}

TEST(Metrics, NumbersThatAreNotFiniteAreNull) {
  StepMetrics metrics = example();
  metrics.max_acceleration = std::numeric_limits<double>::infinity();
  expect_contains(line_of(metrics, {}), {"\"max_acceleration\": null"});
}

TEST(Metrics, PhasesHavePaths) {
  PhaseTimers timers;
  {
    PhaseTimers::Scope tree(timers, "tree");
    PhaseTimers::Scope walk(timers, "walk");
    const double begin = static_cast<double>(std::clock());
    while (static_cast<double>(std::clock()) < begin + 100) continue;
  }
  const std::string line = line_of(example(), timers), name = "\"tree/walk\": ";
  ASSERT_NE(line.find(name), std::string::npos) << line;
  EXPECT_GT(std::stod(line.substr(line.find(name) + name.size())), 0);
}

TEST(Metrics, TextIsQuoted) {
  const std::string line = head_line({"4f"}, Provenance{"a = \"b\"\nc = 'd\\e'\n", "Maki", "", "", ""});
  expect_contains(line, {R"(a = \"b\"\u000ac = 'd\\e'\u000a)"});
  EXPECT_EQ(line.find("time_unit"), line.npos);
  expect_contains(head_line({.run = "4f", .time_unit = {0.5, "Gyr"}}, {}),
                  {R"("time_unit": {"name": "Gyr", "length": 0.5})"});
}

TEST(StepLog, LinesStandUnderTheirNames) {
  StepMetrics metrics = example();
  EXPECT_EQ(log_line(metrics, {record_of(metrics, {})}).size(), log_columns(true).size());
  metrics.energy = EnergyReport{1, -2, 3, -1e-5};
  EXPECT_EQ(log_line(metrics, {record_of(metrics, {})}).size(), log_columns(true).size());
  metrics.comoving = false;
  EXPECT_EQ(log_line(metrics, {record_of(metrics, {})}).size(), log_columns(false).size());
}

TEST(StepLog, ANoteOfOverwritingThatIsLostIsAnError) {
  const TempDir dir;
  std::filesystem::create_symlink("/dev/full", dir / "metrics.jsonl");
  expect_error([&] { note_overwriting(dir.path()); }, {"metrics.jsonl", "No space left"});
}

TEST(Progress, SaysWhereTheRunStands) {
  StepMetrics metrics = example();
  metrics.time = 0.25, metrics.steps_left = 300, metrics.particles = 262144;
  expect_contains(progress_line(metrics, 0.5, {}), {"z 3.000", "300 steps, 2 min 30 s left", "524.3 k"});
  metrics.comoving = false;
  expect_contains(progress_line(metrics, 0.5, {2.5, "Gyr"}), {"t 0.1 Gyr "});
}

// What progress says to a file, by lines.
std::vector<std::string> said(ProgressForm form, const std::function<void(Progress&)>& work) {
  const TempDir folder;
  std::FILE* file = std::fopen((folder / "said").c_str(), "w");
  Progress progress(file, 10, form);
  work(progress);
  progress.finish();
  std::fclose(file);
  return lines_of(folder / "said");
}

TEST(Progress, IsPlainLinesOffATerminal) {
  const std::vector<std::string> lines = said(ProgressForm::kScreen, [](Progress& progress) {
    for (int i = 0; i < 30; ++i) progress.step(example(), 1.0 * i);
    progress.message("wrote it");
  });
  EXPECT_EQ(lines.size(), 4u);  // at 0, 10 and 20 s, and the message
  for (const std::string& line : lines) EXPECT_EQ(line.find_first_of("\r\033"), line.npos) << line;
}

TEST(Progress, IsObjectsForPrograms) {
  const std::vector<std::string> lines = said(ProgressForm::kJson, [](Progress& progress) {
    StepMetrics metrics = example();
    metrics.seconds = 2, metrics.steps_left = 5;
    for (metrics.step = 0; metrics.step < 4; ++metrics.step)
      progress.step(metrics, 0.6 * static_cast<double>(metrics.step));
    progress.message("wrote \"it\"");
    progress.event("{\"output\": 1}");
  });
  ASSERT_EQ(lines.size(), 4u) << "steps 0 and 2, at most one a second";
  expect_contains(lines[1], {"{\"step\": 2, \"a\": 0.5, \"z\": 1, \"seconds\": 2,", "\"seconds_left\": 10"});
  EXPECT_EQ(lines[2], "{\"message\": \"wrote \\\"it\\\"\"}");
  EXPECT_EQ(lines[3], "{\"output\": 1}");
}

TEST(Progress, DurationsReadWell) {
  EXPECT_EQ(duration_text(3.4), "3 s");
  EXPECT_EQ(duration_text(59.7), "1 min 00 s");
  EXPECT_EQ(duration_text(7384), "2 h 03 min");
  EXPECT_EQ(duration_text(std::numeric_limits<double>::infinity()), "?");
}

TEST(LinkLines, HaveWhatIsLoggedWhileTheyExist) {
  wan::log(wan::LogLevel::kInfo, "before");
  {
    LinkLines lines;
    wan::log(wan::LogLevel::kInfo, "the path to b is down");
    wan::log(wan::LogLevel::kWarning, "the path to b is up again");
    const auto taken = lines.take();
    ASSERT_EQ(taken.size(), 2);
    EXPECT_EQ(taken[0].second, "the path to b is down");
    EXPECT_LE(taken[0].first, taken[1].first);
    EXPECT_TRUE(lines.take().empty());
  }
  wan::log(wan::LogLevel::kInfo, "afterwards");
}

TEST_F(StopRequests, SignalsAreRequests) {
  const auto before = std::signal(SIGHUP, SIG_DFL);  // the tests may run under nohup
  const std::map<int, std::string> names = {{SIGTERM, "SIGTERM"}, {SIGINT, "SIGINT"},   {SIGHUP, "SIGHUP"},
                                            {SIGUSR1, "SIGUSR1"}, {SIGUSR2, "SIGUSR2"}, {SIGXCPU, "SIGXCPU"}};
  for (const auto& [signal, name] : names) {
    const StopRequest request(dir.path(), 0);
    std::raise(signal);
    EXPECT_EQ(request.reason(0), name);
  }
  const StopRequest fresh(dir.path(), 0);
  EXPECT_EQ(fresh.reason(0), "");  // an old signal is forgotten
  std::signal(SIGHUP, before);
}

TEST_F(StopRequests, AHangUpThatNohupIgnoresIsNone) {
  const auto before = std::signal(SIGHUP, SIG_IGN);
  {
    const StopRequest request(dir.path(), 0);
    std::raise(SIGHUP);
    EXPECT_EQ(request.reason(0), "");
  }
  EXPECT_EQ(std::signal(SIGHUP, before), SIG_IGN);
}

TEST_F(StopRequests, StopFileCountsFromWhenItIsSeenAndEndsWithTheRun) {
  const std::string file = dir / "stop";
  std::ofstream(file).put('x');  // before the run has begun
  {
    const StopRequest request(dir.path(), 0);
    EXPECT_NE(request.reason(0), "");
    EXPECT_FALSE(std::filesystem::exists(file));
    EXPECT_EQ(request.reason(0), kStopFileReason);  // from then on, until other sites know
    EXPECT_TRUE(request.made()());
    std::ofstream(file).put('x');  // too late for this run
  }
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST_F(StopRequests, TimeLimitCountsTheNextPieceOfWork) {
  const auto begin = std::chrono::steady_clock::now() - std::chrono::hours(1);
  EXPECT_EQ(StopRequest(dir.path(), 0).reason(1e9), "");
  EXPECT_EQ(StopRequest(dir.path(), 7200, begin).reason(60), "");
  EXPECT_NE(StopRequest(dir.path(), 7200, begin).reason(4000), "");
  EXPECT_NE(StopRequest(dir.path(), 3000, begin).reason(0), "");
}

int seen = 0;
void see(int) { ++seen; }

TEST_F(StopRequests, HandlersOfOthersAreBackAfterwards) {
  const auto before = std::signal(SIGTERM, see);
  {
    const StopRequest request(dir.path(), 0);
    std::raise(SIGTERM);
    EXPECT_EQ(request.reason(0), "SIGTERM");
  }
  std::raise(SIGTERM);
  EXPECT_EQ(seen, 1);
  {
    const StopRequest request("", 0, std::chrono::steady_clock::now(), false);
    std::raise(SIGTERM);
    EXPECT_EQ(request.reason(0), "");
  }
  EXPECT_EQ(seen, 2);
  std::signal(SIGTERM, before);
}

}  // namespace
}  // namespace maki
