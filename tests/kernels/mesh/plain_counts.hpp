// Mass assignment as it is defined, one particle after another.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/mesh/cloud.hpp"
#include "kernels/mesh/mass_unit.hpp"

namespace maki::test {

template <int S>
void add_by_the_book(const SourceParticle& p, int m, std::uint32_t half_cells, const MassUnit& unit,
                     std::vector<std::int64_t>& counts) {
  const std::uint32_t c[3] = {p.x, p.y, p.z};
  std::uint32_t w[3][S], share[S], in_row[S];
  int first[3];
  for (int a = 0; a < 3; ++a) {
    const MeshPosition u = mesh_position<S>(c[a], static_cast<std::uint32_t>(m), half_cells);
    first[a] = u.first + m;
    integer_weights<S>(u.fraction, unit.bits, w[a]);
  }
  split_units<S>(units_of(p.mass, unit.equal_units, unit.units_per_mass), unit.bits, w[0], share);
  for (int i = 0; i < S; ++i) {
    split_units<S>(share[i], unit.bits, w[1], in_row);
    for (int j = 0; j < S; ++j) {
      std::int64_t* row = &counts[((first[0] + i) % m * m + (first[1] + j) % m) * m];
      for (int k = 0; k < S; ++k) {
        const std::uint64_t share = std::uint64_t{in_row[j]} * w[2][k], step = std::uint64_t{1} << unit.shed_bits;
        row[(first[2] + k) % m] += static_cast<std::int64_t>((share + step / 2) / step * step);
      }
    }
  }
}

inline std::vector<std::int64_t> counts_by_the_book(Assignment cloud, const std::vector<SourceParticle>& particles,
                                                    int m, std::uint32_t half_cells, const MassUnit& unit) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(m) * m * m);
  for (const SourceParticle& p : particles) {
    if (cloud == Assignment::kCic) add_by_the_book<2>(p, m, half_cells, unit, counts);
    if (cloud == Assignment::kTsc) add_by_the_book<3>(p, m, half_cells, unit, counts);
    if (cloud == Assignment::kPcs) add_by_the_book<4>(p, m, half_cells, unit, counts);
  }
  return counts;
}

}  // namespace maki::test
