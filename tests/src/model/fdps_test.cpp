// The model of Accelerated FDPS against what its paper prints: table 2, figures 8 to 12.
#include "src/model/published.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/error.hpp"
#include "src/config/parse.hpp"
#include "tests/places.hpp"

namespace maki::model {
namespace {

Accelerator node(const std::string& name) {
  return *read_machine(test::source_directory() + "/configs/machines/" + name + ".toml").accelerator;
}

FdpsRun run_of(double particles, double group, double processes = 1) {
  return {.particles = particles, .group = group, .processes = processes};
}

// The least over <n_i>, as figures compare machines.
double best(const Accelerator& machine, double reuse) {
  double least = 1e9;
  for (double group = 32; group < 5000; group *= 1.1) {
    FdpsRun run = run_of(0x1p22, group);
    run.reuse = reuse;
    least = std::min(least, fdps_single(run, machine));
  }
  return least;
}

TEST(Fdps, Table2Totals) {
  const Accelerator titan = node("titan_v");
  const FdpsRun g2 = run_of(0x1p22, 230);
  EXPECT_NEAR(fdps_node(g2, titan, false).whole(), 0.42, 0.005);  // G2
  EXPECT_NEAR(fdps_node(g2, titan, true).whole(), 0.095, 0.005);  // G3, reusing step
  FdpsRun g1 = run_of(0x1p22, 1500);
  g1.index_lists = false;
  EXPECT_NEAR(fdps_node(g1, titan, false).whole(), 0.36, 0.005);
}

TEST(Fdps, Table2Phases) {
  const FdpsRun run = run_of(0x1p22, 230);
  const FdpsNode made = fdps_node(run, node("titan_v"), false), kept = fdps_node(run, node("titan_v"), true);
  EXPECT_NEAR(made.root, 0.0066, 0.0005);
  EXPECT_NEAR(made.local_moments, 0.0053, 0.001);
  EXPECT_NEAR(made.local_tree, 0.095, 0.015);
  EXPECT_NEAR(made.global_tree, 0.096, 0.012);
  EXPECT_NEAR(kept.global_tree, 0.0071, 0.0001);
  EXPECT_NEAR(made.take_forces, 0.0060, 0.0001);
  EXPECT_NEAR(made.force(), 0.21, 0.03);
  EXPECT_NEAR(kept.force(), 0.072, 0.002);
}

TEST(Fdps, Figure8LittleIsGainedFromFourToSixteenReuses) {
  const Accelerator reference = node("fdps_reference");
  const double none = best(reference, 1), four = best(reference, 4), sixteen = best(reference, 16);
  EXPECT_GT(none / four, 1.5);
  EXPECT_LT(four / sixteen, 1.25);
}

TEST(Fdps, Figure9TheAcceleratorCountsAndTheBusDoesNot) {
  const double reference = best(node("fdps_reference"), 16);
  EXPECT_GT(reference / best(node("fdps_gpu2x"), 16), 1.4);
  EXPECT_GT(reference / best(node("fdps_gpu4x"), 16), 2);
  EXPECT_LT(reference / best(node("fdps_link4x"), 16), 1.1);
  EXPECT_LT(best(node("fdps_link0.5x"), 16) / reference, 1.1);
}

TEST(Fdps, Figure10TenTimesSlowerHostAndBusAreFourTimesSlower) {
  const Accelerator reference = node("fdps_reference");
  Accelerator slow = reference, fast = reference;
  slow.host_rate /= 10, slow.transfer_rate /= 10;
  fast.host_rate *= 10, fast.transfer_rate *= 10;
  EXPECT_NEAR(best(slow, 16) / best(reference, 16), 4, 0.5);
  EXPECT_LT(best(reference, 16) / best(fast, 16), 1.3);
}

TEST(Fdps, Figure11WeakScalingIsFlatToAHundredThousand) {
  const Accelerator k = node("fdps_reference");
  const auto at = [&](double processes) { return fdps_step(run_of(0x1p20, 250, processes), k); };
  EXPECT_LT(at(1e5).whole() / at(1e2).whole(), 1.2);
  EXPECT_GT(at(1e6).whole(), 1.2 * at(1e5).whole());
  const FdpsStep last = at(1e7);
  EXPECT_GT(last.gathered, last.neighbours);
}

TEST(Fdps, Figure12StrongScaling) {
  const Accelerator k = node("fdps_reference");
  const auto at = [&](double all, double processes) { return fdps_step(run_of(all / processes, 250, processes), k); };
  EXPECT_LT(at(0x1p40, 1e6).whole(), at(0x1p40, 1e5).whole() / 6);  // goes on to 10^6
  EXPECT_LT(at(0x1p30, 300).neighbours, 0.12 * at(0x1p30, 300).whole());
  EXPECT_GT(at(0x1p30, 3000).neighbours, 0.25 * at(0x1p30, 3000).whole());  // shallower from 3000 on
  double fastest = 1e9, where = 0;
  for (double p = 1e3; p < 1e6; p *= 1.05)
    if (const double t = at(0x1p30, p).whole(); t < fastest) fastest = t, where = p;
  EXPECT_NEAR(std::log10(where), std::log10(5e4), 0.15);                        // slower beyond 50000
  EXPECT_NEAR(at(0x1p30, 1e6).single / at(0x1p30, 3e5).single, 10 / 3.0, 0.7);  // in proportion to n_p
}

TEST(Fdps, ListsAreAsLongAsEq30Says) {
  EXPECT_NEAR(list_length(0x1p22, 230, 0.5), 4022, 10);
  EXPECT_EQ(imported(run_of(1e6, 250)), 0);
  EXPECT_NEAR(close_processes(run_of(1e6, 250, 1e4)), 18 + 84.8 + 113.1, 0.1);  // eq. 43 at theta = 0.5
  EXPECT_EQ(close_processes(run_of(1e6, 250, 8)), 7);
}

TEST(Fdps, ManyProcessesNeedANetwork) {
  Accelerator alone = node("fdps_reference");
  alone.inject_rate = 0;
  EXPECT_NO_THROW(fdps_step(run_of(1e6, 250), alone));
  EXPECT_THROW(fdps_step(run_of(1e6, 250, 2), alone), Error);
}

}  // namespace
}  // namespace maki::model
