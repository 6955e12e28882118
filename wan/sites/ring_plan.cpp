#include "wan/sites/ring_plan.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "kernels/error.hpp"
#include "wan/net/error.hpp"
#include "wan/net/secure/key.hpp"

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

namespace {

const std::string& name_of(const RingPlan& plan, int site) { return plan.sites[static_cast<std::size_t>(site)].name; }

// The left one of this site and a neighbour; in a ring of two sites, the first site.
int left_of(const RingPlan& plan, int neighbour) {
  const int count = static_cast<int>(plan.sites.size());
  if (count == 2) return 0;
  return (plan.me + 1) % count == neighbour ? plan.me : neighbour;
}

// Adds a key file. Throws SecurityError for a second key of the same id: with it one neighbour could pose as the other.
void add_key(std::vector<std::string>& files, const std::string& file) {
  const wan::Key key = wan::read_key(file);
  for (const std::string& other : files) {
    const wan::Key there = wan::read_key(other);
    if (there.id != key.id) continue;
    if (wan::same_in_constant_time(there.secret, key.secret)) return;
    throw wan::SecurityError("cannot use key file " + file, "it holds another key than " + other + " under the same id",
                             "make a new one with 'maki wan keygen'");
  }
  files.push_back(file);
}

}  // namespace

std::vector<int> neighbours(const RingPlan& plan) {
  const int count = static_cast<int>(plan.sites.size());
  const int right = (plan.me + 1) % count, left = (plan.me + count - 1) % count;
  return count == 2 ? std::vector{right} : std::vector{right, left};
}

bool calls_us(const RingPlan& plan, int neighbour) {
  const int left = left_of(plan, neighbour);
  return caller_of(plan, left, left == plan.me ? neighbour : plan.me) != plan.me;
}

LinkPlan link_to(const RingPlan& plan, int neighbour) {
  const SitePlace& left = plan.sites[static_cast<std::size_t>(left_of(plan, neighbour))];
  LinkPlan link = left.onward ? *left.onward : LinkPlan{plan.path, plan.security};
  if (link.security.own_name.empty()) link.security.own_name = name_of(plan, plan.me);
  return link;
}

LinkPlan listening_plan(const RingPlan& plan) {
  LinkPlan listening;
  bool first = true;
  for (const int neighbour : neighbours(plan)) {
    if (!calls_us(plan, neighbour)) continue;
    const LinkPlan link = link_to(plan, neighbour);
    if (std::exchange(first, false)) {
      listening = link;
      for (const std::string& file : link.security.key_files) wan::read_key(file);
      continue;
    }
    for (const std::string& file : link.security.key_files) add_key(listening.security.key_files, file);
    listening.path.window = std::max(listening.path.window, link.path.window);
    listening.path.unmatched_limit = std::max(listening.path.unmatched_limit, link.path.unmatched_limit);
    listening.path.message_limit = std::max(listening.path.message_limit, link.path.message_limit);
    listening.path.patience = std::max(listening.path.patience, link.path.patience);
  }
  return listening;
}

std::string key_id(const LinkPlan& link) {
  return link.security.key_files.empty() ? "" : wan::read_key(link.security.key_files.front()).id;
}

std::string shared_key_warning(const RingPlan& plan) {
  const std::vector<int> with = neighbours(plan);
  if (with.size() < 2) return "";
  const LinkPlan right = link_to(plan, with[0]), left = link_to(plan, with[1]);
  const std::string names = "sites " + name_of(plan, with[0]) + " and " + name_of(plan, with[1]);
  if (!right.security.certificate.empty() && !left.security.certificate.empty())
    return names +
           " show certificates: each of them could pose as the other (a key for each link would tell them apart: "
           "sites.NAME.key)";
  const std::string id = key_id(right);
  if (id.empty() || id != key_id(left)) return "";
  return names + " hold the same key, " + id +
         ": each of them could pose as the other (give each link a key of its own: "
         "sites.NAME.key)";
}

}  // namespace maki::sites
