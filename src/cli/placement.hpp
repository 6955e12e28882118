// Which device and how many threads each rank of a job takes.
#pragma once

#include <string>
#include <vector>

#include "host/comm/communicator.hpp"
#include "host/comm/machines.hpp"
#include "src/config/config.hpp"

namespace maki {

struct Placement {
  Machines machines;
  int device = 0;        // the GPU's number on this rank's machine
  int threads = 0;       // of this rank; 0: as OpenMP would have it
  int sharing = 1;       // ranks of this machine that have this rank's device, or its memory where that is the host's
};

// The processors that some rank of each machine may run on are shared evenly by its ranks (OMP_NUM_THREADS, where it is
// set, says otherwise; run.threads says first of all). Rank i of a machine takes its GPU i modulo their number, unless
// run.device is given. Collective.
Placement place_ranks(const Config& config, const Communicator& ranks);

// Selects device and threads. Throws DeviceError where a CUDA build finds no usable GPU.
void use_device(const Placement& placement);

// What a run says of its ranks, empty for one alone: how many, on which machines, with what, and how they exchange.
// After use_device(). Collective; the same on all ranks.
std::vector<std::string> describe_ranks(const Placement& placement, const Communicator& ranks);

// Threads of each of `ranks` that share a machine: `own` processors for this one, `all` for any of them.
int share_processors(int own, int all, int ranks);

}  // namespace maki
