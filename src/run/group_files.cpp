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

void write_group_files(const std::string& path, const GroupCatalogue& catalogue,
                       const std::function<double(double)>& expected, const Provenance& provenance, bool overwrite,
                       const Communicator& ranks) {
  write_group_catalogue(path, catalogue, provenance, overwrite, ranks);
  root_succeeds(ranks,
                [&] { write_mass_function(mass_function_path(path), catalogue, expected, provenance, overwrite); });
}

std::string links_path(const std::string& catalogue) {
  const std::filesystem::path path(catalogue);
  std::string name = path.filename().string();
  const std::string usual = "groups_";
  if (name.starts_with(usual)) name = name.substr(usual.size());
  return (path.parent_path() / ("links_" + name)).string();
}

std::string link_group_files(const std::string& earlier, const std::string& later, bool overwrite,
                             const Communicator& ranks) {
  const CatalogueGroups before = read_catalogue_groups(earlier, ranks), now = read_catalogue_groups(later, ranks);
  root_succeeds(ranks, [&] { require_order(before, now); });
  const MergerLinks links = link_catalogues(before, now, ranks);
  root_succeeds(ranks, [&] { write_merger_links(links_path(later), links, before, now, overwrite); });
  const auto linked = [](const std::vector<std::int64_t>& rows) {
    return static_cast<std::int64_t>(rows.size()) - std::count(rows.begin(), rows.end(), kNoGroup);
  };
  return fmt::format("{} of {} groups at z = {:.4g} live on in {} of {} at z = {:.4g}", linked(links.descendant),
                     before.size(), before.redshift, linked(links.main_progenitor), now.size(), now.redshift);
}

namespace {

// Numbers of a catalogue in a message, before its groups; `pieces` with the members' IDs follow, in even shares.
struct CatalogueHead {
  double linking_length, lightest_distance;
  std::uint64_t minimum, particles, groups, members, pieces;
};

constexpr std::uint64_t kMostPieces = std::uint64_t{1} << 24;  // ranks of a site

// Throws Error where a message has not the bytes of a whole one.
void require_bytes(const sites::Message& come, std::uint64_t bytes, const std::string& site) {
  if (come.size() == bytes) return;
  throw Error("the catalogue of groups from site " + site + " is not whole",
              std::to_string(come.size()) + " bytes came", "run the same version at all sites");
}

sites::Message head_of(const GroupCatalogue& catalogue, int pieces) {
  const CatalogueHead head{catalogue.linking_length,
                           catalogue.lightest_distance,
                           catalogue.minimum,
                           catalogue.particles,
                           catalogue.groups.size(),
                           catalogue.members(),
                           static_cast<std::uint64_t>(pieces)};
  const auto numbers = sites::as_bytes_of(head), groups = std::as_bytes(std::span(catalogue.groups));
  sites::Message message(numbers.begin(), numbers.end());
  message.insert(message.end(), groups.begin(), groups.end());
  return message;
}

GroupCatalogue catalogue_in(const sites::Message& come, const std::string& site, CatalogueHead& head) {
  if (come.size() < sizeof head) require_bytes(come, sizeof head, site);
  std::memcpy(&head, come.data(), sizeof head);
  if (head.groups > come.size() / sizeof(FofGroup)) require_bytes(come, 0, site);
  require_bytes(come, sizeof head + head.groups * sizeof(FofGroup), site);
  GroupCatalogue found;
  found.linking_length = head.linking_length;
  found.lightest_distance = head.lightest_distance;
  found.minimum = head.minimum;
  found.particles = head.particles;
  found.groups.resize(head.groups);
  std::memcpy(found.groups.data(), come.data() + sizeof head, head.groups * sizeof(FofGroup));
  if (found.members() != head.members || head.pieces < 1 || head.pieces > kMostPieces) require_bytes(come, 0, site);
  return found;
}

// The share of a rank on rank 0, as a message.
sites::Message share_of_rank(const Communicator& ranks, int rank, const std::vector<std::uint64_t>& share) {
  const auto come = gather_lists(ranks, ranks.rank() == rank ? share : std::vector<std::uint64_t>());
  const auto bytes = std::as_bytes(std::span(come[static_cast<std::size_t>(rank)]));
  return {bytes.begin(), bytes.end()};
}

}  // namespace

GroupCatalogue catalogue_from_site(sites::Sites& sites, int place, GroupCatalogue mine) {
  if (sites.alone()) return mine;
  const Communicator& ranks = sites.ranks();
  const bool here = sites.me() == place;
  const std::string name = sites.name(place);
  sites::Message come = here && ranks.rank() == 0 ? head_of(mine, ranks.size()) : sites::Message();
  come = sites::from_site_to_first(sites, place, std::move(come));
  CatalogueHead head{};
  GroupCatalogue found;
  root_succeeds(ranks, [&] { found = catalogue_in(come, name, head); });
  ranks.broadcast(&head, sizeof head, 0);
  const int pieces = static_cast<int>(head.pieces);
  for (int piece = 0; piece < pieces; ++piece) {
    come = here ? share_of_rank(ranks, piece, mine.member_ids) : sites::Message();
    come = sites::from_site_to_first(sites, place, std::move(come));
    const Share share = share_of(head.members, piece, pieces);
    root_succeeds(ranks, [&] { require_bytes(come, share.size() * sizeof(std::uint64_t), name); });
    if (here) continue;
    std::vector<std::uint64_t> ids(come.size() / sizeof(std::uint64_t));  // on rank 0
    std::memcpy(ids.data(), come.data(), ids.size() * sizeof(std::uint64_t));
    const ArrayPart part{share.first, ids.size()};
    put_in_shares(ranks, head.members, {part}, ids, found.member_ids);
  }
  if (here) found.member_ids = std::move(mine.member_ids);
  return found;
}

// The largest lightest_distance with which summary_of() tells of the linking length: masses of a fifth of the
// mean. Two kinds of as many particles, as dark matter and gas, have 0.68.
constexpr double kAlikeDistance = 0.6;

std::string summary_of(const GroupCatalogue& catalogue) {
  std::string text = fmt::format("{} groups of {} particles or more hold {} of {}", catalogue.groups.size(),
                                 catalogue.minimum, catalogue.members(), catalogue.particles);
  const double lightest = catalogue.lightest_distance;
  if (lightest > kAlikeDistance) return text;
  return text +
         fmt::format(
             "; masses differ, and where the lightest particles fill the box as in a zoom, smooth regions are one "
             "group: 'maki groups --linking-length {:.2g}' is {:.2g} of their mean distance",
             catalogue.linking_length * lightest, catalogue.linking_length);
}

std::vector<bool> members_among(const ParticleSource& particles, const std::vector<std::uint64_t>& members,
                                const Communicator& ranks) {
  using Ids = std::vector<std::uint64_t>;
  const auto size = static_cast<std::size_t>(ranks.size());
  // The rank where an ID of a particle meets the same of a member.
  const auto meeting = [size](std::uint64_t id) { return XXH3_64bits(&id, sizeof id) % size; };
  std::vector<Ids> of_groups(size), asked(size);
  for (const std::uint64_t id : members) of_groups[meeting(id)].push_back(id);
  Ids here = joined(exchange_all(ranks, std::move(of_groups)));
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
