#include <algorithm>

#include "bench/pair_loop.hpp"
#include "kernels/device/buffer.hpp"
#include "kernels/device/device.hpp"
#include "kernels/device/stream.hpp"
#include "kernels/force/evaluate_kernel.cuh"

namespace maki::bench {
namespace {

constexpr int kPerLane = 4;    // as a full group of 64 has
constexpr unsigned kTurn = 3;  // sources a turn: coordinates change places, so that one addition makes a new source

template <class Law, bool kCells>
__global__ void __launch_bounds__(cuda::kBlock, cuda::kBlocks<Law>)
    register_loop(PairParameters k, unsigned turns, float step, float* sink) {
  using Real = Scalar<float>;
  cuda::LaneTargets<kPerLane> t;
#pragma unroll
  for (int j = 0; j < kPerLane; ++j) {
    const float place = 0.001f * static_cast<float>(threadIdx.x + 7 * j);
    t.x[j] = Real(place), t.y[j] = Real(0.1f - place), t.z[j] = Real(0.5f * place);
  }
  t.clear();
  float a = 0.1f, b = 0.2f, c = 0.3f;
  const CellTerms<Real> q{Real(step), Real(a), Real(b), Real(c), Real(step), Real(a), Real(b), Real(c)};
#pragma unroll 1
  for (unsigned i = 0; i < turns; ++i) {
#pragma unroll
    for (unsigned u = 0; u < kTurn; ++u) {
      if constexpr (kCells) {
#pragma unroll
        for (int j = 0; j < kPerLane; ++j)
          add_cell<Law>(k, Real(a) - t.x[j], Real(b) - t.y[j], Real(c) - t.z[j], q, t.sum[j]);
      } else {
        cuda::add_point<Law, false>(k, make_float4(a, b, c, 1.0f + step), Real(0.0f), t);
      }
      const float next = a + step;
      a = b, b = c, c = next;
    }
  }
  Real sum(0.0f);
#pragma unroll
  for (int j = 0; j < kPerLane; ++j) sum = sum + t.sum[j].ax + t.sum[j].ay + t.sum[j].az + t.sum[j].p;
  sink[blockIdx.x * cuda::kBlock + threadIdx.x] = sum.v;
}

template <class Law>
void launch_loop(const Stream& stream, const PairParameters& k, bool cells, unsigned grid, unsigned turns,
                 float* sink) {
  const float step = 1e-6f;
  if (cells)
    launch_blocks(stream, "register_loop", {grid, cuda::kBlock}, register_loop<Law, true>, k, turns, step, sink);
  else
    launch_blocks(stream, "register_loop", {grid, cuda::kBlock}, register_loop<Law, false>, k, turns, step, sink);
}

}  // namespace

double loop_rate(const Stream& stream, const ForceLaw& law, bool cells, bool potential) {
  const PairParameters k = make_pair_parameters(law);
  const unsigned grid = static_cast<unsigned>(device_info().units) * 40, turns = cells ? 1000 : 4000;
  DeviceBuffer<float> sink("bench.sink", static_cast<std::size_t>(grid) * cuda::kBlock);
  StreamClock clock;
  double best = 0;
  for (int i = 0; i < 3; ++i) {  // the first warms up
    const std::size_t begin = clock.mark(stream);
    with_law(k, potential,
             [&](auto pair_law) { launch_loop<decltype(pair_law)>(stream, k, cells, grid, turns, sink.data()); });
    const double time = clock.seconds(begin, clock.mark(stream));
    best = std::max(best, static_cast<double>(grid) * cuda::kBlock * kPerLane * kTurn * turns / time);
  }
  return best;
}

}  // namespace maki::bench
