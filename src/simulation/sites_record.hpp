// What is told of each step of a run over several sites.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "wan/sites/ring.hpp"

namespace maki {

// One site, as its message of sums told all others.
struct SiteRecord {
  double force_seconds = 0;        // of its slowest rank: lists walked and evaluated (t_calc of SUSHI's eq. 1)
  std::uint64_t interactions = 0;  // pairs, of all its ranks
  std::uint64_t particles = 0;     // of all its ranks
  double begin = 0, end = 0;       // its slab in x, sides: what it was when these forces were evaluated
};

struct SitesRecord {
  std::uint64_t step = 0;
  std::uint64_t told_of = 0;      // the step that `sites` tells of: one or two before this one, the last or so known
  std::vector<SiteRecord> sites;  // in the order of the ring; empty while nothing is known
  // Of this site and this step; the rest is taken from StepMetrics and PhaseTimers.
  double transform_seconds = 0;  // Fourier transforms of the mesh, which every site makes of the whole; 0 if unknown
  double coding_seconds = 0;     // coding and decoding messages about its masses
};

using SitesTraffic = std::array<sites::Traffic, sites::kPhases>;

}  // namespace maki
