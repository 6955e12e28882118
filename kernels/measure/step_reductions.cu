#include "kernels/measure/step_reductions.hpp"

#include <cmath>
#include <limits>

#include "kernels/device/thrust.cuh"

namespace maki {

namespace {

// Both ranges together; the long one is left out where its pointers are null.
struct Acceleration {
  ConstVectorView short_range;
  ConstVectorView long_range;

  MAKI_HD double x(std::size_t i) const { return sum(short_range.x, long_range.x, i); }
  MAKI_HD double y(std::size_t i) const { return sum(short_range.y, long_range.y, i); }
  MAKI_HD double z(std::size_t i) const { return sum(short_range.z, long_range.z, i); }
  MAKI_HD static double sum(const float* a, const float* b, std::size_t i) {
    return static_cast<double>(a[i]) + (b != nullptr ? static_cast<double>(b[i]) : 0.0);
  }
};

Acceleration both_ranges(const VectorArray& short_range, const VectorArray* long_range) {
  return {short_range.view(), long_range != nullptr ? long_range->view() : ConstVectorView{nullptr, nullptr, nullptr}};
}

MAKI_HD double square(double x, double y, double z) { return x * x + y * y + z * z; }

// Not-a-number wins on either side.
MAKI_HD double larger(double a, double b) { return (a > b || a != a) ? a : b; }

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
    StepMaxima maxima;
    maxima.acceleration = square(acceleration.x(i), acceleration.y(i), acceleration.z(i));
    maxima.momentum = square(momentum.x[i], momentum.y[i], momentum.z[i]);
    maxima.reach = reach_of(source[i]);
    return maxima;
  }
};

struct LargerOfEach {
  MAKI_HD StepMaxima operator()(const StepMaxima& a, const StepMaxima& b) const {
    StepMaxima maxima;
    maxima.acceleration = larger(a.acceleration, b.acceleration);
    maxima.momentum = larger(a.momentum, b.momentum);
    maxima.reach = a.reach > b.reach ? a.reach : b.reach;
    return maxima;
  }
};

struct ReachOf {
  const SourceParticle* source;
  MAKI_HD std::int64_t operator()(std::size_t i) const { return reach_of(source[i]); }
};

struct LargerReach {
  MAKI_HD std::int64_t operator()(std::int64_t a, std::int64_t b) const { return a > b ? a : b; }
};

// |p|^2 in 2^-31 of its maximum: 2^32 particles fit into 63 bits.
struct ScaledSquareMomentum {
  ConstVectorView momentum;
  double scale;
  MAKI_HD std::uint64_t operator()(std::size_t i) const {
    return static_cast<std::uint64_t>(square(momentum.x[i], momentum.y[i], momentum.z[i]) * scale + 0.5);
  }
};

struct AddIntegers {
  MAKI_HD std::uint64_t operator()(std::uint64_t a, std::uint64_t b) const { return a + b; }
};

struct AddDoubles {
  MAKI_HD double operator()(double a, double b) const { return a + b; }
};

struct KineticOf {
  const SourceParticle* source;
  ConstVectorView momentum;
  MAKI_HD double operator()(std::size_t i) const {
    return 0.5 * source[i].mass * square(momentum.x[i], momentum.y[i], momentum.z[i]);
  }
};

struct EnergyOf {
  KineticOf kinetic;
  const float* short_potential;
  const float* long_potential;
  MAKI_HD EnergySums operator()(std::size_t i) const {
    EnergySums sums;
    sums.mass = kinetic.source[i].mass;
    sums.kinetic = kinetic(i);
    sums.potential = 0.5 * sums.mass * Acceleration::sum(short_potential, long_potential, i);
    return sums;
  }
};

struct AddEnergies {
  MAKI_HD EnergySums operator()(const EnergySums& a, const EnergySums& b) const {
    EnergySums sums;
    sums.kinetic = a.kinetic + b.kinetic;
    sums.potential = a.potential + b.potential;
    sums.mass = a.mass + b.mass;
    return sums;
  }
};

