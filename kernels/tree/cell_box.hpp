// Size and offset of a cell, which the opening criterion reads beside its box and its centre of mass.
#pragma once

#include <cmath>

#include "kernels/tree/octree.hpp"

namespace maki {

// Computes size and offset (sides) of a cell from its box and centre of mass.
MAKI_HD void store_size(const CellGeometryView& g, std::size_t cell) {
  float h = g.hx[cell] > g.hy[cell] ? g.hx[cell] : g.hy[cell];
  h = h > g.hz[cell] ? h : g.hz[cell];
  g.size[cell] = 2 * h;
  const float dx = separation(g.comx[cell], g.x[cell]);
  const float dy = separation(g.comy[cell], g.y[cell]);
  const float dz = separation(g.comz[cell], g.z[cell]);
  g.offset[cell] = std::sqrt(dx * dx + dy * dy + dz * dz);
}

}  // namespace maki
