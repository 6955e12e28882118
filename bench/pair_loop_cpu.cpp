#include <chrono>
#include <cstdint>
#include <random>
#include <vector>

#include "bench/pair_loop.hpp"
#include "kernels/device/device.hpp"
#include "kernels/force/evaluate_cpu.hpp"

namespace maki::bench {

double loop_rate(const Stream&, const ForceLaw& law, bool cells, bool potential) {
  constexpr std::uint32_t kTargets = 96;
  const std::uint32_t n = cells ? 192 : 512;
  const PairParameters k = make_pair_parameters(law);
  std::vector<float> data(12 * 512 + 16);
  std::mt19937_64 random(2);
  std::uniform_real_distribution<float> uniform(0.0f, 1.0f);
  for (float& x : data) x = uniform(random);
  const auto address = reinterpret_cast<std::uintptr_t>(data.data());
  const float* sources = data.data() + (64 - address % 64) % 64 / sizeof(float);
  const std::uint32_t passes = 60000000 / (n * kTargets);
  volatile float sink = 0;
  const auto begin = std::chrono::steady_clock::now();
#pragma omp parallel
  {
    const float sum = force_kernels().loop(k, {sources, n, kTargets, passes, cells, potential});
#pragma omp critical
    sink = sink + sum;
  }
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  return static_cast<double>(n) * kTargets * passes * thread_count() / time.count();
}

}  // namespace maki::bench
