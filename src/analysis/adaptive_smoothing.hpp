// Pictures of particles: sharp where there are many, smooth where there are few.
#pragma once

#include <cstddef>
#include <vector>

namespace maki {

// `counts` are particles a pixel (fractions allowed) of a square picture of `size`^2 pixels. Where a pixel and its
// neighbours hold fewer than a handful, what is in them is spread out: over coarser pictures, each half as wide as the
// last, until there are enough. What is dense stays where it is. The sum is kept but for the edges.
std::vector<double> smooth_where_sparse(const std::vector<double>& counts, std::size_t size);

}  // namespace maki
