// Measured steps beside Maki's own model: means by phase, and the phase that is furthest off.
#include "src/model/maki.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/error.hpp"

namespace maki::model {
namespace {

Machine machine() {
  Machine m;
  m.name = "round";
  m.source = "thought of";
  m.maki = MakiConstants{};
  m.maki->pair = 1e-9, m.maki->interactions = 500, m.maki->made = 1e-7, m.maki->kept = 2e-8;
  m.maki->mesh_particle = 3e-8;
  return m;
}

MakiRun run() {
  MakiRun one;
  one.particles = 1e6, one.cells = 3.375e6;
  return one;
}

// Steps that are as the model has them.
MeasuredSteps as_modelled(double made, double kept, double longs) {
  const MakiStep step = maki_step(run(), machine());
  MeasuredSteps m;
  m.made_steps = made, m.kept_steps = kept, m.long_steps = longs;
  m.particles = 1e6 * m.steps(), m.interactions = maki_interactions(run(), *machine().maki) * m.particles;
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
  const auto phases = compare(as_modelled(2, 14, 3), run(), machine());
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
  EXPECT_NEAR(phase(compare(m, run(), machine()), "sweeps and repairs").off(), 1.4, 1e-9);
  const std::string text = comparison_text(m, run(), machine());
  EXPECT_NE(text.find(
                "Furthest off: sweeps and repairs, 0.1200 s in a step with kept lists where the model has 0.0200"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("Lists had 500 interactions a particle of 1e-09 s each; the model has 500 of 1e-09 s"),
            std::string::npos)
      << text;
  m.evaluate = 0;  // less than the model counts as much as more
  EXPECT_NE(comparison_text(m, run(), machine()).find("Furthest off: forces by lists"), std::string::npos);
}

TEST(ModelComparison, WaitsStandByKindOfStep) {
  MeasuredSteps m = as_modelled(2, 14, 3);
  m.waited_made = 1;
  const auto phases = compare(m, run(), machine());
  EXPECT_EQ(phases.size(), 5u);
  EXPECT_NEAR(phase(phases, "waiting for others").measured, 0.5, 1e-12);
  EXPECT_EQ(phase(phases, "waiting for others").modelled, 0);
}

TEST(ModelComparison, SaysWhereThereIsNothingToCompare) {
  EXPECT_NE(comparison_text({}, run(), machine()).find("no step"), std::string::npos);
  Machine none = machine();
  none.maki.reset();
  EXPECT_THROW(comparison_text(as_modelled(1, 1, 1), run(), none), Error);
}

}  // namespace
}  // namespace maki::model
