// Settings of a site for its place in the ring and for its links; and the hello in which it tells the others of them at
// the start, with the differences that keep two sites from running together.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "wan/net/settings.hpp"
#include "wan/sites/ring.hpp"

namespace maki::sites {

inline constexpr std::size_t kMostSites = 64;

struct LinkPlan {
  wan::PathSettings path;
  wan::Security security;  // one key; of listening_plan() all keys
};

struct SitePlace {
  std::string name;       // up to 63 bytes
  wan::Endpoint address;  // where its neighbours call it; port 0: it cannot be called directly
  wan::Endpoint listen;   // the local address, where it differs from `address`; port 0: address.port on all interfaces
  wan::RelayRoute relay;  // the relay by which the site is called, if any
  std::optional<LinkPlan> onward;  // settings of the link to the next site in the ring, if it has its own
  bool callable() const { return relay.used() || address.port != 0; }
};

struct RingPlan {
  int me = 0;                    // index in `sites`
  std::vector<SitePlace> sites;  // in the order of the ring, alike at all of them
  wan::PathSettings path;        // of all links without settings of their own (SitePlace::onward)
  wan::Security security;

  // Contents of the hellos, which the sites exchange before anything else.
  std::string version;    // of the program; equal at all sites, or the run is refused
  std::string agreement;  // lines "key = value" that have to be equal at all sites: configuration, cosmology
  std::vector<std::uint64_t> restarts;  // steps of which this site holds a restart; others may read them

  double wait_limit = 0;  // seconds to wait for the other sites at the start; 0: no limit
  // Limit of the bytes of messages that wait here to be received or passed on, and of the parts that one call receives
  // (Sites::receive_parts()). Beyond it the run ends with an error, before this machine runs out of memory.
  std::size_t memory_limit = 0;  // 0: half of what is available to this job (host_memory_available())
  double wait_lines = 60;        // seconds between lines about a message that is waited for
  // Lines for the user ("waiting for site ...").
  std::function<void(const std::string&)> report = [](const std::string& line) {
    std::fprintf(stderr, "maki: %s\n", line.c_str());
  };

  const SitePlace& site(int i) const { return sites[static_cast<std::size_t>(i)]; }
  const SitePlace& here() const { return site(me); }
};

// The one of two neighbours that calls the other: the left one, unless only the left one's address can be called. A
// site behind a relay is called only where its neighbour cannot be called directly. Throws Error where neither can be
// called.
int caller_of(const RingPlan& plan, int left, int right);
// Throws Error for names that are missing, too long or given twice, a place outside of the ring, and neighbours that
// cannot reach each other.
void check(const RingPlan& plan);

// The neighbours of this site, the right one first; in a ring of two sites there is one.
std::vector<int> neighbours(const RingPlan& plan);
// Whether a neighbour calls this site; else this site calls it. Throws Error where neither can be called.
bool calls_us(const RingPlan& plan, int neighbour);
// Settings of the link to a neighbour: SitePlace::onward of its left site, else those of all links. The same at both
// ends but for the name by which each end introduces itself: its name in the ring, unless the settings have another.
LinkPlan link_to(const RingPlan& plan, int neighbour);

// Settings for the listener of this site: the keys of all neighbours that call it, each once, and the largest of their
// settings. Throws wan::SecurityError for unusable keys.
LinkPlan listening_plan(const RingPlan& plan);

// The id of the key of a neighbour's link, as a path gives it for its peer (PathStatus::identity); empty where links
// have no keys. Neighbours are recognised by their keys, not by the names that they give: another site of the ring may
// hold a key that this one knows. Throws wan::SecurityError.
std::string key_id(const LinkPlan& link);
// A warning for the user where both neighbours of this site hold the same key, or where certificates do not distinguish
// them; else empty. Throws wan::SecurityError.
std::string shared_key_warning(const RingPlan& plan);

// ---- the hello of a site -------------------------------------------------------------------------------------------

inline constexpr std::uint32_t kRingProtocol = 2;
inline constexpr std::size_t kLongestHello = std::size_t{16} << 20;
inline constexpr std::size_t kMostRestarts = 4096;  // in a hello; of more, the last ones

enum class Purpose : std::uint32_t { kRun, kCheck };

struct Hello {
  std::uint32_t protocol = kRingProtocol;
  Purpose purpose = Purpose::kRun;
  std::string version, name;
  // Members below are sent and read only between sites of the same protocol.
  std::vector<std::string> ring;  // names of all sites
  std::string agreement;          // RingPlan::agreement
  std::vector<std::uint64_t> restarts;
  double clock = 0;  // time of sending, seconds since 1970
};

Hello hello_of(const RingPlan& plan, Purpose purpose);
Message encode(const Hello& hello);
// Throws Error where the bytes are no hello. Version and name are made wan::printable().
Hello decode_hello(std::span<const std::byte> bytes);

// Why the two cannot run together, as one sentence each: "gravity.theta is 0.5 at site a and 0.4 at site b". Version,
// protocol, ring, lines of the agreement. Empty: they can.
std::vector<std::string> differences(const Hello& ours, const Hello& theirs);

}  // namespace maki::sites
