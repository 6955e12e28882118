// Speed of the long-range force: each phase in milliseconds, and the bytes it has to move over the time it takes,
// beside a device-to-device copy in the same run. Then the table of pair errors of docs/design.md, "Force split".
//   bench_mesh [--json FILE] [--particles N a side] [--repeat N] [--no-errors]
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <string>

#include "bench/copy_bandwidth.hpp"
#include "bench/report.hpp"
#include "bench/timing.hpp"
#include "kernels/device/device.hpp"
#include "kernels/device/memory.hpp"
#include "kernels/mesh/mesh.hpp"
#include "kernels/particles/particles.hpp"
#include "tests/kernels/mesh/pair_error.hpp"

namespace {

using namespace maki;

// All but `drifted` in Morton order.
enum class Set {
  kEven,       // a perturbed lattice
  kClustered,  // half of it in 200 steep clumps
  kDrifted,    // the lattice, each particle a spacing from where it was sorted, as between two rebuilds
  kOnePlace,   // half of it within one cell
};
const char* label(Set set) {
  constexpr const char* labels[] = {"even", "clustered", "drifted", "one place"};
  return labels[static_cast<int>(set)];
}

std::vector<SourceParticle> make_particles(int side, Set set) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<std::array<double, 3>> clumps(set == Set::kClustered ? 200 : 1);
  for (auto& c : clumps) c = {uniform(random), uniform(random), uniform(random)};
  const double radius = set == Set::kClustered ? 0.03 : 0.1 / side;
  const auto fixed = [](double f) {
    return static_cast<std::uint32_t>(static_cast<std::int64_t>(std::floor(f * kSideToUnits)));
  };
  std::vector<std::pair<std::uint64_t, SourceParticle>> keyed;
  keyed.reserve(static_cast<std::size_t>(side) * side * side);
  for (int i = 0; i < side * side * side; ++i) {
    double x[3] = {(i / (side * side) + 0.5) / side, (i / side % side + 0.5) / side, (i % side + 0.5) / side};
    for (double& c : x) c += 0.2 / side * normal(random);
    if ((set == Set::kClustered || set == Set::kOnePlace) && i % 2) {
      const auto& clump = clumps[random() % clumps.size()];
      const double r = radius * std::pow(uniform(random), 2);
      double u[3] = {normal(random), normal(random), normal(random)};
      const double norm = std::sqrt(u[0] * u[0] + u[1] * u[1] + u[2] * u[2]);
      for (int c = 0; c < 3; ++c) x[c] = clump[c] + r * u[c] / norm;
    }
    SourceParticle p{fixed(x[0]), fixed(x[1]), fixed(x[2]), 1.0f};
    const std::uint64_t key = morton_key(p.x, p.y, p.z);
    if (set == Set::kDrifted)
      for (std::uint32_t* c : {&p.x, &p.y, &p.z}) *c += fixed(normal(random) / side / std::sqrt(3.0));
    keyed.emplace_back(key, p);
  }
  std::sort(keyed.begin(), keyed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<SourceParticle> particles;
  particles.reserve(keyed.size());
  for (const auto& k : keyed) particles.push_back(k.second);
  return particles;
}

struct Setting {
  int halves;  // mesh cells a particle spacing, times two
  Assignment assignment;
  Gradient gradient;
  Interlacing interlacing;
  const char* label;

