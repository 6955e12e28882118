// Speed of the pair formula: a loop whose data stay in L1, and evaluate_lists over groups and lists as a tree makes
// them, gathering and part-filled vectors included. Pairs are counted once for each real target and source.
#include <omp.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>

#include "bench/report.hpp"
#include "kernels/force/evaluate_cpu.hpp"
#include "kernels/force/force.hpp"

namespace {

using namespace maki;

double seconds_of(const auto& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Particles in leaves on a grid, leaves and particles in Morton order; groups are runs of leaves. A group's list holds
// the leaves around it, and as many cells as a walk with theta = 0.5 finds.
struct Lists {
  std::vector<SourceParticle> particles;
  std::vector<CellMoments> cells;
  std::vector<std::uint32_t> cell_first, cell_count, words;
  std::vector<Group> groups;
  std::vector<ListRange> ranges;
  double pairs_with_particles = 0, pairs_with_cells = 0;
};

constexpr int kGrid = 32;  // leaves a side
constexpr double kLeafSide = 1.0 / kGrid;

std::uint32_t fixed(double x) { return static_cast<std::uint32_t>(static_cast<std::int64_t>(x * kSideToUnits)); }

// The position of leaf `key` on the grid: its bits are those of z, y, x in turn.
std::array<int, 3> grid_place(int key) {
  std::array<int, 3> at{};
  for (int bit = 0; bit < 15; ++bit) at[2 - bit % 3] |= (key >> bit & 1) << (bit / 3);
  return at;
}

void add_leaves(Lists& lists, std::mt19937_64& random) {
  std::uniform_real_distribution<double> inside(0, kLeafSide);
  for (int key = 0; key < kGrid * kGrid * kGrid; ++key) {
    const auto at = grid_place(key);
    const unsigned count = 6 + static_cast<unsigned>(random() % 11);  // a leaf size of 16 fills like this
    lists.cell_first.push_back(static_cast<std::uint32_t>(lists.particles.size()));
    lists.cell_count.push_back(count);
    for (unsigned i = 0; i < count; ++i)
      lists.particles.push_back({fixed(at[0] * kLeafSide + inside(random)), fixed(at[1] * kLeafSide + inside(random)),
                                 fixed(at[2] * kLeafSide + inside(random)), 1.0f});
    const float q = static_cast<float>(count * kLeafSide * kLeafSide / 12);
    lists.cells.push_back({fixed((at[0] + 0.5) * kLeafSide), fixed((at[1] + 0.5) * kLeafSide),
                           fixed((at[2] + 0.5) * kLeafSide), static_cast<float>(count), q, q, q, 0, 0, 0});
  }
}

void add_group(Lists& lists, std::uint32_t first_leaf, std::uint32_t leaves, unsigned near_leaves, unsigned cells,
               std::mt19937_64& random) {
  const auto n_leaves = static_cast<std::uint32_t>(lists.cell_first.size());
  const std::uint32_t first = lists.cell_first[first_leaf];
  const std::uint32_t last = first_leaf + leaves - 1;
  const std::uint32_t count = lists.cell_first[last] + lists.cell_count[last] - first;
  const CellMoments& c = lists.cells[first_leaf + leaves / 2];
  const float half = static_cast<float>(kLeafSide);
  lists.groups.push_back({first, count, c.x, c.y, c.z, half, half, half});
  ListRange range{lists.words.size(), 0, 0};
  std::vector<std::uint32_t> far, near;
  for (unsigned i = 0; i < cells; ++i) far.push_back(static_cast<std::uint32_t>(random() % n_leaves));
  // Neighbours in space are runs along the curve with gaps.
  std::uint32_t leaf = first_leaf + n_leaves - near_leaves;
  for (unsigned i = 0; i < near_leaves; ++i, leaf += (random() % 8 == 0) ? 5 : 1) near.push_back(leaf % n_leaves);
  std::sort(far.begin(), far.end());
  lists.words.insert(lists.words.end(), far.begin(), far.end());
  lists.words.insert(lists.words.end(), near.begin(), near.end());
  range.cells = cells, range.leaves = near_leaves;
  lists.ranges.push_back(range);
  lists.pairs_with_cells += static_cast<double>(count) * cells;
  for (const std::uint32_t l : near) lists.pairs_with_particles += static_cast<double>(count) * lists.cell_count[l];
}

// `near_leaves` and `cells` to a list; groups of 4 to 11 leaves, up to 128 particles.
Lists make_lists(unsigned near_leaves, unsigned cells) {
  std::mt19937_64 random(3);
  Lists lists;
  add_leaves(lists, random);
  for (std::uint32_t leaf = 0; leaf + 16 < lists.cell_first.size();) {
    std::uint32_t leaves = 0, particles = 0;
    const std::uint32_t most = 4 + static_cast<std::uint32_t>(random() % 8);
    while (leaves < most && particles + lists.cell_count[leaf + leaves] <= 128)
      particles += lists.cell_count[leaf + leaves++];
    add_group(lists, leaf, leaves, near_leaves, cells, random);
    leaf += leaves;
  }
  return lists;
}

// The lists on the device, and room for the result.
struct Uploaded {
  Uploaded(const Stream& stream, const Lists& lists) : acceleration("bench.acceleration") {
    particles.upload(stream, lists.particles);
    cells.upload(stream, lists.cells);
    cell_first.upload(stream, lists.cell_first);
    cell_count.upload(stream, lists.cell_count);
    words.upload(stream, lists.words);
    groups.upload(stream, lists.groups);
    ranges.upload(stream, lists.ranges);
    acceleration.resize(lists.particles.size());
    potential.resize(lists.particles.size());
  }
  void evaluate(const Stream& stream, const ForceLaw& law, bool with_potential) {
    evaluate_lists(stream, law, true, {particles.data(), cells.data(), cell_first.data(), cell_count.data()},
                   {groups.data(), ranges.data(), words.data(), nullptr, static_cast<std::uint32_t>(groups.size())},
                   {acceleration.view(), with_potential ? potential.data() : nullptr});
    stream.synchronize();
  }
  DeviceBuffer<SourceParticle> particles{"bench.particles"};
  DeviceBuffer<CellMoments> cells{"bench.cells"};
  DeviceBuffer<std::uint32_t> cell_first{"bench.cell_first"}, cell_count{"bench.cell_count"}, words{"bench.words"};
  DeviceBuffer<Group> groups{"bench.groups"};
  DeviceBuffer<ListRange> ranges{"bench.ranges"};
  VectorArray acceleration;
  DeviceBuffer<float> potential{"bench.potential"};
};

struct Variant {
  const char* name;
  ForceLaw law;
  bool cells, potential;
};

std::vector<Variant> variants() {
  const double softening = 1e-4, r_cut = 0.05;
  const ForceLaw plain = make_force_law(Split::kNone, 0, 0, Softening::kPlummer, softening);
  const ForceLaw n5 = make_force_law(Split::kPolynomial, 5, r_cut, Softening::kPlummer, softening);
  const ForceLaw spline = make_force_law(Split::kPolynomial, 5, r_cut, Softening::kSpline, softening);
  const ForceLaw s2 = make_force_law(Split::kS2, 0, r_cut, Softening::kPlummer, softening);
  const auto coarse = [](ForceLaw law) {
    law.refine_root = false;
    return law;
  };
  return {{"plain, potential", coarse(plain), false, true},
          {"plain, potential, refined root", plain, false, true},
          {"plain", coarse(plain), false, false},
          {"split n=5", coarse(n5), false, false},
          {"split n=5, refined root", n5, false, false},
          {"split n=5, potential", coarse(n5), false, true},
          {"split n=5, spline softening", spline, false, false},
          {"S2", coarse(s2), false, false},
          {"quadrupole, plain, potential", coarse(plain), true, true},
          {"quadrupole, plain", coarse(plain), true, false},
          {"quadrupole, split n=5", coarse(n5), true, false}};
}

// Pairs a second of the L1 loop, on all threads in use; best of `repeat`.
double loop_rate(const Variant& v, int repeat) {
  constexpr std::uint32_t kTargets = 96;
  const std::uint32_t n = v.cells ? 192 : 512;
  const PairParameters k = make_pair_parameters(v.law);
  std::vector<float> data(12 * 512 + 16);
  std::mt19937_64 random(2);
  std::uniform_real_distribution<float> uniform(0.0f, 1.0f);
  for (float& x : data) x = uniform(random);
  const auto address = reinterpret_cast<std::uintptr_t>(data.data());
  const float* sources = data.data() + (64 - address % 64) % 64 / sizeof(float);
  const std::uint32_t passes = 60000000 / (n * kTargets);
  double best = 0;
  volatile float sink = 0;
  for (int i = 0; i < repeat; ++i) {
    const double t = seconds_of([&] {
#pragma omp parallel
      {
        const float sum = cpu_kernels().loop(k, {sources, n, kTargets, passes, v.cells, v.potential});
#pragma omp critical
        sink = sink + sum;
      }
    });
    best = std::max(best, static_cast<double>(n) * kTargets * passes * thread_count() / t);
  }
  return best;
}

void run(int threads, int repeat, bench::Report& report) {
  select_device(0, threads);
  const Stream stream;
  const bool cpu = std::string(backend_name()) == "cpu";
  const Lists near = make_lists(80, 0), far = make_lists(0, 700);
  Uploaded near_device(stream, near), far_device(stream, far);
  const std::string on = cpu ? fmt::format(", {} thread{}", thread_count(), thread_count() > 1 ? "s" : "") : "";
  fmt::print("{}{}: {} groups of {:.0f} particles; {:.0f} particles or {:.0f} cells to a list\n", backend_name(), on,
             near.groups.size(), static_cast<double>(near.particles.size()) / static_cast<double>(near.groups.size()),
             near.pairs_with_particles / static_cast<double>(near.particles.size()),
             far.pairs_with_cells / static_cast<double>(far.particles.size()));
  fmt::print("  {:<34} {:>10} {:>10} {:>7}\n", "1e9 pairs a second", "L1 loop", "lists", "ratio");
  for (const Variant& v : variants()) {
    Uploaded& device = v.cells ? far_device : near_device;
    const double pairs = v.cells ? far.pairs_with_cells : near.pairs_with_particles;
    double loop = 0, time = 1e30;
    device.evaluate(stream, v.law, v.potential);
    for (int i = 0; i < repeat; ++i) {
      if (cpu) loop = std::max(loop, loop_rate(v, 1));
      time = std::min(time, seconds_of([&] { device.evaluate(stream, v.law, v.potential); }));
    }
    const double lists = pairs / time;
    report.add(v.name + on + ", lists", lists, "pairs/s");
    if (!cpu) {
      fmt::print("  {:<34} {:>10} {:>10.3f}\n", v.name, "", lists * 1e-9);
      continue;
    }
    fmt::print("  {:<34} {:>10.3f} {:>10.3f} {:>7.3f}\n", v.name, loop * 1e-9, lists * 1e-9, lists / loop);
    report.add(v.name + on + ", L1 loop", loop, "pairs/s");
    report.add(v.name + on + ", lists over L1 loop", lists / loop, "");
  }
}

}  // namespace

int main(int argc, char** argv) {
  int threads = 0, repeat = 5;
  std::string json;
  CLI::App app("Speed of the pair formula: a loop in L1, and interaction lists");
  app.add_option("--threads", threads, "0: one, then all");
  app.add_option("--repeat", repeat, "the best of so many");
  app.add_option("--json", json);
  CLI11_PARSE(app, argc, argv);
  try {
    bench::Report report("pair", json);
    const bool both = threads == 0 && std::string(backend_name()) == "cpu";
    const int all = omp_get_max_threads();
    if (both) run(1, repeat, report);
    if (!both || all > 1) run(both ? all : threads, repeat, report);
    report.write();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bench_pair: %s\n", e.what());
    return 1;
  }
}
