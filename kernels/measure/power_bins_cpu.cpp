#include "kernels/measure/power_parts.cuh"

#include "kernels/device/launch.cuh"

namespace maki {
namespace {

// One plane a thread.
struct BinPlane {
  BinPlanes all;
  void operator()(std::size_t plane) const {
    BinSum* mine = all.sums + plane * static_cast<std::size_t>(all.bins);
    for (int b = 0; b < all.bins; ++b) mine[b] = {0, 0, 0};
    const int x = all.part.rows.first_x + static_cast<int>(plane);
    for (int j = 0; j < all.part.rows.count_y; ++j) {
      const int y = all.part.rows.first_y + j, n2_xy = all.squared(x, y);
      const std::size_t row = all.row(plane, j);
      for (int z = 0; z < all.part.length; ++z) {
        const std::uint32_t bin = all.bin(n2_xy, z);
        if (bin != BinPlanes::kNoBin) all.share(x, y, z, n2_xy, row).add_to(mine[bin]);
      }
    }
  }
};

}  // namespace

void bin_planes(const Stream& stream, const BinPlanes& planes) {
  launch(stream, "power.bin", static_cast<std::size_t>(planes.part.rows.count_x), BinPlane{planes});
}

}  // namespace maki
