// A complete shell of a light cone as files.
#pragma once

#include <string>
#include <vector>

#include "host/comm/communicator.hpp"
#include "src/io/snapshot_io.hpp"
#include "src/lightcone/cone_shells.hpp"
#include "src/lightcone/sky_map.hpp"

namespace maki {

struct ShellFacts {
  const LightConeOptions& options;
  const ConeObserver& observer;
  std::size_t shell;
  SnapshotHeader header;  // of the run: box, cosmology, units
  double near() const { return options.shells.distances[shell]; }
  double far() const { return options.shells.distances[shell + 1]; }
  double near_redshift() const { return options.shells.redshifts[shell]; }
  double far_redshift() const { return options.shells.redshifts[shell + 1]; }
};

// Writes the particles of all ranks with the names of GADGET-4's light cones: Coordinates relative to the observer,
// Velocities v_pec / sqrt(Ascale), ParticleIDs, Masses, and Ascale, the scale factor at which the particle met the
// light cone. Each rank's particles are sorted by ID. Returns the file's name. Collective; over several sites each
// writes its own file; throws Error as write_snapshot().
std::string write_shell(const std::string& path, std::vector<ShellParticle> particles, const ShellFacts& facts,
                        const Provenance& provenance, const RunPlace& writers);

// Writes the mass of all particles by pixel. Collective; throws Error as write_sky_map().
void write_shell_map(const std::string& path, const SkyMap& map, double quantum, const ShellFacts& facts,
                     const Provenance& provenance, const Communicator& ranks);

}  // namespace maki
