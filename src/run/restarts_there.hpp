// The restarts in an output directory, and which of them a run resumes from, alone or over sites.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "host/comm/communicator.hpp"
#include "kernels/error.hpp"
#include "src/config/config.hpp"
#include "src/io/restart.hpp"
#include "src/run/over_sites.hpp"

namespace maki {

// Restarts from which a run can resume; it takes the newest that is whole at all sites.
struct RestartsThere {
  std::vector<RestartInfo> own;               // complete ones of the directory's run, the earliest first
  std::vector<std::string> damaged;           // folders whose complete.toml is damaged
  std::string run;                            // its name; "" where unknown
  bool ended = false;                         // the run has come to its end; of a directory
  std::string last_configuration;             // of the run's last process, resolved; "" where unknown
  std::optional<std::uint64_t> last_restart;  // on the first rank: step of the last that the run has completed
  std::optional<Error> lost;                  // of restarts_or_none(): the run had a state, and no restart is left
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

// maki run --resume.

// As restarts_in(); none where there is no directory yet. Throws Error also where all restarts there are damaged.
RestartsThere restarts_or_none(const std::string& directory, const Communicator& ranks);

// Whether the run resumes; else it begins. Over sites it begins where some site has begun the same run but holds no
// restart of it: its first restart was not complete when the run was lost. Collective over ranks and sites. Throws
// Error, at all sites, where restarts that belong together would be lost.
bool goes_on(const RestartsThere& there, const OpenSites& ring);

// The configuration with which the restart was written.
Config configuration_before(const RestartInfo& info);

// Whether the run that has ended there was to end where `now` does.
bool has_same_end(const RestartsThere& there, const Config& now);

// Whether the run has ended at all sites, and is to go no further (`now`: read where there are restarts). Collective
// over the sites. Throws Error, at all of them, where it has ended at some only and one of these has no restart.
bool has_ended_everywhere(const RestartsThere& there, const Config& now, const OpenSites& ring);

}  // namespace maki
