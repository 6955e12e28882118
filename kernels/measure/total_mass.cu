#include "kernels/measure/total_mass.hpp"

#include "kernels/device/launch.cuh"
#include "kernels/device/thrust.cuh"

namespace maki {
namespace {

struct MassOf {
  const SourceParticle* particles;
  MAKI_HD double operator()(std::size_t i) const { return particles[i].mass; }
};

struct AddConstant {
  float* values;
  float constant;
  MAKI_HD void operator()(std::size_t i) const { values[i] += constant; }
};

}  // namespace

double total_mass(const Stream& stream, const SourceParticle* particles, std::size_t n) {
  return reduce_over(stream, "total_mass", n, MassOf{particles}, 0.0, thrust::plus<double>());
}

void add_constant(const Stream& stream, DeviceBuffer<float>& values, float constant) {
  launch(stream, "add_constant", values.size(), AddConstant{values.data(), constant});
}

}  // namespace maki
