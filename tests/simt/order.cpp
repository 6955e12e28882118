// Options, and the random numbers that decide who runs when.
#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "tests/simt/runtime.hpp"

namespace maki::simt {
namespace {

struct State {
  Options options;
  bool set = false;
  std::uint64_t random = 0;
};
State state;

void seed_random() { state.random = (state.options.seed + 1) * 0x9e3779b97f4a7c15ull; }

template <class Iterator>
void shuffle(Iterator first, Iterator last) {
  for (auto n = last - first; n > 1; --n) std::iter_swap(first + n - 1, first + random_number() % n);
}

}  // namespace

std::uint64_t random_number() {
  std::uint64_t z = (state.random += 0x9e3779b97f4a7c15ull);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

void set_options(const Options& options) {
  state.options = options;
  state.set = true;
  seed_random();
}

Options options() {
  if (!state.set) {
    Options first;
    if (const char* seed = std::getenv("MAKI_SIMT_SEED")) first.seed = std::strtoull(seed, nullptr, 10);
    set_options(first);
  }
  return state.options;
}

std::uint32_t draw_budget() {
  const std::uint32_t mean = options().preempt;
  if (mean == 0) return 1u << 20;
  return 1 + static_cast<std::uint32_t>(random_number() % (2 * std::uint64_t{mean}));
}

std::vector<unsigned> block_order(unsigned grid) {
  std::vector<unsigned> order(grid);
  std::iota(order.begin(), order.end(), 0u);
  shuffle(order.begin(), order.end());
  return order;
}

void thread_order(std::vector<unsigned>& order, unsigned threads) {
  order.resize(threads);
  std::iota(order.begin(), order.end(), 0u);
  switch (random_number() % 4) {
    case 0: break;
    case 1: std::reverse(order.begin(), order.end()); break;
    case 2: shuffle(order.begin(), order.end()); break;
    default: {  // warp after warp
      unsigned warp_order[kMostWarps];
      const unsigned warps = (threads + kLanes - 1) / kLanes;
      std::iota(warp_order, warp_order + warps, 0u);
      shuffle(warp_order, warp_order + warps);
      std::stable_sort(order.begin(), order.end(),
                       [&](unsigned a, unsigned b) { return warp_order[a / kLanes] < warp_order[b / kLanes]; });
    }
  }
}

}  // namespace maki::simt
