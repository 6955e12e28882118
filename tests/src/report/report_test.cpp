// maki report: the page of a finished run, of one that is cut off, and what it says where files are missing or damaged.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/property_tree/xml_parser.hpp>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <thread>

#include "kernels/error.hpp"
#include "src/io/property_tree.hpp"
#include "src/report/figures.hpp"
#include "src/report/status.hpp"
#include "tests/src/cli/program_fixture.hpp"
#include "tests/src/io/io_helpers.hpp"

namespace maki::report {
namespace {

using namespace test;
namespace fs = std::filesystem;

// One run for all tests; each has a copy of its directory.
class ReportOfARun : public testing::Test {
 protected:
  static fs::path base() { return base_->path(); }
  static void SetUpTestSuite() {
    base_.emplace();
    std::ofstream(base() / "tiny.toml") << kTinyUniverse;
    const CallResult run =
        call("run " + (base() / "tiny.toml").string() + " run.output_directory=" + (base() / "run").string() +
             " output.error_targets=20 output.groups=true gravity.reuse=1 time.end_redshift=30");
    ASSERT_EQ(run.code, 0) << run.output;
    expect_words(run, {"Report: ", "report.html"});
  }
  static void TearDownTestSuite() { base_.reset(); }
  void SetUp() override {
    fs::remove_all(directory());
    fs::copy(base() / "run", directory());
  }
  static std::string directory() { return (base() / "copy").string(); }
  static fs::path file(const std::string& name) { return base() / "copy" / name; }
  static std::vector<std::string> metrics() { return lines_of(file("metrics.jsonl")); }
  static void write_metrics(const std::vector<std::string>& lines) {
    std::ofstream out(file("metrics.jsonl"));
    for (const std::string& line : lines) out << line << '\n';
  }

