// A set of particles at one time, on the host, as initial conditions and files give it.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "host/comm/communicator.hpp"

namespace maki {

// CODATA 2018, cm^3 g^-1 s^-2. GADGET uses 6.6738e-8: at the same Omega0 and box its files hold masses that are
// 7.5e-5 larger than ours, which changes growth by far less than any tolerance here. The default mass unit is the
// IAU 2015 nominal GM_sun divided by this value. GravityConstantInternal of a file overrides this value.
inline constexpr double kNewtonCgs = 6.67430e-8;
inline constexpr double kSolarMassCgs = 1.988409870698051e33;
inline constexpr double kMpcCgs = 3.085677581491367e24;

// Units of numbers in memory and in files, in cgs. Cosmological files have 1/h in length and mass.
struct UnitSystem {
  double length_cgs = kMpcCgs;             // (/h)
  double mass_cgs = 1e10 * kSolarMassCgs;  // (/h)
  double velocity_cgs = 1e5;               // km/s
  bool with_h = true;                      // length and mass carry 1/h

  // Newton's constant in these units: 43.0 for Mpc, 1e10 Msun, km/s. h drops out.
  double gravitational_constant() const { return kNewtonCgs * mass_cgs / (length_cgs * velocity_cgs * velocity_cgs); }
  bool operator==(const UnitSystem&) const = default;
};

// A homogeneous universe: matter, dark energy, radiation, and curvature that takes the rest. Densities are today's, in
// units of the critical one. Dark energy has the pressure w = w0 + wa (1 - a) times its density (Chevallier & Polarski
// 2001, IJMPD 10, 213; Linder 2003, PRL 90, 091301); with -1 and 0 it is a cosmological constant.
struct Background {
  double omega0 = 0.308;         // all matter
  double omega_lambda = 0.692;   // dark energy
  double omega_baryon = 0.0482;  // part of omega0; only the shape of the power spectrum reads it; 0 where unknown
  double hubble = 0.678;         // h, H0 = 100 h km/s/Mpc
  double omega_radiation = 0;    // photons and massless neutrinos; they do not cluster
  double w0 = -1, wa = 0;

  bool operator==(const Background&) const = default;
  double omega_curvature() const { return 1 - omega0 - omega_lambda - omega_radiation; }
  // Density of dark energy over that of today.
  double dark_energy(double a) const { return std::pow(a, -3 * (1 + w0 + wa)) * std::exp(-3 * wa * (1 - a)); }
  double pressure_ratio(double a) const { return w0 + wa * (1 - a); }  // w(a)
  // E(a) = H(a)/H0, and its square, which is negative where the universe does not expand.
  double expansion_squared(double a) const {
    return ((omega_radiation / a + omega0) / a + omega_curvature()) / (a * a) + omega_lambda * dark_energy(a);
  }
  double expansion(double a) const { return std::sqrt(expansion_squared(a)); }
  // ", omega_radiation 9.1e-05, w0 -0.9, wa 0.1": what there is beside matter, Lambda and curvature.
  std::string beyond_lambda() const;
};

struct SnapshotHeader : Background {
  // Without a cosmology.
  SnapshotHeader() : Background{.omega0 = 0, .omega_lambda = 0, .omega_baryon = 0, .hubble = 0} {}

  bool comoving = true;               // false: isolated system, a = 1, `time` is the time in length/velocity units
  double time = 1;                    // scale factor where comoving
  double redshift = 0;                // 1/time - 1 where comoving, else 0
  double box_size = 0;                // length units; 0 for an isolated set without a box
  double gravitational_constant = 0;  // 0: from the units; isolated model sets use 1
  UnitSystem units;

  bool operator==(const SnapshotHeader&) const = default;
  double newton() const { return gravitational_constant > 0 ? gravitational_constant : units.gravitational_constant(); }
};

// Arrays of one length; positions in length units (comoving; inside [0, box_size) where there is a box), velocities are
// peculiar velocities a dx/dt in velocity units, masses in mass units.
//
// Over ranks, each rank holds a share of a set, which may be empty; the shares in the order of ranks are the whole,
// with the same header. Files and initial conditions are divided evenly (share_of).
struct Snapshot {
  static constexpr double kBytes = 3 * sizeof(double) + 4 * sizeof(float) + sizeof(std::uint64_t);  // a particle

