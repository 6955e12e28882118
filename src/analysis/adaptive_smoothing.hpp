// Pictures of particles: sharp where there are many, smooth where there are few.
#pragma once

#include <cstddef>
#include <vector>

namespace maki {

// `counts` are particles a pixel (fractions allowed) of a square picture of `size`^2 pixels. Where a pixel and its
// neighbourhood hold fewer than a handful, the value is taken from coarser pictures, each half as wide as the last
// (2 x 2 pixels averaged, then interpolated), blended so that no seams show. The sum changes little, but a
// measurement should use the counts. size^2 values in the same unit.
std::vector<double> smooth_where_sparse(const std::vector<double>& counts, std::size_t size);

}  // namespace maki
