// The bispectrum of matter at tree level: what gravity makes of Gaussian initial conditions at second order.
#pragma once

#include <array>
#include <functional>

namespace maki {

// 2 F2(k1, k2) P(k1) P(k2) and the two other pairs, with F2 = 5/7 + mu (k1/k2 + k2/k1)/2 + 2/7 mu^2 (Fry 1984, ApJ 279, 499;
// Bernardeau et al. 2002, Phys. Rep. 367, 1, eq. 45 for F2), of sides that close to a triangle. F2 is that of an Einstein-de
// Sitter universe, which others come near to within 1 %. `powers` are those of linear theory at the sides.
double tree_bispectrum(const std::array<double, 3>& sides, const std::array<double, 3>& powers);

// Wave numbers from `begin` to `end`.
struct WaveShell {
  double begin, end;
};
// The mean over the triangles with one side in each shell, of modes `wave` = 2 pi / side of the box apart. How many there are
// of given sides goes with the modes that have these lengths, over k1 k2 k3.
double mean_tree_bispectrum(const std::function<double(double)>& power, const std::array<WaveShell, 3>& shells,
                            double wave);

}  // namespace maki
