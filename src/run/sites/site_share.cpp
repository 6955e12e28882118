#include "src/run/sites/site_share.hpp"

#include <fmt/format.h>

#include <cstring>
#include <span>

#include "kernels/error.hpp"
#include "kernels/particles/types.hpp"
#include "src/gravity/all_sites.hpp"

namespace maki {
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
  std::vector<Tallies> each(static_cast<std::size_t>(ranks.size()));
  ranks.all_gather(&mine, each.data(), sizeof mine);
  Tallies all;
  for (const Tallies& one : each) all.whole.add(one.whole), all.kept.add(one.kept);
  return all;
}

// Removes all elements but those for which `kept` is true. One array at a time is held twice.
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

// Slabs with equal numbers of particles, to 2^-20 of the side. All sites take those of the first, as machines may round
// positions differently. Collective.
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
