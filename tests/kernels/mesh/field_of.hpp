// Forces and potential of a set by a mesh.
#pragma once

#include <vector>

#include "kernels/mesh/mesh.hpp"
#include "tests/on_device.hpp"
#include "tests/test_stream.hpp"

namespace maki::test {

struct Field {
  std::vector<float> x, y, z, potential;
  bool operator==(const Field&) const = default;

  void append(const Field& other) {
    for (const auto part : {&Field::x, &Field::y, &Field::z, &Field::potential})
      (this->*part).insert((this->*part).end(), (other.*part).begin(), (other.*part).end());
  }
};

// The mesh's second of two steps finds what the first has left. The potential is 0 where it is not wanted.
inline Field field_of(ParticleMesh& mesh, const std::vector<SourceParticle>& set, const MassUnit& unit,
                      bool potential = true, int steps = 1) {
  const Stream& stream = test_stream();
  const OnDevice source(set);
  VectorsOnDevice a(set.size());
  DeviceBuffer<float> phi("test.potential", set.size());
  phi.fill_zero(stream);
  for (int step = 0; step < steps; ++step)
    mesh.long_range(stream, source.data(), set.size(), unit, a.view(), potential ? phi.data() : nullptr);
  return {a.x.download(stream), a.y.download(stream), a.z.download(stream), phi.download(stream)};
}

// For a mesh of these particles alone.
inline MassUnit unit_of(const ParticleMesh& mesh, const DeviceBuffer<SourceParticle>& source) {
  const MeshOptions& o = mesh.options();
  return choose_mass_unit(test_stream(), o.assignment, o.cells, source.data(), source.size(), o.mass_bits);
}
inline Field field_of(ParticleMesh& mesh, const std::vector<SourceParticle>& set, bool potential = true,
                      int steps = 1) {
  return field_of(mesh, set, unit_of(mesh, OnDevice(set)), potential, steps);
}

}  // namespace maki::test
