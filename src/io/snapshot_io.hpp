// Reading, checking and writing particle sets: GADGET's HDF5 layout (as GADGET-2, 3 and 4 write it) and its binary
// types 1 and 2.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "host/comm/communicator.hpp"
#include "src/io/snapshot.hpp"
#include "wan/sites/sites.hpp"

namespace maki {

// "hdf5", "gadget1" or "gadget2"; throws Error for anything else.
SnapshotFormat snapshot_format(const std::string& name);

// An additional number or vector for each particle, HDF5 only, in the units of the snapshot. The exponents convert a
// value of the file to physical cgs: value * to_cgs * a^a_scaling * h^h_scaling, to_cgs = length^l mass^m velocity^v.
struct ExtraDataset {
  std::string name;
  std::string description;
  std::size_t components = 1;  // 1 or 3
  std::vector<double> values;  // particles x components
  double a_scaling = 0, h_scaling = 0, length_scaling = 0, mass_scaling = 0, velocity_scaling = 0;
  double gravitational_constant = 0;  // attribute "G" where not 0
  bool double_precision = false;
};

// Datasets of `maki forces`: minus the gradient of Phi, with laplace Phi = 4 pi G (rho - mean rho) in comoving
// coordinates without a factor of a, in velocity unit^2 / length unit; and Phi, in velocity unit^2.
ExtraDataset acceleration_dataset(const std::vector<std::array<double, 3>>& acceleration, const SnapshotHeader& header);
ExtraDataset potential_dataset(const std::vector<double>& potential, const SnapshotHeader& header);

// Writes all particles as type 1, with velocities v_pec / sqrt(a) and lengths and masses over h where the set is
// comoving (except in SWIFT's layout). Files get their names only when all are complete. Returns their names.
// Collective: every rank passes its share, with extras for it; all other arguments are the same. The files hold the
// shares in the order of ranks, as if one rank had written the whole: with the same bytes without deflate, else with
// the same numbers (the order of compressed pieces may differ). Throws Error, the same on all ranks, and then leaves
// nothing behind, save files of a set of several that had got their names before.
// Over several sites each writes its own file of one set, name.<place in the ring>.hdf5, whose header counts all sites'
// particles; the sites agree on the counts beforehand (Phase::kOutput). Then options.files has to be 1.
std::vector<std::string> write_snapshot(const std::string& path, const Snapshot& snapshot, const Provenance& provenance,
                                        const WriteOptions& options = {}, const std::vector<ExtraDataset>& extras = {},
                                        const RunPlace& writers = {});

// The names that the files of a set may have: fewer where it has fewer particles than files.
std::vector<std::string> file_names(const std::string& path, const WriteOptions& options);

// Findings during reading, for the log.
struct ReadReport {
  std::string format;  // "GADGET HDF5", "GADGET binary type 2, big endian"
  std::vector<std::string> files;
  std::array<std::uint64_t, 6> counts{};  // particles of each type
  ParticleSelection selection;            // which part, where a run of Maki wrote only some particles
  double mass = 0;                        // of all particles
  bool has_units = false;                 // stated by the file
  std::string why_isolated;               // why the set is isolated; empty where it is comoving
  bool lacks_time = false;                // it might be comoving: the header tells no scale factor
  double mean_density_ratio = 0;          // mean density over omega0 rho_crit; 0 where there is no cosmology
  std::vector<std::string> notes;         // sentences on assumptions, wrapped positions and oddities
};

// Facts about a set from elsewhere, which decide where the header leaves them open.
struct KnownOfSet {
  // The set is isolated although its header also fits a comoving box of today (Time = 1, as GADGET-2 writes of both).
  bool isolated = false;
  // Where the header gives no scale factor: Time is not 1 / (1 + Redshift), or neither is there.
  std::optional<double> redshift;
};

// Reads a set of any format, all particle types as one set. `path` is a file, any file of a multi-file set, or its
// name without ".0.hdf5", ".hdf5" or ".0". Velocities are returned as peculiar ones. Units that the file does not state
// are derived from the mean density, kpc/h or Mpc/h. The set is checked (check_snapshot()). Collective: rank r of P
// gets the rows [N r / P, N (r + 1) / P); header and report are the same on all. Throws Error, the same on all ranks.
Snapshot read_snapshot(const std::string& path, ReadReport* report = nullptr,
                       const Communicator& ranks = Communicator::self(), const KnownOfSet& known = {});

// Chooses kpc/h or Mpc/h for a comoving set of this mass whose file states no units: the one with which the mean
// density is about that of header.omega0, Mpc/h where that is 0. Returns a note about it.
std::string choose_length_unit(SnapshotHeader& header, double mass);

// The mass of all ranks' shares, with the same bits for any number of ranks. Collective.
double total_mass(const Snapshot& share, const Communicator& ranks);

// A note, or a warning, where the mean density is not that of omega0; empty where it is, or where there is no
// cosmology.
std::string density_note(const SnapshotHeader& header, double mass);
// Throws Error where the mean density differs from that of omega0 by more than a tenth.
void require_density(const SnapshotHeader& header, double mass);

// "it holds 20971 of the 2097152 particles of its run: a fraction of 0.01 by their IDs"; empty where the set is whole.
std::string text_of(const ParticleSelection& selection, std::uint64_t particles);

// The number of particles that read_snapshot() would return, from the headers only, which rank 0 reads. Collective.
// Throws Error, the same on all ranks.
std::uint64_t count_particles(const std::string& path, const Communicator& ranks = Communicator::self());

// The units of a set that states its own, from the headers only. Collective. Throws Error, the same on all ranks.
std::optional<UnitSystem> stated_units(const std::string& path, const KnownOfSet& known, const Communicator& ranks);

// A dataset of /PartType1 in one HDF5 file, flattened. Throws Error where it is missing.
std::vector<double> read_extra_dataset(const std::string& path, const std::string& name);

// The configuration in a snapshot of Maki, as TOML; empty for other files. Throws Error.
std::string read_configuration(const std::string& path);

// The lines of `maki info`: of snapshots header, particles, units, cosmology and provenance; of catalogues of groups,
// their links, maps, pictures and tables the contents, and the run. Throws Error, also for restarts and other text.
std::vector<std::string> describe_file(const std::string& path);

// ---- checks ---------------------------------------------------------------------------------------------------------

// Checks the arrays of `snapshot`, which came from `source` (named in messages), in this order: at least one particle,
// finite positions and velocities, finite positive masses, positions inside the box; only noted are particles at one
// point (after rounding to 2^-32 of the box) and ids that several particles have. Positions outside of a periodic box
// are wrapped, unless they are so many or so far outside that the box must be wrong. An isolated set that does not fit
// into its box loses the box. Throws Error that names the first bad particle; adds sentences about repairs, and
// warnings, to `notes`. Collective: each rank passes its share of the whole set; results and messages are those of one
// rank with the whole set.
void check_snapshot(Snapshot& snapshot, const std::string& source, std::vector<std::string>& notes,
                    const Communicator& ranks = Communicator::self());

// Throws Error where the file holds only a part of a run's particles. `what`, such as "a run cannot begin with", begins
// the message.
void require_whole(const std::string& what, const std::string& file, const ReadReport& report);

// The least and the largest coordinates of a set; infinities where it is empty. Collective.
struct Extent {
  std::array<double, 3> low, high;
};
Extent extent_of(const Snapshot& share, const Communicator& ranks);

}  // namespace maki
