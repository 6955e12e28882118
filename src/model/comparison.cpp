#include "src/model/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/model/output.hpp"

namespace maki::model {
namespace {

constexpr const char* kEvery = "every step";
constexpr const char* kMade = "a step with new lists";
constexpr const char* kKept = "a step with kept lists";
constexpr const char* kLong = "a step with the mesh";

double ratio(double a, double b) { return b > 0 ? a / b : 0; }

std::string seconds(double value) { return fmt::format("{:.4f}", value); }

std::string furthest(const std::vector<ComparedPhase>& phases, double whole) {
  const ComparedPhase& most =
      *std::max_element(phases.begin(), phases.end(), [](const ComparedPhase& a, const ComparedPhase& b) {
        return std::fabs(a.off()) < std::fabs(b.off());
      });
  return fmt::format("Furthest off: {}, {:.4f} s in {} where the model has {:.4f}: {:.3g} s of all steps' {:.3g} s.\n",
                     most.name, most.measured, most.in, most.modelled, most.off(), whole);
}

double all_seconds(const MeasuredSteps& m) {
  return m.evaluate + m.made + m.kept + m.mesh + m.waited_made + m.waited_kept + m.waited_mesh;
}

Table table_of(const std::vector<ComparedPhase>& phases) {
  Table table{{"phase, mean seconds", "in", "steps", "measured", "model", "measured/model", "off, all steps"}, {}};
  for (const ComparedPhase& p : phases)
    table.rows.push_back({p.name, p.in, fmt::format("{:.0f}", p.steps), seconds(p.measured), seconds(p.modelled),
                          p.modelled > 0 ? fmt::format("{:.2f}", p.measured / p.modelled) : "-",
                          fmt::format("{:+.3g}", p.off())});
  return table;
}

}  // namespace

std::vector<ComparedPhase> compare(const MeasuredSteps& m, const MakiRun& run, const Machine& machine) {
  const MakiStep step = maki_step(run, machine);
  std::vector<ComparedPhase> phases;
  const auto add = [&](const char* name, const char* in, double steps, double sum, double modelled) {
    if (steps > 0 && (sum > 0 || modelled > 0)) phases.push_back({name, in, steps, sum / steps, modelled});
  };
  add("forces by lists", kEvery, m.steps(), m.evaluate, step.evaluate);
  add("new trees and lists", kMade, m.made_steps, m.made, step.made);
  add("sweeps and repairs", kKept, m.kept_steps, m.kept, step.kept);
  add("mesh", kLong, m.long_steps, m.mesh, step.mesh + step.code + step.transpose);
  add("waiting for others", kMade, m.made_steps, m.waited_made, step.waited_made);
  add("waiting for others", kKept, m.kept_steps, m.waited_kept, step.waited_kept);
  add("waiting for others' mesh", kLong, m.long_steps, m.waited_mesh, step.waited_mesh);
  return phases;
}

std::string comparison_text(const MeasuredSteps& m, const MakiRun& run, const Machine& machine) {
  const std::vector<ComparedPhase> phases = compare(m, run, machine);
  if (phases.empty()) return "There was no step to compare with the model.\n";
  return fmt::format("Steps beside Maki's own model of '{}' (maki model; constants: {})\n", machine.name,
                     machine.source) +
         table_of(phases).text() + furthest(phases, all_seconds(m)) +
         fmt::format("Lists had {:.0f} interactions a particle of {:.3g} s each; the model has {:.0f} of {:.3g} s.\n",
                     ratio(m.interactions, m.particles), ratio(m.evaluate, m.interactions),
                     maki_interactions(run, *machine.maki), machine.maki->pair);
}

}  // namespace maki::model
