// What a site has to know to take its place in the ring.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "wan/net/settings.hpp"

namespace maki::sites {

inline constexpr std::size_t kMostSites = 64;

struct LinkPlan {
  wan::PathSettings path;
  wan::Security security;  // of keys one
};

struct SitePlace {
  std::string name;       // up to 63 bytes
  wan::Endpoint address;  // where its neighbours call it; without a port nobody can
  wan::Endpoint
      listen;  // where it is called, where that is another one there; without a port: address.port, everywhere
  wan::RelayRoute relay;           // by which it is called, if any
  std::optional<LinkPlan> onward;  // the link to the next site in the ring, where it is not like all others
  bool callable() const { return relay.used() || address.port != 0; }
};

struct RingPlan {
  int me = 0;                    // of `sites`
  std::vector<SitePlace> sites;  // in the order of the ring, alike at all of them
  wan::PathSettings path;        // of all links but those that are `onward` of a site (link_plan.hpp)
  wan::Security security;

  // What the sites tell each other before anything else.
  std::string version;    // of the program; alike at all sites, or the run is refused
  std::string agreement;  // lines "key = value" that have to be alike at all sites: configuration, cosmology
  std::vector<std::uint64_t> restarts;  // steps of which this site holds a restart; others may read them

  double wait_limit = 0;  // seconds for the others to come; 0: as long as it takes
  // Bytes that wait here to be received or passed on, at most: a site that sends more ends the run, not this machine.
  std::size_t most_held = 0;                    // 0: half of the machine's memory
  std::function<void(const std::string&)> say;  // lines for the user ("waiting for site ..."); empty: standard error
};

// Who of two neighbours calls: the one on the left, unless only its own address can be called. A site that is called by
// a relay is called only where its neighbour cannot be called directly. Throws Error where neither can be called.
int caller_of(const RingPlan& plan, int left, int right);
// Throws Error for names that are missing, too long or given twice, a place that there is not, and neighbours that
// cannot reach each other.
void check(const RingPlan& plan);

}  // namespace maki::sites
