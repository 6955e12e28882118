// How far forces are from exact ones: the figures that tests and benches quote.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace maki::testing {

struct ForceErrors {
  double median = 0, p99 = 0, max = 0;  // relative to |a|
  double rms = 0;                       // of the error, over the rms of |a|
};

// Of accelerations at the same targets, one or more. Where |a| is below `least` times its rms, errors are relative to
// that instead.
inline ForceErrors force_errors(const std::vector<std::array<double, 3>>& found,
                                const std::vector<std::array<double, 3>>& exact, double least = 0) {
  const std::size_t n = exact.size();
  std::vector<double> error(n), size(n);
  double errors2 = 0, sizes2 = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const auto &f = found[i], &e = exact[i];
    error[i] = std::hypot(f[0] - e[0], f[1] - e[1], f[2] - e[2]);
    size[i] = std::hypot(e[0], e[1], e[2]);
    errors2 += error[i] * error[i];
    sizes2 += size[i] * size[i];
  }
  const double floor = least * std::sqrt(sizes2 / static_cast<double>(n));
  for (std::size_t i = 0; i < n; ++i) error[i] /= std::max(size[i], floor);
  std::sort(error.begin(), error.end());
  return {error[n / 2], error[n * 99 / 100], error.back(), std::sqrt(errors2 / sizes2)};
}

// Of numbers: rms of the error over their rms.
inline double rms_error(const std::vector<double>& found, const std::vector<double>& exact) {
  double errors2 = 0, sizes2 = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    errors2 += (found[i] - exact[i]) * (found[i] - exact[i]);
    sizes2 += exact[i] * exact[i];
  }
  return std::sqrt(errors2 / sizes2);
}

}  // namespace maki::testing
