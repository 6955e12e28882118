#include "src/simulation/step_log.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <utility>

#include "kernels/error.hpp"
#include "src/io/json.hpp"
#include "src/io/property_tree.hpp"
#include "src/io/run_directory.hpp"

namespace maki {

namespace {

std::string now_utc() { return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::gmtime(std::time(nullptr))); }

JsonObject json_of(const Provenance& provenance) {
  return JsonObject()
      .add("version", provenance.version)
      .add("git_hash", provenance.git_hash)
      .add("compiler", provenance.compiler)
      .add("device", provenance.device)
      .add("configuration", provenance.configuration);
}

JsonObject json_of(const ForceError& error) {
  return JsonObject()
      .add("rms", error.rms)
      .add("median", error.median)
      .add("percentile_99", error.percentile_99)
      .add("targets", error.targets);
}

JsonObject phase_totals(const std::vector<RankRecord>& ranks) {
  JsonObject phases;
  for (const std::string& path : phase_paths(ranks)) {
    const Spread spread = phase_spread(ranks, path, &PhaseTime::total_seconds);
    phases.raw(path, fmt::format("[{:.6g}, {:.6g}, {:.6g}]", spread.min, spread.mean, spread.max));
  }
  return phases;
}

}  // namespace

std::string metrics_path(const std::string& directory) {
  return (std::filesystem::path(directory) / "metrics.jsonl").string();
}

std::string head_line(const RunHead& head, const Provenance& provenance, std::optional<std::uint64_t> resumed_at) {
  std::vector<std::string> settings;
  for (const std::string& setting : head.settings) settings.push_back(json_string(setting));
  JsonObject line;
  line.add("run", head.run);
  if (resumed_at) line.add("resumed_at", *resumed_at);
  line.add("host", host_name()).add("began", now_utc()).add("ranks", head.ranks);
  if (!head.site.empty()) line.add("site", head.site);
  if (const TimeUnit& unit = head.time_unit; !unit.name.empty())
    line.add("time_unit", JsonObject().add("name", unit.name).add("length", unit.length));
  return line.raw("settings", json_array(settings)).add("provenance", json_of(provenance)).text();
}

std::string output_line(const OutputState& state, const std::string& file) {
  JsonObject line;
  line.add("output", state.index);
  if (state.header.comoving)
    line.add("a", state.header.time).add("z", state.header.redshift);
  else
    line.add("t", state.header.time);
  line.add("file", file);
  if (state.force_error) line.add("force_error", json_of(*state.force_error));
  return line.text();
}

std::string end_line(const RunResult& result, double elapsed, const std::vector<RankRecord>& ranks,
                     const std::string& memory) {
  const Spread most = spread_of(ranks, [](const RankRecord& r) { return static_cast<double>(r.memory_high_water); });
  JsonObject line;
  line.add("end", result.stopped_by)
      .add("site_lost", result.site_lost)
      .add("time", result.time)
      .add("steps", result.steps)
      .add("rebuilds", result.rebuilds)
      .add("long_steps", result.long_steps)
      .add("particles", result.particles);
  if (result.energy) line.add("worst_energy_error", result.worst_energy_error);
  return line.add("elapsed", elapsed)
      .add("phases", phase_totals(ranks))
      .add("memory_high_water", static_cast<std::uint64_t>(most.max))
      .raw("memory", memory)
      .text();
}

std::string error_line(const std::string& error) { return JsonObject().add("error", error).text(); }

std::string message_line(const std::string& text, double elapsed) {
  return fmt::format("[{:9.1f} s] {}", elapsed, text);
}

std::string memory_json(const std::vector<PoolUse>& families) {
  JsonObject bytes;
  for (const PoolUse& use : families) bytes.add(use.name, use.bytes);
  return bytes.text();
}