  SnapshotHeader header;
  std::vector<std::array<double, 3>> positions;
  std::vector<std::array<float, 3>> velocities;
  std::vector<float> masses;
  std::vector<std::uint64_t> ids;
  std::size_t size() const { return positions.size(); }
  void resize(std::size_t n) {
    positions.resize(n);
    velocities.resize(n);
    masses.resize(n);
    ids.resize(n);
  }
  // Adds a particle of another set.
  void append(const Snapshot& from, std::size_t i) {
    positions.push_back(from.positions[i]);
    velocities.push_back(from.velocities[i]);
    masses.push_back(from.masses[i]);
    ids.push_back(from.ids[i]);
  }
};

// Errors of forces against exact sums, on a sample of a set's particles.
struct ForceError {
  double rms = 0;            // rms difference over the rms force
  double median = 0;         // of the differences relative to each particle's force
  double percentile_99 = 0;  // of the same
  std::uint64_t targets = 0;
};
// "0.00042 of the rms force; relative to each particle's force 0.0002 (median), 0.0021 (99 %); 512 particles"
std::string text_of(const ForceError& error);

// Text in every output file that describes its origin.
struct Provenance {
  std::string configuration;  // the resolved configuration, as TOML
  std::string version;        // "Maki 0.1.0"
  std::string git_hash;
  std::string compiler;
  std::string device;
  std::optional<ForceError> force_error = {};  // where a run measured it at this output
};

// Access of writers to a rank's share of a set, in the numbers of a Snapshot, independent of its storage. One thread
// reads it while others compute; it must not change.
class ParticleSource {
 public:
  virtual ~ParticleSource() = default;
  virtual const SnapshotHeader& header() const = 0;
  virtual std::size_t size() const = 0;
  virtual double position(std::size_t i, std::size_t axis) const = 0;
  virtual float velocity(std::size_t i, std::size_t axis) const = 0;
  virtual float mass(std::size_t i) const = 0;
  virtual std::uint64_t id(std::size_t i) const = 0;
};

// A Snapshot, which has to outlive it.
class SnapshotSource : public ParticleSource {
 public:
  explicit SnapshotSource(const Snapshot& set) : set_(set) {}
  const SnapshotHeader& header() const override { return set_.header; }
  std::size_t size() const override { return set_.size(); }
  double position(std::size_t i, std::size_t axis) const override { return set_.positions[i][axis]; }
  float velocity(std::size_t i, std::size_t axis) const override { return set_.velocities[i][axis]; }
  float mass(std::size_t i) const override { return set_.masses[i]; }
  std::uint64_t id(std::size_t i) const override { return set_.ids[i]; }

 private:
  const Snapshot& set_;
};

// Whether a particle belongs to the subset of this fraction: XXH3 (64 bits) of the eight little-endian bytes of its ID
// is below fraction 2^64. Subsets are the same at all times, and each larger subset contains the smaller ones.
bool in_subset(std::uint64_t id, double fraction);

// ---- files ----------------------------------------------------------------------------------------------------------

enum class SnapshotFormat { kGadgetHdf5, kGadgetBinary1, kGadgetBinary2 };

// Layout of HDF5 files. GADGET-4's: units over h, velocities over the root of a, the scale factor as Time. SWIFT's: no
// h, peculiar velocities, arrays of one number as attributes, as swiftsimio requires.
enum class FileLayout { kGadget4, kSwift };

// Number format of coordinates in a file. kFixed32 (HDF5 alone): whole multiples of a power of ten, at most 2^-31 of
// the box, by HDF5's own scale-offset filter, so that every reader sees doubles (fixed_decimals(),
// snapshot_writer.cpp).
enum class CoordinateNumbers { kDouble, kFloat, kFixed32 };
// Number format of velocities. kHalf (HDF5 alone): IEEE's 16 bits, up to 65504.
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
  int files = 1;  // more than one: name.0.hdf5, name.1.hdf5, ... or name.0, name.1, ...; fewer for fewer particles
  CoordinateNumbers coordinates = CoordinateNumbers::kDouble;  // in binary types also of velocities and masses
  VelocityNumbers velocities = VelocityNumbers::kFloat;
  std::vector<std::string> fields = all_fields();  // HDF5; binary types have all
  FileLayout layout = FileLayout::kGadget4;        // of HDF5
  ParticleSelection selection = {};                // which part of the particles, for HDF5's headers
  int deflate = 0;                                 // HDF5: 1 to 9 shuffle and compress
  int id_bits = 0;                                 // 32, 64, or 0: 32 where all fit
  bool big_endian = false;                         // binary types
  bool overwrite = false;
  bool replicas = false;   // coordinates may lie outside of the box, and stay there
  bool own_times = false;  // each particle has its own scale factor Ascale, and its velocity is over the root of that
  std::vector<HeaderNumbers> header = {};

  bool has(const char* field) const { return std::find(fields.begin(), fields.end(), field) != fields.end(); }
};

}  // namespace maki
