// The groups of a snapshot: finding them, and their files: a catalogue in GADGET-4's layout, the mass function as text.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "host/comm/communicator.hpp"
#include "src/groups/properties.hpp"
#include "src/io/snapshot.hpp"
#include "src/simulation/frame.hpp"

namespace maki {

struct GroupCatalogue {
  SnapshotHeader header;         // of the snapshot
  double linking_length = 0.2;   // in mean distances between particles, side / N^(1/3)
  std::uint64_t minimum = 32;    // particles of a group
  std::uint64_t particles = 0;   // of the snapshot
  std::vector<FofGroup> groups;  // longest first; on rank 0
  // This rank's even share (share_of()) of the IDs of the members of one group after another, the most bound first.
  std::vector<std::uint64_t> member_ids;
  // Mean distance that particles of the least mass would have if they made up the box's mass, over that of the set's
  // particles: below 1 where masses differ, as in zooms. 1 also where most particles have the largest mass.
  double lightest_distance = 1;
  std::uint64_t members() const;  // of all groups; on rank 0
};

// Adjacent items of an array that ranks hold in even shares.
struct ArrayPart {
  std::uint64_t begin, size;
};
// Divides an array of `total` numbers into even shares (share_of()). `numbers`: the values of this rank's `parts`, one
// part after another. `share`, resized: this rank's share. Collective.
void put_in_shares(const Communicator& ranks, std::uint64_t total, const std::vector<ArrayPart>& parts,
                   std::span<const std::uint64_t> numbers, std::vector<std::uint64_t>& share);
// Takes all members to rank 0. Collective.
void gather_members(const Communicator& ranks, GroupCatalogue& catalogue);

// Changes header and groups to the units of files in a layout.
void set_file_units(GroupCatalogue& catalogue, FileLayout layout);

// HDF5, one file: /Header, /Config, /Parameters, /Units, /Constants, /Maki; /Group with a dataset for each property and
// a row for each group; /IDs/ID, where a group has GroupLen entries from GroupOffsetType[1] on. Names and number types
// are GADGET-4's where it has the property. Units are those of the snapshot and stated in attributes; GroupVel is the
// peculiar velocity times a, other velocities are peculiar. Each rank writes its members. Collective. Throws Error
// where the file exists (unless `overwrite`) or cannot be written, or where a group has 2^31 particles or more; then
// nothing is left behind.
void write_group_catalogue(const std::string& path, const GroupCatalogue& catalogue, const Provenance& provenance,
                           bool overwrite = false, const Communicator& ranks = Communicator::self());

// Columns log10(M), dn/dlnM, its Poisson error, the expected dn/dlnM, and the number of groups, for bins of 0.2 in
// log10(M) of Group_M_Mean200 (solar masses, over h where the units carry it); dn/dlnM in 1 / length unit^3, comoving.
// `expected(mass)`: dn/dlnM at a mass in mass units; the column is its mean over the bin, and 0 without one. Empty bins
// are left out. For rank 0. Throws Error as above.
void write_mass_function(const std::string& path, const GroupCatalogue& catalogue,
                         const std::function<double(double)>& expected, const Provenance& provenance,
                         bool overwrite = false);

// Options of group finding.
struct GroupOptions {
  double linking_length = 0.2;  // in mean distances between particles, side / N^(1/3)
  std::uint64_t minimum = 32;   // particles of a group, at least
};

// Softening of the potentials that define centres, in mean distances between particles.
inline constexpr double kCentreSoftening = 1.0 / 40;

// For estimates: bytes a particle during group finding, on the device (with the sorted copy of the particles) and on
// the host; and bytes a particle of all ranks on the first rank, for the rows of all groups and their links (one group
// for 200 particles).
inline constexpr double kGroupDeviceBytes = 110, kGroupHostBytes = 300, kGroupRowBytes = 3;

// Friends-of-friends groups of all ranks' particles in a periodic box. Moves particles to the ranks of compact domains,
// and sorts them. Collective; the catalogue has the same bits for any number of threads and ranks. Throws Error where
// the set has no periodic box, no h, no matter density (header.omega0), or a mean density of twice that or more, or
// where the linking length is half a side or more.
GroupCatalogue find_groups(const Stream& stream, const Communicator& ranks, Particles& particles, const Frame& frame,
                           const SnapshotHeader& header, const GroupOptions& options);

}  // namespace maki
