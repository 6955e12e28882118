// The 4-point difference of a potential's mesh.
#pragma once

#include "kernels/mesh/modes.cuh"

namespace maki {

// A whole periodic mesh, m x m rows of m + 2 floats.
struct PeriodicCells {
  const float* values;
  int m;
  MAKI_HD int wrapped(int i) const { return i < 0 ? i + m : i >= m ? i - m : i; }
  MAKI_HD const float* row(int x, int y) const {
    return values + (static_cast<std::size_t>(wrapped(x)) * m + wrapped(y)) * (m + 2);
  }
  MAKI_HD float at(const float* row, int z) const { return row[wrapped(z)]; }
};

// A box of cells with kGhosts more on every side; cell (0, 0, 0) is the first that is not a ghost.
struct GhostedCells {
  static constexpr int kGhosts = 2;
  const float* values;
  std::size_t plane_size, row_size;
  MAKI_HD const float* row(int x, int y) const {
    return values + static_cast<std::size_t>(x + kGhosts) * plane_size +
           static_cast<std::size_t>(y + kGhosts) * row_size + kGhosts;
  }
  MAKI_HD float at(const float* row, int z) const { return row[z]; }
};

// out = -d phi / dx along one axis, for a mesh of m cells a side.
template <class Cells>
struct FourPointGradient {
  Cells potential;
  float* out;
  int m, axis;

  struct Row {
    const float *up, *down, *up2, *down2;  // rows of the neighbours
  };
  MAKI_HD Row begin(int x, int y) const {
    const int dx = axis == 0, dy = axis == 1;
    return {potential.row(x + dx, y + dy), potential.row(x - dx, y - dy), potential.row(x + 2 * dx, y + 2 * dy),
            potential.row(x - 2 * dx, y - 2 * dy)};
  }
  MAKI_HD void at(const Row& r, int z, std::size_t i) const {
    const int dz = axis == 2;
    const float near = potential.at(r.up, z + dz) - potential.at(r.down, z - dz);
    const float far = potential.at(r.up2, z + 2 * dz) - potential.at(r.down2, z - 2 * dz);
    out[i] = static_cast<float>(m) * ((1.0f / 12.0f) * far - (2.0f / 3.0f) * near);
  }
};

}  // namespace maki
