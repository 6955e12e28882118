// A run with its output directory, from a configuration or a restart to its end, for `maki run`, `maki resume` and
// Python; and the restarts in a directory, with the choice of the one from which a run resumes, alone or over sites.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/comm/communicator.hpp"
#include "kernels/error.hpp"
#include "src/config/config.hpp"
#include "src/io/restart.hpp"
#include "src/run/over_sites.hpp"
#include "src/run/run_products.hpp"
#include "src/run/setup.hpp"
#include "src/run/start_run.hpp"
#include "src/simulation/simulation.hpp"
#include "src/simulation/step_log.hpp"

namespace maki {

// Restarts from which a run can resume; it takes the newest that is whole at all sites.
struct RestartsThere {
  std::vector<RestartInfo> own;      // complete ones of the directory's run, the earliest first
  std::vector<std::string> damaged;  // folders whose complete.toml is damaged
  std::string run;                   // its name; "" where unknown
  bool ended = false;                // the run has come to its end; false where a single restart is named
  std::string last_configuration;    // of the run's last process, resolved; "" where unknown
  RunThere beside;                   // on the first rank: what the metrics tell
  std::optional<Error> lost;         // set by restarts_or_none(): the run had a state, and no restart is left
};

// Looks into an output directory, or at one restart in it. Collective. Throws Error where the directory cannot be read,
// or holds only restarts of other runs.
RestartsThere restarts_in(const std::string& path, const Communicator& ranks);
// Throws Error where no restart has this version's format.
void require_restart(const RestartsThere& there, const std::string& path);

std::vector<std::uint64_t> steps_of(const std::vector<RestartInfo>& restarts);

// The newest of `own` that all sites have and that is whole at all of them; damaged ones are reported by `say`.
// Collective over ranks and sites. Throws Error where there is none.
RestartInfo newest_whole(const std::vector<RestartInfo>& own, const OpenSites& ring, const Communicator& ranks,
                         const std::function<void(const std::string&)>& say);

// For `maki run --resume`: as restarts_in(); none where there is no directory yet. Throws Error also where all restarts
// there are damaged.
RestartsThere restarts_or_none(const std::string& directory, const Communicator& ranks);

// Whether `maki run --resume` resumes the run; else it begins it. Over sites it also begins where some site has begun
// the same run but holds no restart of it: its first restart was not complete when the run was lost. Collective over
// ranks and sites. Throws Error, at all sites, where restarts that belong together would be lost.
bool goes_on(const RestartsThere& there, const OpenSites& ring);

// The configuration with which the restart was written.
Config configuration_before(const RestartInfo& info);

// Whether the run that has ended there was to end where `now` does.
bool has_same_end(const RestartsThere& there, const Config& now);

// Throws Error where the run in the directory has ended without a restart, and `now` asks for another end. Collective.
void require_way_on(const RestartsThere& there, const Config& now, const std::string& directory,
                    const Communicator& ranks);

// Whether the run has ended at all sites, and `now`, the configuration with which it would go on, asks for no later
// end. Collective over the sites. Throws Error, at all of them, where it has ended at some only and one of these has no
// restart.
bool has_ended_everywhere(const RestartsThere& there, const Config& now, const OpenSites& ring);

// The run's output directory as the names of its files begin; over several sites after choose_site().
std::string output_directory(const Config& config);

// One object on each rank. All calls are collective over the ranks, and over the sites where there are several.
class FiledRun {
 public:
  struct Options {
    std::string site;              // value of --site
    bool over_sites = true;        // false: a run over several sites is refused
    std::FILE* progress = stdout;  // nullptr: silent, except for the log
    bool signals = true;           // as in RunFileOptions
    std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();
    std::shared_ptr<DirectoryLock> lock = {};  // of the directory, where it is held already
    void apply(RunFileOptions& files) const {
      files.lock = lock;
      if (!progress) files.progress = nullptr;
      files.signals = signals;
      files.begun = begun;
    }
  };
  // Prepares the initial conditions and everything else up to the first force. Throws Error, and then leaves no file.
  static std::unique_ptr<FiledRun> begin(Config config, const Options& options);
  // Resumes from the newest restart in a run's output directory that is whole at all sites, or from the named one, with
  // settings that change from here on (`from` names their source in messages). Null, having said so, where the run in
  // the directory has ended and the settings give it no later end (one site). Throws Error.
  static std::unique_ptr<FiledRun> resume(const std::string& directory, const std::vector<std::string>& settings,
                                          const Options& options, const std::string& from = "command line");
  // Resumes from the restarts in the configuration's output directory, with these settings, or begins where there are
  // none. All sites decide together. Null, having said so, where the run there has ended and the settings give it no
  // later end (one site). Throws Error.
  static std::unique_ptr<FiledRun> resume_or_begin(Config config, const std::vector<std::string>& settings,
                                                   const Options& options);

  Simulation& simulation() { return *simulation_; }
  RunProducts& files() { return *files_; }
  int device() const { return device_; }  // of select_device()
  // Makes the whole run. Returns the exit code, as finish().
  int run();
  // Does a part of the run, if steps are made one by one; an error that ends it is in the log too.
  template <class Part>
  auto logged(Part&& part) {
    try {
      return part();
    } catch (const std::exception& error) {
      files_->fail(message_of(error));
      throw;
    }
  }
  // After an error, if steps are made one by one: frees the directory, from which another run may go on. The state of
  // simulation() can still be looked at; files() is gone.
  void close_files() { files_.reset(); }
  // After the last step, if steps are made one by one: writes the end of the log and the report, and leaves the other
  // sites. Returns the exit code: 0, or why the run ended early (run_files.hpp).
  int finish(const RunResult& result);

 private:
  FiledRun() = default;
  // Starts from a prepared configuration; over several sites without particles.
  static std::unique_ptr<FiledRun> start(const Config& config, Prepared prepared, const Admission& admission,
                                         OpenSites ring, const Options& options);
  // Resumes from the newest restart that is whole at all sites, with the configuration of the newest that all have and
  // these settings (`from` names their source). `words`: the first messages.
  static std::unique_ptr<FiledRun> go_on(const std::vector<std::string>& settings, const std::string& from,
                                         const RestartsThere& there, OpenSites ring, const Options& options,
                                         std::vector<std::string> words = {});
  void introduce(const Prepared& run, const Admission& admission, const Communicator& ranks);

  int device_ = 0;
  OpenSites ring_;
  std::optional<RunProducts> files_;
  std::optional<Stream> stream_;
  std::optional<Simulation> simulation_;
};

}  // namespace maki
