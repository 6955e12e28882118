// Reading and writing particle sets: GADGET's HDF5 layout (as GADGET-2, 3 and 4 write it) and its binary types 1 and 2.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "host/comm/communicator.hpp"
#include "src/io/snapshot.hpp"

namespace maki::sites {
class Sites;
}

namespace maki {

enum class SnapshotFormat { kGadgetHdf5, kGadgetBinary1, kGadgetBinary2 };

// "hdf5", "gadget1" or "gadget2"; throws Error for anything else.
SnapshotFormat snapshot_format(const std::string& name);

// One more number or vector for each particle, HDF5 only, in the units of the snapshot. The exponents say how a value
// of the file becomes physical cgs: value * to_cgs * a^a_scaling * h^h_scaling, to_cgs = length^l mass^m velocity^v.
struct ExtraDataset {
  std::string name;
  std::string description;
  std::size_t components = 1;  // 1 or 3
  std::vector<double> values;  // particles x components
  double a_scaling = 0, h_scaling = 0, length_scaling = 0, mass_scaling = 0, velocity_scaling = 0;
  double gravitational_constant = 0;  // attribute "G" where not 0
  bool double_precision = false;
};

// What `maki forces` writes: minus the gradient of Phi, laplace Phi = 4 pi G (rho - mean rho) in comoving coordinates
// without a factor of a, in velocity unit^2 / length unit; and Phi, in velocity unit^2.
ExtraDataset acceleration_dataset(const std::vector<std::array<double, 3>>& acceleration, const SnapshotHeader& header);
ExtraDataset potential_dataset(const std::vector<double>& potential, const SnapshotHeader& header);

// Numbers in the header of an HDF5 file, beside those of every snapshot.
struct HeaderNumbers {
  std::string name;
  std::vector<double> values;  // one is written as a scalar
};

struct WriteOptions {
  SnapshotFormat format = SnapshotFormat::kGadgetHdf5;
  int files = 1;                   // more than one: name.0.hdf5, name.1.hdf5, ... or name.0, name.1, ...
  bool double_coordinates = true;  // binary types: velocities and masses follow, as GADGET wants them
  int deflate = 0;                 // HDF5: 1 to 9 shuffle and compress
  int id_bits = 0;                 // 32, 64, or 0: 32 where all fit
  bool big_endian = false;         // binary types
  bool overwrite = false;
  bool replicas = false;  // coordinates may lie outside of the box, and stay there
  std::vector<HeaderNumbers> header = {};
};

// Who writes a snapshot: the ranks of this site, and all sites where there are several.
struct SnapshotWriters {
  SnapshotWriters(const Communicator& of = Communicator::self(), sites::Sites* all = nullptr) : ranks(of), sites(all) {}
  Communicator ranks;
  sites::Sites* sites;  // null: this is the only one
};

// Writes all particles as type 1, with velocities v_pec / sqrt(a) and lengths and masses over h where the set is
// comoving. Files get their names only when all are complete. Returns their names.
// Collective: every rank gives its share, with extras for it, and the same of everything else. The files hold the
// shares in the order of ranks, as if one rank had written the whole: byte by byte without deflate, else number by
// number (the compressed pieces may come in another order). Throws Error, the same on all ranks, and then leaves
// nothing behind.
// Over several sites each writes its own file of one set, name.<place in the ring>.hdf5, whose header tells of all
// sites' particles; the sites agree on that beforehand (Phase::kOutput). Then options.files has to be 1.
std::vector<std::string> write_snapshot(const std::string& path, const Snapshot& snapshot, const Provenance& provenance,
                                        const WriteOptions& options = {}, const std::vector<ExtraDataset>& extras = {},
                                        const SnapshotWriters& writers = {});

// What was found on the way, for the log.
struct ReadReport {
  std::string format;  // "GADGET HDF5", "GADGET binary type 2, big endian"
  std::vector<std::string> files;
  std::array<std::uint64_t, 6> counts{};  // particles of each type
  double mean_density_ratio = 0;          // mean density over omega0 rho_crit; 0 where there is no cosmology
  std::vector<std::string> notes;         // sentences: what was assumed, wrapped or looks odd
};

// Reads a set of any format, all particle types as one set. `path` is a file, any file of a multi-file set, or its
// name without ".0.hdf5", ".hdf5" or ".0". Velocities come back peculiar. Units that the file does not state are
// found from the mean density, kpc/h or Mpc/h. The set is checked (check_snapshot.hpp).
// Collective: rank r of P gets the rows [N r / P, N (r + 1) / P); header and report are alike on all. Throws Error, the
// same on all ranks.
Snapshot read_snapshot(const std::string& path, ReadReport* report = nullptr,
                       const Communicator& ranks = Communicator::self());

// How many particles read_snapshot() would find, from the headers alone, which rank 0 reads. Collective. Throws
// Error, the same on all ranks.
std::uint64_t count_particles(const std::string& path, const Communicator& ranks = Communicator::self());

// A dataset of /PartType1 in one HDF5 file, flattened. Throws Error where it is missing.
std::vector<double> read_extra_dataset(const std::string& path, const std::string& name);

// The configuration that a snapshot of Maki holds, as TOML; empty for others. Throws Error.
std::string read_configuration(const std::string& path);

// What `maki info` prints: lines about header, particles, units, cosmology and provenance. Throws Error.
std::vector<std::string> describe_file(const std::string& path);

}  // namespace maki
