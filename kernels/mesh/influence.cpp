#include "kernels/mesh/mesh.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace maki {
namespace {

constexpr double kPi = std::numbers::pi;
constexpr int kImages = 2;       // images on either side, in sums with the window
constexpr int kManyImages = 32;  // in sums of U^2 alone
constexpr double kNegligible = 1e-10;

// W(k r_cut) by cubic interpolation: spherical Bessel functions for each image of each mode would take seconds.
class WindowTable {
 public:
  WindowTable(const ForceLaw& law, double largest) : values_(static_cast<std::size_t>(largest / kStep) + 5) {
    const auto n = static_cast<long>(values_.size());
#pragma omp parallel for schedule(dynamic, 64)
    for (long i = 0; i < n; ++i) values_[i] = long_range_window(law, std::abs(static_cast<double>(i - 1)) * kStep);
  }
  double operator()(double x) const {
    const double at = x / kStep;
    const auto i = static_cast<std::size_t>(at);
    const double t = at - static_cast<double>(i);
    const double* v = &values_[i];  // at -1, 0, 1, 2 steps
    const double c1 = v[2] - v[0], c2 = 2 * v[0] - 5 * v[1] + 4 * v[2] - v[3], c3 = 3 * (v[1] - v[2]) + v[3] - v[0];
    return v[1] + 0.5 * t * (c1 + t * (c2 + t * c3));
  }

 private:
  static constexpr double kStep = 0.01;
  std::vector<double> values_;
};

double sinc(double x) { return x == 0 ? 1.0 : std::sin(x) / x; }

// The terms of one axis in the sums, by n = 0 ... m/2.
struct AxisMode {
  double gradient = 0;
  double wave[2 * kImages + 1];           // k_n
  double cloud[2 * kImages + 1];          // U_n^2 along this axis
  double all = 0, alternating = 0;        // sums of U_n^2 and of (-1)^n U_n^2
  double all_k2 = 0, alternating_k2 = 0;  // the same for U_n^2 k_n^2
};

std::vector<AxisMode> axis_modes(const MeshOptions& options) {
  const int m = options.cells, order = static_cast<int>(options.assignment);
  const std::vector<float> gradient = gradient_wave_numbers(m, options.gradient);
  std::vector<AxisMode> modes(static_cast<std::size_t>(m) / 2 + 1);
  for (int a = 0; a <= m / 2; ++a) {
    AxisMode& mode = modes[a];
    mode.gradient = gradient[a];
    for (int n = -kManyImages; n <= kManyImages; ++n) {
      const double wave = 2 * kPi * (a + static_cast<double>(n) * m), sign = n % 2 ? -1 : 1;
      const double u2 = std::pow(sinc(0.5 * wave / m), 2 * order);
      mode.all += u2;
      mode.alternating += sign * u2;
      mode.all_k2 += u2 * wave * wave;
      mode.alternating_k2 += sign * u2 * wave * wave;
      if (std::abs(n) > kImages) continue;
      mode.wave[n + kImages] = wave;
      mode.cloud[n + kImages] = u2;
    }
  }
  return modes;
}

struct ModeSums {
  const MeshOptions& options;
  Influence kind;
  double r_cut;
  const WindowTable& window;

  double influence(const AxisMode& x, const AxisMode& y, const AxisMode& z, bool nyquist) const {
    const bool in_even = options.interlacing != Interlacing::kNone && !nyquist;
    const bool out_even = options.interlacing == Interlacing::kFull && !nyquist;
    const double all = x.all * y.all * z.all;
    const double even = 0.5 * (all + x.alternating * y.alternating * z.alternating);
    const double in = in_even ? even : all;
    double out = out_even ? even : all;
    if (kind == Influence::kForce && options.gradient == Gradient::kAnalytic) {
      const double k2_all = x.all_k2 * y.all * z.all + x.all * y.all_k2 * z.all + x.all * y.all * z.all_k2;
      const double k2_alternating = x.alternating_k2 * y.alternating * z.alternating +
                                    x.alternating * y.alternating_k2 * z.alternating +
                                    x.alternating * y.alternating * z.alternating_k2;
      out = out_even ? 0.5 * (k2_all + k2_alternating) : k2_all;
    } else if (kind == Influence::kForce) {
      out *= x.gradient * x.gradient + y.gradient * y.gradient + z.gradient * z.gradient;
    }
    return out == 0 ? 0 : 4 * kPi * window_sum(x, y, z, in_even) / (in * out);
  }