  double meshes() const { return interlacing == Interlacing::kNone ? 1 : 2; }
  double outputs() const { return interlacing == Interlacing::kFull ? 2 : 1; }
  double transforms_back() const { return outputs() * (gradient == Gradient::kAnalytic ? 1 : 3); }
};

constexpr Setting kStandard = {3, Assignment::kPcs, Gradient::kAnalytic, Interlacing::kFull, "PCS analytic 2+2"};
constexpr Setting kSettings[] = {
    {2, Assignment::kPcs, Gradient::kSpectral, Interlacing::kAssignment, "PCS spectral 2+3"},
    {2, Assignment::kPcs, Gradient::kAnalytic, Interlacing::kFull, "PCS analytic 2+2"},
    kStandard,
    {3, Assignment::kPcs, Gradient::kSpectral, Interlacing::kAssignment, "PCS spectral 2+3"},
    {4, Assignment::kTsc, Gradient::kFourPoint, Interlacing::kNone, "TSC 4-point  1+3"},
    {4, Assignment::kPcs, Gradient::kAnalytic, Interlacing::kFull, "PCS analytic 2+2"},
    {4, Assignment::kPcs, Gradient::kSpectral, Interlacing::kFull, "PCS spectral 2+6"},
};

// The least that has to move to and from memory, bytes, with `n` particles and `cell` = 4 bytes times the padded mesh.
// A transform goes over the mesh three times (cuFFT) or twice (fft_cpu.cpp).
MeshPhases bytes_moved(const Setting& s, double n, double cell, bool gpu) {
  const double outputs = s.outputs();
  MeshPhases bytes;
  // GPU: particles, and 8-byte counts cleared, added to, and read. CPU: a counting sort, particles through its indices.
  bytes.assign = gpu ? s.meshes() * (16 * n + 9 * cell) : 40 * n + s.meshes() * (20 * n + cell);
  bytes.forward = s.meshes() * cell * (gpu ? 6 : 4);
  bytes.backward = s.transforms_back() * cell * (gpu ? 6 : 4);
  const double table = cell / 8;
  if (s.gradient != Gradient::kAnalytic) {
    const double first = s.meshes() + 1 + (s.meshes() > 1 ? 1 : 0);
    bytes.influence = cell * (first + 2 * (3 * outputs - 1)) + 3 * outputs * table;
  } else {
    bytes.influence = cell * (s.meshes() + outputs) + table;
  }
  const double result = 12 * n * (2 * outputs - 1);  // the second output reads what it adds to
  bytes.interpolate = result + (s.gradient == Gradient::kAnalytic ? 1 : 3) * outputs * (16 * n + cell);
  return bytes;
}

struct Phase {
  const char* name;
  double MeshPhases::*of;
};
constexpr Phase kPhases[] = {{"assign", &MeshPhases::assign},
                             {"forward", &MeshPhases::forward},
                             {"influence", &MeshPhases::influence},
                             {"backward", &MeshPhases::backward},
                             {"interpolate", &MeshPhases::interpolate}};

struct Run {
  double whole = 1e30;
  MeshPhases best{1e30, 1e30, 1e30, 1e30, 1e30};
};

Run best_of(const Stream& stream, ParticleMesh& mesh, const DeviceBuffer<SourceParticle>& source, int repeat) {
  VectorArray a("bench.acceleration");
  a.resize(source.size());
  const MassUnit unit =
      choose_mass_unit(stream, mesh.options().assignment, mesh.options().cells, source.data(), source.size());
  mesh.measure_phases();
  Run run;
  for (int i = 0; i < repeat; ++i) {
    run.whole = std::min(run.whole, bench::seconds(stream, [&] {
                           mesh.long_range(stream, source.data(), source.size(), unit, a.view(), nullptr);
                         }));
    const MeshPhases now = mesh.phases();
    for (const Phase& p : kPhases) run.best.*p.of = std::min(run.best.*p.of, now.*p.of);
  }
  return run;
}

struct Bench {
  const Stream& stream;
  int side, repeat;
  bool gpu;
  double copy;  // bytes a second
  bench::Report& report;

