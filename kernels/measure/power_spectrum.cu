#include "kernels/measure/power_spectrum.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "kernels/device/buffer.hpp"
#include "kernels/device/error.hpp"
#include "kernels/device/fft.hpp"
#include "kernels/device/thrust.cuh"
#include "kernels/mesh/assign.hpp"
#include "kernels/mesh/interlace.cuh"

namespace maki {
namespace {

constexpr double kPi = std::numbers::pi;

struct BinSum {
  double waves, power;
  std::uint64_t modes;
};

// One plane of modes adds up its own bins, in a fixed order.
struct BinPlane {
  const Complex* modes;
  BinSum* sums;                   // m x bins
  const std::uint32_t* bin_of;    // by |n|^2, for |n| < m / 2
  const float* deconvolution;     // 1 / U along one axis, by n = 0 ... m - 1
  int m, bins;

  MAKI_HD int wave(int i) const { return i <= m / 2 ? i : i - m; }
  MAKI_HD void operator()(std::size_t plane) const {
    BinSum* mine = sums + plane * static_cast<std::size_t>(bins);
    for (int b = 0; b < bins; ++b) mine[b] = {0, 0, 0};
    const int x = static_cast<int>(plane), limit = m / 2 * (m / 2);
    for (int y = 0; y < m; ++y) {
      const int n2_xy = wave(x) * wave(x) + wave(y) * wave(y);
      const Complex* row = modes + (plane * static_cast<std::size_t>(m) + static_cast<std::size_t>(y)) *
                                       static_cast<std::size_t>(m / 2 + 1);
      for (int z = 0; z < m / 2; ++z) {
        const int n2 = n2_xy + z * z;
        if (n2 == 0 || n2 >= limit) continue;
        const double factor = static_cast<double>(deconvolution[x]) * deconvolution[y] * deconvolution[z];
        const double power = (static_cast<double>(row[z].re) * row[z].re + static_cast<double>(row[z].im) * row[z].im);
        const int weight = z ? 2 : 1;  // -k is in the half that is not stored
        BinSum& bin = mine[bin_of[n2]];
        bin.waves += weight * std::sqrt(static_cast<double>(n2));
        bin.power += weight * power * factor * factor;
        bin.modes += static_cast<std::uint64_t>(weight);
      }
    }
  }
};

struct FoldParticle {
  const SourceParticle* from;
  SourceParticle* to;
  std::uint32_t folding;
  MAKI_HD void operator()(std::size_t i) const {
    const SourceParticle p = from[i];
    to[i] = {p.x * folding, p.y * folding, p.z * folding, p.mass};  // the overflow is the folding
  }
};

struct MassMoments {
  double mass, square;
};
struct MomentsOfOne {
  const SourceParticle* particles;
  MAKI_HD MassMoments operator()(std::size_t i) const {
    const double m = particles[i].mass;
    return {m, m * m};
  }
};
struct AddMoments {
  MAKI_HD MassMoments operator()(const MassMoments& a, const MassMoments& b) const {
    return {a.mass + b.mass, a.square + b.square};
  }
};

// Bin by |n|^2 and the number of bins.
std::vector<std::uint32_t> bin_table(const MeasurePowerOptions& o, int& bins) {
  const std::size_t limit = static_cast<std::size_t>(o.cells / 2) * (o.cells / 2);
  std::vector<std::uint32_t> table(limit, 0);
  bins = 1;
  for (std::size_t n2 = 1; n2 < limit; ++n2) {
    const double n = std::sqrt(static_cast<double>(n2)) * o.folding;
    const double at =
        o.binning == PowerBinning::kLinear ? n / o.bin_width + 0.5 : std::log10(n) * o.bins_per_decade + 1e-9;
    table[n2] = static_cast<std::uint32_t>(at);
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

void check_options(const MeasurePowerOptions& o) {
  if (o.folding < 1 || o.folding > 4096 || o.bins_per_decade < 1 || !(o.bin_width > 0))
    throw Error("cannot bin the power spectrum",
                "folding " + std::to_string(o.folding) + ", bin width " + std::to_string(o.bin_width) + ", " +
                    std::to_string(o.bins_per_decade) + " bins per decade",
                "use a folding from 1 to 4096, a bin width above 0 and at least one bin per decade");
}

// Modes of the mass, both meshes combined.
void transform_masses(const Stream& stream, const SourceParticle* particles, std::size_t n, RealFft3d& fft,
                      DeviceBuffer<float>& mesh) {
  const int m = fft.cells();
  DeviceBuffer<float> shifted("power.shifted", fft.size());
  MassAssigner(m, Assignment::kPcs, &fft).assign(stream, particles, n, mesh.data(), shifted.data());
  fft.forward(stream, mesh.data());
  fft.forward(stream, shifted.data());
  DeviceBuffer<Complex> phases("power.phases");
  phases.upload(stream, half_cell_phases(m));
  launch_modes(stream, "power.combine", m,
               CombineMeshes{reinterpret_cast<Complex*>(mesh.data()), reinterpret_cast<const Complex*>(shifted.data()),
                             phases.data(), m});
  stream.synchronize();  // the buffers go back to the pool
}

}  // namespace

MeasuredPower measure_power(const Stream& stream, const SourceParticle* particles, std::size_t n,
                            const MeasurePowerOptions& options) {
  check_options(options);
  const MassMoments total =
      reduce_over(stream, "power.mass", n, MomentsOfOne{particles}, MassMoments{0, 0}, AddMoments{});
  if (!(total.mass > 0)) throw Error("cannot measure a power spectrum", "the particles have no mass");
  DeviceBuffer<SourceParticle> folded("power.folded");
  if (options.folding > 1) {
    folded.resize(n);
    launch(stream, "power.fold", n,
           FoldParticle{particles, folded.data(), static_cast<std::uint32_t>(options.folding)});
    particles = folded.data();
  }
  const int m = options.cells;
  RealFft3d fft(m, FftPlanning::kEstimate);
  DeviceBuffer<float> mesh("power.mesh", fft.size());
  transform_masses(stream, particles, n, fft, mesh);

  int bins = 0;
  DeviceBuffer<std::uint32_t> bin_of("power.bin_of");
  bin_of.upload(stream, bin_table(options, bins));
  DeviceBuffer<float> deconvolution("power.deconvolution");
  deconvolution.upload(stream, deconvolution_table(m));
  DeviceBuffer<BinSum> sums("power.sums", static_cast<std::size_t>(m) * static_cast<std::size_t>(bins));
  launch(stream, "power.bin", static_cast<std::size_t>(m),
         BinPlane{reinterpret_cast<const Complex*>(mesh.data()), sums.data(), bin_of.data(), deconvolution.data(), m,
                  bins});
  const std::vector<BinSum> planes = sums.download(stream);

  MeasuredPower spectrum;
  spectrum.shot_noise = total.square / (total.mass * total.mass);
  spectrum.nyquist = kPi * m * options.folding;
  for (int b = 0; b < bins; ++b) {
    PowerBin bin;
    for (int x = 0; x < m; ++x) {
      const BinSum& part =
          planes[static_cast<std::size_t>(x) * static_cast<std::size_t>(bins) + static_cast<std::size_t>(b)];
      bin.k += part.waves;
      bin.power += part.power;
      bin.modes += part.modes;
    }
    if (bin.modes == 0) continue;
    const auto modes = static_cast<double>(bin.modes);
    bin.k *= 2 * kPi * options.folding / modes;
    bin.power /= modes * total.mass * total.mass;
    spectrum.bins.push_back(bin);
  }
  return spectrum;
}

}  // namespace maki
