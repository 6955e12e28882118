// Options of a prepared run: its device, forces, steps and outputs.
#pragma once

#include <string>

#include "src/gravity/gravity.hpp"
#include "src/run/setup.hpp"
#include "src/simulation/simulation.hpp"

namespace maki {

// The device of run.device, or this rank's. Collective over `ranks`, which use a device each.
int device_of(const Config& config, const Communicator& ranks = Communicator::world());
// Applies run.device and run.threads. Throws DeviceError where a CUDA build finds no usable GPU. Collective.
void use_device(const Config& config, const Communicator& ranks = Communicator::world());
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
