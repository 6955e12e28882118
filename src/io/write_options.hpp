// Options of snapshots: formats, layouts, number types and fields.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace maki {

enum class SnapshotFormat { kGadgetHdf5, kGadgetBinary1, kGadgetBinary2 };

// Layout of HDF5 files. GADGET-4's: units over h, velocities over the root of a, the scale factor as Time. SWIFT's: no
// h, peculiar velocities, arrays of one number as attributes, as swiftsimio requires.
enum class FileLayout { kGadget4, kSwift };

// Numbers of a coordinate in a file. kFixed32 (HDF5 alone): whole multiples of a power of ten below 2^-31 of the box,
// by HDF5's own scale-offset filter, so that every reader sees doubles (scale_offset_decimals()).
enum class CoordinateNumbers { kDouble, kFloat, kFixed32 };
// kHalf (HDF5 alone): IEEE's 16 bits, up to 65504.
enum class VelocityNumbers { kFloat, kHalf };

// Fields of a particle, by their names in files.
inline constexpr std::array<const char*, 4> kFieldNames = {"Coordinates", "Velocities", "Masses", "ParticleIDs"};
inline std::vector<std::string> all_fields() { return {kFieldNames.begin(), kFieldNames.end()}; }

// The part of a run's particles that a file holds.
struct ParticleSelection {
  double fraction = 1;             // of all, chosen by the hash of their IDs (in_subset())
  bool in_groups = false;          // only members of friends-of-friends groups
  std::uint64_t of_particles = 0;  // of the run; 0 where the file has all
  bool is_whole() const { return fraction >= 1 && !in_groups; }
};

// Numbers in the header of an HDF5 file, beside those of every snapshot.
struct HeaderNumbers {
  std::string name;
  std::vector<double> values;  // one is written as a scalar
};

struct WriteOptions {
  SnapshotFormat format = SnapshotFormat::kGadgetHdf5;
  int files = 1;  // more than one: name.0.hdf5, name.1.hdf5, ... or name.0, name.1, ...
  CoordinateNumbers coordinates =
      CoordinateNumbers::kDouble;  // binary types: velocities and masses follow, as GADGET wants
  VelocityNumbers velocities = VelocityNumbers::kFloat;
  std::vector<std::string> fields = all_fields();  // HDF5; binary types have all
  FileLayout layout = FileLayout::kGadget4;        // of HDF5
  ParticleSelection selection = {};                // which part of the particles, for HDF5's headers
  int deflate = 0;                                 // HDF5: 1 to 9 shuffle and compress
  int id_bits = 0;                                 // 32, 64, or 0: 32 where all fit
  bool big_endian = false;                         // binary types
  bool overwrite = false;
  bool replicas = false;  // coordinates may lie outside of the box, and stay there
  std::vector<HeaderNumbers> header = {};

  bool has(const char* field) const { return std::find(fields.begin(), fields.end(), field) != fields.end(); }
};

}  // namespace maki
