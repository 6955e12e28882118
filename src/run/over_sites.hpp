// A run over several sites: connections to the other sites by [sites] of the configuration, and a site's part of the
// particles.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "host/comm/communicator.hpp"
#include "kernels/error.hpp"
#include "src/config/config.hpp"
#include "src/run/setup.hpp"
#include "wan/sites/ring_plan.hpp"
#include "wan/sites/sites.hpp"
#include "wan/sites/slabs.hpp"

namespace maki {

// This job's site in the run.
struct ThisSite {
  std::string name;  // empty where the configuration has no sites
  int place = 0;     // in the ring
  int count = 1;
  bool over_sites() const { return count > 1; }
};
// `name`: value of --site, "" where not given. Sets the output directory of a run over several sites to
// output/NAME/<site> where the configuration has none. Throws Error that lists the known sites.
ThisSite choose_site(Config& config, const std::string& name);
// Throws Error where the configuration is that of a run over several sites.
void require_one_site(const Config& config);

inline constexpr const char* kRun = "maki run";
inline constexpr const char* kResume = "maki resume";
inline constexpr const char* kRunOrResume = "maki run --resume";

// A site's message to the others at the start. All sites need the same command.
struct Offer {
  std::string command = kRun;             // the command of this job
  std::string run = {};                   // the name (src/io/run_directory.hpp) of the run to resume
  std::vector<std::uint64_t> steps = {};  // of its restarts at this site
};

struct OpenSites {
  std::unique_ptr<sites::Sites> sites;
  std::string run;                    // its name, the same at all sites; a new one where no site offers restarts
  std::vector<std::uint64_t> common;  // steps of the restarts that all sites have offered, the latest first

  // For the log of rank 0: the ring, and the paths as far as known (round trips after a second or so).
  std::vector<std::string> describe() const;
};
// Calls the other sites and waits until all are there. Every site has to run the same version and hold the same key;
// with maki run the same configuration, except local settings; with maki resume the run has to be the same at all
// sites; with maki run --resume it may exist at some sites only (goes_on()). `say` gets, on rank 0, the sites that are
// waited for. Collective over the ranks of this site. Throws Error with the first difference.
OpenSites open_sites(const Config& resolved, const ThisSite& site, const Communicator& ranks, const Offer& offer,
                     const std::function<void(const std::string&)>& say);

// Throws Error, at all sites, where configurations differ in more than local settings. Collective over the sites and
// ranks.
void require_one_configuration(const Config& config, const OpenSites& ring);

// Every site throws the same error: each waits for the messages of the others before it leaves.
[[noreturn]] void throw_at_all_sites(const OpenSites& ring, const Error& error);

// The (short) texts of all sites, in the order of the ring, safe to show (wan::printable()). Collective over the sites
// and ranks.
std::vector<std::string> gather_texts(sites::Sites& sites, const std::string& mine);

// Makes `call`, which is collective over the ranks of this site and not over sites. Where it throws at one site, all
// others throw an Error with that site's name and message. Collective over the sites.
void at_all_sites(sites::Sites& sites, const std::function<void()>& call);

// The ring of a configuration for wan/sites. `command`: Offer::command. Does not read key files yet. Throws Error where
// [sites] is incomplete.
sites::RingPlan make_ring_plan(const Config& resolved, const ThisSite& site, const std::string& command);

// Even slabs for the start in a periodic box. Throws Error with the numbers where they are thinner than the reach of
// the tree's force.
sites::Slabs first_slabs(const Prepared& run, int sites);

// Drops the particles outside of this site's slab, by their fixed-point coordinates, so that all sites together keep
// exactly the whole set, which each has made or read. Slabs of an isolated set, which may be anywhere in its box, have
// equal numbers of particles: run.slabs. run.particles stays the number of the whole set. Collective over the ranks of
// this site and over the sites. Throws Error where the sites made different sets, naming them.
void keep_own_slab(Prepared& run, sites::Sites& sites, const Communicator& ranks);

}  // namespace maki
