// Speed of the pair formula: a loop without memory (CPU: data in L1; GPU: in registers), and evaluate_lists over groups
// and lists as a tree makes them, gathering and part-filled vectors included. Pairs are counted once for each real
// target and source. On a GPU also for full groups of several sizes, beside the floor of issue slots.
#include <omp.h>

#include <CLI/CLI.hpp>

#include "bench/pair_lists.hpp"
#include "bench/pair_loop.hpp"
#include "bench/report.hpp"
#include "kernels/device/stream.hpp"

namespace {

using namespace maki;
using bench::Lists;
using bench::Uploaded;

struct Variant {
  const char* name;
  ForceLaw law;
  bool cells, potential;
  double slots;  // issue slots a pair in the inner loop of 4 targets a lane, sm_90 (`make sass-check`); 0: not stated
};

std::vector<Variant> variants(bool cpu) {
  const double softening = 1e-4, r_cut = 0.05;
  const auto split = [&](int n) {
    return make_force_law(Split::kPolynomial, n, r_cut, Softening::kPlummer, softening);
  };
  const ForceLaw plain = make_force_law(Split::kNone, 0, 0, Softening::kPlummer, softening), n5 = split(5);
  const ForceLaw spline = make_force_law(Split::kPolynomial, 5, r_cut, Softening::kSpline, softening);
  const ForceLaw s2 = make_force_law(Split::kS2, 0, r_cut, Softening::kPlummer, softening);
  if (!cpu)
    return {{"plain, potential", plain, false, true, 14.63},
            {"plain", plain, false, false, 13.63},
            {"split n=3", split(3), false, false, 18.75},
            {"split n=4", split(4), false, false, 19.63},
            {"split n=5", n5, false, false, 20.63},
            {"split n=6", split(6), false, false, 21.63},
            {"split n=5, potential", n5, false, true, 28.88},
            {"split n=5, spline softening", spline, false, false, 0},
            {"S2", s2, false, false, 38.75},
            {"quadrupole, plain, potential", plain, true, true, 40.25},
            {"quadrupole, plain", plain, true, false, 36.25},
            {"quadrupole, split n=4", split(4), true, false, 56.0},
            {"quadrupole, split n=5", n5, true, false, 59.25},
            {"quadrupole, split n=5, potential", n5, true, true, 74.25}};
  const auto coarse = [](ForceLaw law) {
    law.refine_root = false;
    return law;
  };
  return {{"plain, potential", coarse(plain), false, true, 0},
          {"plain, potential, refined root", plain, false, true, 0},
          {"plain", coarse(plain), false, false, 0},
          {"split n=5", coarse(n5), false, false, 0},
          {"split n=5, refined root", n5, false, false, 0},
          {"split n=5, potential", coarse(n5), false, true, 0},
          {"split n=5, spline softening", spline, false, false, 0},
          {"S2", coarse(s2), false, false, 0},
          {"quadrupole, plain, potential", coarse(plain), true, true, 0},
          {"quadrupole, plain", coarse(plain), true, false, 0},
          {"quadrupole, split n=5", coarse(n5), true, false, 0}};
}

// Near lists for pairs of particles, far ones for cells, on the device.
struct Sets {
  Sets(const Stream& stream, Lists near_lists, Lists far_lists)
      : near(std::move(near_lists)), far(std::move(far_lists)), near_device(stream, near), far_device(stream, far) {}

