// What the readers and writers of GADGET's formats share. Nothing outside src/io needs this.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/io/safe_file.hpp"
#include "src/io/snapshot.hpp"
#include "src/io/snapshot_io.hpp"

namespace maki::gadget {

inline constexpr std::size_t kTypes = 6;
inline constexpr std::size_t kSlabRows = std::size_t{1} << 20;  // rows converted at a time

// The header of one file, before it is known whether others belong to it.
struct FileHeader {
  std::array<std::uint64_t, kTypes> counts{};   // in this file
  std::array<std::uint64_t, kTypes> totals{};   // in all files
  std::array<double, kTypes> mass_table{};      // 0: each particle has its own
  int files = 1;
  SnapshotHeader set;
  bool has_units = false;
  std::optional<bool> comoving;                 // where the file says so
  std::string format;
  std::string writer;                           // of HDF5 files: Header/Code, Git_commit and the like
  Provenance provenance;                        // of Maki's own files
  std::vector<std::string> datasets;            // "PartType1/Coordinates  float64  262144 x 3"
};

std::uint64_t sum(const std::array<std::uint64_t, kTypes>& counts);

// Reads one file's header. Throws Error where the file is missing, foreign or truncated.
FileHeader read_hdf5_header(const std::string& path);
FileHeader read_binary_header(const std::string& path);
// By content: HDF5, or a record of 256 or 8 bytes in either byte order.
FileHeader read_header(const std::string& path);
bool looks_binary(const std::string& path);

// Appends one file's particles at index `first`; arrays have their full size. Velocities as the file has them.
void read_hdf5_particles(const std::string& path, const FileHeader& header, Snapshot& snapshot, std::size_t first,
                         std::vector<std::string>& notes);
void read_binary_particles(const std::string& path, const FileHeader& header, Snapshot& snapshot, std::size_t first);

// The files of a set, from the name of one of them or their common base. Throws Error where one is missing.
std::vector<std::string> find_files(const std::string& path);
// Name of file `part` of `files`: "a.hdf5" -> "a.3.hdf5", "a" -> "a.3".
std::string part_name(const std::string& path, SnapshotFormat format, int part, int files);

// Decides whether the set is comoving and sets time and redshift to match; makes up units that the file does not
// state from the mean density. `mass` is the total mass in file units.
void complete_header(FileHeader& header, double mass, std::vector<std::string>& notes);
// Mean density over omega0 rho_crit; 0 where there is no cosmology.
double mean_density_ratio(const SnapshotHeader& header, double mass);

// ---- writing --------------------------------------------------------------------------------------------------------

// The part [first, first + count) of a set, and the numbers that turn it into file units.
struct Part {
  const Snapshot& snapshot;
  std::size_t first, count;
  int files;
  SnapshotHeader header;        // as written: h-units where comoving
  double length_factor = 1, mass_factor = 1, velocity_factor = 1;
  double equal_mass = 0;        // file units; 0 where masses differ
  bool wide_ids = false;
};

// Particle `i` of the part in file units. A coordinate that would round to the box side becomes 0.
template <class T> T coordinate(const Part& part, std::size_t i, std::size_t axis) {
  const T x = static_cast<T>(part.snapshot.positions[part.first + i][axis] * part.length_factor);
  return part.header.comoving && x >= static_cast<T>(part.header.box_size) ? T(0) : x;
}
template <class T> T velocity(const Part& part, std::size_t i, std::size_t axis) {
  return static_cast<T>(part.snapshot.velocities[part.first + i][axis] * part.velocity_factor);
}
template <class T> T mass(const Part& part, std::size_t i) {
  return static_cast<T>(part.snapshot.masses[part.first + i] * part.mass_factor);
}

// Writes one file under its temporary name. The caller commits it.
void write_hdf5_file(const SafeFile& file, const Part& part, const Provenance& provenance, const WriteOptions& options,
                     const std::vector<ExtraDataset>& extras);
void write_binary_file(SafeFile& file, const Part& part, const WriteOptions& options);

}  // namespace maki::gadget
