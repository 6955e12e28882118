#include "src/run/products.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <span>
#include <utility>

#include "kernels/error.hpp"
#include "wan/sites/gathered_set.hpp"

namespace maki {

std::string mass_function_path(const std::string& catalogue) {
  const std::filesystem::path path(catalogue);
  return (path.parent_path() / (path.stem().string() + "_mass_function.txt")).string();
}

void write_group_files(const std::string& path, const GroupCatalogue& catalogue, const MassFunction* expected,
                       const Provenance& provenance, bool overwrite) {
  write_group_catalogue(path, catalogue, provenance, overwrite);
  std::function<double(double)> tinker;
  if (expected) tinker = [&](double mass) { return (*expected)(mass); };
  write_mass_function(mass_function_path(path), catalogue, tinker, provenance, overwrite);
}

std::string links_path(const std::string& catalogue) {
  const std::filesystem::path path(catalogue);
  std::string name = path.filename().string();
  const std::string usual = "groups_";
  if (name.starts_with(usual)) name = name.substr(usual.size());
  return (path.parent_path() / ("links_" + name)).string();
}

std::string link_group_files(const std::string& earlier, const std::string& later, bool overwrite) {
  const CatalogueGroups before = read_catalogue_groups(earlier), now = read_catalogue_groups(later);
  require_order(before, now);
  const MergerLinks links = link_catalogues(before, now);
  write_merger_links(links_path(later), links, before, now, overwrite);
  const auto linked = [](const std::vector<std::int64_t>& rows) {
    return static_cast<std::int64_t>(rows.size()) - std::count(rows.begin(), rows.end(), kNoGroup);
  };
  return fmt::format("{} of {} groups at z = {:.4g} live on in {} of {} at z = {:.4g}", linked(links.descendant),
                     before.size(), before.redshift, linked(links.main_progenitor), now.size(), now.redshift);
}

namespace {

// Numbers of a catalogue in a message, before its groups and its members' IDs.
struct CatalogueHead {
  double linking_length;
  std::uint64_t minimum, particles, groups, ids;
};

template <class T>
void append(sites::Message& message, const T* values, std::size_t count) {
  const auto bytes = std::as_bytes(std::span(values, count));
  message.insert(message.end(), bytes.begin(), bytes.end());
}

// Throws Error where the message is incomplete.
GroupCatalogue catalogue_in(const sites::Message& come, const std::string& site) {
  const auto whole = [](const CatalogueHead& head, std::size_t size) {
    return head.groups <= size / sizeof(FofGroup) && head.ids <= size / sizeof(std::uint64_t) &&
           size == sizeof head + head.groups * sizeof(FofGroup) + head.ids * sizeof(std::uint64_t);
  };
  CatalogueHead head{};
  if (come.size() >= sizeof head) std::memcpy(&head, come.data(), sizeof head);
  if (come.size() < sizeof head || !whole(head, come.size()))
    throw Error("the catalogue of groups from site " + site + " is not whole",
                std::to_string(come.size()) + " bytes came", "run the same version at all sites");
  GroupCatalogue found;
  found.linking_length = head.linking_length;
  found.minimum = head.minimum;
  found.particles = head.particles;
  found.groups.resize(head.groups);
  found.member_ids.resize(head.ids);
  const std::byte* const groups = come.data() + sizeof head;
  std::memcpy(found.groups.data(), groups, head.groups * sizeof(FofGroup));
  std::memcpy(found.member_ids.data(), groups + head.groups * sizeof(FofGroup), head.ids * sizeof(std::uint64_t));
  return found;
}

}  // namespace

GroupCatalogue catalogue_from_site(sites::Sites& sites, int place, GroupCatalogue mine) {
  if (sites.alone()) return mine;
  sites::Message sent;
  const CatalogueHead own{mine.linking_length, mine.minimum, mine.particles, mine.groups.size(),
                          mine.member_ids.size()};
  append(sent, &own, 1);
  append(sent, mine.groups.data(), mine.groups.size());
  append(sent, mine.member_ids.data(), mine.member_ids.size());
  mine = {};
  const sites::Message come = sites::from_site_to_first(sites, place, std::move(sent));
  GroupCatalogue found;
  root_succeeds(sites.ranks(), [&] { found = catalogue_in(come, sites.name(place)); });
  return found;
}

std::string summary_of(const GroupCatalogue& catalogue) {
  return fmt::format("{} groups of {} particles or more hold {} of {}", catalogue.groups.size(), catalogue.minimum,
                     catalogue.member_ids.size(), catalogue.particles);
}

std::vector<bool> members_among(const ParticleSource& particles, const std::vector<std::uint64_t>& members,
                                const Communicator& ranks) {
  using Ids = std::vector<std::uint64_t>;
  const auto size = static_cast<std::size_t>(ranks.size());
  // The rank where an ID of a particle meets the same of a member.
  const auto meeting = [size](std::uint64_t id) { return XXH3_64bits(&id, sizeof id) % size; };
  std::vector<Ids> of_groups(size), asked(size);
  for (const std::uint64_t id : members) of_groups[meeting(id)].push_back(id);
  Ids here = std::move(exchange_all(ranks, std::move(of_groups))[0]);
  std::sort(here.begin(), here.end());
  for (std::size_t i = 0; i < particles.size(); ++i) asked[meeting(particles.id(i))].push_back(particles.id(i));
  std::vector<std::vector<unsigned char>> answers;
  for (const Ids& ids : exchange_all(ranks, std::move(asked))) {
    std::vector<unsigned char>& answer = answers.emplace_back(ids.size());
#pragma omp parallel for schedule(static)
    for (std::size_t i = 0; i < ids.size(); ++i) answer[i] = std::binary_search(here.begin(), here.end(), ids[i]);
  }
  answers = exchange_all(ranks, std::move(answers));
  std::vector<bool> found(particles.size());
  std::vector<std::size_t> next(size);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::size_t at = meeting(particles.id(i));
    found[i] = answers[at][next[at]++] != 0;
  }
  return found;
}

}  // namespace maki
