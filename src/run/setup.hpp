// Prepares a run from a configuration: initial conditions, options of forces and steps. Used by run, ic and forces.
#pragma once

#include <string>
#include <vector>

#include "host/comm/communicator.hpp"
#include "src/config/config.hpp"
#include "src/gravity/gravity.hpp"
#include "src/io/snapshot.hpp"
#include "src/io/snapshot_io.hpp"
#include "src/simulation/simulation.hpp"

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

// Initial conditions of a configuration: this rank's share of the rows (share_of, host/comm/communicator.hpp).
// Collective. Both functions throw Error. This one: initial.kind lpt or pancake, of a resolved configuration.
Snapshot make_cosmological_set(const Config& config, const UnitSystem& units, const Communicator& ranks);
// initial.kind plummer, cold_sphere, kepler_disk or two_body; the configuration need not be resolved. Velocities are
// for the run's gravitational constant.
Snapshot make_isolated_set(const Config& config, const UnitSystem& units, const Communicator& ranks);

// The box of an isolated set. The set lies in its middle half (docs/design.md, "Numbers"), so that its extent may
// double before the box does. The side is a power of two of the length unit, so that fractions of it are exact. The
// centre is the origin where the set surrounds it, else the middle of its extent. Collective; a share may be empty.
struct IsolatedBox {
  double side = 0;
  std::array<double, 3> centre{};
};
IsolatedBox isolated_box(const Snapshot& share, const Communicator& ranks = Communicator::self());
// A place amid most particles: the medians of their coordinates. Collective.
std::array<double, 3> median_of(const Snapshot& share, const Communicator& ranks);

// The device of run.device, or this rank's.
int device_of(const Config& config);
// Applies run.device and run.threads. Throws DeviceError where a CUDA build finds no usable GPU.
void use_device(const Config& config);
// Applies run.threads alone, for work without a device.
void use_threads(const Config& config);

// The comoving softening at the start, with the physical cap; length units. And as text: "softening 20 kpc/h".
double start_softening(const Prepared& run);
std::string softening_text(const Prepared& run);
// Options of forces at the start; lengths in sides.
ForceLaw force_law(const Prepared& run);
MeshOptions mesh_options(const Config& config);
GravityOptions gravity_options(const Prepared& run);
// Lengths in the units of the run.
StepOptions step_options(const Config& config, const UnitSystem& units);
// GravityOptions::ghost_level: of deterministic runs of periodic boxes, else 0.
int ghost_level(const Prepared& run);
Timeline timeline_of(const Prepared& run);
// All options of a simulation.
SimulationOptions simulation_options(const Prepared& run);

}  // namespace maki
