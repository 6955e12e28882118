// Power spectra, bispectra and pictures of particles on the device, with the theory beside them, and files of groups,
// for the snapshots of a run and for maki power, bispectrum, image and groups. LoadedSet: a set from a file, on the
// device.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "host/comm/communicator.hpp"
#include "src/analysis/picture.hpp"
#include "src/analysis/spectrum_files.hpp"
#include "src/config/config.hpp"
#include "src/groups/catalogue.hpp"
#include "src/groups/progenitors.hpp"
#include "src/io/snapshot_io.hpp"
#include "src/run/setup.hpp"
#include "wan/sites/sites.hpp"

namespace maki {

// P in length unit^3 of k in 1/length unit; functions are empty where unknown.
struct PowerTheory {
  std::function<double(double)> linear;
  std::function<double(double)> nonlinear;  // HALOFIT (src/cosmology/nonlinear.hpp)
};

// The linear spectrum of a configuration, grown to the header's time, and its non-linear spectrum. Throws Error where
// its table cannot be read.
PowerTheory power_theory_of(const Config& config, const SnapshotHeader& header);

// The mass function (Tinker et al. 2008) of that spectrum, dn / d ln M of a mass. Throws Error as above.
std::function<double(double)> mass_function_of(const Config& config, const SnapshotHeader& header);

// Calls `use` with the configuration that has the linear spectrum of a snapshot's particles: the one in the file
// `config`, or if that is empty the one of the run that wrote the snapshot, if the run made its initial conditions
// itself. Without `config` it is optional: where there is none that can be used, `say` gets the reason why there is no
// `product`. Throws Error where `config` cannot be read, is not of a cosmological run, or where `use` throws with it.
void with_spectrum(const std::string& config, const std::string& snapshot, const std::string& product,
                   const std::function<void(const Config&)>& use, const std::function<void(const std::string&)>& say);

// The theory for a snapshot by with_spectrum().
PowerTheory power_theory_of_file(const std::string& config, const std::string& snapshot, const SnapshotHeader& header,
                                 const std::function<void(const std::string&)>& say);

// A particle set on the device, or this rank's share of it, with its header and frame. It lies on the ranks of the site
// `place` (GatheredSet), which measures; all sites write the results.
struct DeviceSet {
  const Stream& stream;
  const DeviceBuffer<SourceParticle>& particles;
  const Frame& frame;
  const SnapshotHeader& header;
  sites::Sites& sites;
  int place = 0;
  bool here() const { return sites.me() == place; }
  const Communicator& ranks() const { return sites.ranks(); }
};
// Number of particles of all ranks. Collective.
std::uint64_t particles_of_all(const DeviceSet& set);

// Around a periodic box it goes on; around the box of an isolated set there is empty space.
struct PictureOptions {
  int pixels = 1024;                                 // along a side
  int axis = 2;                                      // line of sight
  double width = 0;                                  // of the picture, length units; 0: the whole box
  double depth = 0;                                  // of the projected slab, length units; 0: the whole box
  double low = 0, high = 0;                          // ends of the colour scale in units of the mean; 0: from the data
  std::optional<std::array<double, 3>> centre = {};  // of picture and slab, length units; none: the middle of the box
  std::optional<TimeUnit> time_unit = {};            // of an isolated set's label; none: that of the set
};

struct SpectrumOptions {
  int cells = 0;            // of the mesh along a side
  int folding = 2;          // the largest, a power of two
  PowerTheory theory = {};  // of the set, on rank 0
};

// The power spectrum up to the Nyquist wave number of the mesh, times the folding. Throws Error where the set has no
// periodic box. Collective, also over the sites; the same for all.
PowerTable power_of(const DeviceSet& set, const SpectrumOptions& options);
// Writes the power spectrum to a file; rank 0 of each site writes. Throws Error where that fails.
void write_power_of(const DeviceSet& set, const SpectrumOptions& options, const std::string& path,
                    const Provenance& provenance, bool overwrite);

// The spectra of two sets at one site and their cross spectrum, as by power_of(). Throws Error also where their boxes
// differ in size.
CrossTable cross_power_of(const DeviceSet& first, const DeviceSet& second, const SpectrumOptions& options);

// The bispectrum of a set at one site, with that at tree level where the linear spectrum is given. Collective. Throws
// Error as power_of() does, and on invalid options.
BispectrumTable bispectrum_of(const DeviceSet& set, const BispectrumOptions& options,
                              const std::function<double(double)>& linear);

// The projected mass density over the mean one of the box through the picture's depth; in isolated sets the number of
// particles over the picture's mean. pixels x pixels; of the two axes beside the line of sight, in the order x, y, z,
// the first is fastest and the second goes upwards. Smoothed where particles are few. On all ranks. Collective, also
// over the sites. Throws Error where width or depth are too small or large for the box.
std::vector<float> picture_of(const DeviceSet& set, const PictureOptions& options);
// Writes the picture as PNG; rank 0 of each site writes. Throws Error where that fails. Returns whether any particle is
// in it.
bool write_picture_of(const DeviceSet& set, const PictureOptions& options, const std::string& path,
                      const Provenance& provenance, bool overwrite);

// An even mesh with as many cells as particles along a side: all modes count up to the Nyquist wave number of the
// particles. Modes beyond, where shot noise and the lattice dominate, come from foldings.
int default_power_mesh(std::uint64_t particles);
// A mesh such that a third of it, the range of bispectra, reaches the Nyquist wave number of the particles.
int default_bispectrum_mesh(std::uint64_t particles);

// Bytes on the device for an output, of all ranks together: of the mesh of a power spectrum, of a picture or of groups,
// and of gathered_bytes(). `uneven`: particles of the rank with most over the mean; 1: one rank.
double product_bytes(const Config& config, std::uint64_t particles, bool periodic, double uneven);
inline constexpr double kFoldedBytes = sizeof(SourceParticle);  // bytes a particle of a copy of a folded set
// Bytes of all sites' particles at one of them, for spectra and pictures (wan/sites/gathered_set.hpp); 0 at one site.
double gathered_bytes(const Config& config, std::uint64_t particles, bool periodic);

// Copies a set, with many ranks each rank's share, to the rank's default device (CPU: its threads). Collective. Throws
// Error.
class LoadedSet {
 public:
  // From a file.
  explicit LoadedSet(const std::string& path, const Communicator& ranks = Communicator::world());
  // From memory; `origin` names the source in products.
  LoadedSet(const Snapshot& snapshot, const std::string& origin, const Communicator& ranks);