namespace {

constexpr int kLinesBetweenHeaders = 50;

// The step of a line of metrics; -1 for other lines.
std::int64_t step_of(const std::string& line) {
  const auto step = json_member(line, "step");
  return step ? std::atoll(step->c_str()) : -1;
}

std::string log_path_in(const std::string& directory) {
  return (std::filesystem::path(directory) / "log.txt").string();
}

// Removes the lines after the step of the restart, which the run will write again; the last line may be incomplete.
// Steps without a line have restarts of their own.
void cut_after(const std::string& path, std::uint64_t step) {
  const auto is_later = [&](const std::string& line) {
    const auto restart = json_member(line, "restart");
    return step_of(line) > static_cast<std::int64_t>(step) ||
           (restart && std::strtoull(restart->c_str(), nullptr, 10) > step);
  };
  std::ifstream file(path);
  std::uintmax_t keep = 0;
  for (std::string line; std::getline(file, line) && !file.eof(); keep += line.size() + 1)
    if (is_later(line)) break;
  std::error_code ignored;
  if (keep < std::filesystem::file_size(path, ignored)) std::filesystem::resize_file(path, keep, ignored);
}

// The path of the file, without the lines of an earlier run.
std::string emptied(const std::string& path, bool overwrite) {
  if (!overwrite && std::filesystem::exists(path))
    throw Error("cannot write " + path, "the file exists",
                "choose another output directory, or set run.overwrite = true");
  std::ofstream(path).close();
  return path;
}

std::string about_ranks(const std::vector<RankRecord>& ranks, const GravityCounts& all) {
  if (ranks.size() < 2) return "";
  const Spread work = spread_of(ranks, [](const RankRecord& r) { return static_cast<double>(r.gravity.interactions); });
  return fmt::format(" {:6.3f} {:9.3f}", work.imbalance(), 1e-6 * static_cast<double>(all.let_bytes));
}

}  // namespace

StepLog::StepLog(const std::string& directory, const RunHead& head, const Provenance& provenance, bool overwrite,
                 std::optional<std::uint64_t> resumed_at)
    : metrics_(resumed_at ? metrics_path(directory) : emptied(metrics_path(directory), overwrite)),
      log_(resumed_at ? log_path_in(directory) : emptied(log_path_in(directory), overwrite)) {
  std::string& text = log_head_;
  if (resumed_at) {
    cut_after(metrics_path(directory), *resumed_at);
    text = fmt::format("\n# resumed after step {}\n", *resumed_at);
  }
  metrics_head_ = head_line(head, provenance, resumed_at);
  metrics_.add(metrics_head_);
  text += fmt::format("# {}, git {}\n# compiler: {}\n# device: {}\n#\n", provenance.version, provenance.git_hash,
                      provenance.compiler, provenance.device);
  std::istringstream configuration(provenance.configuration);
  for (std::string line; std::getline(configuration, line);) text += "# " + line + '\n';
  if (!head.time_unit.name.empty())
    text += fmt::format("#\n# t and dt: in the run's unit of time, {}\n", time_text(1, head.time_unit));
  log_.add(text);
  settle();
}

bool StepLog::is_due(const StepMetrics& metrics, int interval) {
  return metrics.step % static_cast<std::uint64_t>(interval) == 0 || metrics.energy.has_value();
}

void StepLog::step(const StepMetrics& metrics, const std::vector<RankRecord>& ranks) {
  metrics_.add(to_json(metrics, ranks));
  if (lines_since_header_ < 0 || lines_since_header_ >= kLinesBetweenHeaders) {
    log_.add(log_columns(metrics.comoving, ranks.size() > 1));
    lines_since_header_ = 0;
  }
  ++lines_since_header_;
  log_.add(log_line(metrics, ranks));
}

void StepLog::event(const std::string& line) { metrics_.add(line); }

void StepLog::message(const std::string& text, double elapsed) { log_.add(message_line(text, elapsed)); }

void StepLog::finish(const std::string& times, const std::string& memory) { log_.add('\n' + times + '\n' + memory); }

std::vector<std::string> StepLog::news() {
  std::vector<std::string> told;
  for (LineFile* file : {&metrics_, &log_})
    if (std::string news = file->news(); !news.empty()) told.push_back(std::move(news));
  return told;
}

void StepLog::reopen() {
  metrics_.reopen(metrics_head_ + '\n');
  if (log_.reopen(log_head_ + '\n')) lines_since_header_ = -1;
}

void StepLog::settle() {
  metrics_.settle();
  log_.settle();
}

namespace {

std::optional<std::string> configuration_of(const std::string& head_line) {
  boost::property_tree::ptree head;
  std::istringstream line(head_line);
  try {
    boost::property_tree::read_json(line, head);
  } catch (const boost::property_tree::ptree_error&) {
    return {};
  }
  const auto text = head.get_optional<std::string>("provenance.configuration");
  return text ? std::optional<std::string>(*text) : std::nullopt;
}

constexpr const char* kOverwritten = "{\"overwritten\": true}";

void add_line(const std::string& path, const std::string& line) {
  LineFile file(path);
  file.add(line);
  file.settle();
}

}  // namespace

void note_overwriting(const std::string& directory) {
  if (std::filesystem::exists(metrics_path(directory))) add_line(metrics_path(directory), kOverwritten);
}

