// Random fields whose power spectrum is known mode by mode, as particles.
#pragma once

#include <cmath>
#include <random>
#include <vector>

#include "kernels/device/buffer.hpp"
#include "kernels/mesh/mesh.hpp"
#include "src/cosmology/power.hpp"
#include "src/ic/lagrangian.hpp"
#include "tests/test_stream.hpp"

namespace maki::test {

// P(k) goes with k^index, and |delta_k|^2 is P of the mode exactly. Lengths in sides of the box. The particles stand on a
// lattice, so that modes a multiple of its side apart are one: a mesh has to be such that interlacing takes those for images.
class RandomField {
 public:
  RandomField(int side, double index, double sigma, std::uint64_t seed = 1)
      : side_(side),
        power_({.model = PowerModel::kPowerLaw, .power_law_index = index}, parameters(sigma), UnitSystem{}),
        grid_(make_linear_density({.seed = seed, .fixed_amplitudes = true}, power_, kBox, side_)) {
    grid_.to_points();
  }

  double power(double k) const { return power_(k / kBox) / (kBox * kBox * kBox); }

  // The lattice's points, of masses 1 + amplitude delta.
  std::vector<SourceParticle> weighted(double amplitude = 1) const {
    std::vector<SourceParticle> all;
    for_sites([&](const SourceParticle& p, double delta) {
      all.push_back({p.x, p.y, p.z, static_cast<float>(1 + amplitude * delta)});
    });
    return all;
  }

  // So many particles at the lattice's points, at each with a probability that goes with 1 + delta.
  std::vector<SourceParticle> sampled(std::size_t count) const {
    std::vector<SourceParticle> sites;
    std::vector<double> weights;
    for_sites([&](const SourceParticle& p, double delta) {
      sites.push_back(p);
      weights.push_back(std::max(0.0, 1 + delta));
    });
    std::mt19937_64 random(5);
    std::discrete_distribution<std::size_t> site(weights.begin(), weights.end());
    std::vector<SourceParticle> all(count);
    for (SourceParticle& p : all) p = sites[site(random)];
    return all;
  }

 private:
  static constexpr double kBox = 100;  // Mpc/h
  static CosmologyParameters parameters(double sigma) {
    CosmologyParameters parameters;
    parameters.sigma8 = sigma;
    return parameters;
  }
  template <class Visit>
  void for_sites(const Visit& visit) const {
    const auto at = [this](int i) { return static_cast<std::uint32_t>(i * kSideToUnits / side_); };
    for (int x = 0; x < side_; ++x)
      for (int y = 0; y < side_; ++y)
        for (int z = 0; z < side_; ++z) visit({at(x), at(y), at(z), 1.0f}, grid_.row(x, y)[z]);
  }

  int side_;
  PowerSpectrum power_;
  PeriodicGrid grid_;
};

struct OnDevice : DeviceBuffer<SourceParticle> {
  explicit OnDevice(const std::vector<SourceParticle>& set) : DeviceBuffer("test.source") {
    upload(test_stream(), set);
  }
  MeshParticles all() const { return {data(), size()}; }
};

}  // namespace maki::test
