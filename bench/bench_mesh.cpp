// Speed of the long-range force and its parts, and the table of pair errors of DESIGN section 3.
//   bench_mesh [--json FILE] [--particles N a side] [--no-errors]
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>

#include "bench/report.hpp"
#include "kernels/device/device.hpp"
#include "kernels/device/fft.hpp"
#include "kernels/mesh/assign.hpp"
#include "kernels/mesh/influence.hpp"
#include "kernels/mesh/interpolate.hpp"
#include "tests/kernels/mesh/pair_error.hpp"

namespace {

using namespace maki;

// Best of some repetitions, in milliseconds.
double best_of(const Stream& stream, int repetitions, const std::function<void()>& work) {
  double best = 1e30;
  for (int i = 0; i < repetitions; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    stream.synchronize();
    best = std::min(best, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

std::uint64_t spread_bits(std::uint32_t v) {
  std::uint64_t x = 0;
  for (int bit = 0; bit < 21; ++bit) x |= static_cast<std::uint64_t>(v >> (11 + bit) & 1u) << (3 * bit);
  return x;
}

// A perturbed lattice in Morton order; `clustered` moves half the particles into steep clumps.
std::vector<SourceParticle> make_particles(int side, bool clustered) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<std::array<double, 3>> clumps(200);
  for (auto& c : clumps) c = {uniform(random), uniform(random), uniform(random)};
  std::vector<std::pair<std::uint64_t, SourceParticle>> keyed;
  const auto fixed = [](double f) {
    return static_cast<std::uint32_t>(static_cast<std::int64_t>(std::floor(f * kSideToUnits)));
  };
  for (int i = 0; i < side * side * side; ++i) {
    double x[3] = {(i / (side * side) + 0.5) / side, (i / side % side + 0.5) / side, (i % side + 0.5) / side};
    for (double& c : x) c += 0.2 / side * normal(random);
    if (clustered && i % 2) {
      const auto& clump = clumps[random() % clumps.size()];
      const double r = 0.03 * std::pow(uniform(random), 2);
      double u[3] = {normal(random), normal(random), normal(random)};
      const double norm = std::sqrt(u[0] * u[0] + u[1] * u[1] + u[2] * u[2]);
      for (int c = 0; c < 3; ++c) x[c] = clump[c] + r * u[c] / norm;
    }
    const SourceParticle p{fixed(x[0]), fixed(x[1]), fixed(x[2]), 1.0f};
    keyed.emplace_back(spread_bits(p.x) << 2 | spread_bits(p.y) << 1 | spread_bits(p.z), p);
  }
  std::sort(keyed.begin(), keyed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<SourceParticle> particles;
  for (const auto& k : keyed) particles.push_back(k.second);
  return particles;
}

struct Setting {
  int cells;
  Assignment assignment;
  Gradient gradient;
  Interlacing interlacing;
  const char* label;
};

constexpr Setting kSettings[] = {
    {128, Assignment::kPcs, Gradient::kSpectral, Interlacing::kAssignment, "PCS spectral 2+3"},
    {128, Assignment::kPcs, Gradient::kAnalytic, Interlacing::kFull, "PCS analytic 2+2"},
    {192, Assignment::kPcs, Gradient::kSpectral, Interlacing::kAssignment, "PCS spectral 2+3"},
    {192, Assignment::kPcs, Gradient::kAnalytic, Interlacing::kFull, "PCS analytic 2+2"},
    {256, Assignment::kTsc, Gradient::kFourPoint, Interlacing::kNone, "TSC 4-point  1+1"},
    {256, Assignment::kPcs, Gradient::kSpectral, Interlacing::kNone, "PCS spectral 1+3"},
    {256, Assignment::kPcs, Gradient::kSpectral, Interlacing::kAssignment, "PCS spectral 2+3"},
    {256, Assignment::kPcs, Gradient::kAnalytic, Interlacing::kFull, "PCS analytic 2+2"},
    {256, Assignment::kPcs, Gradient::kSpectral, Interlacing::kFull, "PCS spectral 2+6"},
};

void time_setting(const Stream& stream, const Setting& s, DeviceBuffer<SourceParticle>& source, bool clustered,
                  bench::Report& report) {
  const MeshOptions options{s.cells, s.assignment, s.gradient, s.interlacing};
  const ForceLaw law = make_force_law(Split::kPolynomial, 5, 4.5 / s.cells, Softening::kPlummer, 1e-4);
  const std::size_t n = source.size();
  VectorArray a("bench.acceleration");
  a.resize(n);
  const double make = best_of(stream, 1, [&] { influence_function(options, law, Influence::kForce); });
  ParticleMesh mesh(options, law);
  const double whole =
      best_of(stream, 4, [&] { mesh.long_range(stream, source.data(), n, a.view(), nullptr); });

  const bool two = s.interlacing != Interlacing::kNone;
  RealFft3d fft(s.cells);
  MassAssigner assigner(s.cells, s.assignment);
  DeviceBuffer<float> values("bench.mesh", fft.size()), shifted("bench.shifted", fft.size());
  const double assign = best_of(stream, 4, [&] {
    assigner.assign(stream, source.data(), n, values.data(), two ? shifted.data() : nullptr);
  });
  const double forward = best_of(stream, 3, [&] { fft.forward(stream, shifted.data()); });
  shifted.fill_zero(stream);
  const double backward = best_of(stream, 3, [&] { fft.backward(stream, shifted.data()); });
  const MeshView view{shifted.data(), s.cells, false};
  const int outputs = s.interlacing == Interlacing::kFull ? 2 : 1;
  const int transforms_back = outputs * (s.gradient == Gradient::kSpectral ? 3 : 1);
  const double gather = best_of(stream, 3, [&] {
    if (s.gradient == Gradient::kAnalytic)
      interpolate_gradient(stream, s.assignment, view, source.data(), n, {a.view(), 1.0f, nullptr, 1.0f, false});
    else
      interpolate(stream, s.assignment, view, source.data(), n, 1.0f, false, a.x.data());
  }) * (s.gradient == Gradient::kAnalytic ? outputs : 3 * outputs);
  const double ffts = (two ? 2 : 1) * forward + transforms_back * backward;
  std::printf("%4d^3  %s  %-9s %7.0f %7.0f %7.0f %7.0f %7.0f %9.1f  %7.0f  %6.1f\n", s.cells, s.label,
              clustered ? "clustered" : "even", whole, assign, ffts, gather, whole - assign - ffts - gather,
              static_cast<double>(n) / whole * 1e-3, make, static_cast<double>(mesh.bytes()) / (1 << 20));
  const std::string name = fmt::format("{}^3 {}{}: ", s.cells, s.label, clustered ? " clustered" : "");
  report.add(name + "whole", whole, "ms");
  report.add(name + "assignment", assign, "ms");
  report.add(name + "transforms", ffts, "ms");
  report.add(name + "interpolation", gather, "ms");
  report.add(name + "influence function, once", make, "ms");
}

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
  int side = 128;
  bool no_errors = false;
  CLI::App app("Speed of the long-range force");
  app.add_option("--json", json_path, "write results here");
  app.add_option("--particles", side, "particles along one side")->check(CLI::Range(8, 512));
  app.add_flag("--no-errors", no_errors, "leave out the table of pair errors");
  CLI11_PARSE(app, argc, argv);
  const maki::DeviceInfo device = maki::device_info();
  std::printf("%s, %s, %d units, %d^3 particles in Morton order\n", device.name.c_str(), device.instruction_set.c_str(),
              device.units, side);
  std::printf("times in ms; setup: the influence function\n");
  std::printf("%-6s  %-16s  %-9s %7s %7s %7s %7s %7s %9s  %7s  %6s\n", "mesh", "setting", "particles", "whole",
              "assign", "FFT", "gather", "rest", "Mpart/s", "setup", "MiB");
  maki::bench::Report report("bench_mesh", json_path);
  const maki::Stream stream;
  for (bool clustered : {false, true}) {
    maki::DeviceBuffer<maki::SourceParticle> source("bench.source");
    source.upload(stream, make_particles(side, clustered));
    for (const Setting& s : kSettings) time_setting(stream, s, source, clustered, report);
  }
  if (!no_errors) print_errors(report);
  report.write();
  return 0;
}