RunThere run_in(const std::string& directory) {
  RunThere run;
  std::ifstream file(metrics_path(directory));
  std::string head, restart, output, last;
  for (std::string line; std::getline(file, line); last = std::move(line)) {
    if (file.eof()) continue;  // cut off
    if (last.empty()) run.name = json_member(line, "run");
    if (line.starts_with("{\"run\": ")) head = line, run.overwritten = false;  // of each process that went on with it
    if (line.starts_with("{\"restart\": ")) restart = line;
    if (line.starts_with("{\"output\": ")) output = line;
    if (line == kOverwritten) run.overwritten = true;
  }
  run.configuration = configuration_of(head);
  if (const auto step = json_member(restart, "restart")) run.last_restart = std::strtoull(step->c_str(), nullptr, 10);
  run.last_output = json_member(output, "file").value_or("");
  run.ended = json_member(last, "end") == "";
  run.failed = json_member(last, "error").has_value();
  return run;
}

void add_from_elsewhere(const std::string& directory, const std::string& event, const std::string& message_line) {
  add_line(metrics_path(directory), event);
  add_line(log_path_in(directory), message_line);
}

std::string log_columns(bool comoving, bool many_ranks) {
  const std::string time =
      comoving ? fmt::format("{:>10} {:>9} {:>9}", "a", "z", "d ln a") : fmt::format("{:>14} {:>14}", "t", "dt");
  return fmt::format("{:>7} {} {:>5} {:>7} {:>8} {:>8} {:>8} {:>6} {:>9} {:>9} {:>10} {:>9}", "step", time, "range",
                     "tree", "list", "longest", "rewalk", "fill", "probe", "fresh", "E error", "seconds") +
         (many_ranks ? fmt::format(" {:>6} {:>9}", "uneven", "LET MB") : "");
}

std::string log_line(const StepMetrics& metrics, const std::vector<RankRecord>& ranks) {
  const GravityCounts counts = over_ranks(ranks);
  const std::string time =
      metrics.comoving ? fmt::format("{:10.7f} {:9.4f} {:9.3e}", metrics.time, 1 / metrics.time - 1, metrics.dlna)
                       : fmt::format("{:14.8g} {:14.6e}", metrics.time, metrics.dt);
  const double groups = static_cast<double>(std::max<std::uint64_t>(counts.groups, 1));
  const double rewalked = static_cast<double>(counts.rewalked_groups) / groups;
  return fmt::format("{:>7} {} {:>5} {:>7} {:8.1f} {:>8} {:7.2f}% {:6.2f} {:9.2e} {:9.2e} {:>10} {:9.3f}", metrics.step,
                     time, metrics.long_step_end ? "long" : "short", counts.rebuilt ? "rebuilt" : "kept",
                     counts.mean_list, counts.longest_list, 100 * rewalked, counts.mean_fill, counts.probe_error,
                     counts.fresh_error, metrics.energy ? fmt::format("{:.2e}", metrics.energy->error) : "",
                     metrics.seconds) +
         about_ranks(ranks, counts);
}

std::vector<PoolUse> families(const std::vector<PoolUse>& arrays) {
  std::map<std::string, std::size_t> sums;
  for (const PoolUse& array : arrays) sums[array.name.substr(0, array.name.find('.'))] += array.bytes;
  std::vector<PoolUse> sorted;
  for (const auto& [name, bytes] : sums) sorted.push_back({name, bytes});
  std::stable_sort(sorted.begin(), sorted.end(), [](const PoolUse& a, const PoolUse& b) { return a.bytes > b.bytes; });
  return sorted;
}

std::string memory_table(const std::vector<PoolUse>& arrays, std::size_t particles) {
  std::size_t width = 24, sum = 0;
  for (const PoolUse& array : arrays) width = std::max(width, array.name.size() + 2);
  const auto line = [&](const std::string& name, std::size_t bytes) {
    return fmt::format("{:<{}}  {:>10.2f} MB  {:>7.1f}\n", name, width, 1e-6 * static_cast<double>(bytes),
                       static_cast<double>(bytes) / static_cast<double>(std::max<std::size_t>(particles, 1)));
  };
  std::string text = fmt::format("{:<{}}  {:>13}  {:>7}\n", "device memory at the peak", width, "", "B/part.");
  for (const PoolUse& array : arrays) {
    text += line(array.name, array.bytes);
    sum += array.bytes;
  }
  return text + line("total", sum);
}

}  // namespace maki