// MomentumSums as plain numbers, since std::array has no device members.
struct MomentumTerms {
  double values[8] = {0, 0, 0, 0, 0, 0, 0, 0};  // sum m p (3), sum m |p|, sum m a (3), sum m |a|
};

struct MomentumOf {
  const SourceParticle* source;
  ConstVectorView momentum;
  Acceleration acceleration;
  MAKI_HD MomentumTerms operator()(std::size_t i) const {
    MomentumTerms terms;
    fill(terms.values, source[i].mass, momentum.x[i], momentum.y[i], momentum.z[i]);
    fill(terms.values + 4, source[i].mass, acceleration.x(i), acceleration.y(i), acceleration.z(i));
    return terms;
  }
  MAKI_HD static void fill(double* four, double mass, double x, double y, double z) {
    four[0] = mass * x;
    four[1] = mass * y;
    four[2] = mass * z;
    four[3] = mass * sqrt(square(x, y, z));
  }
};

struct AddMomenta {
  MAKI_HD MomentumTerms operator()(const MomentumTerms& a, const MomentumTerms& b) const {
    MomentumTerms sum;
    for (int k = 0; k < 8; ++k) sum.values[k] = a.values[k] + b.values[k];
    return sum;
  }
};

}  // namespace

StepMaxima step_maxima(const Stream& stream, const Particles& particles, const VectorArray& short_range,
                       const VectorArray* long_range) {
  StepMaxima maxima = reduce_over(
      stream, "step_maxima", particles.size(),
      MaximaOf{particles.source.data(), particles.momentum.view(), both_ranges(short_range, long_range)}, StepMaxima{},
      LargerOfEach{});
  maxima.acceleration = std::sqrt(maxima.acceleration);
  maxima.momentum = std::sqrt(maxima.momentum);
  return maxima;
}

std::int64_t largest_reach(const Stream& stream, const Particles& particles) {
  return reduce_over(stream, "largest_reach", particles.size(), ReachOf{particles.source.data()}, std::int64_t{0},
                     LargerReach{});
}

double mean_square_momentum(const Stream& stream, const Particles& particles, double max_momentum) {
  const std::size_t n = particles.size();
  if (std::isnan(max_momentum)) return std::numeric_limits<double>::quiet_NaN();
  if (n == 0 || max_momentum <= 0) return 0;
  const double scale = 2147483648.0 / (max_momentum * max_momentum);
  const std::uint64_t sum = reduce_over(stream, "mean_square_momentum", n,
                                        ScaledSquareMomentum{particles.momentum.view(), scale}, std::uint64_t{0},
                                        AddIntegers{});
  return static_cast<double>(sum) / scale / static_cast<double>(n);
}

EnergySums energy_sums(const Stream& stream, const Particles& particles, const DeviceBuffer<float>& short_potential,
                       const DeviceBuffer<float>* long_potential) {
  const KineticOf kinetic{particles.source.data(), particles.momentum.view()};
  const float* far = long_potential != nullptr ? long_potential->data() : nullptr;
  return reduce_over(stream, "energy_sums", particles.size(), EnergyOf{kinetic, short_potential.data(), far},
                     EnergySums{}, AddEnergies{});
}

double kinetic_sum(const Stream& stream, const Particles& particles) {
  return reduce_over(stream, "kinetic_sum", particles.size(),
                     KineticOf{particles.source.data(), particles.momentum.view()}, 0.0, AddDoubles{});
}

MomentumSums momentum_sums(const Stream& stream, const Particles& particles, const VectorArray& short_range,
                           const VectorArray* long_range) {
  const MomentumTerms terms = reduce_over(
      stream, "momentum_sums", particles.size(),
      MomentumOf{particles.source.data(), particles.momentum.view(), both_ranges(short_range, long_range)},
      MomentumTerms{}, AddMomenta{});
  const double* v = terms.values;
  return {{v[0], v[1], v[2]}, v[3], {v[4], v[5], v[6]}, v[7]};
}

}  // namespace maki
