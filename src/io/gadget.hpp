// Common parts of the readers and writers of GADGET's formats; only for src/io.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "host/comm/communicator.hpp"
#include "src/io/snapshot.hpp"
#include "src/io/snapshot_io.hpp"

namespace maki::gadget {

inline constexpr std::size_t kTypes = 6;

// The parts of a header that all ranks need, as plain bytes.
struct FileFacts {
  std::array<std::uint64_t, kTypes> counts{};  // in this file
  std::array<std::uint64_t, kTypes> totals{};  // in all files
  std::array<double, kTypes> mass_table{};     // 0: each particle has its own
  int files = 1;
  SnapshotHeader set;
  bool has_units = false, has_lambda = true;  // the file states units, OmegaLambda
  std::optional<bool> comoving;               // where the file says so
  bool states_time = true;                    // the file has a Time
  bool has_time = true;                       // the file states Time or Redshift; SWIFT's: Scale-factor or Redshift
  bool over_root_a = true;                    // velocities of a comoving set; SWIFT's are peculiar
  bool has_neutrinos = false;                 // massive ones, which its universe expands with
  bool light_cone = false;      // positions relative to an observer, each particle at its own time, in many images
  ParticleSelection selection;  // the part of a run's particles in a file of Maki
};

// The header of one file, which may be one of a set of files.
struct FileHeader : FileFacts {
  std::string format;
  std::string writer;                 // of HDF5 files: Header/Code, Git_commit and the like
  Provenance provenance;              // of Maki's own files
  std::vector<std::string> datasets;  // "PartType1/Coordinates  float64  262144 x 3, Mpc/h, comoving"
};

std::uint64_t sum(const std::array<std::uint64_t, kTypes>& counts);

// Reads one file's header. Throws Error where the file is missing, foreign or truncated.
FileHeader read_hdf5_header(const std::string& path);
FileHeader read_binary_header(const std::string& path);
// Recognises the format by content: HDF5, or a record of a label or a header in either byte order.
FileHeader read_header(const std::string& path);
bool looks_binary(const std::string& path);

// The provenance in /Maki of an HDF5 file; empty where there is none.
Provenance read_provenance(std::int64_t file);
// The facts that catalogues of groups state as snapshots do: time, box, cosmology, units, provenance. `file`: of HDF5,
// with a group Header.
void read_hdf5_facts(std::int64_t file, FileHeader& header);
// A line for each dataset of a group, in the form of FileHeader, with its unit or else its meaning; none without such a
// group.
std::vector<std::string> list_datasets(std::int64_t file, const std::string& group, const UnitSystem& units);

// Rows of one file that a rank reads.
struct Rows {
  std::uint64_t begin, end;  // in the file, over all types of particles
  std::uint64_t number;      // of the first row in the whole set
  std::size_t at;            // its index in the arrays of the share
};

// Reads rows of one file into the arrays, which have their full size. Velocities as the file has them.
void read_hdf5_particles(const std::string& path, const FileHeader& header, const Rows& rows, Snapshot& snapshot,
                         std::vector<std::string>& notes);
void read_binary_particles(const std::string& path, const FileHeader& header, const Rows& rows, Snapshot& snapshot);

// The files of a set and their headers, which have to agree. Rank 0 reads; all ranks get the headers, without names of
// datasets, writer and provenance. Collective. Throws the same Error on all ranks.
struct FileSet {
  std::vector<std::string> files;
  std::vector<FileHeader> headers;
};
FileSet read_set_headers(const std::string& path, const Communicator& ranks);

// The files of a set, from the name of one of them or their common base. Throws Error where one is missing.
std::vector<std::string> find_files(const std::string& path);
// Name of file `part` of `files`: "a.hdf5" -> "a.3.hdf5", "a" -> "a.3".
std::string part_name(const std::string& path, SnapshotFormat format, int part, int files);

// Decides by `known` what the header leaves open.
void complete_kind(FileHeader& header, const KnownOfSet& known, std::vector<std::string>& notes);
// Whether the header tells neither a scale factor nor that the set is isolated.
bool lacks_time(const FileHeader& header);
// The reason why a set is isolated; empty where it is comoving.
std::string why_isolated(const FileHeader& header);
// Decides whether the set is comoving and sets time and redshift accordingly; derives units that the file does not
// state from the mean density. `mass` is the total mass in file units.
void complete_header(FileHeader& header, double mass, std::vector<std::string>& notes);
// Mean density over omega0 rho_crit; 0 where there is no cosmology.
double mean_density_ratio(const SnapshotHeader& header, double mass);

// The 256 bytes at the start of GADGET's binary files, types 1 and 2. All data are in records with a 32-bit length
// before and after. Type 2 puts before each block a record of 8 bytes: a label of four letters and the length of the
// block. Records beyond 4 GiB keep the low 32 bits of their length, as in GADGET.
struct BinaryHeader {
  std::int32_t counts[6];
  double mass_table[6];
  double time, redshift;
  std::int32_t flag_sfr, flag_feedback;
  std::uint32_t totals_low[6];
  std::int32_t flag_cooling, files;
  double box_size, omega0, omega_lambda, hubble;
  std::int32_t flag_age, flag_metals;
  std::uint32_t totals_high[6];
  std::int32_t flag_entropy, flag_double;
  unsigned char unused[56];
};
static_assert(sizeof(BinaryHeader) == 256 && offsetof(BinaryHeader, box_size) == 128);

inline constexpr std::uint32_t kLabelBytes = 8;

// The header of GADGET-4 without GADGET2_HEADER, for N types (NTYPES), has 24 N + 48 bytes: the numbers of particles
// in this file and in all as 64-bit integers, MassTable, time, redshift and side of the box as doubles, the number of
// files as a 64-bit place for 32 bits, and two of merger trees. There is no cosmology in it.
constexpr std::size_t types_of_own_header(std::uint32_t bytes) {
  const bool fits = bytes >= 72 && bytes <= 24 * kTypes + 48 && bytes % 24 == 0;
  return fits ? (bytes - 48) / 24 : 0;
}
constexpr bool is_header_size(std::uint32_t bytes) {
  return bytes == sizeof(BinaryHeader) || types_of_own_header(bytes) > 0;
}

template <class T>
T byte_swapped(T value) {
  unsigned char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  std::reverse(bytes, bytes + sizeof(T));
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

inline void swap_header(BinaryHeader& h) {
  const auto swap = [](auto&... values) { ((values = byte_swapped(values)), ...); };
  for (int type = 0; type < 6; ++type) {
    swap(h.counts[type], h.mass_table[type], h.totals_low[type], h.totals_high[type]);
  }
  swap(h.time, h.redshift, h.flag_sfr, h.flag_feedback, h.flag_cooling, h.files, h.box_size, h.omega0, h.omega_lambda,
       h.hubble, h.flag_age, h.flag_metals, h.flag_entropy, h.flag_double);
}

}  // namespace maki::gadget
