// Power spectra, bispectra and pictures of particles on the device: beside the snapshots of a run, and for maki power,
// bispectrum and image.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>

#include "src/analysis/image_files.hpp"
#include "src/analysis/spectrum_files.hpp"
#include "src/run/linear_theory.hpp"
#include "src/run/setup.hpp"
#include "wan/sites/sites.hpp"

namespace maki {

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

struct PictureOptions {
  int pixels = 1024;                                 // along a side
  int axis = 2;                                      // line of sight
  double width = 0;                                  // of the picture, length units; 0: the whole box
  double depth = 0;                                  // of the projected slab, length units; 0: the whole box
  double low = 0, high = 0;                          // ends of the colour scale in units of the mean; 0: from the data
  std::optional<std::array<double, 3>> centre = {};  // of picture and slab, length units; none: the middle of the box
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

// The spectra of two sets at one site and their cross spectrum, likewise. Throws Error where their boxes differ in
// size.
CrossTable cross_power_of(const DeviceSet& first, const DeviceSet& second, const SpectrumOptions& options);

// The bispectrum of a set at one site, with that at tree level where the linear spectrum is given. Collective. Throws
// Error as power_of() does, and on invalid options.
BispectrumTable bispectrum_of(const DeviceSet& set, const BispectrumOptions& options,
                              const std::function<double(double)>& linear);

// The projected mass density (in isolated sets number density) in units of its mean: pixels x pixels, the first of the
// two other axes (x, y, z) fastest, the second upwards; smoothed where particles are few. On all ranks. Collective,
// also over the sites.
std::vector<float> picture_of(const DeviceSet& set, const PictureOptions& options);
// Writes the picture as PNG; rank 0 of each site writes. Throws Error where that fails.
void write_picture_of(const DeviceSet& set, const PictureOptions& options, const std::string& path,
                      const Provenance& provenance, bool overwrite);

// The unit of length as text: "Mpc/h"; "" for pure numbers.
std::string length_unit_name(const UnitSystem& units);

// An even mesh with as many cells as particles along a side: all modes count up to the Nyquist wave number of the
// particles. Modes beyond, where shot noise and the lattice dominate, come from foldings.
int default_power_mesh(std::uint64_t particles);
// A mesh such that a third of it, the range of bispectra, reaches the Nyquist wave number of the particles.
int default_bispectrum_mesh(std::uint64_t particles);

// Bytes on the device for an output: of the mesh of a power spectrum, of a picture or of groups, and of
// gathered_bytes().
double product_bytes(const Config& config, std::uint64_t particles, bool periodic);
// Bytes of all sites' particles at one of them, for spectra and pictures (wan/sites/gathered_set.hpp); 0 at one site.
double gathered_bytes(const Config& config, std::uint64_t particles, bool periodic);

}  // namespace maki
