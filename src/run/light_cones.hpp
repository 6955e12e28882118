// The light cones that a configuration asks for.
#pragma once

#include <cstdint>
#include <string>

#include "host/comm/communicator.hpp"
#include "src/lightcone/cone_shells.hpp"
#include "src/run/setup.hpp"

namespace maki {

// Of a run's configuration, resolved. No observers where it asks for none. Throws Error where the shells reach so far
// that there would be too many images of the box.
LightConeOptions light_cone_options(const Prepared& run, const Timeline& timeline);

// Where the files of an observer are, in the run's output directory.
std::string light_cone_folder(const std::string& directory, std::size_t observer);

// What of the light cones' part of a restart is missing or damaged; empty where all is whole or there are none. `directory`:
// the run's. Collective; the same on all ranks.
std::string damage_of_light_cones(const std::string& directory, const Config& config, std::uint64_t step,
                                  const Communicator& ranks);

// Of all ranks, with particles as dense as in the mean.
struct LightConeBytes {
  double disk = 0;           // all observers' particles and maps, not compressed
  double spools = 0;         // disk: particles of all shells before they are written
  double largest_spool = 0;  // of one shell of each observer
  double largest_shell = 0;  // host: one shell of one observer while it is written
  double maps = 0;           // host: of two shells of each observer
};
// 0 where only a file of initial conditions says how large the box is. Throws Error as light_cone_options(), and where keys
// of light cones do not fit together.
LightConeBytes light_cone_bytes(Config config, std::uint64_t particles);

}  // namespace maki
