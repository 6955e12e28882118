// Descriptions of a run in words.
#pragma once

#include <optional>
#include <string>

#include "src/config/config.hpp"
#include "src/report/run_records.hpp"

namespace maki::report {

// The resolved configuration at the run's first start. None where it cannot be read; then `problem` says why.
std::optional<Config> configuration_of(const RunRecords& records, std::string& problem);

// "z = 3.21" or "t = 1.5".
std::string moment(const RunRecords& records, double time);

// "A periodic box of 50 Mpc/h with 262144 particles, from z = 49 to z = 0, preset ..."
std::string what_was_run(const RunRecords& records, const Config& config);

enum class State { kEnded, kStopped, kSiteLost, kOpen };
State state_of(const RunRecords& records);
// "Came to its end at z = 0, step 735, in 39 s."
std::string state_text(const RunRecords& records, const std::string& directory);

}  // namespace maki::report
