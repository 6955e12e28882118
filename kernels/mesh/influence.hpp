// The optimal influence function of a particle mesh.
#pragma once

#include <vector>

#include "kernels/mesh/mesh.hpp"

namespace maki {

enum class Influence { kForce, kPotential };

// G(k) for the mesh acceleration with modes i D(k) G(k) rho(k) (kForce; D the gradient's wave vector), or the mesh
// potential with modes -G(k) rho(k) (kPotential). It minimises the mean square error over all positions against point
// particles whose long-range pair force has the Fourier transform i k 4 pi W(k r_cut) / k^2 (Hockney & Eastwood 1988,
// eq. 8-22):
//
//   G = sum_both U_n^2 D.k_n 4 pi W(k_n r_cut) / k_n^2  /  (|D|^2  sum_in U_n^2  sum_out U_n^2),   k_n = k + 2 pi m n.
//
// U is the cloud's transform. `in` are the images that assignment aliases to k, `out` those that interpolation makes of
// k, `both` those in both sets. Interlacing in assignment removes the images with odd n_x + n_y + n_z from `in`, full
// interlacing from `out` as well. (On Nyquist planes, where k and -k are one mode, the meshes are not combined: all
// images count.) The potential has D = 1. With the analytic gradient each image has its own wave vector: D.k_n becomes
// k_n^2 above, and |D|^2 sum_out U_n^2 becomes sum_out U_n^2 k_n^2 below.
//
// Values for the octant 0 <= n <= m/2, (m/2 + 1)^3 of them, last axis contiguous; wave numbers k = 2 pi n in 1 / side.
// G(0) = 0.
std::vector<float> influence_function(const MeshOptions& options, const ForceLaw& law, Influence kind);

// Lines of the octant with a in [first[0], end[0]) and b in [first[1], end[1]): lines [a][b] of m/2 + 1 values, with
// the same bits as in the whole. (The axes are equivalent: a and b may be any two.)
struct OctantLines {
  int first[2], end[2];
};
std::vector<float> influence_function(const MeshOptions& options, const ForceLaw& law, Influence kind,
                                      const OctantLines& lines);

// D along one axis, by n = 0 ... m - 1 (n above m/2 means n - m): k, or the transform of the 4-point difference; 0 at
// m/2. Unused by the analytic gradient.
std::vector<float> gradient_wave_numbers(int cells, Gradient gradient);

}  // namespace maki
