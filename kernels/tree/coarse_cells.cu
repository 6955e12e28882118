#include <algorithm>

#include "kernels/device/launch.cuh"
#include "kernels/tree/octree.hpp"

namespace maki {
namespace {

// A cell size in sides, larger than any distance.
constexpr float kNeverFar = 1e6f;
// Boxes of cells below are rounded up, by 1e-6 of themselves at most: a cube still holds them.
constexpr float kRounding = 1.00001f;

struct OpenCoarse {
  CellGeometryView g;
  std::uint32_t begin;
  int level;

  // The middle of the box of what is in a cube lies in the cube.
  MAKI_HD std::uint32_t cube_centre(std::uint32_t inside) const {
    const std::uint32_t mask = level == 0 ? 0u : ~0u << (32 - level);
    return (inside & mask) + (0x80000000u >> level);
  }
  MAKI_HD void operator()(std::size_t i) const {
    const std::size_t cell = begin + i;
    g.x[cell] = cube_centre(g.x[cell]);
    g.y[cell] = cube_centre(g.y[cell]);
    g.z[cell] = cube_centre(g.z[cell]);
    g.hx[cell] = g.hy[cell] = g.hz[cell] = kRounding * 0.5f / static_cast<float>(1u << level);
    g.size[cell] = kNeverFar;
  }
};

}  // namespace

void open_coarse_cells(const Stream& stream, int level, Octree& tree) {
  const int levels = std::min(level, static_cast<int>(tree.level_begin.size()) - 1);
  for (int l = 0; l < levels; ++l) {
    const auto at = static_cast<std::size_t>(l);
    const std::uint32_t begin = tree.level_begin[at], end = tree.level_begin[at + 1];
    launch(stream, "coarse_cells", end - begin, OpenCoarse{tree.geometry.view(), begin, l});
  }
}

}  // namespace maki
