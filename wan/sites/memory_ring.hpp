// Rings whose sites are all in this process, for tests: send() puts messages into the receiver's memory.
#pragma once

#include <memory>
#include <vector>

#include "wan/sites/ring.hpp"

namespace maki::sites {

// One for each site. Receives wait for other threads; where all sites are driven by one thread, everything has to be
// sent before it is received.
std::vector<std::unique_ptr<Ring>> make_memory_rings(int count);

}  // namespace maki::sites
