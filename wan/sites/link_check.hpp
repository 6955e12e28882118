// Tries the links of a site before a run: whether its neighbours can be reached, run the same, and how fast the way is.
#pragma once

#include <string>
#include <vector>

#include "wan/sites/ring_plan.hpp"

namespace maki::sites {

struct LinkCheck {
  int site = 0;                          // the neighbour, of RingPlan::sites
  bool calls = false;                    // whether it calls us; else we call it
  bool reachable = false;                // hellos were exchanged
  std::string error;                     // why it is not reachable, or what ended the measurement; empty: nothing
  std::string version;                   // of its program
  std::vector<std::string> differences;  // why the two cannot run together (differences() of hello.hpp)
  bool waits_to_run = false;             // it is no check over there but a run: nothing was measured
  double clock_difference = 0;           // seconds, theirs less ours
  double round_trip = 0;                 // seconds, the shortest
  double rate_out = 0, rate_in = 0;      // bytes/s; 0: not measured
};

// All links of this site at once, while the sites at their other ends do the same (or wait to run). Waits for them up
// to `plan.wait_limit` (0: a minute), with lines as a run's. Takes some seconds a link. Throws Error where nothing can
// be tried: the plan does not fit, a key file is missing, a port is taken.
std::vector<LinkCheck> check_links(const RingPlan& plan);

}  // namespace maki::sites
