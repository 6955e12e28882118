// Rings whose sites are all in this process, for tests: send() puts messages into the receiver's memory.
#pragma once

#include <memory>
#include <vector>

#include "wan/sites/ring.hpp"

namespace maki::sites {

// One ring object for each site. receive() waits for other threads; where one thread drives all sites, it has to send
// every message before it receives it.
std::vector<std::unique_ptr<Ring>> make_memory_rings(int count);

}  // namespace maki::sites
