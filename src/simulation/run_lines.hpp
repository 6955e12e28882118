// The lines of metrics.jsonl beside those of steps: what a run is, where it goes on, its outputs and its end. None has a
// member "step", by which lines of steps are known.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/device/memory.hpp"
#include "src/simulation/simulation.hpp"

namespace maki {

struct RunHead {
  std::string run;  // its name (src/io/run_directory.hpp)
  // What the user chose, "box.size = "50 Mpc/h""; of a run that goes on what changed.
  std::vector<std::string> settings = {};
  int ranks = 1;          // of this site
  std::string site = {};  // its name in a run over several
};

// This machine's name, "" where it has none.
std::string host_name();

// The first line: run, host, the moment (UTC), ranks, settings, and in "provenance" version, git hash, compiler, device and
// the resolved configuration. A run that goes on has another such line, with the step after which it does ("resumed_at").
std::string head_line(const RunHead& head, const Provenance& provenance, std::optional<std::uint64_t> resumed_at = {});

// "output": its number, -1 where the run was stopped; a and z, or t; "file"; "force_error" where it was measured.
std::string output_line(const OutputState& state, const std::string& file);

// The last line, "end": why the run stopped, "" where it came to its end; steps, the largest energy error, wall-clock
// seconds of this process; seconds of each phase since it began, as smallest, mean and largest over ranks; device memory at
// the peak of the rank with most, and the bytes of its families of arrays.
struct RunEnd {
  RunResult result;
  double elapsed = 0;
  std::vector<RankRecord> ranks;
  std::string memory;  // memory_json() of the rank with most
};
std::string end_line(const RunEnd& end);
std::string memory_json(const std::vector<PoolUse>& families);

}  // namespace maki
