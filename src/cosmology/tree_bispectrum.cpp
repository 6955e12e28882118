#include "src/cosmology/tree_bispectrum.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <vector>

namespace maki {
namespace {

// Of two sides and the cosine of the angle between their vectors.
double second_order_kernel(double a, double b, double mu) {
  return 5.0 / 7 + mu * (a / b + b / a) / 2 + 2.0 / 7 * mu * mu;
}

// Wave numbers that stand for those of a shell, how many modes have each, and the power there.
struct Sampled {
  std::vector<double> k, modes, power;
};

// Modes of the lattice of waves `wave` apart, by their length.
void take_lattice(const WaveShell& shell, double wave, Sampled& all) {
  std::map<int, int> by_square;
  const int most = static_cast<int>(shell.end / wave);
  for (int x = -most; x <= most; ++x)
    for (int y = -most; y <= most; ++y)
      for (int z = -most; z <= most; ++z) ++by_square[x * x + y * y + z * z];
  for (const auto& [square, count] : by_square) {
    const double k = wave * std::sqrt(square);
    if (k == 0 || k < shell.begin || k >= shell.end) continue;
    all.k.push_back(k);
    all.modes.push_back(count);
  }
}

void take_parts(const WaveShell& shell, Sampled& all) {
  constexpr int parts = 16;
  for (int i = 0; i < parts; ++i) {
    all.k.push_back(shell.begin + (shell.end - shell.begin) * (i + 0.5) / parts);
    all.modes.push_back(all.k.back() * all.k.back());
  }
}

Sampled sampled(const WaveShell& shell, double wave, const std::function<double(double)>& power) {
  constexpr double smooth = 10;  // waves from which on a shell is taken as continuous
  Sampled all;
  if (shell.end < smooth * wave)
    take_lattice(shell, wave, all);
  else
    take_parts(shell, all);
  std::transform(all.k.begin(), all.k.end(), std::back_inserter(all.power), power);
  return all;
}

bool closes(double a, double b, double c) { return c <= a + b && c >= std::abs(a - b); }

}  // namespace

double tree_bispectrum(const std::array<double, 3>& k, const std::array<double, 3>& powers) {
  double sum = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    const std::size_t j = (i + 1) % 3, other = (i + 2) % 3;
    const double mu = (k[other] * k[other] - k[i] * k[i] - k[j] * k[j]) / (2 * k[i] * k[j]);
    sum += 2 * second_order_kernel(k[i], k[j], mu) * powers[i] * powers[j];
  }
  return sum;
}

double mean_tree_bispectrum(const std::function<double(double)>& power, const std::array<WaveShell, 3>& shells,
                            double wave) {
  const Sampled a = sampled(shells[0], wave, power), b = sampled(shells[1], wave, power),
                c = sampled(shells[2], wave, power);
  double sum = 0, weights = 0;
  for (std::size_t i = 0; i < a.k.size(); ++i) {
    for (std::size_t j = 0; j < b.k.size(); ++j) {
      for (std::size_t l = 0; l < c.k.size(); ++l) {
        if (!closes(a.k[i], b.k[j], c.k[l])) continue;
        const double weight = a.modes[i] * b.modes[j] * c.modes[l] / (a.k[i] * b.k[j] * c.k[l]);
        weights += weight;
        sum += weight * tree_bispectrum({a.k[i], b.k[j], c.k[l]}, {a.power[i], b.power[j], c.power[l]});
      }
    }
  }
  return weights > 0 ? sum / weights : 0;
}

}  // namespace maki
