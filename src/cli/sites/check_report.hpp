// The report of `maki sites check`: the links of a site and the settings of its machine.
#pragma once

#include <string>
#include <vector>

#include "wan/net/tune/measure.hpp"
#include "wan/sites/link_check.hpp"
#include "wan/sites/ring_plan.hpp"

namespace maki {

// The largest number of files that this process may have open.
std::uint64_t open_files_limit();

// Settings of this machine that slow links of this rate and round trip, each with the command that corrects it: socket
// memory, slow start after pauses, too few open files. For a link that was not measured, the rate is the plan's pacing
// (else 1 Gbit/s) and the round trip 0.3 s.
std::vector<wan::Limit> limits_here(const sites::RingPlan& plan, const std::vector<sites::LinkCheck>& links,
                                    const wan::KernelLimits& kernel, std::uint64_t open_files);

// Problems that keep this site from running with its neighbours, a sentence each.
std::vector<std::string> problems_of(const sites::RingPlan& plan, const std::vector<sites::LinkCheck>& links);
// Notes on harmless findings: clocks that differ, a neighbour that already waits to run.
std::vector<std::string> notes_on(const sites::RingPlan& plan, const std::vector<sites::LinkCheck>& links);

// One line for each neighbour, below a line of headings.
std::string link_table(const sites::RingPlan& plan, const std::vector<sites::LinkCheck>& links);

}  // namespace maki
