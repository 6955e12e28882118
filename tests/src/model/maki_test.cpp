// Maki's own model: its parts add up, and what it says of lines and sites. Against runs: bench/NOTES.md.
#include "src/model/maki.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "kernels/error.hpp"
#include "tests/messages.hpp"

namespace maki::model {
namespace {

using namespace test;

// Round numbers.
Machine machine() {
  Machine m;
  m.name = "round";
  m.network = {1e-5, 0.1, 1e10, 1e8};
  m.maki = {.pair = 1e-9,
            .interactions = 500,
            .made = 1e-7,
            .fixed_made = 1e-3,
            .kept = 2e-8,
            .fixed_kept = 5e-4,
            .mesh_particle = 3e-8,
            .mesh_cell = 1e-10};
  return m;
}

MakiRun run(double side, int sites = 1, double ranks = 1) {
  const double particles = side * side * side;
  return {.particles = particles, .cells = 3.375 * particles, .ranks = ranks, .sites = sites};
}

TEST(MakiModel, OneRankIsTheSumOfItsConstants) {
  const double n = 64 * 64 * 64;
  const MakiRun one = run(64);
  const MakiStep step = maki_step(one, machine());
  EXPECT_NEAR(maki_interactions(one, *machine().maki), 500, 1e-9);  // the calibration's own mesh
  EXPECT_NEAR(step.evaluate, 1e-9 * 500 * n, 1e-9);
  EXPECT_NEAR(step.made, 1e-3 + 1e-7 * n, 1e-9);
  EXPECT_NEAR(step.kept, 5e-4 + 2e-8 * n, 1e-9);
  EXPECT_NEAR(step.mesh, 3e-8 * n + 1e-10 * one.cells * std::log2(one.cells), 1e-9);
  EXPECT_EQ(step.waited_made + step.waited_kept + step.waited_mesh + step.code + step.transpose, 0);
  MakiRun each = one;
  each.rebuild_every = each.long_every = 1;
  EXPECT_NEAR(step.mean(each), step.rebuild_step() + step.long_part(), 1e-12);
  EXPECT_EQ(std::string(step.largest(one)), "forces");
}

TEST(MakiModel, NewListsOfAParticleTakeMoreWithEachDoubling) {
  Machine grows = machine();
  grows.maki->near = 64 * 64 * 64, grows.maki->doubling = 1e-8;
  const auto each = [&](double side) { return (maki_step(run(side), grows).made - 1e-3) / (side * side * side); };
  EXPECT_NEAR(each(32), 1e-7, 1e-15);  // no less below
  EXPECT_NEAR(each(64), 1e-7, 1e-15);
  EXPECT_NEAR(each(128), 1.3e-7, 1e-15);  // three doublings
  EXPECT_NEAR(each(256), 1.6e-7, 1e-15);
  EXPECT_EQ(maki_step(run(256), grows).kept, maki_step(run(256), machine()).kept);
}

TEST(MakiModel, ACoarserMeshMakesLongerLists) {
  MakiRun coarse = run(64);
  coarse.cells = coarse.particles;
  const double box = std::cbrt(45.0);
  EXPECT_NEAR(maki_interactions(coarse, *machine().maki) / 500, std::pow((box + 6) / (box + 4), 3), 1e-12);
}

TEST(MakiModel, RanksShareTheWorkAndTakeWhatIsAround) {
  const MakiStep one = maki_step(run(128), machine()), eight = maki_step(run(128, 1, 8), machine());
  EXPECT_NEAR(eight.evaluate, one.evaluate / 8, 1e-9);
  EXPECT_GT(eight.made, one.made / 8);  // and what lies within reach
  EXPECT_LT(eight.made, one.made / 5);
  EXPECT_EQ(eight.waited_kept, 0);  // it comes while forces are computed
  EXPECT_GT(eight.transpose, 0);
  EXPECT_EQ(one.transpose, 0);
}

TEST(MakiModel, SitesWaitOnlyForWhatForcesDoNotCover) {
  Machine near = machine();
  near.network.wan_round_trip = 0.01;
  const MakiRun two = run(256, 2, 2);
  const MakiStep step = maki_step(two, near);
  EXPECT_EQ(step.waited_kept, 0);
  EXPECT_GT(step.waited_made, 0.005);  // particles, half a round trip
  EXPECT_LT(step.waited_made, 0.2);
  Machine far = near;
  far.network.wan_round_trip = 20;  // half of it is more than the forces take
  EXPECT_NEAR(maki_step(two, far).waited_kept,
              10 + maki_tree_bytes(two) / far.network.wan_rate - maki_step(two, far).evaluate, 1e-9);
  EXPECT_EQ(std::string(maki_step(two, far).largest(two)), "trees and particles of others");
  EXPECT_EQ(maki_mesh_bytes(run(64)), 0);
  EXPECT_NEAR(maki_mesh_bytes(two), 1.5 * two.cells, 1e-6);
  EXPECT_NEAR(maki_mesh_bytes(run(256, 3, 3)), two.cells, 1);
  EXPECT_NEAR(maki_mesh_bytes(run(256, 4, 4)), 1.5 * two.cells, 1e-6);
  // Each site transforms the whole mesh.
  EXPECT_NEAR(step.mesh - maki_step(run(256, 1, 2), near).mesh, 1e-10 * two.cells * std::log2(two.cells) / 2, 1e-6);
}

TEST(MakiModel, SaysWhatTheMachineLacks) {
  Machine none = machine();
  none.maki.reset();
  EXPECT_THROW(maki_step(run(64), none), Error);
  Machine alone = machine();
  alone.network = {};
  EXPECT_NO_THROW(maki_step(run(64), alone));
  EXPECT_THROW(maki_step(run(64, 1, 2), alone), Error);
}

// Measured steps beside Maki's own model: means by phase, and the phase that is furthest off.

Machine compared_machine() {
  Machine m;
  m.name = "round";
  m.source = "thought of";
  m.maki = {.pair = 1e-9, .interactions = 500, .made = 1e-7, .kept = 2e-8, .mesh_particle = 3e-8};
  return m;
}

// Steps that are as the model has them.
MeasuredSteps as_modelled(double made, double kept, double longs) {
  const MakiStep step = maki_step(run(100), compared_machine());
  MeasuredSteps m;
  m.made_steps = made, m.kept_steps = kept, m.long_steps = longs;
  m.particles = 1e6 * m.steps(), m.interactions = maki_interactions(run(100), *compared_machine().maki) * m.particles;
  m.evaluate = m.steps() * step.evaluate, m.made = made * step.made, m.kept = kept * step.kept;
  m.mesh = longs * step.mesh;
  return m;
}

const ComparedPhase& phase(const std::vector<ComparedPhase>& all, const std::string& name) {
  for (const ComparedPhase& one : all)
    if (one.name == name) return one;
  throw std::runtime_error("no phase " + name);
}

TEST(ModelComparison, AModelledRunIsNowhereOff) {
  const auto phases = compare(as_modelled(2, 14, 3), run(100), compared_machine());
  EXPECT_EQ(phases.size(), 4u);  // nobody waits on one rank
  for (const ComparedPhase& one : phases) {
    EXPECT_NEAR(one.measured, one.modelled, 1e-12) << one.name;
    EXPECT_NEAR(one.off(), 0, 1e-10) << one.name;
  }
  EXPECT_EQ(phase(phases, "new trees and lists").steps, 2);
  EXPECT_EQ(phase(phases, "mesh").steps, 3);
}

TEST(ModelComparison, NamesThePhaseThatIsOffMostOverAllSteps) {
  MeasuredSteps m = as_modelled(2, 14, 3);
  m.made += 2 * 0.3;   // each by more,
  m.kept += 14 * 0.1;  // but these together
  EXPECT_NEAR(phase(compare(m, run(100), compared_machine()), "sweeps and repairs").off(), 1.4, 1e-9);
  const std::string text = comparison_text(m, run(100), compared_machine());
  expect_contains(text,
                  {"Furthest off: sweeps and repairs, 0.1200 s in a step with kept lists where the model has 0.0200"});
  expect_contains(text, {"Lists had 500 interactions a particle of 1e-09 s each; the model has 500 of 1e-09 s"});
  m.evaluate = 0;  // less than the model counts as much as more
  expect_contains(comparison_text(m, run(100), compared_machine()), {"Furthest off: forces by lists"});
}

TEST(ModelComparison, WaitsStandByKindOfStep) {
  MeasuredSteps m = as_modelled(2, 14, 3);
  m.waited_made = 1;
  const auto phases = compare(m, run(100), compared_machine());
  EXPECT_EQ(phases.size(), 5u);
  EXPECT_NEAR(phase(phases, "waiting for others").measured, 0.5, 1e-12);
  EXPECT_EQ(phase(phases, "waiting for others").modelled, 0);
}

TEST(ModelComparison, SaysWhereThereIsNothingToCompare) {
  expect_contains(comparison_text({}, run(100), compared_machine()), {"no step"});
  Machine none = compared_machine();
  none.maki.reset();
  EXPECT_THROW(comparison_text(as_modelled(1, 1, 1), run(100), none), Error);
}

}  // namespace
}  // namespace maki::model