  void print(const std::string& on) const {
    fmt::print("{}: {} groups of {:.0f} particles; {:.0f} particles or {:.0f} cells to a list\n", on,
               near.groups.size(), static_cast<double>(near.particles.size()) / static_cast<double>(near.groups.size()),
               near.pairs_with_particles / static_cast<double>(near.particles.size()),
               far.pairs_with_cells / static_cast<double>(far.particles.size()));
  }
  // Pairs a second: enough launches one after another that starting and ending them does not count.
  double rate(const Stream& stream, const Variant& v, bool cpu) {
    Uploaded& device = v.cells ? far_device : near_device;
    const double pairs = v.cells ? far.pairs_with_cells : near.pairs_with_particles;
    StreamClock clock;
    const int launches = cpu ? 1 : std::max(3, static_cast<int>(2e10 / pairs));
    const std::size_t begin = clock.mark(stream);
    for (int i = 0; i < launches; ++i) device.evaluate(stream, v.law, v.potential);
    return pairs * launches / clock.seconds(begin, clock.mark(stream));
  }
  Lists near, far;
  Uploaded near_device, far_device;
};

void run_cpu(int threads, int repeat, bench::Report& report) {
  select_device(0, threads);
  const Stream stream;
  const std::string on = fmt::format(", {} thread{}", thread_count(), thread_count() > 1 ? "s" : "");
  Sets sets(stream, bench::make_lists(80, 0), bench::make_lists(0, 700));
  sets.print(backend_name() + on);
  fmt::print("  {:<34} {:>10} {:>10} {:>7}\n", "1e9 pairs a second", "L1 loop", "lists", "ratio");
  for (const Variant& v : variants(true)) {
    double loop = 0, lists = 0;
    sets.rate(stream, v, true);
    for (int i = 0; i < repeat; ++i) {
      loop = std::max(loop, bench::loop_rate(stream, v.law, v.cells, v.potential));
      lists = std::max(lists, sets.rate(stream, v, true));
    }
    fmt::print("  {:<34} {:>10.3f} {:>10.3f} {:>7.3f}\n", v.name, loop * 1e-9, lists * 1e-9, lists / loop);
    report.add(v.name + on + ", lists", lists, "pairs/s");
    report.add(v.name + on + ", L1 loop", loop, "pairs/s");
    report.add(v.name + on + ", lists over L1 loop", lists / loop, "");
  }
}

// One table for a set. The floor: every lane of every multiprocessor issues one instruction a clock.
void run_gpu_set(const Stream& stream, const std::string& title, Sets& sets, int repeat, bench::Report& report) {
  const DeviceInfo device = device_info();
  const double slots = device.units * 128.0 * device.clock_ghz * 1e9;
  sets.print(title);
  fmt::print("  {:<34} {:>8} {:>9} {:>9} {:>9} {:>9} {:>9}\n", "1e9 pairs a second", "slots", "floor", "registers",
             "lists", "of floor", "of reg.");
  for (const Variant& v : variants(false)) {
    const double loop = bench::loop_rate(stream, v.law, v.cells, v.potential);
    double lists = 0;
    sets.rate(stream, v, false);
    for (int i = 0; i < repeat; ++i) lists = std::max(lists, sets.rate(stream, v, false));
    const double floor = v.slots > 0 ? slots / v.slots : 0;
    const auto shown = [](double x, int digits) {
      return x > 0 ? fmt::format("{:.{}f}", x, digits) : std::string("-");
    };
    fmt::print("  {:<34} {:>8} {:>9} {:>9.1f} {:>9.1f} {:>9} {:>9.3f}\n", v.name, shown(v.slots, 2),
               shown(floor * 1e-9, 1), loop * 1e-9, lists * 1e-9, shown(floor > 0 ? lists / floor : 0, 3),
               lists / loop);
    const std::string what = std::string(v.name) + ", " + title;
    report.add(what + ", lists", lists, "pairs/s");
    report.add(what + ", register loop", loop, "pairs/s");
    report.add(what + ", lists over register loop", lists / loop, "");
    if (floor > 0) report.add(what + ", lists over the floor of issue slots", lists / floor, "");
  }
}

void run_gpu(int repeat, bench::Report& report) {
  select_device(0, 0);
  const Stream stream;
  const DeviceInfo device = device_info();
  fmt::print("{}, {} multiprocessors, {:.3f} GHz, {}; slots are those of sm_90\n", device.name, device.units,
             device.clock_ghz, device.driver);
  for (const unsigned size : {64u, 128u, 256u}) {
    Sets full(stream, bench::make_full_lists(64, size, 80, 0), bench::make_full_lists(64, size, 0, 700));
    run_gpu_set(stream, fmt::format("groups of {}", size), full, repeat, report);
  }
  Sets mixed(stream, bench::make_lists(80, 0), bench::make_lists(0, 700));
  run_gpu_set(stream, "mixed groups", mixed, repeat, report);
}

}  // namespace

int main(int argc, char** argv) {
  int threads = 0, repeat = 5;
  std::string json;
  CLI::App app("Speed of the pair formula: a loop without memory, and interaction lists");
  app.add_option("--threads", threads, "CPU; 0: one, then all");
  app.add_option("--repeat", repeat, "the best of so many");
  app.add_option("--json", json);
  CLI11_PARSE(app, argc, argv);
  return bench::run_or_say("bench_pair", [&] {
    bench::Report report("pair", json);
    const int all = omp_get_max_threads();
    if (std::string(backend_name()) == "cuda") {
      run_gpu(repeat, report);
    } else {
      if (threads == 0) run_cpu(1, repeat, report);
      if (threads != 0 || all > 1) run_cpu(threads == 0 ? all : threads, repeat, report);
    }
    report.write();
  });
}
