// Observers, the shells about them, particles on the light cone, and a complete shell as files.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "host/comm/communicator.hpp"
#include "kernels/lightcone/crossings.hpp"
#include "src/cosmology/cosmology.hpp"
#include "src/io/snapshot_io.hpp"
#include "src/lightcone/sky_map.hpp"

namespace maki {

inline constexpr double kLightCgs = 2.99792458e10;  // cm/s

struct ConeObserver {
  std::array<double, 3> position{};  // in the box, length units
  FieldOfView view;
};

// Shell k lies between edges k and k + 1; the nearest is the first.
struct ConeShells {
  std::vector<double> redshifts;  // of the edges, ascending
  std::vector<double> distances;  // of the same: comoving, length units
  std::size_t count() const { return distances.empty() ? 0 : distances.size() - 1; }
  // The shell with distances[k] <= distance < distances[k + 1], -1 outside of all.
  int shell_of(double distance) const;
};

// Comoving distance that light goes from time t (ln a) until today, length units: c times the integral of dt / a.
double light_distance(const Timeline& timeline, double t);

// Shells between the given redshifts, ascending; each interval is divided into `parts` shells of equal thickness.
ConeShells make_shells(const Timeline& timeline, const std::vector<double>& redshifts, int parts);

// A particle where it meets the light cone: position relative to the observer in length units, peculiar velocity in
// velocity units, mass in mass units.
struct ShellParticle {
  std::array<double, 3> position;
  std::array<float, 3> velocity;
  float mass;
  std::uint64_t id;
  double scale_factor;
};
static_assert(sizeof(ShellParticle) == 56);

struct LightConeOptions {
  std::vector<ConeObserver> observers;
  ConeShells shells;
  bool particles = true;
  int nside = 0;  // of HEALPix maps of the mass; 0: none
  int compression = 0;
};

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