  // sum_both U_n^2 D.k_n W(k_n r_cut) / k_n^2
  double window_sum(const AxisMode& x, const AxisMode& y, const AxisMode& z, bool even_only) const {
    double sum = 0;
    for (int i = 0; i <= 2 * kImages; ++i) {
      for (int j = 0; j <= 2 * kImages; ++j) {
        const double uxy = x.cloud[i] * y.cloud[j];
        if (uxy < kNegligible) continue;
        for (int l = even_only ? (i + j) % 2 : 0; l <= 2 * kImages; l += even_only ? 2 : 1) {
          const double u2 = uxy * z.cloud[l];
          if (u2 < kNegligible) continue;
          const double k2 = x.wave[i] * x.wave[i] + y.wave[j] * y.wave[j] + z.wave[l] * z.wave[l];
          const double w = u2 * window(std::sqrt(k2) * r_cut);
          if (kind == Influence::kPotential)
            sum += w / k2;
          else if (options.gradient == Gradient::kAnalytic)
            sum += w;
          else
            sum += w * (x.gradient * x.wave[i] + y.gradient * y.wave[j] + z.gradient * z.wave[l]) / k2;
        }
      }
    }
    return sum;
  }
};

// One value of the octant.
class InfluenceOfModes {
 public:
  InfluenceOfModes(const MeshOptions& options, const ForceLaw& law, Influence kind)
      : half_(options.cells / 2), window_(law, 2 * kPi * std::sqrt(3.0) * (kImages + 0.5) * options.cells * law.r_cut),
        modes_(axis_modes(options)), sums_{options, kind, law.r_cut, window_} {}
  InfluenceOfModes(const InfluenceOfModes&) = delete;
  InfluenceOfModes& operator=(const InfluenceOfModes&) = delete;

  // For a >= b >= c; the value for all their permutations.
  float operator()(int a, int b, int c) const {
    return a == 0 ? 0.0f : static_cast<float>(sums_.influence(modes_[a], modes_[b], modes_[c], a == half_));
  }

 private:
  int half_;
  WindowTable window_;
  std::vector<AxisMode> modes_;
  ModeSums sums_;
};

}  // namespace

std::vector<float> gradient_wave_numbers(int cells, Gradient gradient) {
  std::vector<float> d(static_cast<std::size_t>(cells), 0.0f);
  for (int n = 0; n < cells; ++n) {
    if (n == cells / 2) continue;
    const int wave = n < cells / 2 ? n : n - cells;
    const double angle = 2 * kPi * wave / cells;
    d[n] = static_cast<float>(gradient == Gradient::kSpectral
                                  ? 2 * kPi * wave
                                  : cells * (4.0 / 3.0 * std::sin(angle) - 1.0 / 6.0 * std::sin(2 * angle)));
  }
  return d;
}

std::vector<float> influence_function(const MeshOptions& options, const ForceLaw& law, Influence kind) {
  const InfluenceOfModes value(options, law, kind);
  const int half = options.cells / 2, side = half + 1;
  std::vector<float> out(static_cast<std::size_t>(side) * side * side);
  const auto store = [&](int a, int b, int c, float g) {
    out[(static_cast<std::size_t>(a) * side + b) * side + c] = g;
  };
  // The axes are alike: one value for all permutations of (a, b, c).
#pragma omp parallel for schedule(dynamic, 1)
  for (int i = 0; i <= half; ++i) {
    const int a = half - i;  // the longest first
    for (int b = 0; b <= a; ++b) {
      for (int c = 0; c <= b; ++c) {
        const float g = value(a, b, c);
        store(a, b, c, g), store(a, c, b, g), store(b, a, c, g);
        store(b, c, a, g), store(c, a, b, g), store(c, b, a, g);
      }
    }
  }
  return out;
}

std::vector<float> influence_function(const MeshOptions& options, const ForceLaw& law, Influence kind,
                                      const OctantLines& lines) {
  const InfluenceOfModes value(options, law, kind);
  const int side = options.cells / 2 + 1, rows = lines.end[1] - lines.first[1];
  const int count = (lines.end[0] - lines.first[0]) * rows;
  std::vector<float> out(static_cast<std::size_t>(std::max(count, 0)) * side);
#pragma omp parallel for schedule(dynamic, 4)
  for (int line = 0; line < count; ++line) {
    const int a = lines.first[0] + line / rows, b = lines.first[1] + line % rows;
    const int low = std::min(a, b), high = std::max(a, b);
    float* values = &out[static_cast<std::size_t>(line) * side];
    for (int c = 0; c < side; ++c)
      values[c] = c > high ? value(c, high, low) : c > low ? value(high, c, low) : value(high, low, c);
  }
  return out;
}

}  // namespace maki
