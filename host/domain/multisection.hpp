// Recursive multisection of the box into one domain for each rank (Makino 2004), by samples of equal cost (Ishiyama
// et al. 2009): slabs in x with equally many samples, each cut into columns in y, each column into cells in z.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/device/macros.hpp"

namespace maki {

// Index of the last of `n` ascending starts that is not above `at`; 0 if there is none.
template <class T>
MAKI_HD std::uint32_t interval_of(const T* starts, std::uint32_t n, T at) {
  std::uint32_t low = 0, high = n;  // starts[low] <= at < starts[high]
  while (high - low > 1) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (starts[middle] <= at)
      low = middle;
    else
      high = middle;
  }
  return low;
}

// The domains as plain arrays, for kernels and the host: the starts of their intervals. Slab i is [x[i], x[i+1]) along
// x; its column j is [y[i ny + j], ...) along y; the column's cell k is [z[(i ny + j) nz + k], ...) along z. Each axis
// begins at 0 and ends at 2^32. Starts ascend; of equal starts the last has the interval, and the others are empty.
struct DomainView {
  const std::uint32_t* x;
  const std::uint32_t* y;
  const std::uint32_t* z;
  std::uint32_t nx, ny, nz;

  MAKI_HD std::uint32_t rank_of(std::uint32_t px, std::uint32_t py, std::uint32_t pz) const {
    const std::uint32_t slab = interval_of(x, nx, px);
    const std::uint32_t column = slab * ny + interval_of(y + slab * ny, ny, py);
    return column * nz + interval_of(z + column * nz, nz, pz);
  }
};

// The numbers of slabs, of columns in a slab, and of cells in a column.
struct Factors {
  std::uint32_t x = 1, y = 1, z = 1;
  std::uint32_t count() const { return x * y * z; }
  bool operator==(const Factors&) const = default;
};

// x y z = ranks, x >= y >= z, with the least surface of the domains of a uniform box: x + y + z is least. Primes give
// slabs.
Factors choose_factors(int ranks);

// The domains of all ranks: rank = (slab ny + column) nz + cell. Every position of the box, periodic or not, has
// exactly one owner; a domain may be empty.
class Domains {
 public:
  // Even cuts.
  explicit Domains(Factors factors = {});

  Factors factors() const { return factors_; }
  int count() const { return static_cast<int>(factors_.count()); }
  std::uint32_t rank_of(std::uint32_t x, std::uint32_t y, std::uint32_t z) const { return view().rank_of(x, y, z); }
  // A view of this object's arrays, on the host.
  DomainView view() const { return view_of(starts_.data()); }
  // All starts, x then y then z; view_of() makes a view of a copy of them (on the device).
  std::span<const std::uint32_t> starts() const { return starts_; }
  DomainView view_of(const std::uint32_t* starts) const;

  // The starts along one axis within `parent` (0 for x, the slab for y, the column for z). The first must stay 0.
  std::span<std::uint32_t> axis(int axis, std::uint32_t parent);
  std::span<const std::uint32_t> axis(int axis, std::uint32_t parent) const;

  // Keeps the cuts after the box of an isolated set has doubled about its middle (double_box() of the particles).
  void double_box();

  bool operator==(const Domains&) const = default;

 private:
  Factors factors_;
  std::vector<std::uint32_t> starts_;
};

using SamplePoint = std::array<std::uint32_t, 3>;  // fixed point

// A cut through an octree cell makes two cells of it, each in as many groups' lists. So a cut moves to the coordinate
// with the most trailing zero bits (the face of the largest cell) within its tolerance, if that cell is far wider than
// the tolerance. The tolerance: no domain has more than about 1 + kRounding times the samples that exact cuts would
// give it, and the cuts of a domain share this evenly: those of slabs may move further than those of 2 x 2 x 2 domains.
// With 0.04, interactions of 8 ranks over those of one, 100 000 particles, theta 0.5 (exact cuts, rounded, imbalance):
// uniform 1.078 1.000 1.014, Plummer sphere 1.042 1.000 1.007, clumps 1.122 1.092 1.010; with 3 or 7 ranks at most 0.05
// less and mostly nothing, with any tolerance up to 0.06. The gain comes from the faces of the largest cells, above all
// the middle of the box: sets that are off the middle by 1 % of the side keep nearly all of their 1.14 to 1.23 at 60
// 000 particles.
inline constexpr double kRounding = 0.04;

// The way of cuts from their last places to those that new samples ask for. Half of the way smooths the noise of
// sampling. Where old cuts leave a rank with more than `jump_above` times the mean number of samples, the new ones are
// taken in full.
struct Smoothing {
  double fraction = 0.5;
  double jump_above = 1.1;
  double rounding = kRounding;  // not for cuts that smoothing keeps farther from their quantiles
};

// Cuts at the quantiles of the samples, or at rounder coordinates near them (`rounding` 0: none). A range without
// samples is cut evenly. The result does not depend on the order of samples.
Domains multisect(std::span<const SamplePoint> samples, Factors factors, double rounding = kRounding);
// multisect() smoothed from the previous step's cuts, with their factors.
Domains multisect(std::span<const SamplePoint> samples, const Domains& previous, const Smoothing& smoothing);

// Particles of the fullest rank over the mean: ranks of equal work have unequal numbers of particles. A run has memory
// for kUneven at least. With memory for kMostUneven no bound is needed: equal work never gives a rank more.
inline constexpr double kUneven = 1.5, kMostUneven = 4;

// The largest weight over the mean; 1 where there is no weight.
double imbalance(std::span<const double> weights);
// The imbalance of the numbers of samples in the domains.
double imbalance(std::span<const SamplePoint> samples, const Domains& domains);

}  // namespace maki
