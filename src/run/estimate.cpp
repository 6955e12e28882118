#include "src/run/estimate.hpp"

#include <algorithm>
#include <cmath>

#include "host/let/whole_cells.hpp"
#include "kernels/device/device.hpp"
#include "kernels/tree/octree.hpp"
#include "src/config/presets.hpp"
#include "src/config/resolve.hpp"
#include "src/gravity/ghost_tree.hpp"
#include "src/gravity/kept_lists.hpp"
#include "src/ic/lagrangian.hpp"
#include "src/io/restart.hpp"
#include "src/io/snapshot_io.hpp"
#include "src/model/maki.hpp"
#include "src/run/products.hpp"
#include "src/simulation/run_files.hpp"

namespace maki {
namespace {

// Bytes a particle unless it says otherwise; gravity, states, sets and products say their own. What was measured: the
// high-water marks that `maki run` prints and the largest resident set of the process, at 64^3 and 128^3 in 50 Mpc/h
// and 2^17 in a sphere, leaves of 16, groups of 64.

// The tree: 17 in an early universe, 24 in a clustered one, 29 in a sphere.
constexpr double kTreePeriodic = 24, kTreeIsolated = 30, kTreeLeaf = 16;
constexpr double kSort = 28;
// Particles of a leaf; part of a group that is filled; words in a list of a clustered set over those of a uniform one.
constexpr double kParticlesALeaf = 7, kFill = 0.7, kClustered = 3;
constexpr double kListsIsolated = 125;  // lists at theta 0.5, groups of 64
// A walk on a GPU: 192 steps of 32 bytes for each group of about 45 particles, and at most 6336 groups at a time.
constexpr double kStaging = 32 * 192, kStagedGroups = 48 * 132, kMembers = 45;
constexpr double kSelected = 4.2;   // of mass assignment on the CPU
constexpr double kBrickEdge = 8;    // cells that a brick is wider than its particles' box: clouds, and room to move
constexpr double kPlanes = 24 * 8;  // bytes of each cell of a plane of the mesh
constexpr double kLetSkin = 0.1;
constexpr double kLetCell = 100;  // bytes of an imported cell
// Memory of local essential trees over that of the entries imported in a uniform set: trees sent, their selection, and
// clustering. 3 at z = 5, 9 at z = 0.
constexpr double kLetKept = 9;
// Most particles of one rank over the mean: ranks share the work evenly, and not the particles.
constexpr double kUneven = 1.5;
// A ghost of a deterministic run on its way, at both ends.
constexpr double kGhostSent = 76;
constexpr double kMpi = 60e6;           // bytes: MPI and its buffers
constexpr double kProgram = 30e6;       // bytes: code, libraries, thread stacks
constexpr double kPoolRounding = 40e6;  // bytes: unfilled ends of the segments of the memory pool

double cubed(double x) { return x * x * x; }

bool on_gpu() { return std::string(backend_name()) == "cuda"; }

// Lists of uniform sets hold all leaves within r_cut of the group's box and a few cells beyond size / theta; those of
// isolated sets grow as theta^-1.35 (Groen et al. 2011, eq. 4).
double list_bytes(const Config::Gravity& gravity, bool periodic, double n) {
  const double members = kFill * static_cast<double>(gravity.group_size);
  if (!periodic)
    return kListsIsolated * std::pow(0.5 / *gravity.theta, 1.35) *
           std::pow(static_cast<double>(gravity.group_size) / 64, -0.75);
  const double reach = *gravity.r_cut / static_cast<double>(*gravity.mesh) * std::cbrt(n);  // in particle spacings
  const double uniform = 4 * model::particles_within(reach, members) / kParticlesALeaf / members;
  return uniform * kClustered;
}

// Many ranks hold pencils, as much again for their transposes, and a brick of counts or forces around a domain of
// kUneven times an even share of the volume. Each of several sites has a whole mesh of its own, always in pencils.
double mesh_bytes(const Config::Gravity& gravity, double n, int ranks, int sites, bool pencils) {
  const double m = static_cast<double>(*gravity.mesh), cells = m * m * (m + 2);
  double meshes = *gravity.gradient == Gradient::kAnalytic && *gravity.interlacing == Interlacing::kNone ? 1 : 2;
  if (*gravity.gradient == Gradient::kFourPoint && *gravity.interlacing == Interlacing::kFull) ++meshes;
  // Influence functions of an octant: of the force, and of the potential where the force has its own.
  const double tables = (*gravity.gradient == Gradient::kAnalytic ? 1 : 2) * cubed(m / 2 + 1);
  const double counts = on_gpu() ? 8 * cells : kPlanes * m * m + kSelected * n;  // GPU: in the transforms' work space
  if (!pencils) return 4 * (meshes * cells + tables) + counts;
  const double brick = std::min(cubed(m), cubed(std::cbrt(kUneven * cubed(m) / (ranks * sites)) + kBrickEdge));
  const double planes =
      on_gpu() ? 0 : kPlanes * std::cbrt(brick) * std::cbrt(brick) + kSelected * kUneven * n / (ranks * sites);
  const double transposes = ranks > 1 ? 4 * meshes * cells : 0, others = ranks * sites > 1 ? 8 * cells : 0;
  return (4 * (meshes * cells + tables) + transposes + others) / ranks + 2 * 8 * brick + planes;
}

// Local essential trees from all other ranks, and what is kept to send theirs. The domain is taken as a cube of a
// uniform set: leaves too near for the opening criterion arrive particle by particle; beyond these, shells of doubling
// distance x, to the edge of the box or to r_cut, arrive as cells of side theta x / sqrt(3).
double let_bytes(const Config::Gravity& gravity, bool periodic, double n, double ranks) {
  const double side = 1 / std::cbrt(ranks), theta = *gravity.theta / (1 + kLetSkin);
  const double leaf = std::cbrt(kParticlesALeaf / n), near = std::sqrt(3.0) * leaf / theta;
  const double reach = periodic ? *gravity.r_cut / static_cast<double>(*gravity.mesh) : 1;
  const auto shell = [side](double from, double to) {
    return std::min(1.0, cubed(side + 2 * to)) - std::min(1.0, cubed(side + 2 * from));
  };
  double particles = n * shell(0, std::min(near, reach)), cells = particles / kParticlesALeaf;
  for (double x = near; x < reach; x *= 2)
    cells += shell(x, std::min(2 * x, reach)) * std::min(n / kParticlesALeaf, cubed(std::sqrt(3.0) / (theta * x)));
  const double inner = 8.0 / 7;  // a tree has 1/7 more cells, above these
  return kLetKept * (16 * particles + kLetCell * inner * cells);
}

// Number of ghosts of a rank: its domain is taken as a cube, and ghosts from other sites for a slab go to all ranks.
double ghosts_of(const Config::Gravity& gravity, double n, int ranks, int sites) {
  const int level = whole_cell_level(static_cast<std::uint64_t>(n), kPeriodicMinLevel);
  const double margin = *gravity.r_cut / static_cast<double>(*gravity.mesh) + 0.5 * whole_cell_margin(level);
  const double side = 1 / std::cbrt(static_cast<double>(ranks) * sites), slab = 1.0 / sites;
  const double of_ranks = ranks > 1 ? cubed(std::min(1.0, side + 2 * margin)) - cubed(side) : 0;
  return n * (of_ranks + std::min(1 - slab, 2 * margin));
}

double host_start(const Config& config, double n) {
  const bool lpt = config.initial.kind == InitialKind::kLpt;
  const double grids = lpt && config.initial.lpt_order == 2 ? kLptBytes : 0;
  return n * std::max(grids, Snapshot::kBytes + kFrameBytes);
}

}  // namespace

// The largest sum of three moments: at the start the device holds the particles; at an output all but scratch; in
// between the host holds no more than the kept states.
double MemoryEstimate::shared() const {
  const double start = host_start + particles, output = device() - scratch + host_states + host_output;
  return std::max({start, device() + host_states + kProgram, output}) + std::min(kPoolRounding, 0.25 * device());
}

std::uint64_t planned_particles(const Config& config, const Communicator& ranks) {
  switch (config.initial.kind) {
    case InitialKind::kLpt:
    case InitialKind::kPancake: {
      const auto side = static_cast<std::uint64_t>(config.initial.particles_per_side);
      return side * side * side;
    }
    case InitialKind::kFile: return count_particles(config.initial.file, ranks);
    case InitialKind::kTwoBody: return 2;
    case InitialKind::kKeplerDisk: return static_cast<std::uint64_t>(config.initial.particles) + 1;
    default: return static_cast<std::uint64_t>(config.initial.particles);
  }
}

MemoryEstimate estimate_memory(Config config, std::uint64_t particles, int ranks) {
  resolve_presets(config, particles);
  const int sites = std::max(1, static_cast<int>(config.sites.ring.size())), everywhere = ranks * sites;
  const auto all = static_cast<double>(particles), even = all / everywhere;  // particles
  const double n = everywhere > 1 ? kUneven * even : all;
  const bool periodic = config.run.kind == RunKind::kCosmology;
  MemoryEstimate e;
  e.ranks = ranks;
  e.sites = sites;
  e.particles = n * ParticleRows::kBytes;
  e.accelerations = n * gravity_bytes(periodic, config.output.energy_interval > 0);
  double sort = 0;
  if (config.gravity.method == Method::kTree) {
    const double leaf = static_cast<double>(std::max<std::int64_t>(config.gravity.leaf_size, 4));
    e.tree = n * (periodic ? kTreePeriodic : kTreeIsolated) * kTreeLeaf / leaf;
    e.lists = KeptLists::kRoom / 1.15 * even * list_bytes(config.gravity, periodic, all);
    if (everywhere > 1) e.let = let_bytes(config.gravity, periodic, all, everywhere);
    if (config.run.deterministic && periodic) {
      const double ghosts = everywhere > 1 ? ghosts_of(config.gravity, all, ranks, sites) : 0;
      if (everywhere > 1) e.tree *= 2 + ghosts / n;  // a second tree, of own particles, selects others' ghosts
      e.let = GhostTree::kBytes * n + (GhostTree::kBytes + kGhostSent) * ghosts;
    }
    if (const auto& most = config.gravity.list_memory)
      e.lists = std::min(e.lists, number_of(*most, "gravity.list_memory", config, {}));
    if (on_gpu()) e.walk = kStaging * std::min(kStagedGroups, n / kMembers);
    sort = n * kSort;
  }
  if (periodic) e.mesh = mesh_bytes(config.gravity, all, ranks, sites, everywhere > 1 || config.run.deterministic);
  e.scratch = std::max(product_bytes(config, particles, periodic) / ranks, sort - e.lists);
  const double program = kProgram + (ranks > 1 ? kMpi : 0);
  e.host_start = host_start(config, all / ranks) + program;  // each site makes the whole set, and then keeps its part
  const double gathered = (ranks > 1 ? 3 : 1) * gathered_bytes(config, particles, periodic) / ranks;
  e.host_output = std::max(n * (Snapshot::kBytes + kFrameBytes), gathered) + program;
  if (sites > 1) e.host_states = 2 * n * ParticleRows::kBytes;
  e.snapshot = all / sites * Snapshot::kBytes;
  e.restart = all / sites * ParticleRows::kBytes;
  const int kept = restarts_to_keep(static_cast<int>(config.run.restarts_kept), sites > 1);
  e.restarts = kept > 0 ? kept + 1 : 0;
  return e;
}

}  // namespace maki
