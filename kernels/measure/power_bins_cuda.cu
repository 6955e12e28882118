#include "kernels/device/launch.cuh"
#include "kernels/measure/power_parts.cuh"

namespace maki {
namespace {

constexpr unsigned kWarps = 4;  // of a block

// One plane a warp, 32 modes of a row at a time. Each lane computes one mode; then for each bin its first lane adds all
// shares of the bin, in order.
__global__ void __launch_bounds__(kWarps* kWarpSize) bin_kernel(BinPlanes all) {
  __shared__ ModeShare of_warp[kWarps][kWarpSize];
  const unsigned lane = threadIdx.x % kWarpSize, warp = threadIdx.x / kWarpSize;
  const unsigned plane = blockIdx.x * kWarps + warp;
  if (plane >= static_cast<unsigned>(all.part.rows.count_x)) return;
  ModeShare* const shares = of_warp[warp];
  BinSum* const mine = all.sums + std::size_t{plane} * static_cast<unsigned>(all.bins);
  for (unsigned b = lane; b < static_cast<unsigned>(all.bins); b += kWarpSize) mine[b] = {0, 0, 0};
  const int x = all.part.rows.first_x + static_cast<int>(plane);
  for (int j = 0; j < all.part.rows.count_y; ++j) {
    const int y = all.part.rows.first_y + j, n2_xy = all.squared(x, y);
    const std::size_t row = all.row(plane, j);
    for (int first = 0; first < all.part.length; first += static_cast<int>(kWarpSize)) {
      const int z = first + static_cast<int>(lane);
      const std::uint32_t bin = z < all.part.length ? all.bin(n2_xy, z) : BinPlanes::kNoBin;
      const bool counts = bin != BinPlanes::kNoBin;
      if (counts) shares[lane] = all.share(x, y, z, n2_xy, row);
      __syncwarp();  // other lanes read the shares and the empty bins
      const unsigned same = __match_any_sync(kAllLanes, bin);
      if (counts && static_cast<unsigned>(__ffs(static_cast<int>(same))) == lane + 1) {
        BinSum sum = mine[bin];
        for (unsigned left = same; left > 0; left &= left - 1) shares[__ffs(static_cast<int>(left)) - 1].add_to(sum);
        mine[bin] = sum;
      }
      __syncwarp();  // before the next shares are computed
    }
  }
}

}  // namespace

void bin_planes(const Stream& stream, const BinPlanes& planes) {
  const auto count = static_cast<unsigned>(planes.part.rows.count_x);
  launch_blocks(stream, "power.bin", {(count + kWarps - 1) / kWarps, kWarps * kWarpSize, 0}, bin_kernel, planes);
}

}  // namespace maki
