// Common parts of the writers of GADGET's formats. Every rank writes its own rows, at offsets that all ranks know.
//
// Parallel HDF5 over MPI-IO is not used: with HDF5 1.10.8 on Open MPI 4.1, with either of its MPI-IO layers, a full
// disk leaves the job hanging, and collective writes report success for bytes that never arrived. Instead rank 0 makes
// the file with HDF5, all ranks write their numbers at the addresses that HDF5 has allocated, and the result of every
// call is checked.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/comm/communicator.hpp"
#include "src/io/hdf5_file.hpp"
#include "src/io/safe_file.hpp"
#include "src/io/snapshot.hpp"
#include "src/io/snapshot_io.hpp"

namespace maki::gadget {

// A file under its temporary name, for all ranks; the caller commits it.
struct FileName {
  std::string path, temporary;
};

// The contents of one file, this rank's rows of it, and the conversion to file units.
struct Part {
  const ParticleSource& particles;  // this rank's share
  // Indices, within the share, of the particles to write; null: all.
  std::shared_ptr<const std::vector<std::size_t>> chosen = {};
  Communicator ranks;
  std::vector<std::uint64_t> begins;  // rank r has the rows [begins[r], begins[r + 1]) of the file
  std::size_t first = 0;              // the first of this rank's rows among all that it writes
  std::uint64_t total = 0;            // rows of the whole set, in all files
  int files = 1, number = 0;          // of the set, and of this one
  WriteOptions options = {};          // with the number of the run's particles, where only some are written
  SnapshotHeader header;              // as written: h-units where comoving, except in SWIFT's layout
  double length_factor = 1, mass_factor = 1, velocity_factor = 1;
  double equal_mass = 0;  // file units; 0 where masses differ
  bool wide_ids = false;
  std::optional<int> decimals = {};  // of coordinates with fixed point; none: in floating point

  std::uint64_t rows() const { return begins.back(); }
  std::uint64_t begin() const { return begins[static_cast<std::size_t>(ranks.rank())]; }
  std::uint64_t end() const { return begins[static_cast<std::size_t>(ranks.rank()) + 1]; }
  std::uint64_t count() const { return end() - begin(); }
  // Index in the share of this rank's row `i` of the part.
  std::size_t at(std::size_t i) const { return chosen ? (*chosen)[first + i] : first + i; }
};

// This rank's particle `i` of the part, in file units. A coordinate that would round to the box side becomes 0.
template <class T>
T coordinate(const Part& part, std::size_t i, std::size_t axis) {
  const T x = static_cast<T>(part.particles.position(part.at(i), axis) * part.length_factor);
  return !part.options.replicas && part.header.comoving && x >= static_cast<T>(part.header.box_size) ? T(0) : x;
}
template <class T>
T velocity(const Part& part, std::size_t i, std::size_t axis) {
  return static_cast<T>(part.particles.velocity(part.at(i), axis) * part.velocity_factor);
}
template <class T>
T mass(const Part& part, std::size_t i) {
  return static_cast<T>(part.particles.mass(part.at(i)) * part.mass_factor);
}
template <class T>
T id(const Part& part, std::size_t i) {
  return static_cast<T>(part.particles.id(part.at(i)));
}

// Writes this rank's rows to their places in a block of rows that begins at `address`.
inline void write_in_place(PositionedFile& file, const Part& part, const RowSource& source, std::uint64_t address) {
  write_rows_at(file, source, part.count(), address + part.begin() * source.row_bytes());
}

// Writes one file. Collective; throws the same Error on all ranks.
void write_binary_file(const FileName& name, const Part& part);

// Metadata of Maki's HDF5 files, so that any reader finds units and origin: the attributes of GADGET-4 (a_scaling ...
// to_cgs), of GADGET-3 as in EAGLE (VarDescription ... CGSConversionFactor), and SWIFT's /Units. yt takes units from a
// file only where it also finds GADGET-3's /Constants and Header/Time_GYR.

inline constexpr double kSecondsPerGyr = 3.15576e16;
// Age of the universe at a header's scale factor, or the time of an isolated set.
double time_gyr(const SnapshotHeader& header);

// SWIFT's attribute of /Header: the fraction of the particles of each type in a file.
inline constexpr const char* kSubsetFractions = "SubSampleFractions";

// Attributes of /Header and /Parameters: box, cosmology, time in Gyr.
void write_cosmology(hid_t group, const SnapshotHeader& header);

// The groups /Parameters, /Units, /Constants, and /Maki with the provenance.
void write_metadata(hid_t file, const SnapshotHeader& header, const Provenance& provenance);
// /Maki alone.
void write_provenance(hid_t file, const Provenance& provenance);

// Exponents and factor by which a dataset's numbers become physical cgs: value * to_cgs * a^a h^h, to_cgs = length^l
// mass^m velocity^v.
struct Scaling {
  const char* description;
  double a, h, length, mass, velocity;
};
double to_cgs(const Scaling& scaling, const UnitSystem& units);

void write_scaling(hid_t dataset, const Scaling& scaling, const UnitSystem& units);
// The attributes of write_scaling() in SWIFT's layout.
void write_swift_scaling(hid_t dataset, const Scaling& scaling, const SnapshotHeader& header);

// All groups of a file except the particles, in its layout.
void write_groups(hid_t file, const Part& part, const Provenance& provenance);

}  // namespace maki::gadget
