#include "kernels/measure/probe_error.hpp"

#include "kernels/device/launch.cuh"
#include "kernels/device/thrust.cuh"

namespace maki {
namespace {

struct Pack {
  GroupSample sample;
  ConstVectorView from;
  VectorView packed;
  MAKI_HD void operator()(std::size_t i) const {
    const Group g = sample.groups[sample.indices[i]];
    for (std::uint32_t k = 0; k < g.count; ++k) {
      packed.x[sample.offsets[i] + k] = from.x[g.first + k];
      packed.y[sample.offsets[i] + k] = from.y[g.first + k];
      packed.z[sample.offsets[i] + k] = from.z[g.first + k];
    }
  }
};

struct Compare {
  GroupSample sample;
  ConstVectorView a, b;
  MAKI_HD SampleError operator()(std::size_t i) const {
    const Group g = sample.groups[sample.indices[i]];
    SampleError e;
    for (std::uint32_t k = 0; k < g.count; ++k) {
      const std::uint32_t p = g.first + k, q = sample.offsets[i] + k;
      const double dx = a.x[p] - b.x[q], dy = a.y[p] - b.y[q], dz = a.z[p] - b.z[q];
      e.difference += dx * dx + dy * dy + dz * dz;
      e.reference += static_cast<double>(b.x[q]) * b.x[q] + static_cast<double>(b.y[q]) * b.y[q] +
                     static_cast<double>(b.z[q]) * b.z[q];
    }
    return e;
  }
};

struct AddErrors {
  MAKI_HD SampleError operator()(const SampleError& a, const SampleError& b) const {
    return {a.difference + b.difference, a.reference + b.reference};
  }
};

}  // namespace

void pack_sample(const Stream& stream, const GroupSample& sample, ConstVectorView from, VectorView packed) {
  launch(stream, "pack_sample", sample.count, Pack{sample, from, packed});
}

SampleError sample_error(const Stream& stream, const GroupSample& sample, ConstVectorView acceleration,
                         ConstVectorView packed_reference) {
  return reduce_over(stream, "sample_error", sample.count, Compare{sample, acceleration, packed_reference},
                     SampleError{}, AddErrors{});
}

}  // namespace maki