 private:
  inline static std::optional<TempDir> base_;
};

TEST_F(ReportOfARun, HasEveryPart) {
  const std::string page = text_of(file("report.html").string());
  expect_contains(page, {"Came to its end at z = 30", "4096 particles", "periodic box of 10 Mpc/h", "seed 1",
                         "Settings that differ from the defaults", "gravity.softening"});
  expect_contains(page, {"Power spectrum; dashed: linear theory", "Growth since z = 49", "Power spectrum over HALOFIT",
                         "data:image/png;base64,", "z = 45 (image_001.png)", "Layzer-Irvine"});
  expect_contains(page, {"Energy conservation", "Errors of forces", "long steps", "Seconds of a step"});
  expect_contains(page,
                  {"evaluate", "Device memory", "bytes a particle", "What the run said", "prefers-color-scheme: dark"});
  expect_lacks(page, {"Missing or damaged"});
  EXPECT_LT(page.size(), 1000000u);
}

TEST_F(ReportOfARun, IsWellFormedAndNeedsNoNetwork) {
  std::string page = text_of(file("report.html").string());
  expect_lacks(page, {"<script"});
  for (std::size_t at = page.find("http"); at != page.npos; at = page.find("http", at + 1))
    EXPECT_EQ(page.substr(at, 26), "http://www.w3.org/2000/svg") << "only the name of SVG looks like an address";
  std::istringstream in(page.substr(page.find("<html")));
  boost::property_tree::ptree tree;
  EXPECT_NO_THROW(boost::property_tree::read_xml(in, tree));
  EXPECT_EQ(tree.get<std::string>("html.head.title"), "Maki: tiny");
  expect_lacks(page, {"nan"});
}

TEST_F(ReportOfARun, SaysWhatIsMissingOrDamaged) {
  fs::remove(file("log.txt"));
  std::ofstream(file("image_000.png")) << "no picture";
  std::ofstream(file("power_001.txt"), std::ios::app) << "1 2 3\n";
  std::vector<std::string> lines = metrics();
  lines[3] = lines[3].substr(0, 40);
  write_metrics(lines);
  const std::string page = report_page(directory()).html;
  expect_contains(page,
                  {"Missing or damaged", "log.txt is missing", "image_000.png", "power_001.txt",
                   "a row has 3 numbers below 10 names", "line 4 of metrics.jsonl cannot be read", "Came to its end"});
}

TEST_F(ReportOfARun, AnUnfinishedRunSaysSo) {
  std::vector<std::string> lines = metrics();
  lines.resize(lines.size() / 2);
  lines.push_back("{\"step\": 99, \"a\": 0.0");
  std::ofstream out(file("metrics.jsonl"));
  for (std::size_t i = 0; i < lines.size(); ++i) out << lines[i] << (i + 1 < lines.size() ? "\n" : "");
  out.close();
  const std::string page = report_page(directory()).html;
  expect_contains(page, {"Not finished", "Sums of the steps that have a line"});
  EXPECT_EQ(page.find("cannot be read"), std::string::npos) << "half a line is none yet";
}

TEST_F(ReportOfARun, AddsUpThePhasesOfItsProcesses) {
  const auto line = [](const std::string& rest) { return "{" + rest + "}"; };
  const std::string begin = R"("run": "f", "ranks": 1)", next = begin + R"(, "resumed_at": 1)";
  RecordReader reader;
  for (const std::string& text :
       {begin + R"(, "settings": [])", std::string(R"("step": 1, "a": 0.1, "phases": {"tree": 1, "tree/sort": 0.5})"),
        std::string(R"("end": "SIGTERM", "phases": {"tree": [2, 2, 2], "tree/sort": [1, 1, 1], "mesh": [4, 4, 4]})"),
        next, std::string(R"("step": 2, "a": 0.2, "phases": {"tree": 10, "tree/walk": 7, "mesh": 20})"), next,
        std::string(R"("end": "", "phases": {"tree": [100, 100, 100], "output": [1, 2, 3]})")})
    reader.line(line(text));
  EXPECT_TRUE(reader.records().problems.empty());
  EXPECT_TRUE(reader.records().earlier_by_steps) << "the second one has no end";
  std::string sums;
  for (const auto& [path, seconds] : reader.records().phases()) sums += fmt::format("{} {}, ", path, seconds.mean);
  EXPECT_EQ(sums, "tree 112, tree/sort 1, tree/walk 7, mesh 24, output 2, ");

  RecordReader again;  // the first process went beyond the restart that the second one takes
  for (const std::string& text :
       {begin + R"(, "settings": [])", std::string(R"("step": 1, "a": 0.1, "phases": {"tree": 1})"),
        std::string(R"("end": "", "steps": 9, "phases": {"tree": [50, 50, 50]})"), next,
        std::string(R"("end": "", "steps": 9, "phases": {"tree": [100, 100, 100]})")})
    again.line(line(text));
  EXPECT_EQ(again.records().phases().front().second.mean, 101) << "steps that were made twice count once";
}

TEST_F(ReportOfARun, TellsTimesInTheUnitOfTheRun) {
  write_metrics({R"({"run": "f", "ranks": 1, "time_unit": {"name": "Gyr", "length": 2.5}})",
                 R"({"step": 0, "t": 0, "dt": 0.5, "kinetic": 1, "potential": -2, "energy_error": 0})",
                 R"({"step": 1, "t": 0.5, "dt": 0.5, "kinetic": 1, "potential": -2, "energy_error": 1e-5})",
                 R"({"end": "", "time": 0.5, "steps": 1})"});
  const RunRecords records = read_records(directory());
  EXPECT_EQ(moment(records, records.reached()), "t = 0.2 Gyr");
  test::expect_contains(state_text(records, directory()), {"Came to its end at t = 0.2 Gyr"});
  test::expect_contains(status_line(records, {}), {"t 0.2 Gyr"});
  test::expect_contains(report_page(directory()).html, {"time, Gyr", "dt, Gyr"});
}

// Every fourth step has energies and fresh lists; the sample has its share of each, and first and last step.
TEST_F(ReportOfARun, TakesASampleOfALongRun) {
  std::vector<std::string> lines = {metrics().front()};
  for (int step = 0; step < 4000; ++step)
    lines.push_back(fmt::format(R"({{"step": {}, "a": 0.1, "rebuilt": {}{}, "phases": {{"tree": 2}}}})", step,
                                step % 4 == 0, step % 4 == 0 ? R"(, "kinetic": 1)" : ""));
  write_metrics(lines);
  const RunRecords all = read_records(directory()), some = read_records(directory(), 200);
  EXPECT_EQ(all.steps.size(), 4000u);
  EXPECT_EQ(some.every, 20u);
  EXPECT_NEAR(static_cast<double>(some.steps.size()), 200, 2);
  EXPECT_EQ(some.steps.front().step, 0u);
  EXPECT_EQ(some.last_step(), 3999u);
  const auto rebuilt = std::ranges::count_if(some.steps, [](const Step& step) { return step.rebuilt; });
  EXPECT_EQ(rebuilt, 50);
  EXPECT_NEAR(some.phases().front().second.mean, all.phases().front().second.mean, 100);
  EXPECT_EQ(all.phases().front().second.mean, 8000);
}

TEST_F(ReportOfARun, TellsWhereARunWentOn) {
  std::vector<std::string> lines = metrics();
  lines.push_back(R"({"run": "f", "resumed_at": 7, "host": "other", "ranks": 2, "settings": ["time.eta=0.2"], )"
                  R"("provenance": {"version": "Maki 9", "git_hash": "abc", "device": "gpu"}})");
  write_metrics(lines);
  const std::string page = report_page(directory()).html;
  expect_contains(page, {"Went on after step 7", "Maki 9", "2 ranks; host other", "time.eta", "Not finished",
                         "the sum over the 2 processes", "of which metrics.jsonl has no end"});
}

TEST_F(ReportOfARun, OnlyOfARun) {
  expect_error([] { report_page(base().string()); }, {"metrics.jsonl", "output directory"});
  std::ofstream(file("metrics.jsonl")) << "{}\n";
  expect_error([] { report_page(directory()); }, {"tells of no run"});
}

TEST_F(ReportOfARun, IsWatchedWhenFinished) {
  const CallResult once = expect_end(call("watch --once " + directory()), 0,
                                     {"tiny  4096 particles", "z 30.0000", "100 % of steps", "energy", "memory",
                                      "Came to its end at z = 30"});
  // The phases of a modelled GPU take the model's time, too little of the wall's to be told.
  if (!std::getenv("MAKI_GPU_MODEL")) expect_words(once, {"phases"});
  EXPECT_EQ(call("watch " + directory()).code, 0) << "it ends with the run";
}

TEST_F(ReportOfARun, IsWatchedWhenItDied) {
  std::vector<std::string> lines = metrics();
  lines.resize(lines.size() - 3);
  write_metrics(lines);
  expect_words(call("watch --once " + directory()), {"Under way"});
  fs::last_write_time(file("metrics.jsonl"), fs::file_time_type::clock::now() - std::chrono::hours(1));
  expect_words(call("watch --once " + directory()), {"It seems to have stopped writing"});
  std::ofstream(file(".maki.lock")).close();  // a killed run leaves it; without it nobody knows
  expect_end(call("watch " + directory()), 1, {"The run has died: no line for 1 h ", "It has left no restart"});
  fs::create_directory(file("restart_000007"));
  expect_words(call("watch " + directory()), {"To go on: maki resume " + directory()});
}

TEST_F(ReportOfARun, IsWatchedByAClockThatIsNotTheFiles) {
  const std::vector<std::string> all = metrics();
  const std::vector<std::string> lines(all.begin(), all.end() - 3);
  write_metrics(lines);
  fs::last_write_time(file("metrics.jsonl"), fs::file_time_type::clock::now() + std::chrono::hours(5));
  Follower run(directory());
  EXPECT_TRUE(run.read_on());
  EXPECT_EQ(run.signs().silent, 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_FALSE(run.read_on());
  EXPECT_GE(run.signs().silent, 0.1);
  std::ofstream(file("metrics.jsonl"), std::ios::app) << all[lines.size()] << '\n';
  fs::last_write_time(file("metrics.jsonl"), fs::file_time_type::clock::now() - std::chrono::hours(5));
  EXPECT_TRUE(run.read_on());
  EXPECT_LT(run.signs().silent, 60);
}

TEST_F(ReportOfARun, IsReadOnAsItIsWritten) {
  const std::vector<std::string> all = metrics();
  fs::remove(file("metrics.jsonl"));
  Follower run(directory());
  EXPECT_FALSE(run.read_on());
  EXPECT_EQ(life_of(run.records(), run.signs()), Life::kNotBegun);
  std::ofstream out(file("metrics.jsonl"));
  out << all[0] << '\n' << all[1] << '\n' << all[2].substr(0, 30) << std::flush;
  EXPECT_TRUE(run.read_on());
  EXPECT_EQ(run.records().steps.size(), 1u);
  out << all[2].substr(30) << '\n';
  for (std::size_t i = 3; i < all.size(); ++i) out << all[i] << '\n';
  out.flush();
  EXPECT_TRUE(run.read_on());
  EXPECT_TRUE(run.records().problems.empty());
  EXPECT_EQ(life_of(run.records(), run.signs()), Life::kEnded);
  fs::resize_file(file("metrics.jsonl"), all[0].size() + all[1].size() + 2);  // as maki resume cuts it
  run.read_on();
  EXPECT_EQ(run.records().steps.size(), 1u);
  EXPECT_EQ(life_of(run.records(), run.signs()), Life::kUnderWay);
  fs::rename(directory(), directory() + "_moved");
  EXPECT_THROW(run.read_on(), Error);
  fs::rename(directory() + "_moved", directory());
}

TEST(Watch, PatienceGrowsWithTheSteps) {
  RunRecords records;
  records.beginnings.resize(1);
  Step slow;
  slow.seconds = 60;
  records.steps = {slow};
  EXPECT_EQ(life_of(records, {300, false, 0}), Life::kUnderWay);
  EXPECT_EQ(life_of(records, {700, false, 0}), Life::kSilent);
  EXPECT_EQ(life_of(records, {300, true, 0}), Life::kDead);
  EXPECT_EQ(life_of(records, {5, true, 0}), Life::kUnderWay) << "it may have ended just now";
}

TEST(Watch, NamesADirectoryThatIsNone) {
  expect_end(call("watch /no/such/directory"), 1, {"there is no directory '/no/such/directory'"});
}

TEST(ReportFigures, RedshiftMarksAreFewAndInside) {
  const auto marks = redshift_marks(0.02, 1);
  ASSERT_GE(marks.size(), 5u);
  ASSERT_LE(marks.size(), 14u);
  EXPECT_EQ(marks.back().label, "0");
  EXPECT_EQ(redshift_marks(0.5, 0.51).size(), 2u);
  EXPECT_TRUE(redshift_marks(0.5, 0.5).size() <= 1u);
}

}  // namespace
}  // namespace maki::report
