#include "src/groups/progenitors.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <compare>
#include <filesystem>
#include <numeric>
#include <parallel/algorithm>

#include "kernels/error.hpp"
#include "src/cosmology/cosmology.hpp"
#include "src/io/gadget.hpp"
#include "src/io/gadget_write.hpp"
#include "src/io/hdf5_file.hpp"
#include "src/io/safe_file.hpp"

namespace maki {
namespace {

// Of a dataset of so many rows and columns, the rows of `share`.
template <class T>
std::vector<T> read_column(hid_t file, const std::string& name, std::size_t rows, std::size_t columns,
                           const Share& share) {
  H5Id dataset = open_dataset(file, name);
  const std::vector<std::size_t> shape = dataset_shape(dataset);
  if (shape.empty() || shape[0] != rows || (shape.size() > 1 ? shape[1] : 1) != columns)
    throw Error(fmt::format("'{}' does not have {} x {} numbers", name, rows, columns),
                "the catalogue is damaged or not one of maki groups", "write it again with maki groups");
  std::vector<T> numbers(share.size() * columns);
  if (!numbers.empty()) read_rows(dataset, share.first, share.size(), hdf5_type<T>(), numbers.data());
  return numbers;
}
template <class T>
std::vector<T> read_column(hid_t file, const std::string& name, std::size_t rows, std::size_t columns) {
  return read_column<T>(file, name, rows, columns, {0, rows});
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

// All but the members' IDs.
CatalogueGroups read_tables(const std::string& path) {
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

}  // namespace

CatalogueGroups read_catalogue_groups(const std::string& path, const Communicator& ranks) {
  CatalogueGroups found;
  root_succeeds(ranks, [&] { found = read_tables(path); });
  std::uint64_t members = found.begins.back();
  ranks.broadcast(&members, sizeof members, 0);
  all_succeed(ranks, [&] {
    const Hdf5Turn turn;
    H5Id file = open_hdf5(path);
    found.ids = read_column<std::uint64_t>(file, "IDs/ID", members, 1, share_of(members, ranks.rank(), ranks.size()));
  });
  return found;
}

void require_order(const CatalogueGroups& earlier, const CatalogueGroups& later) {
  if (later.redshift < earlier.redshift) return;
  throw Error(fmt::format("'{}' is not later than '{}'", later.name, earlier.name), "links lead forward in time",
              "give the catalogues in the order of time");
}

namespace {

// A member of a group, and its place there, from 0 for the most bound one.
struct Member {
  std::uint64_t id, group;
  std::uint32_t place;
};

// For a rank's share of the members: the row of the first group in it, then the begins (CatalogueGroups) of this group
// and of the later ones in the share; empty for an empty share.
std::vector<std::uint64_t> groups_of_share(const std::vector<std::uint64_t>& begins, const Share& share) {
  if (share.size() == 0) return {};
  const auto first = std::ranges::upper_bound(begins, share.first) - 1;
  std::vector<std::uint64_t> groups = {static_cast<std::uint64_t>(first - begins.begin())};
  groups.insert(groups.end(), first, std::lower_bound(first, begins.end(), share.end));
  return groups;
}

// Members of all ranks whose IDs meet on this one, by ID. Collective.
std::vector<Member> members_by_id(const CatalogueGroups& catalogue, const Communicator& ranks) {
  const auto size = static_cast<std::size_t>(ranks.size());
  const std::uint64_t total = sum_of(ranks, std::uint64_t{catalogue.ids.size()});
  std::vector<std::vector<std::uint64_t>> tables(size);
  for (int r = 0; ranks.rank() == 0 && r < ranks.size(); ++r)
    tables[static_cast<std::size_t>(r)] = groups_of_share(catalogue.begins, share_of(total, r, ranks.size()));
  const std::vector<std::uint64_t> groups = std::move(exchange_all(ranks, std::move(tables))[0]);
  std::vector<std::vector<Member>> meeting(size);
  std::uint64_t at = share_begin(total, ranks.rank(), ranks.size());
  std::size_t k = 1;  // entry of `groups`
  for (const std::uint64_t id : catalogue.ids) {
    while (k + 1 < groups.size() && groups[k + 1] <= at) ++k;
    const std::size_t to = size == 1 ? 0 : XXH3_64bits(&id, sizeof id) % size;
    meeting[to].push_back({id, groups[0] + k - 1, static_cast<std::uint32_t>(at - groups[k])});
    ++at;
  }
  std::vector<Member> all = joined(exchange_all(ranks, std::move(meeting)));
  __gnu_parallel::sort(all.begin(), all.end(), [](const Member& a, const Member& b) { return a.id < b.id; });
  return all;
}

void require_unique(const std::vector<Member>& by_id, const std::string& name) {
  const auto twice =
      std::adjacent_find(by_id.begin(), by_id.end(), [](const Member& a, const Member& b) { return a.id == b.id; });
  if (twice == by_id.end()) return;
  throw Error(fmt::format("'{}' cannot be linked", name),
              fmt::format("particle {} is a member of two groups", twice->id), "IDs have to be unique");
}

// A particle in an earlier group and a later one, with its places in both.
struct SharedMember {
  std::uint64_t progenitor, group;
  std::uint32_t place_before, place_now;
  auto operator<=>(const SharedMember&) const = default;
};

// Shared members of this rank's progenitors, sorted. Collective.
std::vector<SharedMember> shared_members(const CatalogueGroups& earlier, const CatalogueGroups& later,
                                         const Communicator& ranks) {
  const std::string name = broadcast_text(ranks, later.name);
  const std::vector<Member> to = members_by_id(later, ranks);
  all_succeed(ranks, [&] { require_unique(to, name); });
  std::vector<std::vector<SharedMember>> of_ranks(static_cast<std::size_t>(ranks.size()));
  auto at = to.begin();  // both are read in one direction, as each search for an ID among many would wait for memory
  for (const Member& member : members_by_id(earlier, ranks)) {
    while (at != to.end() && at->id < member.id) ++at;
    if (at == to.end()) break;
    if (at->id == member.id)
      of_ranks[member.group % of_ranks.size()].push_back({member.group, at->group, member.place, at->place});
  }
  std::vector<SharedMember> shared = joined(exchange_all(ranks, std::move(of_ranks)));
  __gnu_parallel::sort(shared.begin(), shared.end());
  return shared;
}

// Of members, by place.
std::vector<double> weights_of(std::uint64_t places) {
  std::vector<double> weights(places);
  for (std::size_t place = 0; place < places; ++place)
    weights[place] = 1 / std::cbrt(std::pow(1.0 + static_cast<double>(place), 2));
  return weights;
}

// Links of the shared members, by progenitor and group, with sums of weights.
std::vector<ProgenitorLink> links_of(const std::vector<SharedMember>& shared) {
  std::uint64_t places = 0;
  for (const SharedMember& member : shared)
    places = std::max<std::uint64_t>(places, std::max(member.place_before, member.place_now) + 1ull);
  const std::vector<double> weights = weights_of(places);
  std::vector<ProgenitorLink> links;
  for (const SharedMember& member : shared) {
    if (links.empty() || links.back().progenitor != member.progenitor || links.back().group != member.group)
      links.push_back({member.group, member.progenitor, 0, 0, 0});
    ++links.back().shared;
    links.back().weight += weights[member.place_before];
    links.back().weight_in_group += weights[member.place_now];
  }
  return links;
}

// Sums of the first n weights, for n up to the length of the longest group.
std::vector<double> sums_of_weights(const CatalogueGroups& one, const CatalogueGroups& other) {
  std::uint64_t longest = 0;
  for (const CatalogueGroups* catalogue : {&one, &other})
    for (std::size_t g = 0; g < catalogue->size(); ++g) longest = std::max(longest, catalogue->length(g));
  const std::vector<double> weights = weights_of(longest);
  std::vector<double> sums(longest + 1);
  std::partial_sum(weights.begin(), weights.end(), sums.begin() + 1);
  return sums;
}

void require_one_run(const CatalogueGroups& earlier, const CatalogueGroups& later) {
  const double larger = std::max(earlier.box_size, later.box_size);
  if (std::abs(earlier.box_size - later.box_size) > 1e-5 * larger || earlier.particles != later.particles)
    throw Error(fmt::format("'{}' and '{}' are not of one run", earlier.name, later.name),
                fmt::format("a box of {:.6g} Mpc/h with {} particles, and one of {:.6g} with {}", earlier.box_size,
                            earlier.particles, later.box_size, later.particles),
                "give catalogues of the same particles");
}

std::vector<std::uint64_t> begins_of(const std::vector<ProgenitorLink>& links, std::size_t groups) {
  std::vector<std::uint64_t> begins(groups + 1);
  for (const ProgenitorLink& link : links) ++begins[link.group + 1];
  for (std::size_t g = 0; g < groups; ++g) begins[g + 1] += begins[g];
  return begins;
}

}  // namespace

MergerLinks link_catalogues(const CatalogueGroups& earlier, const CatalogueGroups& later, const Communicator& ranks) {
  root_succeeds(ranks, [&] { require_one_run(earlier, later); });
  MergerLinks found;
  found.links = joined(gather_lists(ranks, links_of(shared_members(earlier, later, ranks))));
  if (ranks.rank() > 0) return found;
  found.descendant.assign(earlier.size(), kNoGroup);
  found.main_progenitor.assign(later.size(), kNoGroup);
  const std::vector<double> totals = sums_of_weights(earlier, later);
  std::vector<double> largest(earlier.size());
  for (ProgenitorLink& link : found.links) {
    link.weight /= totals[earlier.length(link.progenitor)];
    link.weight_in_group /= totals[later.length(link.group)];
    if (link.weight > largest[link.progenitor]) {
      largest[link.progenitor] = link.weight;
      found.descendant[link.progenitor] = static_cast<std::int64_t>(link.group);
    }
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
