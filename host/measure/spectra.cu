#include "host/measure/spectra.hpp"

#include <array>
#include <cmath>
#include <numbers>
#include <string>

#include "host/domain/migrate.hpp"
#include "host/fft/particle_brick.hpp"
#include "host/fft/pencil_fft.hpp"
#include "kernels/device/launch.cuh"
#include "kernels/error.hpp"
#include "kernels/measure/power_parts.cuh"
#include "kernels/mesh/modes.cuh"

namespace maki {
namespace {

void check(const MeasurePowerOptions& o) {
  if (o.folding < 1 || o.folding > 4096 || !(o.bin_width > 0))
    throw Error("cannot bin the power spectrum",
                "folding " + std::to_string(o.folding) + ", bin width " + std::to_string(o.bin_width),
                "use a folding from 1 to 4096 and a bin width above 0");
  check_mesh_cells(o.cells);
}

MassMoments moments_of_all(const Communicator& communicator, const Stream& stream, const MeshParticles& mine) {
  const MassMoments here = mass_moments(stream, mine.particles, mine.n);
  std::array<double, 3> all = {here.mass, here.square, here.cube};
  communicator.sum(all);
  if (!(all[0] > 0)) throw Error("cannot measure a power spectrum", "the particles have no mass");
  return {all[0], all[1], all[2]};
}

Complex* complex_of(float* values) { return reinterpret_cast<Complex*>(values); }

// Both interlaced meshes as one spectrum, the cloud not deconvolved: mass in a mode, not normalised. The modes have the
// same bits for any number of ranks.
class DensityModes {
 public:
  // Collective. Throws Error, the same on all ranks, where the mesh or the folding make no sense or there is no mass.
  DensityModes(const Communicator& communicator, const Stream& stream, const MeshParticles& mine,
               const MeasurePowerOptions& options);

  const MassMoments& moments() const { return moments_; }  // of all ranks
  PencilFft& fft() { return fft_; }
  // The modes of this rank's pencils, lines [ky][kz][kx].
  PowerModes modes();

 private:
  MassMoments moments_;
  PencilFft fft_;
  DeviceBuffer<float> mesh_{"power.mesh"};
};

DensityModes::DensityModes(const Communicator& communicator, const Stream& stream, const MeshParticles& mine,
                           const MeasurePowerOptions& options)
    : moments_((check(options), moments_of_all(communicator, stream, mine))), fft_(communicator, options.cells) {
  DeviceBuffer<SourceParticle> folded("power.folded");
  const SourceParticle* particles = fold_particles(stream, mine.particles, mine.n, options.folding, folded);
  std::size_t n = mine.n;
  if (options.folding > 1 && communicator.size() > 1) {
    // A rank's domain folds onto far more of the mesh than its share: particles go to the owners of even domains.
    migrate(stream, communicator, Domains(choose_factors(communicator.size())), folded);
    particles = folded.data();
    n = folded.size();
  }
  const MassUnit unit = choose_mass_unit(communicator, stream, Assignment::kPcs, options.cells, particles, n);
  mesh_.resize(fft_.size());
  DeviceBuffer<float> shifted("power.shifted", fft_.size());
  ParticleBrick(communicator, fft_.layout(), fft_.real_row(), Assignment::kPcs, true)
      .assign(stream, particles, n, unit, mesh_.data(), shifted.data());
  fft_.forward(stream, mesh_.data());
  fft_.forward(stream, shifted.data());
  combine_meshes(stream, modes(), complex_of(shifted.data()), options.cells);
}

PowerModes DensityModes::modes() {
  const PencilBox held = fft_.modes();
  return {complex_of(mesh_.data()),
          {held.along[1].first, held.along[2].first, held.along[1].count(), held.along[2].count()},
          fft_.layout().cells(),
          static_cast<int>(fft_.mode_row() / 2)};
}

// Over all ranks. Collective.
PowerSums sum_power(const Communicator& communicator, const Stream& stream, const PowerModes& modes,
                    const Complex* other, const MeasurePowerOptions& options) {
  PowerSums sums = sum_power(stream, modes, other, options);
  communicator.sum(sums.waves);
  communicator.sum(sums.power);
  communicator.sum(sums.modes);
  return sums;
}

template <class Bin>
void append(std::vector<Bin>& all, const std::vector<Bin>& bins, const WaveRange& range) {
  for (const Bin& bin : bins)
    if (range.has(bin.k)) all.push_back(bin);
}

double shot_noise(const MassMoments& m) { return m.square / (m.mass * m.mass); }

CrossPower measure_cross_folding(const Communicator& communicator, const Stream& stream, const ParticleSets& sets,
                                 const MeasurePowerOptions& options) {
  DensityModes first(communicator, stream, sets.first, options), second(communicator, stream, sets.second, options);
  const auto sum = [&](DensityModes& a, DensityModes& b) {
    return sum_power(communicator, stream, a.modes(), b.modes().mesh, options);
  };
  const PowerSums ab = sum(first, second), aa = sum(first, first), bb = sum(second, second);
  const double a = first.moments().mass, b = second.moments().mass;
  CrossPower found{{}, shot_noise(first.moments()), shot_noise(second.moments())};
  for (std::size_t i = 0; i < ab.modes.size(); ++i) {
    if (ab.modes[i] == 0) continue;
    const auto n = static_cast<double>(ab.modes[i]);
    found.bins.push_back({ab.waves[i] / n * 2 * std::numbers::pi * options.folding, aa.power[i] / (n * a * a),
                          bb.power[i] / (n * b * b), ab.power[i] / (n * a * b), ab.modes[i], options.folding});
  }
  return found;
}

// Keeps the modes of one shell; the others become 0.
struct KeepShell {
  const Complex* from;  // null: every mode of the shell becomes 1
  Complex* to;
  const std::uint32_t* bin_of;  // by |n|^2 < (m/2)^2
  const float* deconvolution;
  int m;
  std::uint32_t shell;
  float scale;

