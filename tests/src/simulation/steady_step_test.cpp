// What crosses between host and device, what the system is asked for, and how much memory is in use, step by step.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "kernels/device/memory.hpp"
#include "src/config/parse.hpp"
#include "src/config/resolve.hpp"
#include "src/run/estimate.hpp"
#include "src/run/run_options.hpp"
#include "src/run/setup.hpp"
#include "src/run/start_run.hpp"
#include "src/simulation/step_log.hpp"
#include "tests/test_stream.hpp"

namespace maki {
namespace {

constexpr std::uint64_t kSteadyBytes = 4096;

struct StepRecord {
  StepMetrics metrics;
  TransferCounters transfers;
  std::uint64_t system_allocations;
  std::size_t marks;
};

// Of the arrays whose names begin with one of the prefixes.
std::size_t bytes_of(const std::vector<PoolUse>& arrays, const std::vector<std::string>& prefixes) {
  std::size_t sum = 0;
  for (const PoolUse& array : arrays)
    for (const std::string& prefix : prefixes) sum += array.name.starts_with(prefix) ? array.bytes : 0;
  return sum;
}

// Reads the counters after each step and starts them again.
struct Watcher : RunObserver {
  void step(const StepMetrics& metrics, const PhaseTimers& timers) override {
    const PoolReport report = pool_report();
    steps.push_back({metrics, transfer_counters(), report.system_allocations, timers.marks_made()});
    kept = std::max(kept, report.in_use - bytes_of(report.arrays, {"mesh.", "fft.", "lists.", "probes."}));
    reset_transfer_counters();
  }
  std::vector<StepRecord> steps;
  std::size_t kept = 0;  // most bytes that stayed from one step to the next, without meshes and lists
};

// What grows with the number of particles, mesh aside: a GPU's walk has room of its own, 64 MiB however large the set.
const std::string kWalk = "lists.staging";
const std::vector<std::string> kLeftOut = {"mesh.", "fft.", kWalk};

Watcher watch_run(const Prepared& run, const SimulationOptions& options) {
  Watcher watcher;
  pool_trim();
  reset_transfer_counters();
  pool_watch({kLeftOut, {kWalk}});
  Simulation simulation(test::test_stream(), run.initial, options, timeline_of(run), watcher);
  simulation.run();
  return watcher;
}

struct Worst {
  std::uint64_t steady = 0, rebuild = 0;              // bytes of one step, both ways
  std::uint64_t steady_waits = 0, rebuild_waits = 0;  // times that the host waited for the device
  int kept_boundaries = 0;                            // steady steps with the mesh
};

Worst worst_of(const Watcher& watcher) {
  Worst worst;
  for (std::size_t i = 1; i < watcher.steps.size(); ++i) {
    const auto& [metrics, transfers, allocations, marks] = watcher.steps[i];
    const std::uint64_t bytes = transfers.to_device + transfers.to_host;
    const bool rebuilt = metrics.gravity.rebuilt;
    auto& most = rebuilt ? worst.rebuild : worst.steady;
    auto& waits = rebuilt ? worst.rebuild_waits : worst.steady_waits;
    most = std::max(most, bytes);
    waits = std::max(waits, transfers.waits);
    worst.kept_boundaries += !rebuilt && metrics.long_step_end;
  }
  std::printf("  %zu steps: steady %lu bytes, %lu waits; rebuild %lu bytes, %lu waits; at most\n",
              watcher.steps.size() - 1, static_cast<unsigned long>(worst.steady),
              static_cast<unsigned long>(worst.steady_waits), static_cast<unsigned long>(worst.rebuild),
              static_cast<unsigned long>(worst.rebuild_waits));
  return worst;
}

// Of at least 20 steps after the first few; a rebuild may ask for more when the set has grown lumpier.
void expect_no_allocations(const Watcher& watcher) {
  constexpr std::size_t warm_up = 10;
  int steady = 0;
  for (std::size_t i = warm_up; i < watcher.steps.size(); ++i) {
    if (watcher.steps[i].metrics.gravity.rebuilt) continue;
    EXPECT_EQ(watcher.steps[i].system_allocations, watcher.steps[i - 1].system_allocations) << "step " << i;
    ++steady;
  }
  EXPECT_GE(steady, 20);
  EXPECT_EQ(watcher.steps.back().marks, watcher.steps[warm_up].marks);  // events of the timers
}

void expect_steady(const Watcher& watcher, int least_kept_boundaries) {
  const Worst worst = worst_of(watcher);
  EXPECT_LE(worst.steady, kSteadyBytes);
  EXPECT_LE(worst.rebuild, kSteadyBytes);
  EXPECT_GT(worst.rebuild, 0u);
  EXPECT_GE(worst.kept_boundaries, least_kept_boundaries);
  expect_no_allocations(watcher);
}

// The standard preset in 50 Mpc/h.
Prepared box(int particles_per_side, int redshift) {
  return prepare(parse_config("[box]\nsize = \"50 Mpc/h\"\n", "box.toml",
                              {"particles_per_side=" + std::to_string(particles_per_side), "energy_interval=7",
                               "output.image=false", "output.power_spectrum=false",
                               "initial.redshift=" + std::to_string(redshift)}));
}

TEST(SteadyStep, OfABoxCopiesAtMost4KiBAndAllocatesNothing) {
  const Prepared run = box(32, 9);
  SimulationOptions options = simulation_options(run);
  options.end = 1 / (1 + 5.0);
  options.step_options.max_dlna = 0.01;  // steps between the mesh's too
  expect_steady(watch_run(run, options), 4);
}

TEST(SteadyStep, OfAnIsolatedSetCopiesAtMost4KiBAndAllocatesNothing) {
  const Prepared run =
      prepare(parse_config("[run]\nkind = \"isolated\"\n[initial]\nkind = \"plummer\"\n", "sphere.toml",
                           {"particles=10000", "truncation_radius=10", "gravity.softening=0.02", "fixed_step=0.01",
                            "end_time=0.45", "energy_interval=7"}));
  expect_steady(watch_run(run, simulation_options(run)), 0);
}

void expect_budget(const Watcher& watcher, std::size_t particles, const char* what) {
  const PoolPeak peak = pool_report().peaks[1];
  const auto a_particle = [particles](std::size_t bytes) {
    return static_cast<double>(bytes) / static_cast<double>(particles);
  };
  std::printf("%s, mesh aside\n%s", what, memory_table(peak.arrays, particles).c_str());
  std::printf("kept between steps, without lists: %.1f bytes a particle\n", a_particle(watcher.kept));
  EXPECT_LE(a_particle(peak.bytes), 150);   // with lists and the scratch of the sort
  EXPECT_LE(a_particle(watcher.kept), 99);  // SUSHI: 60, and 0.75 cells of 52
}

// The budget of docs/design.md, "Memory", early, with rebuilds, energies and both ranges.
TEST(Memory, OfAnEarlyBoxIsWithinTheBudget) {
  const Prepared run = box(64, 49);
  SimulationOptions options = simulation_options(run);
  options.end = 1 / (1 + 44.0);
  options.energy_interval = 2;
  options.gravity.fixed_reuse = 2;
  expect_budget(watch_run(run, options), run.particles, "64^3, z = 49 to 44");
  // The walk's room, 64 MiB at most, is that of the device and would hide the rest in so small a set.
  MemoryEstimate estimate = estimate_memory(run.config, run.particles);
  const double walk = std::exchange(estimate.walk, 0);
  const double measured = static_cast<double>(pool_report().peaks[2].bytes);
  EXPECT_NEAR(estimate.device(), measured, 0.25 * measured);
  EXPECT_LE(static_cast<double>(pool_report().high_water), 1.25 * (estimate.device() + walk));
}

// Clustered, so that lists are long. Steps are larger than the preset's: the memory is what counts here.
TEST(Memory, OfALateBoxIsWithinTheBudget) {
  const Prepared run = box(32, 9);
  SimulationOptions options = simulation_options(run);
  options.end = 0.5;
  options.step_options.eta = 0.8;
  options.step_options.max_dlna = options.step_options.long_dlna = 0.06;
  expect_budget(watch_run(run, options), run.particles, "32^3, z = 9 to 1");
}

}  // namespace
}  // namespace maki
