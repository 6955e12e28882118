// Memory and disk space that a run will take, before it starts, and whether this machine has them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "host/comm/communicator.hpp"
#include "host/domain/multisection.hpp"
#include "src/config/config.hpp"

namespace maki {

// Bytes at the high-water marks, of the rank that takes most. Members of the device add up to device().
struct MemoryEstimate {
  double particles = 0;      // positions, momenta, ids
  double accelerations = 0;  // and potentials
  double tree = 0;           // cells and groups
  double lists = 0;          // all kept, late in the run when they are longest; at most gravity.list_memory
  double mesh = 0;           // meshes, transforms, assignment; with many ranks a share, and bricks around the particles
  double let = 0;            // with many ranks: local essential trees from and for the others; in deterministic
                             // periodic runs ghosts and their part of the tree beyond `tree`
  double walk = 0;           // on a GPU: memory of a walk, while there is no scratch
  double scratch = 0;        // of an output (P(k), picture), or of sorting beyond the memory of lists, which it reuses
  double host_start = 0;     // initial conditions while they are made or read and copied to the device
  double host_output = 0;    // groups, or particles gathered from other sites, while an output is made
  double host_first = 0;     // rows of all groups, on the first rank alone
  double host_cones = 0;     // the largest shell of a light cone while it is written, and maps of open shells
  double host_crossings = 0;  // what a light cone meets in a step, by batches, and maps of open shells
  double host_snapshot = 0;   // a snapshot while it is written during later steps
  double host_states = 0;     // states for restarts: two, with several sites three
  double host_mesh = 0;       // of a GPU's rank, over several sites: page-locked counts of the mesh
  double snapshot = 0;        // disk, each, without compression; of all ranks together
  double restart = 0;         // the same for a restart
  int restarts = 0;           // number on the disk at once: the kept ones, and the next one
  double light_cones = 0;     // disk, of all ranks together, until the end of the run
  double spools = 0;          // the same for particles of unfinished shells, or kept for restarts
  int ranks = 1;              // of this site
  int sites = 1;

  double device() const { return particles + accelerations + tree + lists + mesh + let + std::max(walk, scratch); }
  double host() const {
    return std::max(host_start,
                    host_mesh + host_states + host_snapshot + std::max({host_output, host_cones, host_crossings}));
  }
  double disk(int snapshots) const { return snapshots * snapshot + restarts * restart + light_cones + spools; }
  int everywhere() const { return ranks * sites; }
  double shared() const;  // device and host, where they share one memory (the CPU build)
};

// Number of particles by the configuration, or by its file's header. Throws Error where there is no file. Collective.
std::uint64_t planned_particles(const Config& config, const Communicator& ranks = Communicator::self());

// Estimate for a configuration, resolved or not. Accurate to about a quarter; lists in strongly clustered sets to a
// half. Of many ranks, the one with most has `uneven` times the mean number of particles; of several sites, each has an
// equal share.
MemoryEstimate estimate_memory(Config config, std::uint64_t particles, int ranks = 1, double uneven = kUneven);

// Memory available to one rank, in bytes.
struct MachineMemory {
  std::string device;          // its name
  bool host_is_device = true;  // the CPU build: `device_free` is the host's
  double device_free = 0;
  double host_free = 0;  // 0: unknown
  int ranks = 1;         // of the job
  int ranks_here = 1;    // on the machine with the most
};
MachineMemory machine_memory();  // throws DeviceError where a CUDA build finds no GPU
// Memory for one rank where several share a GPU or a machine, without what NCCL will take: the smallest share of all
// ranks, on all ranks. To be called once devices are selected, before any rank allocates memory. Collective.
MachineMemory machine_memory(const Communicator& ranks);

// The largest share of a rank over the mean, kUneven to kMostUneven, with which lists of twice their estimate still
// fit.
double most_uneven(const Config& config, std::uint64_t particles, const MachineMemory& memory);
// Bytes for kept lists where gravity.list_memory is auto: the memory that all else leaves with shares of `uneven` times
// the mean, at least a twentieth of the memory.
std::size_t list_budget(const Config& config, std::uint64_t particles, const MachineMemory& memory, double uneven);

// Whether the run fits. It does where only the lists are too large: they are then made and used in batches.
struct MemoryVerdict {
  bool fits = true, lists_fit = true;
  // Bytes of the memory that is short, else of the device; needed: without lists where these do not fit.
  double needed = 0, available = 0;
  std::string where;  // "the device", "this machine"
};
MemoryVerdict judge_memory(const MemoryEstimate& estimate, const MachineMemory& memory);

// A sentence for the log where the disk is too small for the run's files without compression; else empty. `estimate` is
// that of `config`; `free`: bytes, from free_disk().
std::string disk_note(const Config& config, const MemoryEstimate& estimate, double free);
// Free bytes of the disk of `directory`, which need not exist yet. Infinite where unknown.
double free_disk(const std::string& directory);

// The number of particles, the table, and the verdict for this machine; `memory` may be null.
std::vector<std::string> describe(const Config& config, const MemoryEstimate& estimate, std::uint64_t particles,
                                  const MachineMemory* memory);

// Throws Error where the run does not fit, unless run.ignore_memory is set; the caller shows the table first. Returns
// sentences for the log: the lists do not fit and will be made in batches.
std::vector<std::string> require_memory(const Config& config, const MemoryEstimate& estimate, std::uint64_t particles,
                                        const MachineMemory& memory);

}  // namespace maki
