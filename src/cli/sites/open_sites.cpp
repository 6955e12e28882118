#include "src/cli/sites/open_sites.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "host/comm/agree.hpp"
#include "src/cli/sites/ring_plan.hpp"
#include "src/config/site_tables.hpp"
#include "wan/sites/net_ring.hpp"

namespace maki {
namespace {

// The latest step that is among those of every site; 0 where there is none.
std::uint64_t common_restart(const std::vector<sites::Hello>& hellos) {
  std::uint64_t latest = 0;
  for (const std::uint64_t step : hellos.front().restarts) {
    const bool everywhere = std::ranges::all_of(hellos, [&](const sites::Hello& site) {
      return std::count(site.restarts.begin(), site.restarts.end(), step) > 0;
    });
    if (everywhere) latest = std::max(latest, step);
  }
  return latest;
}

std::string rate_words(double bytes_per_second) {
  return bytes_per_second > 0 ? fmt::format("{:.4g} Mbit/s", bytes_per_second * 8e-6) : "no bound";
}

std::vector<std::string> describe(sites::NetRing& ring, const sites::RingPlan& plan) {
  const int count = ring.count(), me = ring.me();
  std::vector<std::string> names;
  for (const sites::SitePlace& site : plan.sites) names.push_back(site.name);
  std::vector<std::string> lines = {fmt::format("site {}, number {} of {} in the ring {}",
                                                names[static_cast<std::size_t>(me)], me + 1, count,
                                                fmt::join(names, ", "))};
  for (const int neighbour : {(me + count - 1) % count, (me + 1) % count}) {
    const wan::PathStatus status = ring.path_to(neighbour).status();
    const std::string name = names[static_cast<std::size_t>(neighbour)];
    const std::string round_trip =
        status.round_trip > 0 ? fmt::format("round trip {:.3g} ms", status.round_trip * 1e3) : "round trip not known yet";
    lines.push_back(fmt::format("path to {}: {}, {}, {} streams, pacing {}{}", name, status.peer, round_trip,
                                status.streams, rate_words(plan.path.pacing_rate),
                                status.identity.empty() ? ", without encryption" : ""));
    if (count == 2) break;
  }
  return lines;
}

}  // namespace

OpenSites open_sites(const Config& resolved, const ThisSite& site, const Communicator& ranks,
                     const std::vector<std::uint64_t>& restarts, const std::function<void(const std::string&)>& say) {
  if (!site.over_sites()) return {};
  OpenSites open;
  std::unique_ptr<sites::NetRing> ring;
  root_succeeds(ranks, [&] {
    sites::RingPlan plan = make_ring_plan(resolved, site, !restarts.empty());
    plan.restarts = restarts;
    plan.say = say;
    ring = std::make_unique<sites::NetRing>(plan);
    open.restart = common_restart(ring->hellos());
    open.lines = describe(*ring, plan);
  });
  ranks.broadcast(&open.restart, sizeof open.restart, 0);
  open.sites = std::make_unique<sites::Sites>(std::move(ring), resolved.sites.ring, ranks);
  return open;
}

}  // namespace maki
