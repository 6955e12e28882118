// A box of cells of a periodic mesh: what one rank holds of it, or all of it.
#pragma once

#include <cstddef>

namespace maki {

// Along each axis the cells origin, ..., origin + extent - 1, wrapped around; cell c is the box's cell
// (c - origin) mod `cells`. An axis that is held whole has extent = cells.
struct MeshBox {
  int cells = 0;              // of the mesh along one side
  int origin[3] = {0, 0, 0};  // in [0, cells)
  int extent[3] = {0, 0, 0};  // in [0, cells]

  static MeshBox whole(int cells) { return {cells, {0, 0, 0}, {cells, cells, cells}}; }
  std::size_t size() const {
    return static_cast<std::size_t>(extent[0]) * static_cast<std::size_t>(extent[1]) *
           static_cast<std::size_t>(extent[2]);
  }
  bool operator==(const MeshBox&) const = default;
};

}  // namespace maki
