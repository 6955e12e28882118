#include "kernels/measure/power_parts.cuh"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>

#include "kernels/device/launch.cuh"
#include "kernels/device/thrust.cuh"
#include "kernels/error.hpp"
#include "kernels/measure/double_double.hpp"
#include "kernels/measure/power_spectrum.hpp"

namespace maki {
namespace {

constexpr double kPi = std::numbers::pi;

struct FoldParticle {
  const SourceParticle* from;
  SourceParticle* to;
  std::uint32_t folding;
  MAKI_HD void operator()(std::size_t i) const {
    const SourceParticle p = from[i];
    to[i] = {p.x * folding, p.y * folding, p.z * folding, p.mass};  // the overflow does the folding
  }
};

// MassMoments whose rounded sums do not depend on the order.
struct WideMoments {
  DoubleDouble mass, square, cube;
  MAKI_HD WideMoments operator+(const WideMoments& b) const {
    return {mass + b.mass, square + b.square, cube + b.cube};
  }
};
struct MomentsOfOne {
  const SourceParticle* particles;
  MAKI_HD WideMoments operator()(std::size_t i) const {
    const double m = particles[i].mass;
    return {m, m * m, m * m * m};
  }
};

#if defined(__CUDACC__)
constexpr unsigned kWarps = 4;  // of a block

// One plane a warp, 32 modes of a row at a time. Each lane computes one mode; then for each bin its first lane adds all
// shares of the bin, in order.
__global__ void __launch_bounds__(kWarps* kWarpSize) bin_kernel(BinPlanes all) {
  __shared__ ModeShare of_warp[kWarps][kWarpSize];
  const unsigned lane = threadIdx.x % kWarpSize, warp = threadIdx.x / kWarpSize;
  const unsigned plane = blockIdx.x * kWarps + warp;
  if (plane >= static_cast<unsigned>(all.part.rows.count_x)) return;
  ModeShare* const shares = of_warp[warp];
  BinSum* const mine = all.sums + std::size_t{plane} * static_cast<unsigned>(all.bins);
  for (unsigned b = lane; b < static_cast<unsigned>(all.bins); b += kWarpSize) mine[b] = {0, 0, 0};
  const int x = all.part.rows.first_x + static_cast<int>(plane);
  for (int j = 0; j < all.part.rows.count_y; ++j) {
    const int y = all.part.rows.first_y + j, n2_xy = all.squared(x, y);
    const std::size_t row = all.row(plane, j);
    for (int first = 0; first < all.part.length; first += static_cast<int>(kWarpSize)) {
      const int z = first + static_cast<int>(lane);
      const std::uint32_t bin = z < all.part.length ? all.bin(n2_xy, z) : BinPlanes::kNoBin;
      const bool counts = bin != BinPlanes::kNoBin;
      if (counts) shares[lane] = all.share(x, y, z, n2_xy, row);
      __syncwarp();  // other lanes read the shares and the empty bins
      const unsigned same = __match_any_sync(kAllLanes, bin);
      if (counts && static_cast<unsigned>(__ffs(static_cast<int>(same))) == lane + 1) {
        BinSum sum = mine[bin];
        for (unsigned left = same; left > 0; left &= left - 1) shares[__ffs(static_cast<int>(left)) - 1].add_to(sum);
        mine[bin] = sum;
      }
      __syncwarp();  // before the next shares are computed
    }
  }
}
#else
// One plane a thread.
struct BinPlane {
  BinPlanes all;
  void operator()(std::size_t plane) const {
    BinSum* mine = all.sums + plane * static_cast<std::size_t>(all.bins);
    for (int b = 0; b < all.bins; ++b) mine[b] = {0, 0, 0};
    const int x = all.part.rows.first_x + static_cast<int>(plane);
    for (int j = 0; j < all.part.rows.count_y; ++j) {
      const int y = all.part.rows.first_y + j, n2_xy = all.squared(x, y);
      const std::size_t row = all.row(plane, j);
      for (int z = 0; z < all.part.length; ++z) {
        const std::uint32_t bin = all.bin(n2_xy, z);
        if (bin != BinPlanes::kNoBin) all.share(x, y, z, n2_xy, row).add_to(mine[bin]);
      }
    }
  }
};
#endif

}  // namespace

MassMoments mass_moments(const Stream& stream, const SourceParticle* particles, std::size_t n) {
  const WideMoments sums = sum_over(stream, "power.mass", n, MomentsOfOne{particles});
  return {sums.mass.value(), sums.square.value(), sums.cube.value()};
}

std::vector<std::uint32_t> bin_table(const MeasurePowerOptions& o, int& bins) {
  const std::size_t limit = static_cast<std::size_t>(o.cells / 2) * (o.cells / 2);
  std::vector<std::uint32_t> table(limit, 0);
  bins = 1;
  for (std::size_t n2 = 1; n2 < limit; ++n2) {
    const double n = std::sqrt(static_cast<double>(n2)) * o.folding;
    table[n2] = static_cast<std::uint32_t>(n / o.bin_width + 0.5);
    bins = std::max(bins, static_cast<int>(table[n2]) + 1);
  }
  return table;
}

std::vector<float> deconvolution_table(int m) {
  std::vector<float> table(static_cast<std::size_t>(m), 1.0f);
  for (int n = 1; n < m; ++n) {
    const double angle = kPi * std::min(n, m - n) / m;
    table[static_cast<std::size_t>(n)] = static_cast<float>(std::pow(angle / std::sin(angle), 4));
  }
  return table;
}

const SourceParticle* fold_particles(const Stream& stream, const SourceParticle* particles, std::size_t n, int folding,
                                     DeviceBuffer<SourceParticle>& folded) {
  if (folding == 1) return particles;
  folded.resize(n);
  launch(stream, "power.fold", n, FoldParticle{particles, folded.data(), static_cast<std::uint32_t>(folding)});
  return folded.data();
}

void combine_meshes(const Stream& stream, const PowerModes& modes, const Complex* shifted, int m) {
  DeviceBuffer<Complex> phases("power.phases");
  phases.upload(stream, half_cell_phases(m));
  launch_rows(stream, "power.combine", modes.rows, modes.length, modes.stride,
              CombineMeshes{modes.mesh, shifted, phases.data(), m});
  stream.synchronize();  // the buffer goes back to the pool
}

PowerSums sum_power(const Stream& stream, const PowerModes& modes, const Complex* other,
                    const MeasurePowerOptions& options) {
  const int m = options.cells;
  int bins = 0;
  DeviceBuffer<std::uint32_t> bin_of("power.bin_of");
  bin_of.upload(stream, bin_table(options, bins));
  DeviceBuffer<float> deconvolution("power.deconvolution");
  deconvolution.upload(stream, deconvolution_table(m));
  const auto count = static_cast<std::size_t>(modes.rows.count_x), per_plane = static_cast<std::size_t>(bins);
  DeviceBuffer<BinSum> sums("power.sums", count * per_plane);
  bin_planes(stream, {modes, other, sums.data(), bin_of.data(), deconvolution.data(), m, bins});
  const std::vector<BinSum> planes = sums.download(stream);
  PowerSums out{std::vector<double>(per_plane), std::vector<double>(per_plane), std::vector<std::uint64_t>(per_plane)};
  for (std::size_t x = 0; x < count; ++x) {
    for (std::size_t b = 0; b < per_plane; ++b) {
      const BinSum& part = planes[x * per_plane + b];
      out.waves[b] += part.waves;
      out.power[b] += part.power;
      out.modes[b] += part.modes;
    }
  }
  return out;
}

MeasuredPower spectrum_of(const PowerSums& sums, const MassMoments& moments, const MeasurePowerOptions& options) {
  MeasuredPower spectrum;
  spectrum.shot_noise = moments.square / (moments.mass * moments.mass);
  spectrum.nyquist = kPi * options.cells * options.folding;
  for (std::size_t b = 0; b < sums.modes.size(); ++b) {
    if (sums.modes[b] == 0) continue;
    const auto modes = static_cast<double>(sums.modes[b]);
    PowerBin bin{sums.waves[b], sums.power[b], sums.modes[b], options.folding};
    bin.k *= 2 * kPi * options.folding / modes;
    bin.power /= modes * moments.mass * moments.mass;
    spectrum.bins.push_back(bin);
  }
  return spectrum;
}

// Spectra of several foldings as one, and of two sets.
std::vector<int> foldings_up_to(int highest) {
  if (highest < 1 || highest > 4096 || !std::has_single_bit(static_cast<unsigned>(highest)))
    throw Error("the box cannot be folded up to " + std::to_string(highest) + " times",
                "each folding is twice the one before", "give a power of two from 1 to 4096");
  std::vector<int> all;
  for (int folding = 1; folding <= highest; folding *= 2) all.push_back(folding);
  return all;
}

MeasurePowerOptions folded(MeasurePowerOptions options, int folding) {
  options.folding = folding;
  options.bin_width *= folding;
  return options;
}

WaveRange waves_of_folding(int folding, int highest, int cells) {
  const auto end_of = [cells](int f) { return std::numbers::pi * f * (cells - 1); };
  return {folding > 1 ? end_of(folding / 2) : 0,
          folding < highest ? end_of(folding) : std::numeric_limits<double>::infinity()};
}

double CrossBin::correlation() const { return first > 0 && second > 0 ? cross / std::sqrt(first * second) : 0; }

#if defined(__CUDACC__)
void bin_planes(const Stream& stream, const BinPlanes& planes) {
  const auto count = static_cast<unsigned>(planes.part.rows.count_x);
  launch_blocks(stream, "power.bin", {(count + kWarps - 1) / kWarps, kWarps * kWarpSize, 0}, bin_kernel, planes);
}
#else
void bin_planes(const Stream& stream, const BinPlanes& planes) {
  launch(stream, "power.bin", static_cast<std::size_t>(planes.part.rows.count_x), BinPlane{planes});
}
#endif

}  // namespace maki
