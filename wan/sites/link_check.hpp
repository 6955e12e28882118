// A test of the links of a site before a run: whether its neighbours can be reached and run the same program, and how
// fast the links are.
#pragma once

#include <string>
#include <vector>

#include "wan/sites/ring_plan.hpp"

namespace maki::sites {

struct LinkCheck {
  int site = 0;                          // the neighbour, index in RingPlan::sites
  bool peer_calls = false;               // whether the neighbour calls this site; else this site calls it
  bool reachable = false;                // hellos were exchanged
  std::string error;                     // why it is not reachable, or what ended the measurement; empty: nothing
  std::string version;                   // of the neighbour's program
  std::vector<std::string> differences;  // why the two cannot run together (differences() of hello.hpp)
  bool waits_to_run = false;             // the neighbour has started a run and no check: nothing was measured
  double clock_difference = 0;           // seconds, theirs less ours
  double round_trip = 0;                 // seconds, the shortest
  double rate_out = 0, rate_in = 0;      // bytes/s; 0: not measured
};

// Tests all links of this site at once, while the neighbours do the same (or wait to run). Waits for them up to
// `plan.wait_limit` (seconds; 0: a minute), with the messages of a run. Takes some seconds a link. Throws Error where
// no test is possible: the plan is inconsistent, a key file is missing, a port is taken.
std::vector<LinkCheck> check_links(const RingPlan& plan);

}  // namespace maki::sites
