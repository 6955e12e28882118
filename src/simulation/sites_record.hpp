// The records of the sites for each step of a run over several sites.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "wan/sites/ring.hpp"

namespace maki {

// Record of one site, from its message of sums (SiteMeasures).
struct SiteRecord {
  double force_seconds = 0;        // of its slowest rank: lists walked and evaluated (t_calc of SUSHI's eq. 1)
  std::uint64_t interactions = 0;  // pairs, of all its ranks
  std::uint64_t particles = 0;     // of all its ranks
  double begin = 0, end = 0;       // its slab in x, sides, when these forces were evaluated
};

struct SitesRecord {
  std::uint64_t step = 0;
  std::uint64_t known_step = 0;   // the step that `sites` describes: one or two before this one
  std::vector<SiteRecord> sites;  // in the order of the ring; empty while nothing is known
  // Times of this site in this step; others are in StepMetrics and PhaseTimers.
  double transform_seconds = 0;  // Fourier transforms of the whole mesh, which every site makes; 0 if unknown
  double coding_seconds = 0;     // coding and decoding of mesh masses in messages
};

using SitesTraffic = std::array<sites::Traffic, sites::kPhases>;

}  // namespace maki
