// A run with its output directory, from a configuration or a restart to its end: what `maki run` and `maki resume` do, and
// what Python calls.
#pragma once

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/config/config.hpp"
#include "src/run/going_on.hpp"
#include "src/run/over_sites.hpp"
#include "src/run/run_products.hpp"
#include "src/run/setup.hpp"
#include "src/run/start_run.hpp"
#include "src/simulation/simulation.hpp"

namespace maki {

// One object on each rank. All calls are collective over the ranks, and over the sites where there are several.
class FiledRun {
 public:
  struct Options {
    std::string site;              // as --site has it
    std::FILE* progress = stdout;  // nullptr: silent, but for the log
    bool signals = true;           // RunFileOptions
    void apply(RunFileOptions& files) const {
      if (!progress) files.progress = nullptr;
      files.signals = signals;
    }
  };
  // Prepares the initial conditions and all else up to the first force. Throws Error; no file is there then.
  static std::unique_ptr<FiledRun> begin(Config config, const Options& options);
  // Goes on from the newest restart in a run's output directory that is whole at all sites, or from the one that is named,
  // with settings that change from here on (`from` says in messages where they were given). Throws Error.
  static std::unique_ptr<FiledRun> resume(const std::string& directory, const std::vector<std::string>& settings,
                                          const Options& options, const std::string& from = "command line");
  // Goes on from the restarts in the configuration's output directory where there are any, with these settings, else begins.
  // All sites find out together which of both it is. Throws Error.
  static std::unique_ptr<FiledRun> resume_or_begin(Config config, const std::vector<std::string>& settings,
                                                   const Options& options);

  Simulation& simulation() { return *simulation_; }
  RunProducts& files() { return *files_; }
  int device() const { return device_; }  // of select_device()
  // All of the run. Returns the exit code, as finish().
  int run();
  // After the last step, where these are made one by one: writes the end of the log and the report, and takes leave of the
  // other sites. Returns the exit code: 0, or why the run ended early (run_files.hpp).
  int finish(const RunResult& result);

 private:
  FiledRun() = default;
  // Of a configuration that is ready to begin; over several sites without particles.
  static std::unique_ptr<FiledRun> start(const Config& config, Prepared prepared, const Admission& admission,
                                         OpenSites ring, const Options& options);
  // From the newest restart that is whole at all sites.
  static std::unique_ptr<FiledRun> go_on(const Config& config, const std::vector<std::string>& settings,
                                         const RestartsThere& there, OpenSites ring, const Options& options);
  void introduce(const Prepared& run, const Admission& admission, const Communicator& ranks);

  int device_ = 0;
  OpenSites ring_;
  std::optional<RunProducts> files_;
  std::optional<Stream> stream_;
  std::optional<Simulation> simulation_;
};

}  // namespace maki
