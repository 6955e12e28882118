#include "src/run/sites/ring_plan.hpp"

#include <fmt/format.h>

#include "build_info.hpp"
#include "git_hash.hpp"
#include "src/config/print.hpp"
#include "src/config/site_tables.hpp"

namespace maki {
namespace {

sites::SitePlace place_of(const SiteAddress& site) {
  sites::SitePlace place;
  place.name = site.name;
  if (!site.address.empty()) place.address = wan::Endpoint::parse(site.address);
  if (!site.listen.empty()) place.listen = wan::Endpoint::parse(site.listen);
  if (!site.relay.empty()) place.relay = {wan::Endpoint::parse(site.relay), site.relay_key, site.relay_target};
  return place;
}

}  // namespace

sites::RingPlan make_ring_plan(const Config& resolved, const ThisSite& site, bool goes_on) {
  sites::RingPlan plan;
  plan.me = site.place;
  for (const std::string& name : resolved.sites.ring) plan.sites.push_back(place_of(find_site(resolved, name)));
  // Keys of this site's links only; those of other links need not be on this machine.
  const int count = static_cast<int>(plan.sites.size());
  for (const int left : {site.place, (site.place + count - 1) % count}) {
    sites::SitePlace& place = plan.sites[static_cast<std::size_t>(count == 2 ? 0 : left)];
    const PathChoices link = site_path(resolved, place.name);
    place.onward = sites::LinkPlan{link.settings, link.security};
  }
  if (const auto& wait = resolved.sites.wait) plan.wait_limit = in_base(*wait, Dimension::kWallTime, "s");
  plan.version = fmt::format("{} ({})", MAKI_VERSION, MAKI_GIT_HASH);
  plan.agreement = fmt::format("what is to do = {}\n", goes_on ? "maki resume" : "maki run");
  for (const std::string& line : lines_of_all_sites(resolved)) plan.agreement += line + "\n";
  check(plan);
  return plan;
}

}  // namespace maki
