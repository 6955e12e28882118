#include "kernels/measure/gravity_sums.hpp"

#include "kernels/device/algorithms.hpp"
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

struct AddErrors {
  MAKI_HD SampleError operator()(const SampleError& a, const SampleError& b) const {
    return {a.difference + b.difference, a.packed_difference + b.packed_difference, a.reference + b.reference};
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
  reduce_into(stream, "sample_error",
              Reduction{sample.count, Compare{sample, acceleration, packed, packed_reference}, SampleError{},
                        AddErrors{}},
              error);
}

}  // namespace maki
