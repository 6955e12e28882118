#include "kernels/measure/reductions.hpp"

#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/device/algorithms.hpp"
#include "kernels/device/launch.cuh"
#include "kernels/device/thrust.cuh"
#include "kernels/tree/opening.hpp"

namespace maki {
namespace {

// The sum of both ranges; the long range is left out where its pointers are null.
struct Acceleration {
  ConstVectorView short_range;
  ConstVectorView long_range;

  MAKI_HD double x(std::size_t i) const { return sum(short_range.x, long_range.x, i); }
  MAKI_HD double y(std::size_t i) const { return sum(short_range.y, long_range.y, i); }
  MAKI_HD double z(std::size_t i) const { return sum(short_range.z, long_range.z, i); }
  MAKI_HD static double sum(const float* a, const float* b, std::size_t i) {
    return b != nullptr ? widened(a[i]) + widened(b[i]) : widened(a[i]);
  }
};

Acceleration both_ranges(const VectorArray& short_range, const VectorArray* long_range) {
  return {short_range.view(), long_range != nullptr ? long_range->view() : ConstVectorView{nullptr, nullptr, nullptr}};
}

MAKI_HD double square(double x, double y, double z) { return x * x + y * y + z * z; }

// Of numbers that are not negative; not-a-number wins on either side. Their bits compare alike, for which a GPU has more
// units than for doubles.
MAKI_HD double larger(double a, double b) {
#if defined(__CUDA_ARCH__)
  constexpr long long kSize = 0x7fffffffffffffffll;
  return __longlong_as_double(max(__double_as_longlong(a) & kSize, __double_as_longlong(b) & kSize));
#else
  return (a > b || a != a) ? a : b;
#endif
}

MAKI_HD std::int64_t reach_of(const SourceParticle& p) {
  const std::uint32_t middle = 1u << 31;
  std::int64_t reach = 0;
  const std::uint32_t axes[3] = {p.x, p.y, p.z};
  for (const std::uint32_t axis : axes) {
    const std::int64_t d = signed_difference(axis, middle);
    const std::int64_t distance = d < 0 ? -d : d;
    reach = distance > reach ? distance : reach;
  }
  return reach;
}

struct MaximaOf {
  const SourceParticle* source;
  ConstVectorView momentum;
  Acceleration acceleration;

