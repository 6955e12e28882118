// What `maki sites check` says of the links of a site and of the machine it is on.
#pragma once

#include <string>
#include <vector>

#include "wan/net/tune/measure.hpp"
#include "wan/sites/link_check.hpp"
#include "wan/sites/ring_plan.hpp"

namespace maki {

// Files that this process may have open, at most.
std::uint64_t open_files_limit();

// What this machine is set to that slows links of this rate and round trip, with the command that mends it: sockets'
// memory, slow starts after pauses, too few open files. Links that were not measured count with the plan's pacing, else
// 1 Gbit/s, and 0.3 s.
std::vector<wan::Limit> limits_here(const sites::RingPlan& plan, const std::vector<sites::LinkCheck>& links,
                                    const wan::KernelLimits& kernel, std::uint64_t open_files);

// What keeps this site from running with its neighbours, a sentence each. Empty: nothing.
std::vector<std::string> problems_of(const sites::RingPlan& plan, const std::vector<sites::LinkCheck>& links);
// Notes on what does not keep the site from running: clocks that differ, a neighbour that waits to run already.
std::vector<std::string> notes_on(const sites::RingPlan& plan, const std::vector<sites::LinkCheck>& links);

// One line for each neighbour, below a line of headings.
std::string link_table(const sites::RingPlan& plan, const std::vector<sites::LinkCheck>& links);

}  // namespace maki
