// How often the host waits for the GPU in a step that makes no new tree: each wait lets the GPU run dry.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/config/parse.hpp"
#include "src/run/run_options.hpp"
#include "src/run/setup.hpp"
#include "src/run/start_run.hpp"
#include "tests/gpu_model/runtime/streams.hpp"
#include "tests/test_stream.hpp"

namespace maki {
namespace {

struct WaitCounter : RunObserver {
  void step(const StepMetrics& metrics, const PhaseTimers&) override {
    const std::uint64_t now = gpu_model::host_waits;
    const bool anew = metrics.gravity.rebuilt || metrics.gravity.rewalked_groups == metrics.gravity.groups;
    if (metrics.step > 0 && !anew) kept.push_back(now - before);
    before = now;
  }
  std::vector<std::uint64_t> kept;  // waits, of each such step; not of one whose lists erred and were all made anew
  std::uint64_t before = 0;
};

// Lists of which groups are too old; what lists and probes tell of the forces; what the next step is chosen from. Where
// the order of sums is fixed (run.deterministic, with the mesh of many ranks), the first is whether the particles have
// stayed in the part of the mesh that was laid around them.
void expect_three_waits(const std::string& toml, const std::vector<std::string>& settings) {
  const Prepared run = prepare(parse_config(toml, "waits.toml", settings));
  WaitCounter waits;
  SimulationOptions options = simulation_options(run);
  options.step_options.max_dlna =
      0.005;  // so small a set errs much in longer ones, and lists are made anew within a step
  Simulation simulation(test::test_stream(), run.initial, options, timeline_of(run), waits);
  simulation.run();
  EXPECT_GE(waits.kept.size(), 8u);
  for (const std::uint64_t n : waits.kept) EXPECT_LE(n, 3u);
}

TEST(KeptStep, OfAnIsolatedSetWaitsThreeTimes) {
  expect_three_waits("[run]\nkind = \"isolated\"\n[initial]\nkind = \"plummer\"\n",
                     {"particles=600", "truncation_radius=10", "gravity.softening=0.02", "fixed_step=0.01",
                      "end_time=0.2", "energy_interval=0"});
}

void expect_three_waits_of_a_box(const std::string& deterministic) {
  expect_three_waits("[box]\nsize = \"50 Mpc/h\"\n",
                     {"particles_per_side=8", "energy_interval=0", "output.image=false", "output.power_spectrum=false",
                      "initial.redshift=9", "end_redshift=7", "run.deterministic=" + deterministic});
}

TEST(KeptStep, OfABoxWaitsThreeTimes) { expect_three_waits_of_a_box("false"); }
TEST(KeptStep, OfADeterministicBoxWaitsThreeTimes) { expect_three_waits_of_a_box("true"); }

}  // namespace
}  // namespace maki
