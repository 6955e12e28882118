// Prepares a run from a configuration and its initial conditions. Used by run, ic and forces.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "host/comm/communicator.hpp"
#include "src/config/config.hpp"
#include "src/io/snapshot.hpp"
#include "src/io/snapshot_io.hpp"

namespace maki {

// A run that is ready to start.
struct Prepared {
  Config config;     // resolved
  Snapshot initial;  // this rank's share; empty without prepare()'s with_particles
  UnitSystem units;
  double gravitational_constant = 1;
  double side = 0;                 // of the box, length units
  std::array<double, 3> centre{};  // of the box; isolated: the set's middle, else side/2
  double start_redshift = 0;
  std::uint64_t particles = 0;       // of all ranks
  std::uint64_t aside = 0;           // of them, too far from the others for the coordinates of an isolated set's box
  std::vector<std::uint32_t> slabs;  // of an isolated set over sites: the starts of the slabs (keep_own_slab())
  std::vector<std::string> notes;    // sources of values, for the log
};

// Makes or reads the initial conditions and resolves the configuration with them. with_particles = false does not make
// cosmological ones where possible. Collective; everything except the share is the same on all ranks. Throws Error.
Prepared prepare(Config config, bool with_particles = true, const Communicator& ranks = Communicator::world());
// As the first prepare(), for a set that was read from initial.file, or that has its own units. Each rank has a share.
Prepared prepare(Config config, Snapshot share, ReadReport report, const Communicator& ranks = Communicator::self());
Prepared prepare(Config config, Snapshot share, const Communicator& ranks = Communicator::self());

// Throws Error where the configuration gives other units than the headers of initial.file, as prepare() does.
// Collective.
void check_file_units(const Config& config, const Communicator& ranks);

}  // namespace maki
