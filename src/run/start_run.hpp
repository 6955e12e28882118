// What `maki run` and `maki resume` have in common, from a configuration to a simulation that can begin.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "src/run/over_sites.hpp"
#include "src/run/setup.hpp"
#include "src/simulation/run_files.hpp"

namespace maki {

struct Admission {
  std::vector<std::string> notes;
  std::size_t list_budget = 0;
};
// Whether the run fits beside what the process holds, before anything of it is allocated or written, once the device is
// selected. All ranks come to the same verdict. `particles` where they are known; else those of the initial conditions. Throws Error, after the estimate
// was shown.
Admission admit(const Config& config, const Communicator& ranks, std::optional<std::uint64_t> particles = {});

// simulation_options() of a run that was admitted: lists have the room that the verdict leaves them.
SimulationOptions simulation_options(const Prepared& run, const Admission& admission);

// Leaves the other sites once the files of all of them are there, so that none takes the run for done while another has to
// do its end again. Returns the exit code: 0, or why the run ended early (run_files.hpp). Collective over ranks and sites.
int leave_sites(const OpenSites& ring, const RunResult& result);

// Of a periodic box: what Maki's own model has to know of it, on rank 0 with the machine of run.machine. Throws Error
// where that is none, or says too little for so many ranks of this site and for all sites.
std::optional<ModelledRun> modelled_run(Config config, std::uint64_t particles, const Communicator& ranks);
// What a step will take there, for `maki run --estimate`; empty where there is no machine.
std::string step_estimate(const std::optional<ModelledRun>& modelled);
// How a run writes its snapshots.
WriteOptions snapshot_options(const Config& config);
// `name`: of the run (src/io/run_directory.hpp). `settings`: RunHead.
RunFileOptions run_file_options(const Prepared& run, const std::string& name, std::vector<std::string> settings);
Timeline timeline_of(const Prepared& run);
// What is about to happen, in a few lines; the device is that of the first rank.
std::vector<std::string> summary(const Prepared& run);
// Both on the first rank; say_now() for those who watch a log while nothing else is said.
void say_now(const std::string& line);
// say_now() in the form that run.progress asks for.
std::function<void(const std::string&)> announcer(const Config& config);
void print_lines(std::FILE* out, const std::vector<std::string>& lines);

}  // namespace maki
