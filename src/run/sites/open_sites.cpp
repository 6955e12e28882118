#include "src/run/sites/open_sites.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "host/comm/agree.hpp"
#include "src/config/site_tables.hpp"
#include "src/io/run_directory.hpp"
#include "src/run/sites/ring_plan.hpp"
#include "wan/sites/net_ring.hpp"

namespace maki {
namespace {

// The latest step of which every site has a restart; 0 where there is none.
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

// One line about the path to a neighbour.
std::string path_line(const std::string& neighbour, const wan::Path& there) {
  const wan::PathStatus path = there.status();
  const double pacing_rate = there.settings().pacing_rate;
  std::string line = fmt::format("path to {}: {}, ", neighbour, path.peer);
  if (path.round_trip > 0) line += fmt::format("round trip {:.3g} ms, ", path.round_trip * 1e3);
  line += fmt::format("{} of {} streams", path.streams_up, path.streams);
  if (pacing_rate > 0) line += fmt::format(", at most {:.4g} Mbit/s", pacing_rate * 8e-6);
  return line + (path.identity.empty() ? ", without encryption" : "");
}

// The run's name, which the first site makes, on all sites.
std::string name_of_first(sites::Sites& sites, const std::string& mine) {
  const auto phase = sites::Phase::kControl;
  const sites::Message first = sites.gather(phase, sites.next_number(phase), std::as_bytes(std::span(mine))).front();
  return {reinterpret_cast<const char*>(first.data()), first.size()};
}

}  // namespace

std::vector<std::string> OpenSites::describe() const {
  auto* const ring = dynamic_cast<sites::NetRing*>(sites->ring());
  if (ring == nullptr) return {};
  std::vector<std::string> names;
  for (int i = 0; i < sites->count(); ++i) names.push_back(sites->name(i));
  std::vector<std::string> lines = {fmt::format("site {}, number {} of {} in the ring {}", sites->name(sites->me()),
                                                sites->me() + 1, sites->count(), fmt::join(names, ", "))};
  lines.push_back(path_line(sites->name(sites->right()), ring->path_to(sites->right())));
  if (sites->left() != sites->right())
    lines.push_back(path_line(sites->name(sites->left()), ring->path_to(sites->left())));
  return lines;
}

OpenSites open_sites(const Config& resolved, const ThisSite& site, const Communicator& ranks, const std::string& run,
                     const std::vector<std::uint64_t>& restarts, const std::function<void(const std::string&)>& say) {
  OpenSites open;
  open.run = restarts.empty() ? new_run_name(ranks) : run;
  if (!site.over_sites()) {
    open.sites = std::make_unique<sites::Sites>(ranks);
    return open;
  }
  std::unique_ptr<sites::NetRing> ring;
  root_succeeds(ranks, [&] {
    sites::RingPlan plan = make_ring_plan(resolved, site, !restarts.empty());
    plan.restarts = restarts;
    if (!restarts.empty()) plan.agreement += fmt::format("the run to resume = {}\n", run);
    plan.report = say;
    ring = std::make_unique<sites::NetRing>(plan);
    open.restart = common_restart(ring->hellos());
  });
  ranks.broadcast(&open.restart, sizeof open.restart, 0);
  open.sites = std::make_unique<sites::Sites>(std::move(ring), resolved.sites.ring, ranks);
  if (restarts.empty()) open.run = name_of_first(*open.sites, open.run);
  return open;
}

}  // namespace maki
