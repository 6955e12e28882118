#include "src/model/maki.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/error.hpp"
#include "src/model/reports.hpp"

namespace maki::model {

namespace {

// All from bench/NOTES.md; "measured" is on machine A.
constexpr double kGroup = 45;  // mean particles of a group (fill 0.69 of 64): "Presets"
constexpr double kTreeBytes =
    14;  // of a particle near a face, to another site or rank: 0.22 MB at 64^3, "Several sites"
constexpr double kMeshBytes = 3;  // of a cell, both meshes, coded: "Mesh bytes", z = 10 to 0 at N/M = 1
constexpr double kTransposeBytes =
    32;  // of a cell: four transforms, two transposes each, 8 bytes a complex of half the cells
constexpr double kMovedShare = 0.01;  // of a site's particles change site at a rebuild: assumed
constexpr double kMovedBytes = 44;    // of a particle: position, momentum, id, last bits

// r_cut in mean distances of particles; without a mesh, the reach of trees in eq. 12 of SUSHI.
double reach(const MakiRun& run) { return run.cells > 0 ? run.cut * std::cbrt(run.particles / run.cells) : 6; }

// Particles of a uniform set within `reach` of the cube that `members` of them fill; lengths in mean distances.
double particles_within(double reach, double members) { return std::pow(std::cbrt(members) + 2 * reach, 3); }

// Particles of other ranks within reach of a rank's domain.
double around(const MakiRun& run) {
  const double own = run.particles / run.ranks;
  return std::min(particles_within(reach(run), own) - own, run.particles - own);
}

// Seconds a particle of a step with new lists, where a rank has `particles`.
double made_of_a_particle(const MakiConstants& c, double particles) {
  return c.made + (c.near > 0 ? c.doubling * std::max(0.0, std::log2(particles / c.near)) : 0);
}

double waited(double message, double covered) { return std::max(0.0, message - covered); }

}  // namespace

double MakiStep::mean(const MakiRun& run) const {
  const double rebuilds = 1 / run.rebuild_every, longs = run.cells > 0 ? 1 / run.long_every : 0;
  return rebuilds * rebuild_step() + (1 - rebuilds) * kept_step() + longs * long_part();
}

const char* MakiStep::largest(const MakiRun& run) const {
  const double rebuilds = 1 / run.rebuild_every, longs = run.cells > 0 ? 1 / run.long_every : 0;
  const std::array<std::pair<double, const char*>, 8> parts = {
      {{evaluate, "forces"},
       {rebuilds * made, "new trees and lists"},
       {(1 - rebuilds) * kept, "sweeps and repairs"},
       {longs * mesh, "the mesh"},
       {longs * code, "coding the mesh for other sites"},
       {longs * transpose, "bytes of the mesh between ranks"},
       {rebuilds * waited_made + (1 - rebuilds) * waited_kept, "trees and particles of others"},
       {longs * waited_mesh, "the mesh between sites"}}};
  return std::max_element(parts.begin(), parts.end())->second;
}

double maki_interactions(const MakiRun& run, const MakiConstants& c) {
  return c.interactions * particles_within(reach(run), kGroup) / particles_within(c.reach, kGroup);
}

double maki_tree_bytes(const MakiRun& run) {
  const double faces = run.sites > 1 ? 2 : 0;
  return kTreeBytes * faces * std::pow(run.particles, 2.0 / 3) * reach(run);
}

// Each site's part goes the shorter way around to all others: sites / 2 parts (rounded down) pass a link each way.
double maki_mesh_bytes(const MakiRun& run) { return kMeshBytes * run.cells / run.sites * (run.sites / 2); }

MakiStep maki_step(const MakiRun& run, const Machine& machine) {
  if (!machine.maki) {
    throw Error(
        fmt::format("'{}' has no constants of Maki", machine.name), "",
        "give a machine with [maki], such as configs/machines/h100_node.toml, or make one: maki model calibrate");
  }
  const Network& net = machine.network;
  if (run.ranks > 1 && (net.lan_rate <= 0 || net.wan_rate <= 0)) {
    throw Error(fmt::format("'{}' has no [network] for several ranks", machine.name), "",
                "give one, or --sites with another machine");
  }
  const MakiConstants& c = *machine.maki;
  const double own = run.particles / run.ranks, all = own + around(run);
  MakiStep step;
  step.evaluate = c.pair * maki_interactions(run, c) * own;
  step.made = c.fixed_made + made_of_a_particle(c, all) * all;
  step.kept = c.fixed_kept + c.kept * all;
  const double local = run.ranks / run.sites;  // each site transforms the whole mesh
  if (run.cells > 0) {
    step.mesh = c.mesh_particle * own + c.mesh_cell * run.cells * std::log2(run.cells) / local;
    if (local > 1) step.transpose = kTransposeBytes * run.cells / local / net.lan_rate;
    if (run.sites > 1) step.code = c.fixed_code + c.code_cell * run.cells / local;
  }
  if (run.ranks > 1) {  // trees of other ranks arrive while the own tree is evaluated
    const double message = net.lan_round_trip / 2 + kTreeBytes * around(run) / net.lan_rate;
    step.waited_made = step.waited_kept = waited(message, step.evaluate);
  }
  if (run.sites > 1) {
    const double rate = net.star ? net.wan_rate / (run.sites - 1) : net.wan_rate, half = net.wan_round_trip / 2;
    const double trees = waited(half + maki_tree_bytes(run) / rate, step.evaluate);
    step.waited_kept = std::max(step.waited_kept, trees);
    step.waited_made = std::max(step.waited_made, trees) + half +
                       kMovedShare * kMovedBytes * run.particles / run.sites / rate;  // not hidden
    step.waited_mesh = waited(half * (run.sites / 2) + (maki_tree_bytes(run) + maki_mesh_bytes(run)) / rate,
                              step.evaluate + step.kept + step.waited_kept);
  }
  return step;
}

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