  struct Row {
    int n2;
    float factor;
  };
  MAKI_HD int squared(int i) const { return i <= m / 2 ? i * i : (i - m) * (i - m); }
  MAKI_HD Row begin(int x, int y) const {
    return {squared(x) + squared(y), scale * deconvolution[x] * deconvolution[y]};
  }
  MAKI_HD void at(const Row& row, int z, std::size_t i) const {
    const int n2 = row.n2 + squared(z), limit = m / 2 * (m / 2);
    const bool inside = n2 > 0 && n2 < limit && bin_of[n2] == shell;
    if (!inside) {
      to[i] = {0, 0};
    } else if (!from) {
      to[i] = {1, 0};
    } else {
      const float factor = row.factor * deconvolution[z];
      to[i] = {factor * from[i].re, factor * from[i].im};
    }
  }
};

// Sums over cells of two fields: s^3, and l s^2.
struct FieldSums {
  double cube = 0, mixed = 0;
};
struct SumLine {
  const float *field, *other;
  FieldSums* sums;
  std::size_t row;
  int m;
  MAKI_HD void operator()(std::size_t line) const {
    FieldSums sum;
    for (int z = 0; z < m; ++z) {
      const std::size_t i = line * row + static_cast<std::size_t>(z);
      const double s = field[i];
      sum.cube += s * s * s;
      sum.mixed += s * s * static_cast<double>(other[i]);
    }
    sums[line] = sum;
  }
};

MeasurePowerOptions power_options(const BispectrumOptions& options) {
  MeasurePowerOptions power;
  power.cells = options.cells;
  power.bin_width = options.width;
  return power;
}

// The number of the last shell that lies below a third of the mesh.
int last_shell(const BispectrumOptions& options) {
  return static_cast<int>(std::floor(options.cells / 3.0 / options.width - 0.5));
}

void check(const BispectrumOptions& options) {
  if (options.width >= 1 && options.long_shell >= 1 && options.long_shell <= last_shell(options)) return;
  throw Error("cannot bin the bispectrum",
              "shells of " + std::to_string(options.width) + " waves, the long one number " +
                  std::to_string(options.long_shell) + " of " + std::to_string(std::max(0, last_shell(options))),
              "use a width of at least 1, a finer mesh, and a long shell among those below a third of the mesh");
}

// Fields of single shells and their sums.
class ShellFields {
 public:
  ShellFields(const Communicator& communicator, const Stream& stream, DensityModes& density,
              const BispectrumOptions& options)
      : communicator_(communicator), stream_(stream), density_(density), cells_(options.cells),
        scale_(static_cast<float>(1 / density.moments().mass)) {
    int bins = 0;
    bin_of_.upload(stream, bin_table(power_options(options), bins));
    deconvolution_.upload(stream, deconvolution_table(options.cells));
    long_.resize(density.fft().size());
    work_.resize(density.fft().size());
  }

  // Sums for shells 1, 2, ... `last` with the long one, of the density or, with `ones`, of triangles.
  std::vector<FieldSums> sums(int last, int long_shell, bool ones) {
    make(long_shell, ones, long_);
    std::vector<FieldSums> all;
    for (int shell = 1; shell <= last; ++shell) {
      make(shell, ones, work_);
      all.push_back(sum());
    }
    return all;
  }

 private:
  void make(int shell, bool ones, DeviceBuffer<float>& to) {
    const PowerModes modes = density_.modes();
    launch_rows(stream_, "bispectrum.shell", modes.rows, modes.length, modes.stride,
                KeepShell{ones ? nullptr : modes.mesh, reinterpret_cast<Complex*>(to.data()), bin_of_.data(),
                          deconvolution_.data(), cells_, static_cast<std::uint32_t>(shell), scale_});
    density_.fft().backward(stream_, to.data());
  }
  FieldSums sum() {
    const PencilBox held = density_.fft().cells();
    const std::size_t lines = held.along[0].size() * held.along[1].size();
    lines_.resize(lines);
    launch(stream_, "bispectrum.sum", lines,
           SumLine{work_.data(), long_.data(), lines_.data(), density_.fft().real_row(), cells_});
    std::array<double, 2> all = {0, 0};
    for (const FieldSums& line : lines_.download(stream_)) all[0] += line.cube, all[1] += line.mixed;
    communicator_.sum(all);
    return {all[0], all[1]};
  }

