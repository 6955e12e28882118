// Constants of Maki's own performance model (src/model/maki.hpp), measured on this machine.
#pragma once

#include <functional>
#include <string>

namespace maki {

// Returns a machine as TOML with [maki], of one rank with all cores or the GPU of this machine. It makes short runs of
// the standard preset from z = 49, of `side`^3 particles (0: 128, on a GPU 256), of (side / 2)^3 with the preset's mesh
// and with a coarser one, and of (side / 4)^3, and takes the least time of each kind of step; the machine should be
// idle. `say` gets a line for each run. Throws as a run does.
std::string calibrate(int side, const std::function<void(const std::string&)>& say);

}  // namespace maki
