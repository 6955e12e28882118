#include "src/groups/progenitors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <parallel/algorithm>

#include "kernels/error.hpp"
#include "src/cosmology/cosmology.hpp"
#include "src/io/gadget.hpp"
#include "src/io/gadget_write.hpp"
#include "src/io/hdf5_file.hpp"
#include "src/io/safe_file.hpp"

namespace maki {
namespace {

template <class T>
std::vector<T> read_column(hid_t file, const std::string& name, std::size_t rows, std::size_t columns) {
  H5Id dataset = open_dataset(file, name);
  const std::vector<std::size_t> shape = dataset_shape(dataset);
  if (shape.empty() || shape[0] != rows || (shape.size() > 1 ? shape[1] : 1) != columns)
    throw Error(fmt::format("'{}' does not have {} x {} numbers", name, rows, columns),
                "the catalogue is damaged or not one of maki groups", "write it again with maki groups");
  std::vector<T> numbers(rows * columns);
  if (!numbers.empty()) read_rows(dataset, 0, rows, hdf5_type<T>(), numbers.data());
  return numbers;
}

std::uint64_t required(hid_t header, const char* name, const std::string& path) {
  if (const auto value = read_scalar<std::uint64_t>(header, name)) return *value;
  throw Error(fmt::format("'{}' is no catalogue of groups", path), fmt::format("its header has no {}", name),
              "give a file of maki groups");
}

using gadget::kTypes;  // of particles

// Mpc/h.
double box_size(hid_t file) {
  gadget::FileHeader header;
  gadget::read_hdf5_facts(file, header);
  return header.set.box_size * length_unit_in_mpc_h(header.set.units, header.set.hubble);
}

}  // namespace

CatalogueGroups read_catalogue_groups(const std::string& path) {
  const Hdf5Turn turn;
  H5Id file = open_hdf5(path);
  if (!hdf5_exists(file, "Group") || !hdf5_exists(file, "Header"))
    throw Error(fmt::format("'{}' is no catalogue of groups", path), "it has no /Group", "give a file of maki groups");
  H5Id header = open_group(file, "Header");
  CatalogueGroups found;
  found.name = std::filesystem::path(path).filename().string();
  found.redshift = read_scalar<double>(header, "Redshift").value_or(0);
  found.box_size = box_size(file);
  found.particles = read_scalar<std::uint64_t>(header, "Particles").value_or(0);
  found.provenance = gadget::read_provenance(file);
  const std::uint64_t groups = required(header, "Ngroups_Total", path), ids = required(header, "Nids_Total", path);
  found.ids = read_column<std::uint64_t>(file, "IDs/ID", ids, 1);
  const auto length = read_column<std::int32_t>(file, "Group/GroupLen", groups, 1);
  const auto offset = read_column<std::int64_t>(file, "Group/GroupOffsetType", groups, kTypes);
  const auto mass = read_column<float>(file, "Group/GroupMass", groups, 1);
  const auto mean200 = read_column<float>(file, "Group/Group_M_Mean200", groups, 1);
  const auto v_max = read_column<float>(file, "Group/GroupVmax", groups, 1);
  const auto position = read_column<float>(file, "Group/GroupPos", groups, 3);
  for (std::size_t g = 0; g < groups; ++g) {
    if (length[g] < 0 || offset[kTypes * g + 1] != static_cast<std::int64_t>(found.begins.back()))
      throw Error(fmt::format("'{}' is damaged", path),
                  fmt::format("the members of group {} are not where they belong", g),
                  "write it again with maki groups");
    found.begins.push_back(found.begins.back() + static_cast<std::uint64_t>(length[g]));
    found.rows.push_back({mass[g], mean200[g], v_max[g], {position[3 * g], position[3 * g + 1], position[3 * g + 2]}});
  }
  if (found.begins.back() != ids)
    throw Error(fmt::format("'{}' is damaged", path), "its groups do not hold as many particles as there are IDs",
                "write it again with maki groups");
  return found;
}

void require_order(const CatalogueGroups& earlier, const CatalogueGroups& later) {
  if (later.redshift < earlier.redshift) return;
  throw Error(fmt::format("'{}' is not later than '{}'", later.name, earlier.name), "links lead forward in time",
              "give the catalogues in the order of time");
}

namespace {

// Weights of members by rank, and their sums: totals[n] of the first n.
struct Weights {
  std::vector<double> of_rank, totals;
};

Weights weights_up_to(const CatalogueGroups& one, const CatalogueGroups& other) {
  std::uint64_t longest = 0;
  for (const CatalogueGroups* catalogue : {&one, &other})
    for (std::size_t g = 0; g < catalogue->size(); ++g) longest = std::max(longest, catalogue->length(g));
  Weights weights{std::vector<double>(longest), std::vector<double>(longest + 1)};
  for (std::size_t rank = 0; rank < longest; ++rank) {
    weights.of_rank[rank] = 1 / std::cbrt(std::pow(1.0 + static_cast<double>(rank), 2));
    weights.totals[rank + 1] = weights.totals[rank] + weights.of_rank[rank];
  }
  return weights;
}

// A member and its index in a catalogue's `ids`.
struct Member {
  std::uint64_t id, index;
};

std::vector<Member> members_by_id(const CatalogueGroups& catalogue) {
  std::vector<Member> all(catalogue.ids.size());
#pragma omp parallel for schedule(static)
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = {catalogue.ids[i], i};
  __gnu_parallel::sort(all.begin(), all.end(), [](const Member& a, const Member& b) { return a.id < b.id; });
  return all;
}

void require_unique(const std::vector<Member>& by_id, const CatalogueGroups& catalogue) {
  const auto twice =
      std::adjacent_find(by_id.begin(), by_id.end(), [](const Member& a, const Member& b) { return a.id == b.id; });
  if (twice == by_id.end()) return;
  throw Error(fmt::format("'{}' cannot be linked", catalogue.name),
              fmt::format("particle {} is a member of two groups", twice->id), "IDs have to be unique");
}

constexpr std::uint64_t kNowhere = ~std::uint64_t{0};

// For each member of the earlier catalogue its index in the later one, or kNowhere. Both are sorted and read in one
// direction, as each search for an ID among many would wait for memory.
std::vector<std::uint64_t> places_of(const CatalogueGroups& earlier, const CatalogueGroups& later) {
  const std::vector<Member> to = members_by_id(later);
  require_unique(to, later);
  std::vector<std::uint64_t> places(earlier.ids.size(), kNowhere);
  auto at = to.begin();
  for (const Member& member : members_by_id(earlier)) {
    while (at != to.end() && at->id < member.id) ++at;
    if (at == to.end()) break;
    if (at->id == member.id) places[member.index] = at->index;
  }
  return places;
}

// A particle in an earlier group and a later one, with its ranks in both.
struct SharedMember {
  std::uint64_t group, rank_before, rank_now;
};

// Sorted by later group, then by rank in the earlier one.
void shared_members(const CatalogueGroups& earlier, std::uint64_t group, const std::vector<std::uint64_t>& places,
                    const CatalogueGroups& later, std::vector<SharedMember>& shared) {
  shared.clear();
  std::uint64_t now = 0;  // the later group of the member before, which is often that of the next
  for (std::uint64_t i = earlier.begins[group]; i < earlier.begins[group + 1]; ++i) {
    const std::uint64_t at = places[i];
    if (at == kNowhere) continue;
    if (at < later.begins[now] || at >= later.begins[now + 1])
      now = static_cast<std::uint64_t>(std::upper_bound(later.begins.begin(), later.begins.end(), at) -
                                       later.begins.begin() - 1);
    shared.push_back({now, i - earlier.begins[group], at - later.begins[now]});
  }
  const auto before = [](const SharedMember& a, const SharedMember& b) {
    return a.group != b.group ? a.group < b.group : a.rank_before < b.rank_before;
  };
  if (!std::is_sorted(shared.begin(), shared.end(), before)) std::sort(shared.begin(), shared.end(), before);
}

// The links of one earlier group, by later group.
std::vector<ProgenitorLink> links_of(std::uint64_t group, const std::vector<SharedMember>& shared,
                                     const Weights& weights) {
  std::vector<ProgenitorLink> links;
  for (const SharedMember& member : shared) {
    if (links.empty() || links.back().group != member.group) links.push_back({member.group, group, 0, 0, 0});
    ++links.back().shared;
    links.back().weight += weights.of_rank[member.rank_before];
    links.back().weight_in_group += weights.of_rank[member.rank_now];
  }
  return links;
}

std::vector<std::uint64_t> begins_of(const std::vector<ProgenitorLink>& links, std::size_t groups) {
  std::vector<std::uint64_t> begins(groups + 1);
  for (const ProgenitorLink& link : links) ++begins[link.group + 1];
  for (std::size_t g = 0; g < groups; ++g) begins[g + 1] += begins[g];
  return begins;
}

}  // namespace

MergerLinks link_catalogues(const CatalogueGroups& earlier, const CatalogueGroups& later) {
  const double larger = std::max(earlier.box_size, later.box_size);
  if (std::abs(earlier.box_size - later.box_size) > 1e-5 * larger || earlier.particles != later.particles)
    throw Error(fmt::format("'{}' and '{}' are not of one run", earlier.name, later.name),
                fmt::format("a box of {:.6g} Mpc/h with {} particles, and one of {:.6g} with {}", earlier.box_size,
                            earlier.particles, later.box_size, later.particles),
                "give catalogues of the same particles");
  const std::vector<std::uint64_t> places = places_of(earlier, later);
  const Weights weights = weights_up_to(earlier, later);
  MergerLinks found;
  found.descendant.assign(earlier.size(), kNoGroup);
  found.main_progenitor.assign(later.size(), kNoGroup);
#pragma omp parallel
  {
    std::vector<ProgenitorLink> own;
    std::vector<SharedMember> shared;
#pragma omp for schedule(dynamic, 16)
    for (std::size_t g = 0; g < earlier.size(); ++g) {
      shared_members(earlier, g, places, later, shared);
      double largest = 0;
      for (ProgenitorLink link : links_of(g, shared, weights)) {
        link.weight /= weights.totals[earlier.length(g)];
        link.weight_in_group /= weights.totals[later.length(link.group)];
        if (link.weight > largest) largest = link.weight, found.descendant[g] = static_cast<std::int64_t>(link.group);
        own.push_back(link);
      }
    }
#pragma omp critical
    found.links.insert(found.links.end(), own.begin(), own.end());
  }
  std::sort(found.links.begin(), found.links.end(), [](const ProgenitorLink& a, const ProgenitorLink& b) {
    if (a.group != b.group) return a.group < b.group;
    return a.weight_in_group != b.weight_in_group ? a.weight_in_group > b.weight_in_group : a.progenitor < b.progenitor;
  });
  found.begins = begins_of(found.links, later.size());
  for (const ProgenitorLink& link : found.links) {
    std::int64_t& main = found.main_progenitor[link.group];
    const bool descends = found.descendant[link.progenitor] == static_cast<std::int64_t>(link.group);
    if (main == kNoGroup && descends) main = static_cast<std::int64_t>(link.progenitor);
  }
  return found;
}

namespace {

template <class T, class Value>
void write_column(hid_t parent, const std::string& name, std::size_t rows, const std::string& what, Value value) {
  H5Id dataset = maki::write_column<T>(parent, name, rows, 1, [&](std::size_t i, std::size_t) { return value(i); });
  write_attribute(dataset, "Description", what);
}

void write_header(hid_t file, const CatalogueGroups& earlier, const CatalogueGroups& later) {
  H5Id header = create_group(file, "Header");
  write_attribute(header, "Catalogue", later.name);
  write_attribute(header, "PreviousCatalogue", earlier.name);
  write_attribute(header, "Redshift", later.redshift);
  write_attribute(header, "PreviousRedshift", earlier.redshift);
  write_attribute(header, "Ngroups", std::uint64_t{later.size()});
  write_attribute(header, "PreviousNgroups", std::uint64_t{earlier.size()});
}

void write_links(hid_t file, const std::vector<ProgenitorLink>& links) {
  H5Id group = create_group(file, "Progenitors");
  const std::size_t n = links.size();
  write_column<std::int64_t>(group, "Group", n, "Row of Catalogue", [&](std::size_t i) { return links[i].group; });
  write_column<std::int64_t>(group, "Progenitor", n, "Row of PreviousCatalogue",
                             [&](std::size_t i) { return links[i].progenitor; });
  write_column<std::int64_t>(group, "Shared", n, "Particles in both", [&](std::size_t i) { return links[i].shared; });
  write_column<float>(group, "Weight", n, "Of the shared particles in the progenitor, 1 / (1 + rank)^(2/3), over all",
                      [&](std::size_t i) { return links[i].weight; });
  write_column<float>(group, "WeightInGroup", n, "The same in the group",
                      [&](std::size_t i) { return links[i].weight_in_group; });
}

}  // namespace

void write_merger_links(const std::string& path, const MergerLinks& links, const CatalogueGroups& earlier,
                        const CatalogueGroups& later, bool overwrite) {
  SafeFile safe(path, overwrite);
  const Hdf5Turn turn;
  H5Id file = create_hdf5(safe.temporary_path());
  write_header(file, earlier, later);
  gadget::write_provenance(file, later.provenance);
  write_links(file, links.links);
  {
    H5Id group = create_group(file, "Group"), previous = create_group(file, "PreviousGroup");
    const auto& begins = links.begins;
    write_column<std::int64_t>(group, "FirstProgenitor", later.size(), "Row of /Progenitors",
                               [&](std::size_t g) { return begins[g]; });
    write_column<std::int64_t>(group, "ProgenitorCount", later.size(), "Rows of /Progenitors",
                               [&](std::size_t g) { return begins[g + 1] - begins[g]; });
    write_column<std::int64_t>(group, "MainProgenitor", later.size(), "Row of PreviousCatalogue, or -1",
                               [&](std::size_t g) { return links.main_progenitor[g]; });
    write_column<std::int64_t>(previous, "Descendant", earlier.size(), "Row of Catalogue, or -1",
                               [&](std::size_t g) { return links.descendant[g]; });
  }
  close_hdf5(file, path);
  safe.commit();
}

}  // namespace maki