  const Communicator& communicator_;
  const Stream& stream_;
  DensityModes& density_;
  int cells_;
  float scale_;
  DeviceBuffer<std::uint32_t> bin_of_{"bispectrum.bin_of"};
  DeviceBuffer<float> deconvolution_{"bispectrum.deconvolution"};
  DeviceBuffer<float> long_{"bispectrum.long"}, work_{"bispectrum.work"};
  DeviceBuffer<FieldSums> lines_{"bispectrum.lines"};
};

// Poisson shot noise of three modes with these spectra, which include shot noise (Matarrese, Verde & Heavens 1997,
// MNRAS 290, 651; here with masses).
double shot_noise_of(const std::array<double, 3>& powers, const MassMoments& m) {
  const double second = m.square / (m.mass * m.mass), third = m.cube / (m.mass * m.mass * m.mass);
  return second * (powers[0] + powers[1] + powers[2] - 3 * second) + third;
}

// Zeros where no triangle closes: of those, single precision leaves 1e-4.
TriangleMean mean_of(double fields, double ones, double cells, double shot_noise) {
  const double triangles = ones / (cells * cells * cells);
  if (triangles < 0.5) return {};
  return {fields / ones, shot_noise, triangles};
}

}  // namespace

MeasuredPower measure_power(const Communicator& communicator, const Stream& stream, const SourceParticle* particles,
                            std::size_t n, const MeasurePowerOptions& options) {
  DensityModes density(communicator, stream, {particles, n}, options);
  const PowerModes modes = density.modes();
  return spectrum_of(sum_power(communicator, stream, modes, modes.mesh, options), density.moments(), options);
}

MeasuredPower measure_power_up_to(int highest, const Communicator& communicator, const Stream& stream,
                                  const MeshParticles& mine, const MeasurePowerOptions& options) {
  MeasuredPower all;
  for (const int folding : foldings_up_to(highest)) {
    const MeasuredPower one = measure_power(communicator, stream, mine.particles, mine.n, folded(options, folding));
    append(all.bins, one.bins, waves_of_folding(folding, highest, options.cells));
    all.shot_noise = one.shot_noise;
    all.nyquist = one.nyquist;
  }
  return all;
}

CrossPower measure_cross_up_to(int highest, const Communicator& communicator, const Stream& stream,
                               const ParticleSets& sets, const MeasurePowerOptions& options) {
  CrossPower all;
  for (const int folding : foldings_up_to(highest)) {
    const CrossPower one = measure_cross_folding(communicator, stream, sets, folded(options, folding));
    append(all.bins, one.bins, waves_of_folding(folding, highest, options.cells));
    all.shot_noise_first = one.shot_noise_first;
    all.shot_noise_second = one.shot_noise_second;
  }
  return all;
}

std::vector<double> project_density(const Communicator& communicator, const Stream& stream,
                                    const SourceParticle* particles, std::size_t n, const ProjectionOptions& options) {
  MassTotals totals;
  if (options.count_particles) {
    totals.particles = n;
    communicator.sum({&totals.particles, 1});
  } else {
    totals = mass_totals(communicator, stream, particles, n);
  }
  const MassUnit unit = projection_unit(totals, options.count_particles);
  std::vector<std::uint64_t> counts = project_counts(stream, particles, n, unit, options);
  communicator.sum(counts);
  return density_of_counts(counts, unit, options);
}

MeasuredBispectrum measure_bispectrum(const Communicator& communicator, const Stream& stream, const MeshParticles& mine,
                                      const BispectrumOptions& options) {
  check(options);
  DensityModes density(communicator, stream, mine, power_options(options));
  const PowerModes modes = density.modes();
  const MassMoments moments = density.moments();
  const PowerSums power = sum_power(communicator, stream, modes, modes.mesh, power_options(options));
  ShellFields fields(communicator, stream, density, options);
  const int last = last_shell(options);
  const auto values = fields.sums(last, options.long_shell, false), ones = fields.sums(last, options.long_shell, true);
  const double wave = 2 * std::numbers::pi, cells = options.cells;
  const auto power_at = [&](std::size_t b) {
    return power.power[b] / (static_cast<double>(power.modes[b]) * moments.mass * moments.mass);
  };
  const auto long_shell = static_cast<std::size_t>(options.long_shell);
  MeasuredBispectrum found{{}, long_shell - 1, shot_noise(moments)};
  for (std::size_t b = 1; b <= static_cast<std::size_t>(last); ++b) {
    const double p = power_at(b), l = power_at(long_shell), n = static_cast<double>(b);
    const FieldSums &sum = values[b - 1], &count = ones[b - 1];
    found.bins.push_back({wave * power.waves[b] / static_cast<double>(power.modes[b]), p,
                          wave * (n - 0.5) * options.width, wave * (n + 0.5) * options.width,
                          mean_of(sum.cube, count.cube, cells, shot_noise_of({p, p, p}, moments)),
                          mean_of(sum.mixed, count.mixed, cells, shot_noise_of({l, p, p}, moments))});
  }
  return found;
}

}  // namespace maki
