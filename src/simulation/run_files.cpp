#include "src/simulation/run_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "kernels/device/error.hpp"
#include "kernels/device/memory.hpp"
#include "src/io/safe_file.hpp"
#include "src/io/snapshot_io.hpp"
#include "src/simulation/memory_report.hpp"

namespace maki {

namespace {

std::string prepared_directory(const RunFileOptions& options) {
  ensure_output_directory(options.directory);
  for (const char* name : {"metrics.jsonl", "log.txt"})
    if (!options.overwrite && std::filesystem::exists(std::filesystem::path(options.directory) / name))
      throw Error("the output directory " + options.directory + " holds a run already",
                  fmt::format("{} is in it", name),
                  "choose another one (run.output_directory), or set run.overwrite = true");
  return options.directory;
}

std::string moment(const SnapshotHeader& header) {
  return header.comoving ? fmt::format("z = {:.4g}", header.redshift) : fmt::format("t = {:.6g}", header.time);
}

}  // namespace

RunFiles::RunFiles(const RunFileOptions& options, const Provenance& provenance)
    : options_(options),
      provenance_(provenance),
      stop_(prepared_directory(options), options.time_limit),
      progress_(options.progress) {}

StepLog& RunFiles::log() {
  if (!log_) {
    log_.emplace(options_.directory, provenance_, options_.overwrite, options_.metrics_interval);
    for (const std::string& text : first_words_) log_->message(text, stop_.elapsed());
  }
  return *log_;
}

void RunFiles::message(const std::string& text) {
  if (log_)
    log_->message(text, stop_.elapsed());
  else
    first_words_.push_back(text);
  progress_.message(text);
}

void RunFiles::step(const StepMetrics& metrics, const PhaseTimers& timers, double steps_left) {
  log().step(metrics, timers);
  particles_ = metrics.particles;
  progress_.step({metrics.step, metrics.comoving, metrics.time, steps_left, metrics.seconds, stop_.elapsed(),
                  metrics.particles});
}

void RunFiles::output(const OutputState& state) {
  const bool stopped = state.index < 0;
  const std::string name = stopped ? "stopped.hdf5" : fmt::format("snapshot_{:03}.hdf5", state.index);
  WriteOptions write;
  write.deflate = options_.compression;
  write.overwrite = options_.overwrite || stopped;
  write_snapshot(path(name), state.snapshot(), provenance_, write);
  snapshots_.push_back(path(name));
  message(fmt::format("{}: wrote {}", moment(state.header), path(name)));
}

std::string RunFiles::stop_reason(double long_step_seconds) { return stop_.reason(long_step_seconds); }

void RunFiles::finish(const RunResult& result, const PhaseTimers& timers) {
  const PoolReport memory = pool_report();
  const std::vector<PoolUse>& arrays = memory.peaks.front().arrays;
  log().finish(timers, memory_table(arrays, particles_));
  progress_.finish();
  if (!result.stopped_by.empty())
    message(fmt::format("Stopped by {}. To continue: the same configuration with initial.kind=file initial.file={} and "
                        "another run.output_directory.",
                        result.stopped_by, path("stopped.hdf5")));
  std::string text = fmt::format("{} steps, {} of them with a new tree, {:.1f} s.", result.steps, result.rebuilds,
                                 stop_.elapsed());
  if (result.energy) text += fmt::format(" Largest energy error {:.2e}.", result.worst_energy_error);
  const auto peak = static_cast<double>(memory.high_water);
  text += fmt::format(" Device memory: {:.1f} MB at the peak, {:.0f} bytes a particle ({:.1f} MB held).", 1e-6 * peak,
                      peak / static_cast<double>(std::max<std::size_t>(particles_, 1)),
                      1e-6 * static_cast<double>(memory.most_reserved));
  message(text);
  progress_.message(memory_table(families(arrays), particles_));
}

std::string RunFiles::path(const std::string& name) const {
  return (std::filesystem::path(options_.directory) / name).string();
}

}  // namespace maki
