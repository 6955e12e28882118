// The phases of a whole step, on a rebuild step and on a reuse step, each as the best of --repeat: the cold sphere of
// the Accelerated FDPS benchmark, or the set of a configuration (--config; TreePM boxes with their mesh in every step).
// Phases that move memory stand beside a device-to-device copy timed in the same run. Phases on two streams overlap.
#include <CLI/CLI.hpp>
#include <cmath>
#include <limits>
#include <optional>

#include "bench/copy_bandwidth.hpp"
#include "bench/report.hpp"
#include "bench/sphere_set.hpp"
#include "bench/timed_step.hpp"
#include "kernels/tree/types.hpp"
#include "src/config/parse.hpp"
#include "src/run/run_options.hpp"
#include "src/run/setup.hpp"
#include "src/simulation/frame.hpp"
#include "tests/kernels/particles/at_rest.hpp"

namespace {

using namespace maki;

struct Options {
  std::string config, json;
  std::vector<std::string> settings;
  std::size_t particles = std::size_t{1} << 20;
  double theta = 0.5;
  std::uint32_t leaf = 16, group = 64;
  int repeat = 5, threads = 0;
};

struct Kind {
  double best = std::numeric_limits<double>::infinity();  // seconds of a whole step; infinite where there was none
  bench::Times phases;                                    // the least of each
  GravityCounts counts;

  void take(double seconds, const PhaseTimers& timers, const GravityCounts& now) {
    bench::Times phases_now;
    bench::read_phases(timers, "", phases_now);
    bench::keep_least(phases, phases_now);
    best = std::min(best, seconds);
    counts = now;
  }
};

// What a phase has to move, bytes; nothing for those whose floor is arithmetic.
std::optional<double> bytes_moved(const std::string& phase, double n, double cells, bool mesh) {
  constexpr double kCell = sizeof(CellMoments) + 11 * 4 + 13;  // moments, geometry, topology
  if (phase == "kick") return n * (12 + 2 * 12);
  if (phase == "drift") return n * (2 * (16 + 6) + 12);
  if (phase == "reductions") return n * (16 + 12 + (mesh ? 24 : 12));
  if (phase == "tree/sort")
    return n * (16 + 12 + 8 * 2 * 12 + 2 * (16 + 6 + 12 + 8) + 4 * 4);  // keys, eight passes over them, reorder
  if (phase == "tree/sweep") return n * 2 * 16 + cells * 2 * kCell;     // cells and groups both read the particles
  return std::nullopt;
}

void print_kind(const char* title, const Kind& kind, double n, bool mesh, double copy, bench::Report& report) {
  const std::string kind_name = title;
  if (!std::isfinite(kind.best)) {
    fmt::print("\n{}: there was none\n", kind_name);
    report.add(kind_name + ", whole", kind.best, "s");
    return;
  }
  fmt::print("\n{:<28} {:>10} {:>10} {:>9}\n", kind_name, "ms", "GB/s", "of a copy");
  for (const auto& [name, seconds] : kind.phases) {
    const auto bytes = bytes_moved(name, n, static_cast<double>(kind.counts.cells), mesh);
    report.add(kind_name + ", " + name, seconds, "s");
    if (bytes) {
      fmt::print("{:<28} {:>10.3f} {:>10.1f} {:>8.0f} %\n", name, 1e3 * seconds, 1e-9 * *bytes / seconds,
                 100 * *bytes / seconds / copy);
      report.add(kind_name + ", " + name + ", of a copy's bandwidth", *bytes / seconds / copy, "");
    } else {
      fmt::print("{:<28} {:>10.3f}\n", name, 1e3 * seconds);
    }
  }
  fmt::print("{:<28} {:>10.3f}   {:.3g} particles/s, {:.3g} interactions/s\n", "whole step", 1e3 * kind.best,
             n / kind.best, static_cast<double>(kind.counts.interactions) / kind.best);
  report.add(kind_name + ", whole", kind.best, "s");
  report.add(kind_name + ", particles a second", n / kind.best, "1/s");
  report.add(kind_name + ", interactions a second", static_cast<double>(kind.counts.interactions) / kind.best, "1/s");
}

struct Setting {
  Particles particles;
  GravityOptions gravity;
};

void load_sphere(const Stream& stream, const Options& o, Setting& setting) {
  testing::upload_at_rest(stream, bench::sphere(o.particles), setting.particles);
  setting.gravity.periodic = false;
  setting.gravity.law = make_force_law(Split::kNone, 0, 0, Softening::kPlummer, 1e-3 / 8);
  setting.gravity.theta = o.theta;
  setting.gravity.leaf_size = o.leaf;
  setting.gravity.group_size = o.group;
}

void load_configured(const Stream& stream, const Options& o, Setting& setting) {
  const Prepared run = prepare(load_config(o.config, o.settings));
  const Frame frame = make_frame(run.initial.header, run.side, run.centre);
  load_particles(stream, run.initial, frame, setting.particles);
  setting.gravity = gravity_options(run);
}

void run(const Options& o) {
  select_device(0, o.threads);
  const Stream stream;
  PhaseTimers timers;
  Setting setting;
  o.config.empty() ? load_sphere(stream, o, setting) : load_configured(stream, o, setting);
  Particles& particles = setting.particles;
  Gravity gravity(setting.gravity, timers);
  const double n = static_cast<double>(particles.size());

  const auto step = [&] { return bench::timed_step(stream, Communicator::self(), gravity, particles, timers); };
  bench::evaluate(stream, gravity, particles);
  step();
  Kind rebuild, reuse;
  for (int i = 0; i < o.repeat; ++i) {
    gravity.request_rebuild();
    const double fresh = step();
    rebuild.take(fresh, timers, gravity.counts());
    const double kept = step();
    if (!gravity.counts().rebuilt) reuse.take(kept, timers, gravity.counts());
  }
  const double copy = bench::copy_bandwidth(stream);

  bench::Report report("step", o.json);
  report.add("particles", n, "");
  report.add("theta", setting.gravity.theta, "");
  report.add("copy on the device, read and written", 1e-9 * copy, "GB/s");
  report.add("interactions a particle", rebuild.counts.mean_list, "");
  report.add("mean fill of groups", rebuild.counts.mean_fill, "");
  report.add("cells a particle", static_cast<double>(rebuild.counts.cells) / n, "");
  report.print();
  print_kind("rebuild step", rebuild, n, gravity.has_mesh(), copy, report);
  print_kind("reuse step", reuse, n, gravity.has_mesh(), copy, report);
  report.write();
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app("The phases of a whole step");
  app.add_option("--config", o.config, "a configuration whose set is taken instead of the sphere");
  app.add_option("--set", o.settings, "key=value for the configuration");
  app.add_option("--particles", o.particles, "of the sphere");
  app.add_option("--theta", o.theta, "of the sphere");
  app.add_option("--leaf", o.leaf, "of the sphere");
  app.add_option("--group", o.group, "of the sphere");
  app.add_option("--repeat", o.repeat);
  app.add_option("--threads", o.threads);
  app.add_option("--json", o.json);
  CLI11_PARSE(app, argc, argv);
  return bench::run_or_say("bench_step", [&] { run(o); });
}
