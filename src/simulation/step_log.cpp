#include "src/simulation/step_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "kernels/device/error.hpp"

namespace maki {

namespace {

constexpr int kLinesBetweenHeaders = 50;

std::ofstream open_new(const std::string& path, bool overwrite) {
  if (!overwrite && std::filesystem::exists(path))
    throw Error("cannot write " + path, "the file exists",
                "choose another output directory, or set run.overwrite = true");
  std::ofstream file(path);
  if (!file) throw Error("cannot write " + path, "it cannot be opened", "check the directory and its permissions");
  return file;
}

}  // namespace

StepLog::StepLog(const std::string& directory, const Provenance& provenance, bool overwrite, int interval)
    : metrics_path_((std::filesystem::path(directory) / "metrics.jsonl").string()),
      log_path_((std::filesystem::path(directory) / "log.txt").string()),
      metrics_(open_new(metrics_path_, overwrite)),
      log_(open_new(log_path_, overwrite)),
      interval_(interval) {
  metrics_ << to_json(provenance) << std::endl;
  log_ << "# " << provenance.version << ", git " << provenance.git_hash << "\n# compiler: " << provenance.compiler
       << "\n# device: " << provenance.device << "\n#\n";
  std::istringstream configuration(provenance.configuration);
  for (std::string line; std::getline(configuration, line);) log_ << "# " << line << '\n';
  log_ << std::endl;
  check(metrics_, metrics_path_);
  check(log_, log_path_);
}

void StepLog::step(const StepMetrics& metrics, const PhaseTimers& timers) {
  if (metrics.step % static_cast<std::uint64_t>(interval_) != 0 && !metrics.energy) return;
  metrics_ << to_json(metrics, timers) << std::endl;
  if (lines_since_header_ < 0 || lines_since_header_ >= kLinesBetweenHeaders) {
    log_ << log_columns(metrics.comoving) << '\n';
    lines_since_header_ = 0;
  }
  ++lines_since_header_;
  log_ << log_line(metrics) << std::endl;
  check(metrics_, metrics_path_);
  check(log_, log_path_);
}

void StepLog::message(const std::string& text, double elapsed) {
  log_ << fmt::format("[{:9.1f} s] {}", elapsed, text) << std::endl;
  check(log_, log_path_);
}

void StepLog::finish(const PhaseTimers& timers, const std::string& memory) {
  log_ << '\n' << timers.table() << '\n' << memory << std::endl;
  check(log_, log_path_);
}

void StepLog::check(const std::ofstream& file, const std::string& path) const {
  if (!file) throw Error("cannot write " + path, "the write failed", "is the disk full?");
}

std::string log_columns(bool comoving) {
  const std::string time = comoving ? fmt::format("{:>10} {:>9} {:>9}", "a", "z", "d ln a")
                                    : fmt::format("{:>14} {:>14}", "t", "dt");
  return fmt::format("{:>7} {} {:>5} {:>7} {:>8} {:>8} {:>8} {:>6} {:>9} {:>9} {:>10} {:>9}", "step", time, "range",
                     "tree", "list", "longest", "rewalk", "fill", "probe", "fresh", "E error", "seconds");
}

std::string log_line(const StepMetrics& metrics) {
  const GravityCounts& counts = metrics.gravity;
  const std::string time =
      metrics.comoving ? fmt::format("{:10.7f} {:9.4f} {:9.3e}", metrics.time, 1 / metrics.time - 1, metrics.dlna)
                       : fmt::format("{:14.8g} {:14.6e}", metrics.time, metrics.dt);
  const double groups = static_cast<double>(std::max<std::uint64_t>(counts.groups, 1));
  const double rewalked = static_cast<double>(counts.rewalked_groups) / groups;
  return fmt::format("{:>7} {} {:>5} {:>7} {:8.1f} {:>8} {:7.2f}% {:6.2f} {:9.2e} {:9.2e} {:>10} {:9.3f}",
                     metrics.step, time, metrics.long_step_end ? "long" : "short", counts.rebuilt ? "rebuilt" : "kept",
                     counts.mean_list, counts.longest_list, 100 * rewalked, counts.mean_fill, counts.probe_error,
                     counts.fresh_error, metrics.energy ? fmt::format("{:.2e}", metrics.energy->error) : "",
                     metrics.seconds);
}

}  // namespace maki
