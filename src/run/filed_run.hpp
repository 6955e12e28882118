// A run with its output directory, from a configuration or a restart to its end: what `maki run` and `maki resume` do, and
// what Python calls.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/comm/communicator.hpp"
#include "src/config/config.hpp"
#include "src/io/restart.hpp"
#include "src/run/over_sites.hpp"
#include "src/run/run_products.hpp"
#include "src/run/setup.hpp"
#include "src/run/start_run.hpp"
#include "src/simulation/simulation.hpp"

namespace maki {

// Restarts from which a run could go on, and which of them it does: the newest that is whole, at all sites.
struct RestartsThere {
  std::vector<RestartInfo> own;      // complete ones of the run whose directory it is, the earliest first
  std::vector<std::string> damaged;  // folders whose complete.toml is no longer what was written
  std::string run;                   // its name; "" where nothing says so
};

// Looks into an output directory, or at one restart in it. Collective. Throws Error where the directory cannot be read,
// or holds restarts of other runs only.
RestartsThere restarts_in(const std::string& path, const Communicator& ranks);
// Throws Error where there are none of this version's format.
void require_restart(const RestartsThere& there, const std::string& path);

std::vector<std::uint64_t> steps_of(const std::vector<RestartInfo>& restarts);

// The newest of `own` that all sites have and that is whole at all of them; `say` is told of damaged ones. Collective
// over ranks and sites. Throws Error where there is none.
RestartInfo newest_whole(const std::vector<RestartInfo>& own, const OpenSites& ring, const Communicator& ranks,
                         const std::function<void(const std::string&)>& say);

// maki run --resume.

// As restarts_in(); nothing where there is no directory yet. Throws Error also where there is a run that should be gone on
// with and cannot be: all its restarts are damaged, or it was stopped without one.
RestartsThere restarts_or_none(const std::string& directory, const Communicator& ranks);

// Whether the run goes on; else it begins. Over sites it begins where some site holds no restart of the run that the others
// have begun with it: its first one was not complete when the run was lost. Collective over ranks and sites. Throws
// Error, at all sites, where restarts would be lost that belong together.
bool goes_on(const RestartsThere& there, const OpenSites& ring);

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
