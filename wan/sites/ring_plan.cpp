#include "wan/sites/ring_plan.hpp"

#include <set>

#include "kernels/error.hpp"

namespace maki::sites {
namespace {

constexpr std::size_t kLongestName = 63;  // of a path

}  // namespace

int caller_of(const RingPlan& plan, int left, int right) {
  const SitePlace& a = plan.sites[static_cast<std::size_t>(left)];
  const SitePlace& b = plan.sites[static_cast<std::size_t>(right)];
  const bool direct_a = a.callable() && !a.relay.used(), direct_b = b.callable() && !b.relay.used();
  if (direct_b) return left;
  if (direct_a) return right;
  if (b.callable()) return left;
  if (a.callable()) return right;
  throw Error("sites " + a.name + " and " + b.name + " are neighbours and cannot reach each other",
              "neither has an address where it can be called", "give one of them an address or a relay");
}

void check(const RingPlan& plan) {
  const int count = static_cast<int>(plan.sites.size());
  if (plan.sites.size() > kMostSites)
    throw Error("a ring of " + std::to_string(count) + " sites", "",
                "at most " + std::to_string(kMostSites) + " make one");
  if (count < 2) throw Error("a ring of " + std::to_string(count) + " sites", "", "two or more make one");
  if (plan.me < 0 || plan.me >= count)
    throw Error("place " + std::to_string(plan.me) + " in a ring of " + std::to_string(count) + " sites");
  std::set<std::string> names;
  for (const SitePlace& site : plan.sites) {
    if (site.name.empty() || site.name.size() > kLongestName)
      throw Error("a site is named '" + site.name + "'", "names have 1 to " + std::to_string(kLongestName) + " bytes");
    if (!names.insert(site.name).second) throw Error("two sites are named " + site.name);
  }
  for (int i = 0; i < (count == 2 ? 1 : count); ++i) caller_of(plan, i, (i + 1) % count);
}

}  // namespace maki::sites
