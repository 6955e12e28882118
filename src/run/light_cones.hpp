// The light cones of a configuration.
#pragma once

#include <cstdint>
#include <string>

#include "host/comm/communicator.hpp"
#include "src/lightcone/cone_shells.hpp"
#include "src/run/setup.hpp"

namespace maki {

// Options from a run's resolved configuration; no observers where it has none. Throws Error where the shells reach over
// too many images of the box.
LightConeOptions light_cone_options(const Prepared& run, const Timeline& timeline);

// The folder of an observer's files in the run's output directory.
std::string light_cone_folder(const std::string& directory, std::size_t observer);

// Missing or damaged parts of the light cones' state in a restart; empty where all are whole or there are no light
// cones. `directory`: the run's. Collective; the same on all ranks.
std::string damage_of_light_cones(const std::string& directory, const Config& config, std::uint64_t step,
                                  const Communicator& ranks);

// Bytes of all ranks, for particles at the mean density.
struct LightConeBytes {
  double disk = 0;           // all observers' particles, not compressed
  double disk_maps = 0;      // all observers' maps of one site; each site writes its own of all the sky
  double spools = 0;         // disk: particles of all shells before they are written
  double largest_spool = 0;  // of one shell of each observer
  double largest_shell = 0;  // host: one shell of one observer while it is written
  double maps = 0;           // host: of two shells of each observer, at one site
};
// 0 where only the file of initial conditions has the box size. Throws Error as light_cone_options(), and where keys of
// light cones contradict each other.
LightConeBytes light_cone_bytes(Config config, std::uint64_t particles);

}  // namespace maki
