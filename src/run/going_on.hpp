// Restarts from which a run could go on, and which of them it does: the newest that is whole, at all sites.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "host/comm/communicator.hpp"
#include "src/io/restart.hpp"
#include "src/run/over_sites.hpp"

namespace maki {

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

}  // namespace maki
