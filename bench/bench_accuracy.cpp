// Force error against time, in a periodic box or of an isolated set, for many settings at once: the front from which
// the presets were chosen.
//   bench_accuracy CONFIG [--case "key=value key=value"]...   errors against an exact sum for --targets particles
// With --response, of a displaced lattice (generated initial conditions): also T(k) - 1 by wave number, where T(k) =
// sum a . a_ref* / sum |a_ref|^2 over the modes that accelerations have on the lattice's sites, and a_ref is that of
// the most precise setting: a deficit of all modes alike is hidden in rms errors, and growth lags by it. Without cases
// it runs the three presets and the S2 split of SUSHI. Times are of a rebuild step, a reuse step (tree) and a
// long-range step (mesh), best of --repeat.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numbers>
#include <numeric>
#include <random>
#include <sstream>

#include "bench/report.hpp"
#include "bench/timing.hpp"
#include "kernels/error.hpp"
#include "src/config/parse.hpp"
#include "src/config/resolve.hpp"
#include "src/run/forces.hpp"
#include "src/run/run_options.hpp"
#include "src/run/setup.hpp"
#include "src/simulation/frame.hpp"
#include "tests/force_errors.hpp"

namespace {

using namespace maki;

struct Options {
  std::string config = "configs/quickstart.toml", json, reference;
  std::vector<std::string> overrides, cases;
  std::size_t targets = 1000;
  int repeat = 2;
  bool phases = false, response = false;
};

struct Truth {
  std::vector<std::size_t> targets;
  std::vector<std::array<double, 3>> acceleration;
};

// Reference sums take a minute: they are kept in a file between runs, under a name the caller chooses.
Truth make_truth(const Prepared& run, const Frame& frame, const Options& o) {
  Truth truth;
  const std::size_t n = run.initial.size(), wanted = std::min(o.targets, n);
  for (std::size_t t = 0; t < wanted; ++t) truth.targets.push_back(t * n / wanted);
  truth.acceleration.resize(wanted);
  const std::size_t bytes = wanted * sizeof truth.acceleration[0];
  if (std::ifstream in(o.reference, std::ios::binary); in) {
    if (std::filesystem::file_size(o.reference) != bytes)
      throw Error("the sums in '" + o.reference + "' are not of this number of targets", "", "give another file");
    in.read(reinterpret_cast<char*>(truth.acceleration.data()), static_cast<std::streamsize>(bytes));
  }
  if (o.reference.empty() || !std::filesystem::exists(o.reference)) {
    const ForceMethod exact = frame.periodic ? ForceMethod::kEwald : ForceMethod::kDirect;
    truth.acceleration = forces_of(run, exact, truth.targets).acceleration;
    for (auto& a : truth.acceleration)
      for (double& component : a) component /= frame.acceleration_unit();
    if (!o.reference.empty())
      std::ofstream(o.reference, std::ios::binary)
          .write(reinterpret_cast<const char*>(truth.acceleration.data()),
                 static_cast<std::streamsize>(wanted * sizeof truth.acceleration[0]));
  }
  return truth;
}

// Wave numbers of T(k), of the lattice's Nyquist wave number; modes for each, at random directions.
constexpr std::array kShells = {0.125, 0.25, 0.5, 0.75, 1.0};
constexpr int kModes = 48;

using Amplitudes = std::vector<std::complex<double>>;  // [shell][mode][axis]

// Modes of accelerations, `site` the lattice site of each in row-major order, `side` sites along an axis.
Amplitudes amplitudes(const std::vector<std::array<float, 3>>& acceleration, const std::vector<std::uint64_t>& site,
                      int side) {
  std::vector<std::complex<double>> phase(static_cast<std::size_t>(side));
  for (int i = 0; i < side; ++i) phase[i] = std::polar(1.0, -2 * std::numbers::pi * i / side);
  const auto all = static_cast<int>(kShells.size()) * kModes;
  std::vector<std::array<int, 3>> waves;
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  for (const double shell : kShells) {
    for (int m = 0; m < kModes; ++m) {
      const std::array<double, 3> d = {normal(random), normal(random), normal(random)};
      const double scale = 0.5 * side * shell / std::hypot(d[0], d[1], d[2]);
      std::array<int, 3> wave;
      for (int k = 0; k < 3; ++k) wave[k] = (static_cast<int>(std::lround(d[k] * scale)) + side) % side;
      waves.push_back(wave);
    }
  }
  Amplitudes out(static_cast<std::size_t>(all) * 3);
#pragma omp parallel for schedule(dynamic, 1)
  for (int w = 0; w < all; ++w) {
    for (std::size_t i = 0; i < site.size(); ++i) {
      const auto n = static_cast<std::uint64_t>(side);
      const std::uint64_t x = site[i] / (n * n), y = site[i] / n % n, z = site[i] % n;
      const auto e = phase[(x * waves[w][0] + y * waves[w][1] + z * waves[w][2]) % n];
      for (int k = 0; k < 3; ++k) out[3 * w + k] += e * static_cast<double>(acceleration[i][k]);
    }
  }
  return out;
}

std::array<double, kShells.size()> response(const Amplitudes& found, const Amplitudes& exact) {
  std::array<double, kShells.size()> t{};
  for (std::size_t shell = 0; shell < kShells.size(); ++shell) {
    double product = 0, square = 0;
    for (std::size_t i = shell * kModes * 3; i < (shell + 1) * kModes * 3; ++i) {
      product += std::real(found[i] * std::conj(exact[i]));
      square += std::norm(exact[i]);
    }
    t[shell] = product / square - 1;
  }
  return t;
}

struct Measured {
  // Seconds; infinite where there was no such step.
  double rebuild = std::numeric_limits<double>::infinity(), reuse = rebuild, mesh = rebuild;
  testing::ForceErrors errors;
  double list = 0, fill = 0;
  Amplitudes amplitudes;
};

void add_errors(const Stream& stream, const Gravity& gravity, const Particles& particles, const Truth& truth,
                const std::vector<std::uint64_t>* sites, Measured& m) {
  const auto ids = particles.id.download(stream);
  std::vector<std::uint32_t> place(ids.size());
  for (std::uint32_t i = 0; i < ids.size(); ++i) place[ids[i]] = i;
  const auto s = gravity.short_acceleration().download(stream), l = gravity.long_acceleration().download(stream);
  std::vector<std::array<double, 3>> found(truth.targets.size());
  for (std::size_t t = 0; t < found.size(); ++t) {
    const std::uint32_t p = place[truth.targets[t]];
    for (int k = 0; k < 3; ++k) found[t][k] = static_cast<double>(s[p][k]) + l[p][k];
  }
  m.errors = testing::force_errors(found, truth.acceleration);
  if (!sites) return;
  std::vector<std::array<float, 3>> all(ids.size());
  for (std::size_t i = 0; i < all.size(); ++i)
    for (int k = 0; k < 3; ++k) all[i][k] = s[place[i]][k] + l[place[i]][k];
  m.amplitudes = amplitudes(all, *sites, static_cast<int>(std::lround(std::cbrt(static_cast<double>(all.size())))));
}

Measured measure(const Prepared& run, const Frame& frame, const Truth& truth, const Options& o) {
  const int repeat = o.repeat;
  const Stream stream;
  PhaseTimers timers;
  Snapshot numbered = run.initial;
  std::iota(numbered.ids.begin(), numbered.ids.end(), std::uint64_t{0});
  Particles particles;
  load_particles(stream, numbered, frame, particles);
  Gravity gravity(gravity_options(run), timers);
  open_as_a_run(stream, run, gravity, particles);
  Measured m;
  gravity.evaluate(stream, particles, Ranges::kShort, false);
  for (int i = 0; i < repeat; ++i) {
    gravity.request_rebuild();
    m.rebuild = std::min(m.rebuild,
                         bench::seconds(stream, [&] { gravity.evaluate(stream, particles, Ranges::kShort, false); }));
    m.mesh =
        std::min(m.mesh, bench::seconds(stream, [&] { gravity.evaluate(stream, particles, Ranges::kLong, false); }));
  }
  timers.collect();
  if (o.phases) fmt::print("rebuild and mesh steps\n{}", timers.table());
  m.list = gravity.counts().mean_list;
  m.fill = gravity.counts().mean_fill;
  std::vector<std::uint64_t> sites = run.initial.ids;
  for (auto& site : sites) --site;  // a particle with the number i + 1 comes from site i
  add_errors(stream, gravity, particles, truth, o.response ? &sites : nullptr, m);
  for (int i = 0; i < repeat; ++i) {
    const double seconds = bench::seconds(stream, [&] { gravity.evaluate(stream, particles, Ranges::kShort, false); });
    if (!gravity.counts().rebuilt) m.reuse = std::min(m.reuse, seconds);
  }
  timers.collect();
  if (o.phases) fmt::print("with the reuse steps\n{}", timers.table());
  return m;
}

const std::array<std::string, 5> kMostPrecise = {"run.preset=precise", "gravity.theta=0.2", "gravity.theta_early=0.2",
                                                 "gravity.r_cut=7", "gravity.split_order=8"};

void run_cases(const Options& o) {
  Config base = load_config(o.config, o.overrides);
  use_device(base);
  const Prepared first = prepare(base);
  const Frame frame = make_frame(first.initial.header, first.side, first.centre);
  const Truth truth = make_truth(first, frame, o);
  Amplitudes exact;
  if (o.response) {
    std::vector<std::string> overrides = o.overrides;
    for (const std::string& text : kMostPrecise) overrides.push_back(text);
    overrides.push_back(
        fmt::format("gravity.mesh={}", good_mesh(2 * std::cbrt(static_cast<double>(first.initial.size())))));
    exact = measure(prepare(load_config(o.config, overrides), first.initial), frame, truth, o).amplitudes;
  }
  bench::Report report("accuracy", o.json);
  fmt::print("{:<78} {:>5} {:>8} {:>8} {:>8} {:>9} {:>9} {:>9} {:>9}\n", "case", "list", "rebuild", "reuse", "mesh",
             "median", "99 %", "max", "rms");
  int failed = 0;
  for (const std::string& text : o.cases) {
    std::istringstream words(text);
    std::vector<std::string> overrides = o.overrides;
    for (std::string word; words >> word;) overrides.push_back(word);
    try {
      const Prepared run = prepare(load_config(o.config, overrides), first.initial);
      const Measured m = measure(run, frame, truth, o);
      fmt::print("{:<78} {:>5.0f} {:>8.3f} {:>8.3f} {:>8.3f} {:>9.2e} {:>9.2e} {:>9.2e} {:>9.2e}\n", text, m.list,
                 m.rebuild, m.reuse, m.mesh, m.errors.median, m.errors.p99, m.errors.max, m.errors.rms);
      if (o.response) {
        const auto t = response(m.amplitudes, exact);
        fmt::print("    T(k) - 1 at k_Ny times");
        for (std::size_t i = 0; i < t.size(); ++i) {
          fmt::print("  {}: {:+.1e}", kShells[i], t[i]);
          report.add(fmt::format("{}: T - 1 at {} k_Ny", text, kShells[i]), t[i], "");
        }
        fmt::print("\n");
      }
      std::fflush(stdout);
      report.add(text + ": rebuild step", m.rebuild, "s");
      report.add(text + ": reuse step", m.reuse, "s");
      report.add(text + ": mesh step", m.mesh, "s");
      report.add(text + ": median error", m.errors.median, "");
      report.add(text + ": 99 % error", m.errors.p99, "");
      report.add(text + ": rms error", m.errors.rms, "");
    } catch (const Error& e) {
      fmt::print("{:<78} {}\n", text, e.what());
      ++failed;
    }
  }
  report.write();
  if (failed > 0)
    throw Error(fmt::format("{} of {} cases were not measured", failed, o.cases.size()), "", "their lines say why");
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app("Force error against time");
  app.add_option("config", o.config);
  app.add_option("--set", o.overrides, "key=value for all cases");
  app.add_option("--case", o.cases, "key=value key=value ...: one setting to try");
  app.add_option("--reference", o.reference, "file that keeps the exact sums of this set");
  app.add_option("--targets", o.targets);
  app.add_option("--repeat", o.repeat);
  app.add_flag("--response", o.response, "T(k) - 1 of a displaced lattice, against the most precise setting");
  app.add_flag("--phases", o.phases, "print the tree of timers of each case");
  app.add_option("--json", o.json);
  CLI11_PARSE(app, argc, argv);
  return bench::run_or_say("bench_accuracy", [&] {
    if (o.cases.empty()) {
      o.response = load_config(o.config, o.overrides).initial.kind == InitialKind::kLpt;  // a displaced lattice
      o.cases = {
          "run.preset=fast", "run.preset=standard", "run.preset=precise",
          "run.preset=fast gravity.split=s2 gravity.r_cut=3 gravity.interlacing=none gravity.gradient=four-point"};
    }
    run_cases(o);
  });
}
