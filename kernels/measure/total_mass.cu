#include "kernels/measure/total_mass.hpp"

#include "kernels/device/launch.cuh"
#include "kernels/device/thrust.cuh"

namespace maki {
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

DoubleDouble mass_sum(const Stream& stream, const SourceParticle* particles, std::size_t n) {
  return sum_over(stream, "total_mass", n, MassOf{particles});
}

double total_mass(const Stream& stream, const SourceParticle* particles, std::size_t n) {
  return mass_sum(stream, particles, n).value();
}

void add_constant(const Stream& stream, DeviceBuffer<float>& values, float constant) {
  launch(stream, "add_constant", values.size(), AddConstant{values.data(), constant});
}

}  // namespace maki
