// A run that goes on from a restart: what maki resume and maki run --resume have in common.
#pragma once

#include <string>
#include <vector>

#include "src/run/going_on.hpp"
#include "src/run/over_sites.hpp"

namespace maki {

// The configuration of a restart, with settings that change from here on. Throws Error where they would make another run.
Config configuration_of(const RestartInfo& info, std::vector<std::string> settings);

// Throws Error where the restart is that of another site.
void check_place(const RestartInfo& info, const ThisSite& site);

// Goes on from the newest restart that is whole at all sites, to the end of the run; the device is selected. Collective.
// Throws Error, and CLI::RuntimeError with the exit code of a run that ends early.
void go_on(Config config, const std::vector<std::string>& settings, const RestartsThere& there, const OpenSites& ring,
           const Communicator& ranks);

}  // namespace maki
