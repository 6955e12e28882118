#include "src/run/run_options.hpp"
#include "src/run/start_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/config/parse.hpp"
#include "src/model/machine.hpp"
#include "src/run/build.hpp"
#include "src/run/estimate.hpp"
#include "src/simulation/step_parts.hpp"

namespace maki {
namespace {

constexpr int kSteps = 32, kStepsOfLargest = 12;  // every fourth makes new lists
constexpr double kSpacing = 0.78125;              // Mpc/h between particles, as in quickstart

constexpr double kNever = std::numeric_limits<double>::infinity();

// The least seconds in parts of a step: forces by lists, mesh, and the rest with new lists (`made`) or with kept ones.
// `interactions` are those of the last step.
class Watch : public RunObserver {
 public:
  double evaluate = kNever, mesh = kNever, made = kNever, kept = kNever, interactions = 0;

  explicit Watch(int steps) : wanted_(steps) {}
  void step(const StepMetrics& metrics, const PhaseTimers& timers) override {
    if (metrics.step == 0) return;  // the first forces warm up
    ++steps_;
    const StepParts parts = parts_of(metrics, timers);
    evaluate = std::min(evaluate, parts.evaluate);
    if (parts.mesh > 0) mesh = std::min(mesh, parts.mesh);
    double& rest = metrics.gravity.rebuilt ? made : kept;
    rest = std::min(rest, parts.rest);
    interactions = static_cast<double>(metrics.gravity.interactions);
  }
  std::string stop_reason(double) override { return steps_ < wanted_ || mesh == kNever ? "" : "calibrated"; }

 private:
  int wanted_, steps_ = 0;
};

struct Measured {
  double particles = 0, cells = 0, cut = 0;
  Watch watch;
};

using Say = std::function<void(const std::string&)>;

// `mesh`: cells along a side; 0: the preset's.
Measured measure(int side, int mesh, int steps, const Say& say) {
  const Config config =
      parse_config("", "calibrate",
                   {"run.kind=cosmology", fmt::format("box.size={} Mpc/h", kSpacing * side),
                    fmt::format("initial.particles_per_side={}", side), "gravity.reuse=4",
                    fmt::format("gravity.softening={} kpc/h", 1e3 * kSpacing / 30),
                    mesh > 0 ? fmt::format("gravity.mesh={}", mesh) : "gravity.mesh=auto", "time.end_redshift=5"});
  Prepared run = prepare(config, true, Communicator::self());
  const Stream stream;
  SimulationOptions options = simulation_options(run);
  options.energy_interval = 0;
  mesh = static_cast<int>(*run.config.gravity.mesh);
  Measured measured{static_cast<double>(run.particles), std::pow(mesh, 3), *run.config.gravity.r_cut, Watch(steps)};
  Timeline timeline = timeline_of(run);
  Simulation simulation(stream, std::move(run.initial), options, std::move(timeline), measured.watch);
  simulation.run();
  const Watch& w = measured.watch;
  say(fmt::format(
      "{}^3 particles, mesh {}^3: forces {:.4g} s, mesh {:.4g} s, the rest {:.4g} s with new lists and {:.4g} s "
      "with kept ones",
      side, mesh, w.evaluate, w.mesh, w.made, w.kept));
  return measured;
}

// a + b x through two points, neither below zero.
struct Line {
  double fixed = 0, each = 0;
};
Line through(double x1, double y1, double x2, double y2) {
  const double each = std::clamp((y2 - y1) / (x2 - x1), 0.0, y2 / x2);
  return {y2 - each * x2, each};
}

double reach(const Measured& m) { return m.cut * std::cbrt(m.particles / m.cells); }
double operations(const Measured& m) { return m.cells * std::log2(m.cells); }

}  // namespace

std::string calibrate(int side, const std::function<void(const std::string&)>& say) {
  if (side == 0) side = machine_memory().host_is_device ? 128 : 256;
  side = (side + 4) / 8 * 8;  // a quarter of it is even
  const Measured quarter = measure(side / 4, 0, kSteps, say), coarse = measure(side / 2, side / 2, kSteps, say);
  const Measured whole = measure(side / 2, 0, kSteps, say), twice = measure(side, 0, kStepsOfLargest, say);
  const Line made = through(quarter.particles, quarter.watch.made, whole.particles, whole.watch.made);
  const Line kept = through(quarter.particles, quarter.watch.kept, whole.particles, whole.watch.kept);
  const double n = whole.particles;
  const Line mesh = through(operations(coarse), coarse.watch.mesh, operations(whole), whole.watch.mesh);
  model::MakiConstants c;
  c.pair = whole.watch.evaluate / whole.watch.interactions;
  c.interactions = whole.watch.interactions / n;
  c.reach = reach(whole);
  c.near = n;
  c.doubling =
      std::max(0.0, (twice.watch.made - made.fixed) / twice.particles - made.each) / std::log2(twice.particles / n);
  c.made = made.each, c.fixed_made = made.fixed, c.kept = kept.each, c.fixed_kept = kept.fixed;
  c.mesh_particle = mesh.fixed / n, c.mesh_cell = mesh.each;
  const auto line = [](const char* key, double value, const char* meaning) {
    // Zeros get no line.
    return value > 0 ? fmt::format("{} = {:.4g}    # {}\n", key, value, meaning) : std::string();
  };
  return fmt::format(
             "# What Maki takes here, one rank: maki model calibrate, {}^3 particles, standard preset, z = 49.\n"
             "# For several ranks or sites add [network] (docs/model.md), or give --sites with another machine.\n"
             "name = \"this machine\"\nsource = \"measured: {}\"\n\n[maki]\n",
             side, device_text()) +
         line("pair", c.pair, "s an interaction of the lists") +
         line("interactions", c.interactions, "a particle; lists take about twice as long at z = 0") +
         line("reach", c.reach, "r_cut in mean distances of particles") +
         line("made", c.made, "s a particle: all else of a step with new lists") +
         line("fixed_made", c.fixed_made, "s: the same, whatever the number of particles") +
         line("near", c.near, "particles: beyond so many,") +
         line("doubling", c.doubling, "s a particle is what new lists take more for each doubling") +
         line("kept", c.kept, "s a particle: all else of a step with kept lists") +
         line("fixed_kept", c.fixed_kept, "s") + line("mesh_particle", c.mesh_particle, "s a particle: the mesh") +
         line("mesh_cell", c.mesh_cell, "s for each of M log2 M: the mesh");
}

}  // namespace maki
