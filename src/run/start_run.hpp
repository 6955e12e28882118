// Common parts of `maki run` and `maki resume`, from a configuration to a simulation that can begin; and constants of
// this machine for the performance model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "src/run/over_sites.hpp"
#include "src/run/run_options.hpp"
#include "src/run/setup.hpp"
#include "src/simulation/run_files.hpp"

namespace maki {

// The outcome of the check whether a run fits into memory.
struct Admission {
  std::vector<std::string> notes;
  std::vector<std::string> disk;  // notes on room for the files of a new run
  std::size_t list_budget = 0;
  std::uint64_t most_particles = 0;  // as GravityOptions'
};
// Checks, once the device is selected and before anything is allocated or written, that the run fits into memory beside
// what the process already holds. All ranks reach the same verdict. `particles`: their number if known, else that of
// the initial conditions. Throws Error after printing the estimate.
Admission admit(const Config& config, const Communicator& ranks, std::optional<std::uint64_t> particles = {});

// simulation_options() of an admitted run: lists and ranks get what the verdict leaves them.
SimulationOptions simulation_options(const Prepared& run, const Admission& admission);

// Leaves the other sites once the files of all sites are complete, so that no site counts the run as done while another
// has to repeat its end. Returns the exit code: 0, or why the run ended early (run_files.hpp). Collective over ranks
// and sites.
int leave_sites(const OpenSites& ring, const RunResult& result);

// Input of Maki's own model for a periodic box, on rank 0 with the machine of run.machine. Throws Error where that is
// no machine, or has too few constants for this number of ranks and sites.
std::optional<ModelledRun> modelled_run(Config config, std::uint64_t particles, const Communicator& ranks);
// The predicted time of a step for `maki run --estimate`; empty without a machine.
std::string step_estimate(const std::optional<ModelledRun>& modelled);
// The constants of that model (src/model/maki.hpp), measured on this machine: a machine as TOML with [maki], of one
// rank with all cores or the GPU. Makes short runs of the standard preset from z = 49, of `side`^3 particles (0: 128,
// on a GPU 256), of (side / 2)^3 with the preset's mesh and with a coarser one, and of (side / 4)^3, and takes the
// least time of each kind of step; the machine should be idle. `say` gets a line for each run. Throws as a run does.
std::string calibrate(int side, const std::function<void(const std::string&)>& say);

// Options of a run's snapshots.
WriteOptions snapshot_options(const Config& config);
// Those of sets that are whole: all particles with all their numbers, velocities as floats. In binary files coordinates
// are floats or doubles.
WriteOptions whole_set_options(const Config& config, SnapshotFormat format = SnapshotFormat::kGadgetHdf5);
// `name`: of the run (src/io/run_directory.hpp). `settings`: RunHead.
RunFileOptions run_file_options(const Prepared& run, const std::string& name, std::vector<std::string> settings);
// A summary of the run in a few lines; the device is that of the first rank.
std::vector<std::string> summary(const Prepared& run);
// All three print on the first rank alone. say_now() flushes too, for readers of a log that is otherwise silent.
void say_now(const std::string& line);
// say_now() in the form of run.progress.
std::function<void(const std::string&)> announcer(const Config& config);
void print_lines(std::FILE* out, const std::vector<std::string>& lines);

}  // namespace maki
