// The coding of masses that go from site to site: time, bytes, and both beside a copy of the counts in the same run, of
// one thread, for the states that a run begins with, passes through and ends in.
//   bench_mesh_codec [--json FILE] [--cells M ...] [--particles N a side] [--repeat N] [--snapshot FILE ...]
#include <omp.h>
#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <random>

#include "bench/report.hpp"
#include "src/config/parse.hpp"
#include "src/run/setup.hpp"
#include "src/simulation/frame.hpp"
#include "tests/kernels/mesh/mesh_sets.hpp"
#include "wan/sites/mesh_codec.hpp"
#include "wan/sites/site_mesh.hpp"

namespace {

using namespace maki;
using sites::MeshBlock;
using sites::Plane;

using Counts = std::array<std::vector<std::uint64_t>, 2>;

constexpr int kPlanes = 16;  // of a block

struct Set {
  std::string name;
  std::vector<SourceParticle> particles;
};

Set set_of(std::string name, const Config& config) {
  const Prepared run = prepare(config, true, Communicator::self());
  Particles particles;
  const Stream stream;
  load_particles(stream, run.initial, make_frame(run.initial.header, run.side, run.centre), particles);
  return {std::move(name), particles.source.download(stream)};
}

// Steep clumps, half of all particles, in a perturbed lattice: what gravity makes in the end.
Set clumps(int side) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> even;
  std::vector<std::array<double, 3>> centres(static_cast<std::size_t>(side) * 8);
  for (auto& c : centres) c = {even(random), even(random), even(random)};
  std::vector<SourceParticle> set;
  for (int i = 0; i < side * side * side; ++i) {
    double x[3] = {i / (side * side) + 0.5, i / side % side + 0.5, i % side + 0.5};
    for (double& c : x) c = (c + 0.5 * normal(random)) / side;
    if (i % 2) {
      const auto& centre = centres[random() % centres.size()];
      const double r = 0.02 * std::pow(even(random), 3);
      for (int c = 0; c < 3; ++c) x[c] = centre[static_cast<std::size_t>(c)] + r * normal(random);
    }
    SourceParticle p{0, 0, 0, 1.0f};
    std::uint32_t* const to[3] = {&p.x, &p.y, &p.z};
    for (int c = 0; c < 3; ++c) *to[c] = static_cast<std::uint32_t>(static_cast<std::int64_t>(x[c] * 0x1p32));
    set.push_back(p);
  }
  return {"clumps", set};
}

// What this thread had of its core.
struct Timer {
  static double now() {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  }
  double begin = now();
  double seconds() const { return now() - begin; }
};

struct Run {
  double encode = 1e30, decode = 1e30, copy = 1e30;  // seconds
  std::size_t bytes = 0;
};

Run measure(const Counts& counts, const MassUnit& unit, int m, Plane kind, int repeat) {
  Run run;
  Counts sums;
  const std::size_t plane = static_cast<std::size_t>(m) * m;
  for (int turn = 0; turn < repeat; ++turn) {
    run.bytes = 0;
    for (std::size_t mesh = 0; mesh < 2; ++mesh) sums[mesh].assign(counts[mesh].size(), 0);
    std::vector<std::vector<std::byte>> coded;
    std::vector<MeshBlock> blocks;
    Timer encoding;
    for (int x = 0; x < m; x += kPlanes) {
      MeshBlock block{std::min(kPlanes, m - x), m, m, 2, unit.dropped_bits, unit.shed_bits, {}};
      for (auto& kinds : block.kind) kinds.assign(static_cast<std::size_t>(block.planes), kind);
      const std::size_t first = plane * static_cast<std::size_t>(x);
      const std::array<const std::uint64_t*, 2> from = {counts[0].data() + first, counts[1].data() + first};
      coded.push_back(encode(block, from));
      run.bytes += coded.back().size();
      blocks.push_back(std::move(block));
    }
    run.encode = std::min(run.encode, encoding.seconds());
    Timer decoding;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const auto row_of = [&](int mesh, int x, int y) {
        const auto row = static_cast<std::size_t>((kPlanes * static_cast<int>(i) + x) * m + y);
        return sums[static_cast<std::size_t>(mesh)].data() + row * static_cast<std::size_t>(m);
      };
      decode(blocks[i], coded[i], row_of);
    }
    run.decode = std::min(run.decode, decoding.seconds());
    for (std::size_t mesh = 0; mesh < 2; ++mesh)
      for (std::size_t i = 0; i < sums[mesh].size(); ++i)
        if (sums[mesh][i] != (kind == Plane::kRounded ? unit.rounded(counts[mesh][i]) : counts[mesh][i]))
          throw Error("counts came back changed", fmt::format("cell {} of mesh {}", i, mesh));
    Timer copying;
    for (std::size_t mesh = 0; mesh < 2; ++mesh)
      std::memcpy(sums[mesh].data(), counts[mesh].data(), sums[mesh].size() * sizeof(std::uint64_t));
    run.copy = std::min(run.copy, copying.seconds());
  }
  return run;
}

