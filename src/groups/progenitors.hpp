// Links of a merger tree: between the groups of two catalogues of the same particles at different times.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "host/comm/communicator.hpp"
#include "src/groups/properties.hpp"
#include "src/io/snapshot.hpp"

namespace maki {

// The parts of a catalogue (write_group_catalogue()) that links and branches need. Units are those of its snapshot,
// lengths comoving.
struct CatalogueGroups {
  std::string name;  // of the file
  double redshift = 0;
  double box_size = 0;                      // Mpc/h
  std::uint64_t particles = 0;              // of the snapshot, members or not; 0: not known
  std::vector<std::uint64_t> begins = {0};  // of each group's members among all; one entry more than groups
  struct Row {
    float mass = 0, mass_mean200 = 0, v_max = 0;
    std::array<float, 3> position{};
  };
  std::vector<Row> rows;           // by group
  std::vector<std::uint64_t> ids;  // of members, the most bound first: this rank's even share; all else is on rank 0
  Provenance provenance = {};
  std::size_t size() const { return rows.size(); }
  std::uint64_t length(std::size_t group) const { return begins[group + 1] - begins[group]; }
};
// Collective. Throws Error where the file is no catalogue or is damaged.
CatalogueGroups read_catalogue_groups(const std::string& path, const Communicator& ranks = Communicator::self());
// For rank 0. Throws Error where `later` is not the later one.
void require_order(const CatalogueGroups& earlier, const CatalogueGroups& later);

// A group and one of its progenitors, with some particles in both. The most bound members of a progenitor define its
// descendant: the i-th most bound member, from 0, has the weight 1 / (1 + i)^(2/3) (Springel et al. 2021, MNRAS 506,
// 2871, section 7.4).
struct ProgenitorLink {
  std::uint64_t group, progenitor;  // rows of the later and of the earlier catalogue
  std::uint64_t shared;             // particles
  double weight;                    // of the shared particles in the progenitor, over that of all its members
  double weight_in_group;           // the same in the later group
};

inline constexpr std::int64_t kNoGroup = -1;
struct MergerLinks {
  std::vector<ProgenitorLink> links;          // sorted by group, then by weight_in_group, the largest first
  std::vector<std::uint64_t> begins;          // of each later group's links; one entry more than groups
  std::vector<std::int64_t> main_progenitor;  // by later group: the first linked progenitor whose descendant it is
  std::vector<std::int64_t> descendant;       // by earlier group: the later group with its largest weight
};
// The links, on rank 0, with the same bits for any number of ranks. Members are compared on the ranks that hashes of
// their IDs give; the shared ones are then collected on the ranks of their earlier groups. Of equal weights the lesser
// row wins. Collective. Throws Error where an ID is twice in the later catalogue, or where boxes or numbers of
// particles differ.
MergerLinks link_catalogues(const CatalogueGroups& earlier, const CatalogueGroups& later,
                            const Communicator& ranks = Communicator::self());

// HDF5: /Header (names, redshifts, numbers of groups), /Progenitors (a row for each link), /Group (by later group:
// FirstProgenitor, ProgenitorCount, MainProgenitor), /PreviousGroup (by earlier group: Descendant) and /Maki, the
// provenance of the later catalogue. Throws Error where the file exists (unless `overwrite`) or cannot be written; then
// nothing is left behind.
void write_merger_links(const std::string& path, const MergerLinks& links, const CatalogueGroups& earlier,
                        const CatalogueGroups& later, bool overwrite = false);

}  // namespace maki
