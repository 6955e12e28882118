// A run over several sites: from [sites] of its configuration to the other sites, and a site's part of the particles.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "host/comm/communicator.hpp"
#include "src/config/config.hpp"
#include "src/run/setup.hpp"
#include "wan/sites/ring_plan.hpp"
#include "wan/sites/sites.hpp"
#include "wan/sites/slabs.hpp"

namespace maki {

// Which of the sites of a run this job is.
struct ThisSite {
  std::string name;  // empty where the configuration has no sites
  int place = 0;     // in the ring
  int count = 1;
  bool over_sites() const { return count > 1; }
};
// `name` as --site has it, "" where it was not given. Puts the output directory of a run over several sites into
// output/NAME/<site> where the configuration says none. Throws Error, naming the sites that there are.
ThisSite choose_site(Config& config, const std::string& name);

inline constexpr const char* kResume = "maki resume";
inline constexpr const char* kRunOrResume = "maki run --resume";

// What a site offers to the others at the start. All have to come with the same command.
struct Offer {
  std::string command = "maki run";       // what is to do
  std::string run = {};                   // the name (src/io/run_directory.hpp) of the run that goes on
  std::vector<std::uint64_t> steps = {};  // of its restarts here, from which it could
};

struct OpenSites {
  std::unique_ptr<sites::Sites> sites;
  std::string run;                    // its name, the same at all sites; a new one where nobody offers restarts of one
  std::vector<std::uint64_t> common;  // steps of the restarts that all sites have offered, the latest first

  // For the log of rank 0: the ring, and what is known of the paths by now (round trips after a second or so).
  std::vector<std::string> describe() const;
};
// Calls the other sites and waits until all are there. Every site has to run the same version with the same
// configuration, but for what is each site's own, and hold the same key. A run that goes on by maki resume has to be the
// same at all sites; one by maki run --resume may be at some sites only (goes_on()). `say` is told, on rank 0, who is
// waited for. Collective over the ranks of this site. Throws Error with the first difference.
OpenSites open_sites(const Config& resolved, const ThisSite& site, const Communicator& ranks, const Offer& offer,
                     const std::function<void(const std::string&)>& say);

// The texts of all sites, in the order of the ring. For short texts. Collective over the sites and ranks.
std::vector<std::string> gather_texts(sites::Sites& sites, const std::string& mine);

// Makes the call, which is collective over the ranks of this site and not over sites. Where it throws at one site all
// others throw an Error that names that site and what it said. Collective over the sites.
void at_all_sites(sites::Sites& sites, const std::function<void()>& call);

// What a configuration says of the ring, as wan/sites takes it. `command`: Offer::command. Reads no keys yet. Throws
// Error where [sites] leaves something open.
sites::RingPlan make_ring_plan(const Config& resolved, const ThisSite& site, const std::string& command);

// A site's part of the initial conditions. Every site makes or reads the whole set and keeps what lies in its slab: a
// set is far smaller than what a run sends, and nobody waits for another one's disk.

// Slabs of a periodic box are even at the start. Throws Error with the numbers where they are thinner than the tree's
// force reaches.
sites::Slabs first_slabs(const Prepared& run, int sites);

// Drops what is not in the slab of this site, by the coordinates that the run computes with: what is kept at all sites
// together is the whole set. Slabs of an isolated set, which may be anywhere in its box, are such that all have as many
// particles: run.slabs. run.particles stays their number. Collective over the ranks of this site and over the
// sites. Throws Error where the sites made different sets, naming them.
void keep_own_slab(Prepared& run, sites::Sites& sites, const Communicator& ranks);

}  // namespace maki
