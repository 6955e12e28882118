// The configuration of a resumed run: what settings may change, and which outputs stay.
#pragma once

#include <string>
#include <vector>

#include "src/config/config.hpp"
#include "src/io/restart.hpp"
#include "src/simulation/run_state.hpp"

namespace maki {

// The configuration of a restart with changed settings, "section.key=value"; `from` says where these stand. Throws Error
// where they would make it another run.
Config configuration_of(const RestartInfo& info, std::vector<std::string> settings, const std::string& from);

// Settles the outputs of `config`, which goes on from `state` of a run with the configuration `before`: those so far stay
// with their numbers, and those after an earlier end are left out. Returns a note on the latter, "" where there are none.
// Throws Error where `config` has others before the restart, or ends before it.
std::string keep_outputs(Config& config, const Config& before, const RunState& state);

// Throws Error where `given`, a configuration file with its settings, is another run's than the restart in `directory`.
void check_same_run(const Config& given, const Config& before, const std::string& directory);

// A message where `given`, a configuration file with its settings, chooses otherwise than the restart.
std::vector<std::string> left_out(const Config& as_given, const Config& as_before);

}  // namespace maki