void report_one(const Set& set, int m, int repeat, bench::Report& report) {
  const test::OnDevice source(set.particles);
  const MassUnit unit =
      choose_mass_unit(test::test_stream(), Assignment::kPcs, m, source.data(), source.size(), sites::kSiteMassBits);
  const Counts counts = test::counts_of(set.particles, unit, Assignment::kPcs, MeshBox::whole(m));
  const double cells = static_cast<double>(m) * m * m;
  for (Plane kind : {Plane::kRounded, Plane::kExact}) {
    const char* const of = kind == Plane::kRounded ? "rounded" : "shared";
    const Run run = measure(counts, unit, m, kind, repeat);
    const double encode = 1e9 * run.encode / cells, decode = 1e9 * run.decode / cells, copy = 1e9 * run.copy / cells;
    const double bytes = static_cast<double>(run.bytes) / cells;
    fmt::print("{:<24} {:4}^3 {:8.3g} {:<8} {:8.2f} {:8.2f} {:8.2f} {:8.2f} {:9.1f} {:9.3f}\n", set.name, m,
               static_cast<double>(source.size()) / cells, of, encode, decode, encode + decode, copy,
               (encode + decode) / copy, bytes);
    std::fflush(stdout);
    const std::string name = fmt::format("{} {}^3, {}: ", set.name, m, of);
    report.add(name + "encoding", encode, "ns a cell");
    report.add(name + "decoding", decode, "ns a cell");
    report.add(name + "copy of the counts", copy, "ns a cell");
    report.add(name + "size", bytes, "B a cell");
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string json_path;
  int side = 64, repeat = 3;
  std::vector<int> meshes = {32, 64, 128};
  std::vector<std::string> snapshots;
  CLI::App app("Speed and size of the coding of masses between sites");
  app.add_option("--json", json_path, "write results here");
  app.add_option("--cells", meshes, "mesh cells along one side")->check(CLI::Range(8, 1024));
  app.add_option("--particles", side, "particles along one side")->check(CLI::Range(8, 512));
  app.add_option("--repeat", repeat, "the best of so many")->check(CLI::Range(1, 1000));
  app.add_option("--snapshot", snapshots, "these in place of sets that are made here");
  CLI11_PARSE(app, argc, argv);
  return bench::run_or_say("bench_mesh_codec", [&] {
    omp_set_num_threads(1);
    bench::Report report("mesh_codec", json_path);
    std::vector<Set> sets;
    if (snapshots.empty()) {
      for (int z : {49, 10}) {
        const std::string name = fmt::format("z = {}", z);
        sets.push_back(set_of(name, load_config("configs/quickstart.toml",
                                                {fmt::format("initial.particles_per_side={}", side),
                                                 fmt::format("initial.redshift={}", z), "output.redshifts=[0]"})));
      }
      sets.push_back(clumps(side));
    }
    for (const std::string& file : snapshots)
      sets.push_back(set_of(file, parse_config("[initial]\nkind = \"file\"\n[time]\nend_redshift = -0.5\n", "bench",
                                               {"initial.file=" + file})));
    fmt::print("ns a cell of both meshes, one thread; bytes a cell of both meshes (64-bit counts: 16)\n");
    fmt::print("{:<24} {:>6} {:>8} {:<8} {:>8} {:>8} {:>8} {:>8} {:>9} {:>9}\n", "set", "mesh", "N/M", "planes",
               "encode", "decode", "both", "copy", "of copy", "bytes");
    for (const Set& set : sets)
      for (int m : meshes) report_one(set, m, repeat, report);
    report.write();
  });
}
