// The one pass over the modes between the transforms: both interlaced meshes become one spectrum, and that is
// multiplied by influence function and gradient.
#pragma once

#include "kernels/mesh/interlace.cuh"

namespace maki {

inline constexpr int kPotentialAxis = -1;

// `out` = i D G rho along one axis, or -G rho for the potential; `out_shifted` the same for the mesh on which particles
// stand half a cell further. Any of them may be an array that is read: an item reads its own place, then writes it.
struct InfluencePass {
  Complex* mesh;           // modes of the first mesh, or rho
  const Complex* shifted;  // where not null: modes of the second, and rho = (mesh + phase shifted) / 2 (interlace.cuh)
  Complex* rho;            // where not null: gets rho
  Complex* out;            // may be null
  Complex* out_shifted;    // may be null
  const float* influence;  // octant
  const float* gradient;   // D, one axis
  const Complex* phases;
  int m, axis;
  float nyquist_factor;  // with full interlacing the first mesh alone carries the Nyquist planes: 2, else 1
};

namespace detail {

// What a pass does is known to the compiler: the loop over a row has no branches.
template <bool kCombine, bool kOut, bool kShifted>
struct InfluenceRows {
  InfluencePass pass;

  struct Row {
    const float* influence;
    float gradient, factor;
    Complex phase;
    bool nyquist;
  };
  MAKI_HD Row begin(int x, int y) const {
    const int m = pass.m, side = m / 2 + 1, a = x < side ? x : m - x, b = y < side ? y : m - y;
    const float d = pass.axis == 0 ? pass.gradient[x] : pass.axis == 1 ? pass.gradient[y] : -1.0f;
    const bool nyquist = 2 * x == m || 2 * y == m;
    return {pass.influence + (static_cast<std::size_t>(a) * side + b) * side, d, nyquist ? pass.nyquist_factor : 1.0f,
            kCombine || kShifted ? product(pass.phases[x], pass.phases[y]) : Complex{1, 0}, nyquist};
  }
  MAKI_HD void at(const Row& row, int z, std::size_t i) const {
    const bool nyquist = row.nyquist || 2 * z == pass.m;
    Complex rho = pass.mesh[i], phase{1, 0};
    if (kCombine || kShifted) phase = product(row.phase, pass.phases[z]);
    if (kCombine) {
      const Complex moved = product(phase, pass.shifted[i]);
      const Complex both{0.5f * (rho.re + moved.re), 0.5f * (rho.im + moved.im)};
      rho = nyquist ? rho : both;
      if (pass.rho) pass.rho[i] = rho;
    }
    float g = row.influence[z] * (pass.axis == 2 ? pass.gradient[z] : row.gradient);
    g *= 2 * z == pass.m ? pass.nyquist_factor : row.factor;
    const Complex value = pass.axis < 0 ? Complex{g * rho.re, g * rho.im} : Complex{-g * rho.im, g * rho.re};
    if (kShifted) pass.out_shifted[i] = product(value, {phase.re, -phase.im});
    if (kOut) pass.out[i] = value;
  }
};

template <bool kCombine>
void launch_influence(const Stream& stream, const InfluencePass& pass) {
  constexpr const char* name = "mesh.influence";
  if (pass.out && pass.out_shifted)
    launch_modes(stream, name, pass.m, InfluenceRows<kCombine, true, true>{pass});
  else if (pass.out)
    launch_modes(stream, name, pass.m, InfluenceRows<kCombine, true, false>{pass});
  else
    launch_modes(stream, name, pass.m, InfluenceRows<kCombine, false, true>{pass});
}

}  // namespace detail

inline void launch_influence(const Stream& stream, const InfluencePass& pass) {
  pass.shifted ? detail::launch_influence<true>(stream, pass) : detail::launch_influence<false>(stream, pass);
}

}  // namespace maki
