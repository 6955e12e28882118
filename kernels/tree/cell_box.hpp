// What the opening criterion reads of a cell beside its box and its centre of mass.
#pragma once

#include <cmath>

#include "kernels/tree/octree.hpp"

namespace maki {

// Size and offset of a cell whose box and centre of mass are there.
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
