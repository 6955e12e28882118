#include "src/run/over_sites.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <span>

#include "build_info.hpp"
#include "git_hash.hpp"
#include "host/comm/communicator.hpp"
#include "kernels/error.hpp"
#include "kernels/particles/types.hpp"
#include "src/config/parse.hpp"
#include "src/config/site_tables.hpp"
#include "src/gravity/tree_imports.hpp"
#include "src/io/run_directory.hpp"
#include "src/run/run_options.hpp"
#include "wan/net/error.hpp"
#include "wan/sites/net_ring.hpp"

namespace maki {

ThisSite choose_site(Config& config, const std::string& name) {
  const auto& ring = config.sites.ring;
  if (ring.empty()) {
    if (name.empty()) return {};
    throw Error(fmt::format("there is no site '{}'", name), "the configuration has no [sites]",
                "leave --site out, or give sites.ring");
  }
  if (name.empty() && ring.size() > 1) {
    throw Error("which of the sites is this one?", fmt::format("sites.ring has {}", fmt::join(ring, ", ")),
                "give --site NAME");
  }
  ThisSite site{name.empty() ? ring.front() : name, 0, static_cast<int>(ring.size())};
  site.place = place_in_ring(config, site.name);
  if (site.over_sites() && config.gravity.method == Method::kDirect) {
    throw Error("direct sums are not for several sites", "every pair would have to meet: gravity.method is direct",
                "choose gravity.method = \"tree\", or run it at one site: leave sites.ring out");
  }
  if (site.over_sites() && !config.run.output_directory)
    config.run.output_directory = fmt::format("output/{}/{}", config.run.name, site.name);
  return site;
}

void require_one_site(const Config& config) {
  if (config.sites.ring.size() < 2) return;
  throw Error("runs over several sites are made by the program",
              fmt::format("sites.ring has {}", fmt::join(config.sites.ring, ", ")),
              "use 'maki run' or 'maki resume' with --site NAME at each site, or leave sites.ring out");
}

namespace {

constexpr std::size_t kLongestText = 4000;  // of another site, as it is shown

// As gather_texts(), as they come.
std::vector<std::string> gather_unread(sites::Sites& sites, const std::string& mine) {
  const std::uint64_t number = sites.next_number(sites::Phase::kControl);
  std::vector<std::string> texts;
  for (const sites::Message& message : sites.gather(sites::Phase::kControl, number, std::as_bytes(std::span(mine))))
    texts.emplace_back(reinterpret_cast<const char*>(message.data()), message.size());
  return texts;
}

}  // namespace

std::vector<std::string> gather_texts(sites::Sites& sites, const std::string& mine) {
  std::vector<std::string> texts = gather_unread(sites, mine);
  for (std::string& text : texts) text = wan::printable(text, kLongestText);
  return texts;
}

void at_all_sites(sites::Sites& sites, const std::function<void()>& call) {
  std::string problem;
  std::exception_ptr thrown;
  try {
    call();
  } catch (const sites::SiteLost&) {
    throw;  // every site has received it
  } catch (const std::exception& error) {
    problem = message_of(error);
    thrown = std::current_exception();
  }
  const std::vector<std::string> all = gather_texts(sites, problem);
  if (thrown) std::rethrow_exception(thrown);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (!all[i].empty()) throw Error(fmt::format("site {} cannot go on", sites.name(static_cast<int>(i))), all[i]);
}

void require_one_configuration(const Config& config, const OpenSites& ring) {
  sites::Sites& sites = *ring.sites;
  if (sites.alone()) return;
  const std::vector<std::string> all =
      gather_unread(sites, fmt::format("{}", fmt::join(lines_of_all_sites(config), "\n")));
  const auto said = [&](std::size_t site) {
    sites::Hello hello;
    hello.name = sites.name(static_cast<int>(site));
    hello.agreement = all[site];
    return hello;
  };
  for (std::size_t i = 1; i < all.size(); ++i)
    if (const auto found = sites::differences(said(0), said(i)); !found.empty())
      throw_at_all_sites(ring, Error("the sites cannot run together", fmt::format("{}", fmt::join(found, "; ")),
                                     "start them with the same program, configuration and settings"));
}

void throw_at_all_sites(const OpenSites& ring, const Error& error) {
  ring.sites->close();
  throw error;
}

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

sites::RingPlan make_ring_plan(const Config& resolved, const ThisSite& site, const std::string& command) {
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
  plan.agreement = fmt::format("what is to do = {}\n", command);
  if (command == kRun)  // others compare that of the restart which they choose together
    plan.agreement += fmt::format("{}\n", fmt::join(lines_of_all_sites(resolved), "\n"));
  check(plan);
  return plan;
}

namespace {

// The steps with a restart at every site, the latest first.
std::vector<std::uint64_t> common_restarts(const std::vector<sites::Hello>& hellos) {
  std::vector<std::uint64_t> common = hellos.front().restarts;
  std::erase_if(common, [&](std::uint64_t step) {
    return !std::ranges::all_of(hellos, [&](const sites::Hello& site) {
      return std::count(site.restarts.begin(), site.restarts.end(), step) > 0;
    });
  });
  std::ranges::sort(common, std::greater());
  return common;
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

std::vector<std::uint64_t> from_first_rank(const Communicator& ranks, std::vector<std::uint64_t> numbers) {
  std::uint64_t size = numbers.size();
  ranks.broadcast(&size, sizeof size, 0);
  numbers.resize(size);
  ranks.broadcast(numbers.data(), size * sizeof(std::uint64_t), 0);
  return numbers;
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

OpenSites open_sites(const Config& resolved, const ThisSite& site, const Communicator& ranks, const Offer& offer,
                     const std::function<void(const std::string&)>& say) {
  OpenSites open;
  open.run = offer.steps.empty() ? new_run_name(ranks) : offer.run;
  if (!site.over_sites()) {
    open.sites = std::make_unique<sites::Sites>(ranks);
    open.common.assign(offer.steps.rbegin(), offer.steps.rend());
    return open;
  }
  std::unique_ptr<sites::NetRing> ring;
  root_succeeds(ranks, [&] {
    sites::RingPlan plan = make_ring_plan(resolved, site, offer.command);
    plan.restarts = offer.steps;
    if (offer.command == kResume) plan.agreement += fmt::format("the run to resume = {}\n", offer.run);
    plan.report = say;
    ring = std::make_unique<sites::NetRing>(plan);
    open.common = common_restarts(ring->hellos());
  });
  open.common = from_first_rank(ranks, open.common);
  open.sites = std::make_unique<sites::Sites>(std::move(ring), resolved.sites.ring, ranks);
  if (open.common.empty()) open.run = gather_texts(*open.sites, new_run_name(ranks)).front();
  return open;
}

namespace {

// Checksums of a set's ids, independent of their order and of how ranks share them.
struct Tally {
  std::uint64_t count = 0, sum = 0, mixed = 0;  // mixed: exclusive or

  void add(std::uint64_t id) { ++count, sum += id, mixed ^= id; }
  void add(const Tally& other) { count += other.count, sum += other.sum, mixed ^= other.mixed; }
  bool operator==(const Tally&) const = default;
};
struct Tallies {
  Tally whole, kept;
};

Tallies of_all_ranks(const Tallies& mine, const Communicator& ranks) {
  Tallies all;
  for (const Tallies& one : gathered(ranks, mine)) all.whole.add(one.whole), all.kept.add(one.kept);
  return all;
}

// Keeps only the elements for which `kept` is true. One array at a time is held twice.
template <class T>
void keep(std::vector<T>& values, const std::vector<bool>& kept) {
  std::size_t end = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (kept[i]) values[end++] = values[i];
  values.resize(end);
  values.shrink_to_fit();
}

std::uint32_t x_of(const Snapshot& set, std::size_t i, const Frame& frame) {
  return coordinate_of(to_fine((set.positions[i][0] - frame.corner[0]) / frame.side));
}

Tallies keep_slab(Snapshot& set, const Frame& frame, const sites::Slabs& slabs, int me) {
  std::vector<bool> kept(set.size());
  Tallies tallies;
  for (std::size_t i = 0; i < set.size(); ++i) {
    kept[i] = slabs.site_of(x_of(set, i, frame)) == me;
    tallies.whole.add(set.ids[i]);
    if (kept[i]) tallies.kept.add(set.ids[i]);
  }
  keep(set.positions, kept);
  keep(set.velocities, kept);
  keep(set.masses, kept);
  keep(set.ids, kept);
  return tallies;
}

// Slabs with equal numbers of particles, to 2^-20 of the side. All sites take the slabs of the first, as machines may
// round positions differently. Collective.
constexpr int kPlaceBits = 20;
sites::Slabs slabs_by_number(const Prepared& run, const Frame& frame, sites::Sites& sites, const Communicator& ranks) {
  std::vector<std::uint64_t> in_place(std::size_t{1} << kPlaceBits);
  for (std::size_t i = 0; i < run.initial.size(); ++i) ++in_place[x_of(run.initial, i, frame) >> (32 - kPlaceBits)];
  ranks.sum(in_place);
  const auto count = static_cast<std::uint64_t>(sites.count());
  std::vector<std::uint32_t> starts = {0};
  std::uint64_t below = 0;
  for (std::size_t place = 0; place < in_place.size() && starts.size() < count; below += in_place[place++])
    if (place > 0 && below * count >= run.particles * starts.size())
      starts.push_back(static_cast<std::uint32_t>(place << (32 - kPlaceBits)));
  while (starts.size() < count) starts.push_back(starts.back() + 1);
  const auto bytes = std::as_bytes(std::span(starts));
  const std::uint64_t number = sites.next_number(sites::Phase::kControl);
  const sites::Message first = sites.gather(sites::Phase::kControl, number, bytes).front();
  if (first.size() != bytes.size())
    throw Error("a site's slabs are not as many as the sites", "", "run the same version at all sites");
  std::memcpy(starts.data(), first.data(), first.size());
  return sites::Slabs(starts);
}

constexpr const char* kAdvice =
    "give the same initial.file (or cosmology.transfer_table) at all sites, and run the same version";

void check_tallies(const std::vector<Tallies>& tallies, const sites::Sites& sites) {
  Tally kept;
  for (int i = 0; i < sites.count(); ++i) {
    const Tallies& site = tallies[static_cast<std::size_t>(i)];
    kept.add(site.kept);
    if (site.whole == tallies.front().whole) continue;
    throw Error(fmt::format("sites {} and {} have different initial conditions", sites.name(0), sites.name(i)),
                site.whole.count == tallies.front().whole.count
                    ? "their particles have different ids"
                    : fmt::format("{} and {} particles", tallies.front().whole.count, site.whole.count),
                kAdvice);
  }
  if (kept == tallies.front().whole) return;
  throw Error("the sites have different initial conditions",
              fmt::format("their slabs hold {} particles, the whole set {}", kept.count, tallies.front().whole.count) +
                  (kept.count == tallies.front().whole.count ? ", and not the same ones" : ""),
              kAdvice);
}

}  // namespace

sites::Slabs first_slabs(const Prepared& run, int sites) {
  const Config::Gravity& gravity = run.config.gravity;
  if (run.config.run.kind != RunKind::kCosmology) return {sites, 0};
  const double r_cut = *gravity.r_cut / static_cast<double>(*gravity.mesh), even = 1.0 / sites;
  const double thinnest = thinnest_slab(r_cut, ghost_level(run), sites);
  if (even < thinnest && even >= thinnest_slab(r_cut, 0, sites))
    throw Error("slabs are too thin for a deterministic run",
                fmt::format("{} sites share the box, and what acts on a site's particles reaches {:.4g} sides: whole "
                            "cells of the tree",
                            sites, thinnest),
                "choose run.deterministic = false, fewer sites, or more particles");
  return {sites, thinnest};
}

void keep_own_slab(Prepared& run, sites::Sites& sites, const Communicator& ranks) {
  const Frame frame = make_frame(run.initial.header, run.side, run.centre);
  const bool periodic = run.config.run.kind == RunKind::kCosmology;
  const sites::Slabs slabs = periodic ? first_slabs(run, sites.count()) : slabs_by_number(run, frame, sites, ranks);
  if (!periodic) run.slabs.assign(slabs.starts().begin(), slabs.starts().end());
  const Tallies mine = of_all_ranks(keep_slab(run.initial, frame, slabs, sites.me()), ranks);
  std::vector<Tallies> tallies;
  const std::uint64_t number = sites.next_number(sites::Phase::kControl);
  for (const sites::Message& message : sites.gather(sites::Phase::kControl, number, sites::as_bytes_of(mine)))
    tallies.push_back(sites::value_of<Tallies>(message));
  check_tallies(tallies, sites);
}

}  // namespace maki
