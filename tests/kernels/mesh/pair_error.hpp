// Error of the mesh force of one pair: the measure of the table in docs/design.md, "Force split".
#pragma once

#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "kernels/force/split.hpp"
#include "kernels/mesh/mesh.hpp"
#include "src/gravity/reference/exact_sums.hpp"
#include "tests/kernels/mesh/field_of.hpp"
#include "tests/on_device.hpp"

namespace maki::test {

// What the mesh should give at `d` from a unit mass: the periodic force less what the tree carries.
inline Vector3 exact_long_range(const ForceLaw& law, const Vector3& d) {
  Vector3 a = ewald_reference({{0, 0, 0}, d}, {1, 0}, {d}, {.alpha = 5}).acceleration[0];
  const double r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
  if (r2 >= static_cast<double>(law.r_cut) * law.r_cut) return a;
  const double s2 = r2 + static_cast<double>(law.softening) * law.softening;
  const double long_factor = 1 / (s2 * std::sqrt(s2)) - force_factor(law, r2);
  const double short_factor = 1 / (r2 * std::sqrt(r2)) - long_factor;
  for (int c = 0; c < 3; ++c) a[c] += short_factor * d[c];
  return a;
}

// rms |mesh - exact| in units of the Newton force at r_cut, for targets spread evenly over a ball of 1.2 r_cut.
inline double pair_error(const MeshOptions& options, const ForceLaw& law, int sources, int targets) {
  const Stream& stream = test::test_stream();
  ParticleMesh mesh(options, law);
  std::mt19937_64 random(12345);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::normal_distribution<double> normal;
  const auto n = static_cast<std::size_t>(targets) + 1;
  std::vector<SourceParticle> particles(n);
  DeviceBuffer<SourceParticle> source("test.source");
  VectorsOnDevice acceleration(n);
  double sum = 0;
  for (int s = 0; s < sources; ++s) {
    const auto any = [&] { return static_cast<std::uint32_t>(random()); };
    particles[0] = {any(), any(), any(), 1.0f};
    for (std::size_t t = 1; t < n; ++t) {
      Vector3 u{normal(random), normal(random), normal(random)};
      const double norm = std::sqrt(u[0] * u[0] + u[1] * u[1] + u[2] * u[2]);
      const double r = 1.2 * law.r_cut * std::cbrt(1e-6 + uniform(random)) / norm;
      const auto moved = [&](std::uint32_t from, double by) {
        return from + static_cast<std::uint32_t>(static_cast<std::int64_t>(by * kSideToUnits));
      };
      const SourceParticle& p = particles[0];
      particles[t] = {moved(p.x, r * u[0]), moved(p.y, r * u[1]), moved(p.z, r * u[2]), 0};
    }
    source.upload(stream, particles);
    mesh.long_range(stream, source.data(), n, unit_of(mesh, source), acceleration.view(), nullptr);
    const auto found = acceleration.download(stream);
    for (std::size_t t = 1; t < n; ++t) {
      const SourceParticle &a = particles[0], &b = particles[t];
      const Vector3 d{signed_difference(b.x, a.x) / kSideToUnits, signed_difference(b.y, a.y) / kSideToUnits,
                      signed_difference(b.z, a.z) / kSideToUnits};
      const Vector3 exact = exact_long_range(law, d);
      for (std::size_t c = 0; c < 3; ++c) sum += std::pow(found[t][c] - exact[c], 2);
    }
  }
  return std::sqrt(sum / (static_cast<double>(sources) * targets)) * law.r_cut * law.r_cut;
}

// One row of the table: mesh of 32^3, r_cut in cells. In labels, i: interlaced.
struct PairErrorRow {
  const char* label;
  Split split;
  int order;
  double r_cut_cells;
  Assignment assignment;
  Gradient gradient;
  Interlacing interlacing;
  double prototype;  // the prototype's error; of band-limited clouds the program's own, when they were made
  bool band_limited = false;
};

inline std::array<PairErrorRow, 10> pair_error_table() {
  using enum Split;
  using enum Assignment;
  using enum Gradient;
  constexpr Interlacing kFull = Interlacing::kFull, kOff = Interlacing::kNone;
  return {{
      {"S2        3    TSC  4-point     1+3", kS2, 1, 3.0, kTsc, kFourPoint, kOff, 8.4e-2},
      {"S2        3    TSC  spectral i  2+6", kS2, 1, 3.0, kTsc, kSpectral, kFull, 2.0e-2},
      {"n = 4     3    TSC  spectral i  2+6", kPolynomial, 4, 3.0, kTsc, kSpectral, kFull, 5.8e-3},
      {"n = 5     4.5  PCS  spectral    1+3", kPolynomial, 5, 4.5, kPcs, kSpectral, kOff, 4.9e-3},
      {"n = 5     4.5  TSC  spectral i  2+6", kPolynomial, 5, 4.5, kTsc, kSpectral, kFull, 1.5e-3},
      {"n = 5     4.5  PCS  spectral i  2+6", kPolynomial, 5, 4.5, kPcs, kSpectral, kFull, 4.7e-4},
      {"n = 6     6    PCS  spectral i  2+6", kPolynomial, 6, 6.0, kPcs, kSpectral, kFull, 7.9e-5},
      {"n = 3 band 2.48 PCS  analytic i  2+2", kPolynomial, 3, 2.48, kPcs, kAnalytic, kFull, 3.8e-3, true},
      {"n = 4 band 2.85 PCS  analytic i  2+2", kPolynomial, 4, 2.85, kPcs, kAnalytic, kFull, 1.6e-3, true},
      {"n = 6 band 5    PCS  spectral i  2+6", kPolynomial, 6, 5.0, kPcs, kSpectral, kFull, 6.8e-5, true},
  }};
}

inline double pair_error(const PairErrorRow& row, int sources, int targets) {
  constexpr int cells = 32;
  const double r_cut = row.r_cut_cells / cells;
  return pair_error({cells, row.assignment, row.gradient, row.interlacing},
                    make_force_law(row.split, row.order, r_cut, Softening::kPlummer, 1e-4 * r_cut,
                                   row.band_limited ? row.r_cut_cells : 0),
                    sources, targets);
}

}  // namespace maki::test
