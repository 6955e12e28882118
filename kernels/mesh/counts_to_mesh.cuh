// The exact counts of a mesh, or of some of its lines, become masses less their mean.
#pragma once

#include "kernels/mesh/mass_unit.hpp"
#include "kernels/mesh/modes.cuh"

namespace maki {
namespace detail {

struct CountsToMesh {
  const std::uint64_t* counts;
  float* mesh;
  int m, rows;               // rows of a plane
  std::uint64_t half, kept;  // MassUnit::rounded()
  std::int64_t mean;
  float quantum;

  using Row = const std::uint64_t*;
  MAKI_HD Row begin(int x, int y) const {
    return counts + (static_cast<std::size_t>(x) * static_cast<unsigned>(rows) + static_cast<unsigned>(y)) *
                        static_cast<unsigned>(m);
  }
  MAKI_HD void at(Row row, int z, std::size_t i) const {
    mesh[i] = z < m ? static_cast<float>(static_cast<std::int64_t>((row[z] + half) & kept) - mean) * quantum : 0.0f;
  }
};

}  // namespace detail

// mesh = (unit.rounded(counts) - unit.mean) quantum for x_lines x y_lines lines of m counts, `row` floats apart in the
// mesh; the padding of a row becomes 0.
inline void launch_counts_to_mesh(const Stream& stream, const std::uint64_t* counts, int x_lines, int y_lines, int m,
                                  const MassUnit& unit, float* mesh, std::size_t row) {
  launch_rows(stream, "mesh.to_float", {0, 0, x_lines, y_lines}, static_cast<int>(row), static_cast<int>(row),
              detail::CountsToMesh{counts, mesh, m, y_lines, MassUnit::half_of(unit.dropped_bits),
                                   MassUnit::kept_of(unit.dropped_bits), unit.mean, static_cast<float>(unit.quantum)});
}

}  // namespace maki