  MAKI_HD StepMaxima operator()(std::size_t i) const {
    return {square(acceleration.x(i), acceleration.y(i), acceleration.z(i)),
            square(widened(momentum.x[i]), widened(momentum.y[i]), widened(momentum.z[i])), reach_of(source[i])};
  }
};

struct LargerOfEach {
  MAKI_HD StepMaxima operator()(const StepMaxima& a, const StepMaxima& b) const {
    return {larger(a.acceleration, b.acceleration), larger(a.momentum, b.momentum),
            a.reach > b.reach ? a.reach : b.reach};
  }
};

struct ReachOf {
  const SourceParticle* source;
  MAKI_HD std::int64_t operator()(std::size_t i) const { return reach_of(source[i]); }
};

// Units to a square: 2^31 to that of the largest value, or fewer where `total` times as many would not fit 63 bits. 0
// where the largest value is zero or not finite.
MAKI_HD double square_scale(double largest, std::uint64_t total) {
  if (!(largest > 0)) return 0;
  const double most = 9223372036854775808.0 / static_cast<double>(total);
  return (most < 2147483648.0 ? most : 2147483648.0) / (largest * largest);
}

// Least square in the mean logarithm, over the largest: smaller ones count as this, so that a few particles without
// force do not set the mean.
constexpr double kLeastSquare = 0x1p-80;

struct SquareScales {
  double acceleration, momentum;
  double least;  // |a|^2
};

MAKI_HD SquareScales square_scales(const StepMaxima& maxima, std::uint64_t total) {
  return {square_scale(maxima.acceleration, total), square_scale(maxima.momentum, total),
          kLeastSquare * (maxima.acceleration * maxima.acceleration)};
}

// The upper bits of a double: exponent and mantissa are a piecewise linear logarithm, 2^12 to a factor of two.
constexpr int kLogarithmShift = 40;

MAKI_HD std::uint64_t logarithm(double positive) {
  std::uint64_t bits;
  memcpy(&bits, &positive, sizeof bits);
  return bits >> kLogarithmShift;
}

MAKI_HD std::uint64_t scaled(double square, double scale) {
  return scale > 0 ? static_cast<std::uint64_t>(square * scale + 0.5) : 0;
}

// The scales are read from device memory: the host may not know them yet.
struct ScaledSquares {
  ConstVectorView momentum;
  Acceleration acceleration;
  const SquareScales* scales;
  MAKI_HD SquareUnits operator()(std::size_t i) const {
    const double a = square(acceleration.x(i), acceleration.y(i), acceleration.z(i));
    return {scaled(a, scales->acceleration),
            scaled(square(momentum.x[i], momentum.y[i], momentum.z[i]), scales->momentum),
            logarithm(a > scales->least ? a : scales->least)};
  }
};

struct MeasuresOnDevice {
  StepMeasures measures;
  SquareScales scales;
};

MAKI_HD StepMaxima roots_of(StepMaxima squares) {
  squares.acceleration = sqrt(squares.acceleration);
  squares.momentum = sqrt(squares.momentum);
  return squares;
}

// The scales from maxima of squares, before their roots are taken.
struct StoreScales {
  MeasuresOnDevice* all;
  std::uint64_t total;
  MAKI_HD void operator()(std::size_t) const { all->scales = square_scales(roots_of(all->measures.maxima), total); }
};

// m v^2 without error: m v has 48 bits; its upper 26 and the rest, at most 22 bits, times v are exact.
MAKI_HD DoubleDouble mass_times_square(double mass, float v) {
  const double product = mass * v;
  std::uint64_t bits;
  memcpy(&bits, &product, sizeof bits);
  bits &= ~((std::uint64_t{1} << 27) - 1);
  double upper;
  memcpy(&upper, &bits, sizeof upper);
  return two_sum(upper * v, (product - upper) * v);
}

struct KineticOf {
  const SourceParticle* source;
  ConstVectorView momentum;
  MAKI_HD DoubleDouble operator()(std::size_t i) const {
    const double half_mass = 0.5 * source[i].mass;
    return mass_times_square(half_mass, momentum.x[i]) + mass_times_square(half_mass, momentum.y[i]) +
           mass_times_square(half_mass, momentum.z[i]);
  }
};

// mass (a + b) without error: the product of two floats is exact in double. A null `b` is left out.
MAKI_HD DoubleDouble mass_times_both(double mass, const float* a, const float* b, std::size_t i) {
  return b != nullptr ? two_sum(mass * a[i], mass * b[i]) : DoubleDouble(mass * a[i]);
}

struct EnergyOf {
  KineticOf kinetic;
  const float* short_potential;
  const float* long_potential;
  MAKI_HD EnergySums operator()(std::size_t i) const {
    const double mass = kinetic.source[i].mass;
    return {kinetic(i), mass_times_both(0.5 * mass, short_potential, long_potential, i), DoubleDouble(mass)};
  }
};

// MomentumSums as plain numbers, since std::array has no device members.
struct MomentumTerms {
  DoubleDouble values[8];  // sum m p (3), sum m |p|, sum m a (3), sum m |a|; of CentreSums: m, m x (3), m p (3)
  MAKI_HD MomentumTerms operator+(const MomentumTerms& b) const {
    MomentumTerms sum;
    for (int k = 0; k < 8; ++k) sum.values[k] = values[k] + b.values[k];
    return sum;
  }
};

struct MomentumOf {
  const SourceParticle* source;
  ConstVectorView momentum;
  Acceleration acceleration;
  MAKI_HD MomentumTerms operator()(std::size_t i) const {
    MomentumTerms terms;
    const double mass = source[i].mass;
    terms.values[0] = DoubleDouble(mass * momentum.x[i]);
    terms.values[1] = DoubleDouble(mass * momentum.y[i]);
    terms.values[2] = DoubleDouble(mass * momentum.z[i]);
    terms.values[3] = DoubleDouble(mass * sqrt(square(momentum.x[i], momentum.y[i], momentum.z[i])));
    const ConstVectorView &near = acceleration.short_range, &far = acceleration.long_range;
    terms.values[4] = mass_times_both(mass, near.x, far.x, i);
    terms.values[5] = mass_times_both(mass, near.y, far.y, i);
    terms.values[6] = mass_times_both(mass, near.z, far.z, i);
    terms.values[7] = DoubleDouble(mass * sqrt(square(acceleration.x(i), acceleration.y(i), acceleration.z(i))));
    return terms;
  }
};

struct CentreOf {
  const SourceParticle* source;
  ConstVectorView momentum;
  MAKI_HD static double offset(std::uint32_t x) { return static_cast<double>(signed_difference(x, 1u << 31) >> 8); }
  MAKI_HD MomentumTerms operator()(std::size_t i) const {
    MomentumTerms terms;
    const SourceParticle p = source[i];
    const double mass = p.mass;
    terms.values[0] = DoubleDouble(mass);
    terms.values[1] = DoubleDouble(mass * offset(p.x));
    terms.values[2] = DoubleDouble(mass * offset(p.y));
    terms.values[3] = DoubleDouble(mass * offset(p.z));
    terms.values[4] = DoubleDouble(mass * momentum.x[i]);
    terms.values[5] = DoubleDouble(mass * momentum.y[i]);
    terms.values[6] = DoubleDouble(mass * momentum.z[i]);
    return terms;
  }
};

struct IsBeyond {
  const SourceParticle* source;
  std::uint32_t x, y, z;  // the middle of the shifted box
  std::int64_t reach;
  MAKI_HD std::uint64_t operator()(std::size_t i) const {
    const SourceParticle p = source[i];
    return beyond(p.x, x, reach) || beyond(p.y, y, reach) || beyond(p.z, z, reach) ? 1 : 0;
  }
};

MaximaOf maxima_of(const Particles& particles, const VectorArray& short_range, const VectorArray* long_range) {
  return {particles.source.data(), particles.momentum.view(), both_ranges(short_range, long_range)};
}

}  // namespace

StepMaxima step_maxima(const Stream& stream, const Particles& particles, const VectorArray& short_range,
                       const VectorArray* long_range) {
  return roots_of(reduce_over(stream, "step_maxima",
                              Reduction{particles.size(), maxima_of(particles, short_range, long_range), StepMaxima{},
                                        LargerOfEach{}}));
}

std::int64_t largest_reach(const Stream& stream, const Particles& particles) {
  return reduce_over(stream, "largest_reach",
                     Reduction{particles.size(), ReachOf{particles.source.data()}, std::int64_t{0},
                               thrust::maximum<std::int64_t>()});
}

SquareUnits square_units(const Stream& stream, const Particles& particles, const VectorArray& short_range,
                         const VectorArray* long_range, const StepMaxima& maxima, std::uint64_t total) {
  const SquareScales scales = square_scales(maxima, total);
  DeviceBuffer<SquareScales> on_device("square_scales", 1);
  copy_to_device(stream, on_device.data(), &scales, sizeof scales);
  return sum_over(stream, "square_units", particles.size(),
                  ScaledSquares{particles.momentum.view(), both_ranges(short_range, long_range), on_device.data()});
}

StepMeasures step_measures(const Stream& stream, const Particles& particles, const VectorArray& short_range,
                           const VectorArray* long_range) {
  const std::uint64_t n = particles.size();
  DeviceBuffer<MeasuresOnDevice> all("step_measures", 1);
  StepMeasures& on_device = all.data()->measures;
  reduce_into(stream, "step_maxima",
              Reduction{n, maxima_of(particles, short_range, long_range), StepMaxima{}, LargerOfEach{}},
              &on_device.maxima);
  launch(stream, "square_scales", 1, StoreScales{all.data(), n});
  const ScaledSquares squares{particles.momentum.view(), both_ranges(short_range, long_range), &all.data()->scales};
  reduce_into(stream, "square_units", sum_of(n, squares), &on_device.squares);
  StepMeasures measures;
  copy_to_host(stream, &measures, &on_device, sizeof measures);
  measures.maxima = roots_of(measures.maxima);
  return measures;
}

double mean_square(std::uint64_t units, double largest, std::uint64_t total) {
  if (std::isnan(largest)) return std::numeric_limits<double>::quiet_NaN();
  if (total == 0 || largest <= 0) return 0;
  return static_cast<double>(units) / square_scale(largest, total) / static_cast<double>(total);
}

double typical_acceleration(double mean_logarithm) {
  const auto bits = static_cast<std::uint64_t>(std::ldexp(mean_logarithm, kLogarithmShift));
  double square;
  std::memcpy(&square, &bits, sizeof square);
  return std::sqrt(square);
}

double reference_acceleration(const StepMeasures& measures, std::uint64_t particles) {
  const SquareUnits& sums = measures.squares;
  return reference_acceleration(std::sqrt(mean_square(sums.acceleration, measures.maxima.acceleration, particles)),
                                typical_acceleration(static_cast<double>(sums.logarithm) /
                                                     static_cast<double>(particles)));
}

EnergySums energy_sums(const Stream& stream, const Particles& particles, const DeviceBuffer<float>& short_potential,
                       const DeviceBuffer<float>* long_potential) {
  const KineticOf kinetic{particles.source.data(), particles.momentum.view()};
  const float* far = long_potential != nullptr ? long_potential->data() : nullptr;
  return sum_over(stream, "energy_sums", particles.size(), EnergyOf{kinetic, short_potential.data(), far});
}

DoubleDouble kinetic_sum(const Stream& stream, const Particles& particles) {
  return sum_over(stream, "kinetic_sum", particles.size(),
                  KineticOf{particles.source.data(), particles.momentum.view()});
}

MomentumSums momentum_sums(const Stream& stream, const Particles& particles, const VectorArray& short_range,
                           const VectorArray* long_range) {
  const MomentumTerms terms =
      sum_over(stream, "momentum_sums", particles.size(),
               MomentumOf{particles.source.data(), particles.momentum.view(), both_ranges(short_range, long_range)});
  const DoubleDouble* v = terms.values;
  return {{v[0], v[1], v[2]}, v[3], {v[4], v[5], v[6]}, v[7]};
}

namespace {

struct MassOf {
  const SourceParticle* particles;
  MAKI_HD DoubleDouble operator()(std::size_t i) const { return DoubleDouble(particles[i].mass); }
};

struct AddConstant {
  float* values;
  float constant;
  MAKI_HD void operator()(std::size_t i) const { values[i] += constant; }
};

}  // namespace

CentreSums centre_sums(const Stream& stream, const Particles& particles) {
  const MomentumTerms terms =
      sum_over(stream, "centre_sums", particles.size(), CentreOf{particles.source.data(), particles.momentum.view()});
  const DoubleDouble* v = terms.values;
  return {v[0], {v[1], v[2], v[3]}, {v[4], v[5], v[6]}};
}

std::uint64_t count_beyond(const Stream& stream, const Particles& particles, const std::array<std::int32_t, 3>& shift,
                           std::int64_t reach) {
  const auto middle = [&](int axis) {
    return (1u << 31) + static_cast<std::uint32_t>(shift[static_cast<std::size_t>(axis)]);
  };
  return sum_over(stream, "count_beyond", particles.size(),
                  IsBeyond{particles.source.data(), middle(0), middle(1), middle(2), reach});
}

DoubleDouble mass_sum(const Stream& stream, const SourceParticle* particles, std::size_t n) {
  return sum_over(stream, "total_mass", n, MassOf{particles});
}

double total_mass(const Stream& stream, const SourceParticle* particles, std::size_t n) {
  return mass_sum(stream, particles, n).value();
}

void add_constant(const Stream& stream, DeviceBuffer<float>& values, float constant) {
  launch(stream, "add_constant", values.size(), AddConstant{values.data(), constant});
}

namespace {

struct Choose {
  const Group* groups;
  std::size_t n, wanted;
  std::uint32_t* indices;
  std::uint32_t* members;
  MAKI_HD void operator()(std::size_t i) const {
    const std::size_t begin = i * n / wanted, length = (i + 1) * n / wanted - begin;
    const std::size_t index = begin + (i * 2654435761u >> 7) % length;
    indices[i] = static_cast<std::uint32_t>(index);
    members[i] = groups[index].count;
  }
};

struct Gather {
  GroupSample sample;
  const SourceParticle* particles;
  SourceParticle* packed;
  Group* packed_groups;
  MAKI_HD void operator()(std::size_t i) const {
    Group g = sample.groups[sample.indices[i]];
    for (std::uint32_t k = 0; k < g.count; ++k) packed[sample.offsets[i] + k] = particles[g.first + k];
    g.first = sample.offsets[i];
    packed_groups[i] = g;
  }
};

struct Compare {
  GroupSample sample;
  ConstVectorView a, packed, b;
  MAKI_HD static double distance_squared(const ConstVectorView& v, std::size_t i, const ConstVectorView& w,
                                         std::size_t j) {
    const double dx = v.x[i] - w.x[j], dy = v.y[i] - w.y[j], dz = v.z[i] - w.z[j];
    return dx * dx + dy * dy + dz * dz;
  }
  MAKI_HD SampleError operator()(std::size_t i) const {
    const Group g = sample.groups[sample.indices[i]];
    SampleError e;
    for (std::uint32_t k = 0; k < g.count; ++k) {
      const std::uint32_t p = g.first + k, q = sample.offsets[i] + k;
      e.difference += distance_squared(a, p, b, q);
      e.packed_difference += distance_squared(packed, q, b, q);
      e.reference += static_cast<double>(b.x[q]) * b.x[q] + static_cast<double>(b.y[q]) * b.y[q] +
                     static_cast<double>(b.z[q]) * b.z[q];
    }
    return e;
  }
};

}  // namespace

void choose_sample(const Stream& stream, const DeviceBuffer<Group>& groups, std::uint32_t wanted,
                   DeviceBuffer<std::uint32_t>& indices, DeviceBuffer<std::uint32_t>& offsets) {
  indices.resize(wanted, 0.2);
  offsets.resize(wanted + 1, 0.2);
  DeviceBuffer<std::uint32_t> members("probes.members", wanted);
  launch(stream, "choose_sample", wanted, Choose{groups.data(), groups.size(), wanted, indices.data(), members.data()});
  exclusive_scan(stream, members.data(), offsets.data(), wanted);
}

void gather_sample(const Stream& stream, const GroupSample& sample, const SourceParticle* particles,
                   SourceParticle* packed, Group* packed_groups) {
  launch(stream, "gather_sample", sample.count, Gather{sample, particles, packed, packed_groups});
}

void sample_error(const Stream& stream, const GroupSample& sample, ConstVectorView acceleration, ConstVectorView packed,
                  ConstVectorView packed_reference, SampleError* error) {
  reduce_into(stream, "sample_error", sum_of(sample.count, Compare{sample, acceleration, packed, packed_reference}),
              error);
}

}  // namespace maki
