// What a configuration says of the ring, as wan/sites takes it.
#pragma once

#include "src/run/sites/open_sites.hpp"
#include "wan/sites/ring_plan.hpp"

namespace maki {

// `goes_on`: from restarts. Reads no keys yet. Throws Error where [sites] leaves something open.
sites::RingPlan make_ring_plan(const Config& resolved, const ThisSite& site, bool goes_on);

}  // namespace maki
