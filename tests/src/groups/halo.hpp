// Haloes made by hand, in a box of one side.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "kernels/particles/particles.hpp"

namespace maki::test {

// M(<r) of an NFW halo but for a factor: ln(1 + x) - x / (1 + x), x = r / r_s.
inline double nfw_mass(double x) { return std::log1p(x) - x / (1 + x); }

struct HaloSet {
  std::vector<std::array<double, 3>> fractions;
  std::vector<std::array<float, 3>> momenta;
  std::vector<float> masses;
  std::vector<std::uint64_t> ids;

  void add(const std::array<double, 3>& at, const std::array<float, 3>& momentum, float mass) {
    std::array<double, 3> wrapped = at;
    for (double& x : wrapped) x -= std::floor(x);
    fractions.push_back(wrapped);
    momenta.push_back(momentum);
    masses.push_back(mass);
    ids.push_back(1000 - 7 * (ids.size() % 100) + 1000 * (ids.size() / 100));  // not in order
  }
  void upload(const Stream& stream, Particles& particles) const {
    upload_particles(stream, particles, fractions, momenta, masses, ids);
  }
};

struct NfwHalo {
  std::array<double, 3> centre{};
  double radius = 0.02;       // r_200, sides
  double concentration = 8;   // r_200 / r_s
  double edge = 2;            // where it ends, in r_200
  double mass = 1;            // within r_200
  std::size_t particles = 0;  // within the edge
  std::array<double, 3> velocity{};
  double rotation = 0;  // about z: velocity per side
};

// Radii are quantiles of the mass, so that the profile has no noise; directions are random.
inline void add_halo(HaloSet& set, const NfwHalo& halo, unsigned seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> u(-1, 1);
  const double scale = halo.radius / halo.concentration, all = nfw_mass(halo.edge * halo.concentration);
  const double mass = halo.mass * all / nfw_mass(halo.concentration) / static_cast<double>(halo.particles);
  for (std::size_t i = 0; i < halo.particles; ++i) {
    const double wanted = all * (static_cast<double>(i) + 0.5) / static_cast<double>(halo.particles);
    double low = 0, high = halo.edge * halo.concentration;
    for (int k = 0; k < 60; ++k) (nfw_mass((low + high) / 2) < wanted ? low : high) = (low + high) / 2;
    const double r = low * scale, cosine = u(random), phi = M_PI * u(random), sine = std::sqrt(1 - cosine * cosine);
    const double x = r * sine * std::cos(phi), y = r * sine * std::sin(phi), z = r * cosine;
    set.add({halo.centre[0] + x, halo.centre[1] + y, halo.centre[2] + z},
            {static_cast<float>(halo.velocity[0] - halo.rotation * y),
             static_cast<float>(halo.velocity[1] + halo.rotation * x), static_cast<float>(halo.velocity[2])},
            static_cast<float>(mass));
  }
}

}  // namespace maki::test
