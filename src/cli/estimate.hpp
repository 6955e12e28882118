// How much memory and disk a run will take, before it is started: `maki run --estimate`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/config/config.hpp"

namespace maki {

struct MemoryEstimate {
  double particles = 0;  // positions, momenta, ids, accelerations, potentials
  double tree = 0;       // keys, cells, groups
  double lists = 0;      // kept interaction lists, or their budget
  double mesh = 0;
  double host = 0;      // beside the device: initial conditions while they are made or read
  double snapshot = 0;  // disk, each, without compression
  double device() const { return particles + tree + lists + mesh; }
};

// Bytes, of a resolved configuration; good to about a third, as lists grow with clustering. `list_budget` in bytes, 0:
// none.
MemoryEstimate estimate_memory(const Config& config, std::uint64_t particles, double list_budget);

std::vector<std::string> describe(const MemoryEstimate& estimate, std::uint64_t particles);

}  // namespace maki
