// HEALPix maps of mass (Gorski et al. 2005, ApJ 622, 759), in RING order, with the pixels divided among the ranks.
//
// Pixels count quanta of mass; the quantum is a power of two that divides the mass of the heaviest particle, so that
// sums have the same bits on any number of ranks.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "host/comm/communicator.hpp"

namespace maki {

// The mass of one count, for a map with at most `most` of the heaviest particles in a pixel.
double sky_quantum(float heaviest, double most);

// The pixel of a direction, which need not have length 1.
std::uint64_t sky_pixel(int nside, const std::array<double, 3>& direction);
std::uint64_t sky_pixels(int nside);  // of all the sky

struct PixelCount {
  std::uint64_t pixel, count;
};
// Adds up counts of the same pixel.
void join_pixels(std::vector<PixelCount>& counts);

// Counts of a step that wait to be added to a map. Counts of the same pixel are joined once `many` wait, or once twice
// as many wait as the last joining left, whichever is more. So at most `many` wait, or twice the number K of pixels
// with counts, and adding N counts takes some N / K + log2(K) joinings.
class PixelCounts {
 public:
  static constexpr std::size_t kMany = std::size_t{1} << 22;  // 64 MB
  explicit PixelCounts(std::size_t many = kMany) : many_(many), limit_(many) {}
  void add(PixelCount one) {
    if (counts_.size() >= limit_) join();
    counts_.push_back(one);
  }
  std::vector<PixelCount> take();  // leaves none behind
  std::size_t waiting() const { return counts_.size(); }
  int joinings() const { return joinings_; }

 private:
  void join();

  std::vector<PixelCount> counts_;
  std::size_t many_, limit_;  // counts at which to join
  int joinings_ = 0;
};

class SkyMap {
 public:
  SkyMap(const Communicator& ranks, int nside);
  int nside() const { return nside_; }
  const Share& share() const { return share_; }  // the pixels that this rank holds
  // Adds this rank's counts, at any pixels. Collective.
  void add(std::vector<PixelCount> found);
  // The counts of share().
  const std::vector<std::uint64_t>& counts() const { return counts_; }

 private:
  std::size_t holder_of(std::uint64_t pixel) const { return rank_of_item(pixel, sky_pixels(nside_), ranks_.size()); }
  std::vector<std::vector<PixelCount>> by_holder(const std::vector<PixelCount>& found) const;

  Communicator ranks_;
  int nside_;
  Share share_;
  std::vector<std::uint64_t> counts_;
};

// A number or a text in the header of a FITS file.
struct FitsKey {
  std::string name;  // up to 8 letters
  std::string comment;
  double value = 0;
  std::string text = {};  // in place of the value where not empty
};

// Writes a map as a table of one column, MASS, in double precision, in the format of HEALPix and healpy; rank 0 writes.
// Throws Error, the same on all ranks, and then leaves nothing behind. Collective.
struct SkyMapFile {
  std::string path;
  double quantum;         // mass of a count
  std::string mass_unit;  // its name
  std::vector<FitsKey> keys;
  bool overwrite;
};
void write_sky_map(const SkyMapFile& file, const SkyMap& map, const Communicator& ranks);

// Numbers in the header of such a file, by their names. Throws Error.
std::vector<double> sky_map_numbers(const std::string& path, const std::vector<std::string>& names);

}  // namespace maki
