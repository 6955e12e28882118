// The one pass over the modes between the transforms: both interlaced meshes become one spectrum, and that is
// multiplied by influence function and gradient.
//
// x, y, z are the axes from the slowest to the one along the lines of modes, whichever they are: influence function and
// phases are alike for all axes.
#pragma once

#include "kernels/mesh/modes.cuh"

namespace maki {

inline constexpr int kPotentialAxis = -1;

// `out` = i D G rho along one axis, or -G rho for the potential; `out_shifted` the same for the shifted mesh of
// interlacing. Outputs may alias inputs: an item reads its own place, then writes it.
struct InfluencePass {
  Complex* mesh;           // modes of the first mesh, or rho
  const Complex* shifted;  // where not null: modes of the second, and rho = (mesh + phase shifted) / 2 (modes.cuh)
  Complex* rho;            // where not null: gets rho
  Complex* out;            // may be null
  Complex* out_shifted;    // may be null
  const float* influence;  // the part of the octant for these modes, lines [x][y][z]
  const float* gradient;   // D, one axis
  const Complex* phases;
  int m, axis;           // 0 x, 1 y, 2 z
  float nyquist_factor;  // with full interlacing the first mesh alone carries the Nyquist planes: 2, else 1
};

// The modes of a pass: `rows`, `stride` numbers apart. A row has the modes z = 0 ... m/2, or if `whole` z = 0 ... m -
// 1, where z above m/2 means z - m.
struct ModeBlock {
  RowBlock rows;
  int stride;
  bool whole;
  int octant_x, octant_y, octant_rows;  // the influence function's first x and y, and rows in a plane of it

  static ModeBlock all(int m) { return {{0, 0, m, m}, m / 2 + 1, false, 0, 0, m / 2 + 1}; }
};

namespace detail {

// The kind of pass is a template parameter: the loop over a row has no branches.
template <bool kCombine, bool kOut, bool kShifted, bool kWhole>
struct InfluenceRows {
  InfluencePass pass;
  int octant_x, octant_y, octant_rows;  // ModeBlock

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
    const std::size_t line = static_cast<std::size_t>(a - octant_x) * octant_rows + (b - octant_y);
    return {pass.influence + line * side, d, nyquist ? pass.nyquist_factor : 1.0f,
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
    float g =
        row.influence[kWhole && 2 * z > pass.m ? pass.m - z : z] * (pass.axis == 2 ? pass.gradient[z] : row.gradient);
    g *= 2 * z == pass.m ? pass.nyquist_factor : row.factor;
    const Complex value = pass.axis < 0 ? Complex{g * rho.re, g * rho.im} : Complex{-g * rho.im, g * rho.re};
    if (kShifted) pass.out_shifted[i] = product(value, {phase.re, -phase.im});
    if (kOut) pass.out[i] = value;
  }

#if !defined(__CUDACC__)
  // The same bits as at(), item by item. For the potential, decisions that at() takes for each item are taken once a
  // row, so that the compiler can vectorise the loop.
  void row(const Row& row, std::size_t first, int length) const {
    const int half = pass.m / 2;
    int z = 0;
    if (pass.axis < 0 && !pass.rho && !row.nyquist) {
      potential<false>(row, first, 0, half);
      at(row, half, first + static_cast<std::size_t>(half));
      if (kWhole) potential<true>(row, first, half + 1, length);
      z = length;
    }
    for (; z < length; ++z) at(row, z, first + static_cast<std::size_t>(z));
  }
  template <bool kUpper>
  void potential(const Row& all, std::size_t first, int begin, int end) const {
    const InfluencePass p = pass;
    const Row row = all;
    const Complex *const mesh = p.mesh + first, *const shifted = p.shifted + (kCombine ? first : 0);
    Complex *const out = p.out + (kOut ? first : 0), *const out_shifted = p.out_shifted + (kShifted ? first : 0);
#pragma GCC ivdep
    for (int z = begin; z < end; ++z) {
      Complex rho = mesh[z], phase{1, 0};
      if (kCombine || kShifted) phase = product(row.phase, p.phases[z]);
      if (kCombine) {
        const Complex moved = product(phase, shifted[z]);
        rho = {0.5f * (rho.re + moved.re), 0.5f * (rho.im + moved.im)};
      }
      const float g = row.influence[kUpper ? p.m - z : z] * row.gradient * row.factor;
      const Complex value{g * rho.re, g * rho.im};
      if (kShifted) out_shifted[z] = product(value, {phase.re, -phase.im});
      if (kOut) out[z] = value;
    }
  }
#endif
};

template <bool kCombine, bool kWhole>
void launch_influence(const Stream& stream, const InfluencePass& pass, const ModeBlock& modes) {
  const auto run = [&]<bool kOut, bool kShifted>() {
    launch_rows(stream, "mesh.influence", modes.rows, kWhole ? pass.m : pass.m / 2 + 1, modes.stride,
                InfluenceRows<kCombine, kOut, kShifted, kWhole>{pass, modes.octant_x, modes.octant_y,
                                                                modes.octant_rows});
  };
  if (pass.out && pass.out_shifted)
    run.template operator()<true, true>();
  else if (pass.out)
    run.template operator()<true, false>();
  else
    run.template operator()<false, true>();
}

}  // namespace detail

inline void launch_influence(const Stream& stream, const InfluencePass& pass, const ModeBlock& modes) {
  if (pass.shifted)
    modes.whole ? detail::launch_influence<true, true>(stream, pass, modes)
                : detail::launch_influence<true, false>(stream, pass, modes);
  else
    modes.whole ? detail::launch_influence<false, true>(stream, pass, modes)
                : detail::launch_influence<false, false>(stream, pass, modes);
}

}  // namespace maki
