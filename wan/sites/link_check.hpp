// A test of a site's links before a run (`maki sites check`): whether its neighbours can be reached and run the same
// program, how fast the links are, and the report.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "wan/net/tune/measure.hpp"
#include "wan/sites/ring_plan.hpp"

namespace maki::sites {

struct LinkCheck {
  int site = 0;                          // the neighbour, index in RingPlan::sites
  bool peer_calls = false;               // whether the neighbour calls this site; else this site calls it
  bool reachable = false;                // hellos were exchanged
  std::string error;                     // why it is not reachable, or what ended the measurement; empty: nothing
  std::string version;                   // of the neighbour's program
  std::vector<std::string> differences;  // why the two cannot run together (differences() of ring_plan.hpp)
  bool waits_to_run = false;             // the neighbour has started a run and no check: nothing was measured
  double clock_difference = 0;           // seconds, theirs less ours
  double round_trip = 0;                 // seconds, the shortest
  double rate_out = 0, rate_in = 0;      // bytes/s; 0: not measured
};

// Tests all links of this site at once, while the neighbours do the same (or wait to run). Waits for them up to
// `plan.wait_limit` (seconds; 0: a minute), with the messages of a run. Takes some seconds a link. Throws Error where
// no test is possible: the plan is inconsistent, a key file is missing, a port is taken.
std::vector<LinkCheck> check_links(const RingPlan& plan);

// ---- the report of `maki sites check` ------------------------------------------------------------------------------

// Settings of this machine (`kernel`) that would slow these links, each with the command that corrects it: socket
// memory, slow start after pauses, too few open files (`open_files`: wan::open_files()). A link that was not measured
// is taken to have the plan's pacing as rate (else 1 Gbit/s) and a round trip of 0.3 s.
std::vector<wan::Limit> limits_here(const RingPlan& plan, const std::vector<LinkCheck>& links,
                                    const wan::KernelLimits& kernel, std::uint64_t open_files);

// Problems that keep this site from running with its neighbours, a sentence each.
std::vector<std::string> problems_of(const RingPlan& plan, const std::vector<LinkCheck>& links);
// Notes on harmless findings: clocks that differ, a neighbour that already waits to run.
std::vector<std::string> notes_on(const RingPlan& plan, const std::vector<LinkCheck>& links);

// One line for each neighbour, below a line of headings.
std::string link_table(const RingPlan& plan, const std::vector<LinkCheck>& links);

}  // namespace maki::sites