  const Communicator& ranks() const { return place_.ranks; }
  DeviceSet set() const { return {stream_, particles_.source, frame_, header_, *place_.sites}; }
  // Sorts the particles. Collective.
  GroupCatalogue find_groups(const GroupOptions& options) {
    return maki::find_groups(stream_, place_.ranks, particles_, frame_, header_, options);
  }
  const Frame& frame() const { return frame_; }
  // Pictures of an isolated set: half the box, where the set lies, or a window of any width amid most particles, unless
  // the options say otherwise. Throws Error where the picture is to be wider or deeper than a periodic box.
  PictureOptions fitted(PictureOptions options) const;
  const SnapshotHeader& header() const { return header_; }
  // The reader's report; empty for a set from memory.
  const ReadReport& report() const { return report_; }
  // Provenance for products of this set.
  Provenance provenance() const;

 private:
  void load(const Snapshot& snapshot);

  RunPlace place_;
  std::string origin_;
  SnapshotHeader header_;
  Stream stream_;
  Frame frame_;
  std::array<double, 3> middle_{};  // medians of an isolated set's coordinates
  Particles particles_;
  ReadReport report_;
};

// ---- files of friends-of-friends groups -----------------------------------------------------------------------------

// "a/groups_003_mass_function.txt" for "a/groups_003.hdf5".
std::string mass_function_path(const std::string& catalogue);

// Writes the catalogue to `path` and its mass function beside it; without `expected` (of rank 0) its column is 0.
// Collective. Throws Error where a file exists (unless `overwrite`) or cannot be written.
void write_group_files(const std::string& path, const GroupCatalogue& catalogue,
                       const std::function<double(double)>& expected, const Provenance& provenance, bool overwrite,
                       const Communicator& ranks = Communicator::self());

// "a/links_003.hdf5" for "a/groups_003.hdf5"; for other names "links_" is put in front.
std::string links_path(const std::string& catalogue);

// Links a catalogue with an earlier one, and writes links_path(later). Returns a sentence on the links, on rank 0.
// Collective. Throws Error as read_catalogue_groups(), link_catalogues() and write_merger_links() do, and where
// `earlier` is not the earlier one.
std::string link_group_files(const std::string& earlier, const std::string& later, bool overwrite,
                             const Communicator& ranks = Communicator::self());

// The catalogue that the site `place` has found, returned at every site, without its header; with one site, `mine`.
// Collective over all sites. Throws Error, the same on all ranks of a site, where a message is incomplete.
GroupCatalogue catalogue_from_site(sites::Sites& sites, int place, GroupCatalogue mine);

// "476 groups of 32 particles or more hold 87654 of 262144".
std::string summary_of(const GroupCatalogue& catalogue);

// Bytes that members_among() takes for each particle of the rank, with the members that are compared there.
inline constexpr double kMembersBytes = 3 * sizeof(std::uint64_t) + 2.125;

// For each of this rank's particles, whether its ID is in the `members` of any rank. Each rank compares the IDs whose
// hash gives it. Collective.
std::vector<bool> members_among(const ParticleSource& particles, const std::vector<std::uint64_t>& members,
                                const Communicator& ranks);

}  // namespace maki
