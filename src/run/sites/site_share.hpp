// A site's part of the initial conditions. Every site makes or reads the whole set and keeps what lies in its slab: a
// set is far smaller than what a run sends, and nobody waits for another one's disk.
#pragma once

#include "src/run/setup.hpp"
#include "wan/sites/sites.hpp"
#include "wan/sites/slabs.hpp"

namespace maki {

// Slabs of a periodic box are even at the start. Throws Error with the numbers where they are thinner than the tree's
// force reaches.
sites::Slabs first_slabs(const Prepared& run, int sites);

// Drops what is not in the slab of this site, by the coordinates that the run computes with: what is kept at all sites
// together is the whole set. Slabs of an isolated set, which may be anywhere in its box, are such that all have as many
// particles: run.slabs. run.particles stays their number. Collective over the ranks of this site and over the
// sites. Throws Error where the sites made different sets, naming them.
void keep_own_slab(Prepared& run, sites::Sites& sites, const Communicator& ranks);

}  // namespace maki
