// Files of friends-of-friends groups: beside the snapshots of a run, and for maki groups.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "host/comm/communicator.hpp"
#include "src/cosmology/nonlinear.hpp"
#include "src/groups/catalogue.hpp"
#include "src/groups/progenitors.hpp"
#include "src/io/snapshot.hpp"
#include "wan/sites/sites.hpp"

namespace maki {

// "a/groups_003_mass_function.txt" for "a/groups_003.hdf5".
std::string mass_function_path(const std::string& catalogue);

// Writes the catalogue to `path` and its mass function beside it; without `expected` its column is 0. Throws Error
// where a file exists (unless `overwrite`) or cannot be written.
void write_group_files(const std::string& path, const GroupCatalogue& catalogue, const MassFunction* expected,
                       const Provenance& provenance, bool overwrite);

// "a/links_003.hdf5" for "a/groups_003.hdf5"; for other names "links_" is put in front.
std::string links_path(const std::string& catalogue);

// Links a catalogue with an earlier one, and writes links_path(later). Returns a sentence on the links. Throws Error as
// read_catalogue_groups(), link_catalogues() and write_merger_links() do, and where `earlier` is not the earlier one.
std::string link_group_files(const std::string& earlier, const std::string& later, bool overwrite);

// The catalogue of rank 0 at the site `place`, on rank 0 of each site (other ranks get an empty one); with one site each
// rank's own. Collective over all sites. Throws Error, the same on all ranks of a site, where the message is incomplete.
GroupCatalogue catalogue_from_site(sites::Sites& sites, int place, GroupCatalogue mine);

// "476 groups of 32 particles or more hold 87654 of 262144".
std::string summary_of(const GroupCatalogue& catalogue);

// Bytes that members_among() takes for each particle of the rank, with the members that are compared there.
inline constexpr double kMembersBytes = 3 * sizeof(std::uint64_t) + 2.125;

// For each of this rank's particles, whether its ID is in rank 0's `members`. IDs are compared on the rank that their
// hash gives, so that each rank compares its share of them. Collective.
std::vector<bool> members_among(const ParticleSource& particles, const std::vector<std::uint64_t>& members,
                                const Communicator& ranks);

}  // namespace maki
