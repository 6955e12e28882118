// Speed and force error of the tree on an isolated set: the cold uniform sphere of the Accelerated FDPS benchmark.
// Prints seconds of a rebuild step and of a reuse step, phase by phase, beside the force error.
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>

#include "bench/report.hpp"
#include "bench/sphere_set.hpp"
#include "bench/timing.hpp"
#include "kernels/device/device.hpp"
#include "kernels/force/force.hpp"
#include "kernels/measure/reductions.hpp"
#include "src/gravity/gravity.hpp"
#include "tests/force_errors.hpp"
#include "tests/kernels/particles/at_rest.hpp"

namespace {

using namespace maki;

struct Options {
  std::size_t particles = std::size_t{1} << 20;
  double theta = 0.95, softening = 1e-3;
  std::uint32_t leaf = 16, group = 64;
  bool by_error = false, quadrupoles = true, potential = false, refine_root = false;
  int threads = 0, repeat = 5;
  std::string json;
};

// Moves every particle by a random step, as a reuse step sees it.
void jitter(const Stream& stream, Particles& particles, double sides) {
  auto source = particles.source.download(stream);
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> u(-sides, sides);
  for (auto& p : source)
    for (std::uint32_t* c : {&p.x, &p.y, &p.z})
      *c += static_cast<std::uint32_t>(static_cast<std::int32_t>(u(random) * kSideToUnits));
  particles.source.upload(stream, source);
}

double error_against_direct(const Stream& stream, const Particles& particles, const ForceLaw& law,
                            const VectorArray& acceleration) {
  const auto n = static_cast<std::uint32_t>(particles.size());
  const auto all = acceleration.download(stream);
  std::vector<std::array<double, 3>> found, expected;
  const auto add = [](auto& to, const std::array<float, 3>& a) { to.push_back({a[0], a[1], a[2]}); };
  constexpr std::uint32_t stretch = 128;
  for (std::uint32_t s = 0; s < 16; ++s) {
    const std::uint32_t first = static_cast<std::uint32_t>(static_cast<std::uint64_t>(n - stretch) * s / 15);
    VectorArray exact("bench.exact");
    exact.resize(stretch);
    direct_sum(stream, law, {particles.source.data(), n, first, stretch}, {exact.view(), nullptr});
    for (const auto& a : exact.download(stream)) add(expected, a);
    for (std::uint32_t k = 0; k < stretch; ++k) add(found, all[first + k]);
  }
  return testing::force_errors(found, expected).rms;
}

void run(const Options& o) {
  select_device(0, o.threads);
  const Stream stream;
  PhaseTimers timers;
  GravityOptions g;
  g.periodic = false;
  g.law = make_force_law(Split::kNone, 0, 0, Softening::kPlummer, o.softening / 8);
  g.law.refine_root = o.refine_root;
  g.theta = o.theta;
  g.open_by_error = o.by_error;
  g.quadrupoles = o.quadrupoles;
  g.leaf_size = o.leaf;
  g.group_size = o.group;
  Gravity gravity(g, timers);
  Particles particles;
  testing::upload_at_rest(stream, bench::sphere(o.particles), particles);

  const auto step = [&] {
    return bench::seconds(stream, [&] { gravity.evaluate(stream, particles, Ranges::kShort, o.potential); });
  };
  step();
  if (o.by_error)
    gravity.reference_acceleration_is(
        reference_acceleration(step_measures(stream, particles, gravity.short_acceleration(), nullptr),
                               particles.size()));
  double rebuild = std::numeric_limits<double>::infinity(), reuse = rebuild;  // infinite where there was none
  for (int i = 0; i < o.repeat; ++i) {
    gravity.request_rebuild();
    timers.reset();
    rebuild = std::min(rebuild, step());
  }
  timers.collect();
  const std::string rebuild_phases = timers.table();
  const double error = error_against_direct(stream, particles, g.law, gravity.short_acceleration());
  const GravityCounts fresh = gravity.counts();
  for (int i = 0; i < o.repeat; ++i) {
    jitter(stream, particles, 2e-5);
    timers.reset();
    const double t = step();
    if (!gravity.counts().rebuilt) reuse = std::min(reuse, t);
  }
  const double none = std::numeric_limits<double>::quiet_NaN();
  const bool kept = std::isfinite(reuse);
  const double reuse_error = kept ? error_against_direct(stream, particles, g.law, gravity.short_acceleration()) : none;

  bench::Report report("sphere", o.json);
  report.add("particles", static_cast<double>(o.particles), "");
  report.add("theta", o.theta, "");
  report.add("opened by estimated error", o.by_error ? 1 : 0, "");
  report.add("rebuild step", rebuild, "s");
  report.add("reuse step", reuse, "s");
  report.add("rms force error, fresh lists", error, "");
  report.add("rms force error, reused lists", reuse_error, "");
  report.add("interactions a particle", fresh.mean_list, "");
  report.add("interactions a second, whole rebuild step", static_cast<double>(fresh.interactions) / rebuild, "1/s");
  report.add("interactions a second, whole reuse step", kept ? static_cast<double>(fresh.interactions) / reuse : none,
             "1/s");
  report.add("mean fill of groups", fresh.mean_fill, "");
  report.add("longest list", static_cast<double>(fresh.longest_list), "");
  report.print();
  timers.collect();
  std::printf("\nrebuild step\n%s\nreuse step\n%s", rebuild_phases.c_str(),
              kept ? timers.table().c_str() : "there was none\n");
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app("Tree gravity of a cold sphere: time and force error");
  app.add_option("--particles", o.particles);
  app.add_option("--theta", o.theta);
  app.add_flag("--by-error", o.by_error, "cells open by estimated error");
  app.add_option("--softening", o.softening);
  app.add_option("--leaf", o.leaf);
  app.add_option("--group", o.group);
  app.add_option("--quadrupoles", o.quadrupoles);
  app.add_option("--potential", o.potential);
  app.add_option("--refine-root", o.refine_root);
  app.add_option("--threads", o.threads);
  app.add_option("--repeat", o.repeat);
  app.add_option("--json", o.json);
  CLI11_PARSE(app, argc, argv);
  return bench::run_or_say("bench_sphere", [&] { run(o); });
}
