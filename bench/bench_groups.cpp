// Seconds that groups of friends take, phase by phase: sort, tree, links, and all that is measured of them. Haloes with
// the density profile of Navarro, Frenk & White and the mass function M^-1.9 hold a third of the particles.
#include <CLI/CLI.hpp>
#include <cmath>
#include <random>

#include "bench/report.hpp"
#include "bench/timing.hpp"
#include "kernels/groups/friends.hpp"
#include "kernels/particles/particles.hpp"
#include "src/cosmology/cosmology.hpp"
#include "src/groups/catalogue.hpp"
#include "tests/src/groups/halo.hpp"

namespace {

using namespace maki;

struct Options {
  int side = 128;
  std::uint32_t leaf = 32;
  int threads = 0, repeat = 3;
  std::string json;
};

// Particles of `mass`.
test::HaloSet universe(std::size_t n, double mass) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> u(0, 1);
  test::HaloSet set;
  const double length = 1 / std::cbrt(static_cast<double>(n));
  for (unsigned k = 0; set.ids.size() < n / 3; ++k) {
    test::NfwHalo halo;
    const double longest = static_cast<double>(n) / 100, lowest = 20;  // M^-0.9 above a mass
    halo.particles = static_cast<std::size_t>(std::min(longest, lowest * std::pow(1 - u(random), -1 / 0.9)));
    halo.centre = {u(random), u(random), u(random)};
    halo.radius = length * std::cbrt(static_cast<double>(halo.particles) * 3 / (4 * M_PI * 200));
    halo.edge = 1;
    halo.mass = mass * static_cast<double>(halo.particles);
    add_halo(set, halo, k);
  }
  while (set.ids.size() < n) set.add({u(random), u(random), u(random)}, {0, 0, 0}, static_cast<float>(mass));
  return set;
}

// The least seconds of the repetitions.
struct Best {
  double sort = 1e9, build = 1e9, boxes = 1e9, friends = 1e9, all = 1e9;
};

void measure(const Stream& stream, Particles& particles, const Options& given, Best& best) {
  MortonSorter sorter;
  Octree tree;
  DeviceBuffer<CellBox> boxes("bench.boxes");
  DeviceBuffer<std::uint32_t> labels("bench.labels");
  const SourceParticle* source = nullptr;
  const auto keep = [&](double& least, auto call) { least = std::min(least, bench::seconds(stream, call)); };
  keep(best.sort, [&] { sorter.sort(stream, particles, nullptr); });
  source = particles.source.data();
  keep(best.build, [&] { build_octree(stream, sorter.keys(), given.leaf, 0, tree); });
  keep(best.boxes, [&] { make_cell_boxes(stream, source, tree, boxes); });
  keep(best.friends, [&] { find_friends(stream, source, tree, boxes, 0.2 / given.side, labels); });
}

void run(const Options& given) {
  select_device(0, given.threads);
  const Stream stream;
  const auto n = static_cast<std::size_t>(given.side) * static_cast<std::size_t>(given.side * given.side);
  SnapshotHeader header;
  header.box_size = 1;
  header.omega0 = 0.3, header.omega_lambda = 0.7, header.hubble = 0.7;
  header.gravitational_constant = header.units.gravitational_constant();
  const double density = Cosmology(header, {}).mean_density();
  const test::HaloSet set = universe(n, density / static_cast<double>(n));
  const Communicator alone = Communicator::self();
  Particles particles;
  Best best;
  std::size_t groups = 0;
  for (int i = 0; i < given.repeat; ++i) {
    set.upload(stream, particles);
    measure(stream, particles, given, best);
    set.upload(stream, particles);
    best.all = std::min(best.all, bench::seconds(stream, [&] {
                          const Frame frame = make_frame(header, 1, {0.5, 0.5, 0.5});
                          groups = find_groups(stream, alone, particles, frame, header, {}).groups.size();
                        }));
  }
  bench::Report report("groups", given.json);
  report.add("particles", static_cast<double>(n), "");
  report.add("groups of 32 and more", static_cast<double>(groups), "");
  report.add("keys, sort, reorder", best.sort, "s");
  report.add("build", best.build, "s");
  report.add("boxes of cells", best.boxes, "s");
  report.add("friends", best.friends, "s");
  report.add("all of find_groups", best.all, "s");
  report.print();
}

}  // namespace

int main(int argc, char** argv) {
  Options given;
  CLI::App program("Friends-of-friends groups: sort, tree, links, and all of `maki groups` but its files");
  program.add_option("--particles", given.side, "along a side");
  program.add_option("--leaf", given.leaf, "of the tree for links");
  program.add_option("--threads", given.threads, "of the CPU");
  program.add_option("--repeat", given.repeat, "the fastest counts");
  program.add_option("--json", given.json, "file for the figures");
  CLI11_PARSE(program, argc, argv);
  return bench::run_or_say("bench_groups", [&] { run(given); });
}