  void time(const Setting& s, const DeviceBuffer<SourceParticle>& source, Set set) const {
    const int m = side * s.halves / 4 * 2;
    const MeshOptions options{m, s.assignment, s.gradient, s.interlacing};
    const std::size_t before = pool_report().in_use;
    ParticleMesh mesh(options, make_force_law(Split::kPolynomial, 5, 4.5 / m, Softening::kPlummer, 1e-4));
    const Run run = best_of(stream, mesh, source, repeat);
    const auto n = static_cast<double>(source.size());
    const double padded = static_cast<double>(m) * m * (m + 2);
    const MeshPhases bytes = bytes_moved(s, n, 4 * padded, gpu);
    const std::string name = fmt::format("{}^3 {}, {}: ", m, s.label, label(set));
    fmt::print("{:4}^3  {}  {:<9} {:8.2f}", m, s.label, label(set), 1e3 * run.whole);
    report.add(name + "whole", run.whole, "s");
    report.add(name + "particles a second", n / run.whole, "1/s");
    for (const Phase& p : kPhases) {
      const double seconds = run.best.*p.of, of_copy = bytes.*p.of / seconds / copy;
      fmt::print("  {:8.2f} {:3.0f}%", 1e3 * seconds, 100 * of_copy);
      report.add(name + p.name, seconds, "s");
      report.add(name + p.name + ", bytes to move", bytes.*p.of, "B");
      report.add(name + p.name + ", of a copy's bandwidth", of_copy, "");
    }
    const double bytes_a_cell = static_cast<double>(pool_report().in_use - before) / padded;
    fmt::print(" {:8.1f} {:6.1f}\n", 1e-6 * n / run.whole, bytes_a_cell);
    report.add(name + "memory", bytes_a_cell, "B a cell");
  }
};

void print_errors(bench::Report& report) {
  std::printf("\npair error on 32^3, rms over a ball of 1.2 r_cut, in Newton's force at r_cut\n");
  std::printf("%-36s %9s  %9s    analytic 2+2\n", "split  r_cut  cloud gradient    FFTs", "here", "prototype");
  for (const auto& row : test::pair_error_table()) {
    const double error = test::pair_error(row, 20, 60);
    test::PairErrorRow analytic = row;
    analytic.gradient = Gradient::kAnalytic;
    analytic.interlacing = Interlacing::kFull;
    const double other = test::pair_error(analytic, 20, 60);
    std::printf("%-36s %9.1e  %9.1e    %9.1e\n", row.label, error, row.prototype, other);
    report.add(fmt::format("pair error {}", row.label), error, "of Newton at r_cut");
    report.add(fmt::format("pair error {} analytic 2+2", row.label), other, "of Newton at r_cut");
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string json_path;
  int side = 128, repeat = 4;
  bool no_errors = false;
  CLI::App app("Speed of the long-range force");
  app.add_option("--json", json_path, "write results here");
  app.add_option("--particles", side, "particles along one side")->check(CLI::Range(8, 512));
  app.add_option("--repeat", repeat, "the best of so many")->check(CLI::Range(1, 1000));
  app.add_flag("--no-errors", no_errors, "leave out the table of pair errors");
  CLI11_PARSE(app, argc, argv);
  return bench::run_or_say("bench_mesh", [&] {
    const DeviceInfo device = device_info();
    const Stream stream;
    bench::Report report("mesh", json_path);
    const double copy = bench::copy_bandwidth(stream);
    report.add("copy", copy, "B/s");
    fmt::print("{}, {}, {} units; {}^3 particles; a copy moves {:.1f} GB/s\n", device.name, device.instruction_set,
               device.units, side, 1e-9 * copy);
    fmt::print("milliseconds, and bytes to move over time as a share of the copy's\n");
    fmt::print("{:<6}  {:<16}  {:<9} {:>8}", "mesh", "setting", "particles", "whole");
    for (const Phase& p : kPhases) fmt::print("  {:>13}", p.name);
    fmt::print(" {:>8} {:>6}\n", "Mpart/s", "B/cell");
    const Bench bench{stream, side, repeat, std::string(backend_name()) == "cuda", copy, report};
    for (Set set : {Set::kEven, Set::kClustered, Set::kDrifted, Set::kOnePlace}) {
      DeviceBuffer<SourceParticle> source("bench.source");
      source.upload(stream, make_particles(side, set));
      if (set == Set::kDrifted || set == Set::kOnePlace) {
        bench.time(kStandard, source, set);
        continue;
      }
      for (const Setting& s : kSettings) bench.time(s, source, set);
    }
    if (!no_errors) print_errors(report);
    report.write();
  });
}
