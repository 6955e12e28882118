#include "src/run/estimate.hpp"

#include <algorithm>
#include <cmath>

#include "host/comm/job.hpp"
#include "host/domain/multisection.hpp"
#include "host/fft/pencil_mesh.hpp"
#include "host/let/local_essential_tree.hpp"
#include "kernels/device/memory.hpp"
#include "kernels/particles/particles.hpp"
#include "kernels/tree/walk.hpp"
#include "src/config/presets.hpp"
#include "src/config/resolve.hpp"
#include "src/gravity/ghost_sources.hpp"
#include "src/gravity/kept_lists.hpp"
#include "src/groups/catalogue.hpp"
#include "src/ic/lagrangian.hpp"
#include "src/io/restart.hpp"
#include "src/io/snapshot_io.hpp"
#include "src/io/snapshot_writer.hpp"
#include "src/lightcone/light_cone.hpp"
#include "src/run/group_files.hpp"
#include "src/run/light_cones.hpp"
#include "src/run/products.hpp"
#include "src/run/setup.hpp"
#include "src/run/start_run.hpp"
#include "src/simulation/force_check.hpp"
#include "src/simulation/run_files.hpp"
#include "src/simulation/simulation.hpp"

namespace maki {
namespace {

// Each part has its own bytes. They were measured from the high-water marks that `maki run` prints and the largest
// resident set of the process, at 64^3 and 128^3 in 50 Mpc/h and 2^17 in a sphere, with leaves of 16 and groups of 64.
constexpr double kProgramBytes = 30e6;  // code, libraries, thread stacks

// The division of the particles of a run.
struct Shares {
  double all, most;  // particles of all ranks of all sites, and of the rank with most
  int ranks, sites;
  int everywhere() const { return ranks * sites; }
  double even() const { return all / everywhere(); }
};

// Sets tree, lists, let and walk.
void add_tree(const Config& config, const Shares& n, MemoryEstimate& e) {
  const Config::Gravity& gravity = config.gravity;
  const bool periodic = config.run.kind == RunKind::kCosmology, others = n.everywhere() > 1;
  const double r_cut = periodic ? *gravity.r_cut / static_cast<double>(*gravity.mesh) : 1;
  const auto group_size = static_cast<double>(gravity.group_size);
  e.tree = n.most * tree_bytes(periodic, static_cast<double>(std::max<std::int64_t>(gravity.leaf_size, 4)));
  e.lists = KeptLists::kRoom / 1.15 * n.even() *
            (periodic ? cutoff_list_bytes(r_cut * std::cbrt(n.all), group_size)
                      : isolated_list_bytes(*gravity.theta, group_size));
  if (others) e.let = let_bytes(n.all, *gravity.theta, r_cut, n.everywhere());
  if (config.run.deterministic && periodic) {
    const double ghosts = others ? expected_ghosts(n.all, r_cut, n.ranks, n.sites) : 0;
    if (others) e.tree *= 2 + ghosts / n.most;  // a second tree, of own particles, selects others' ghosts
    e.let = GhostTree::kBytes * n.most + (GhostTree::kBytes + kGhostSentBytes) * ghosts;
  }
  if (const auto& most = gravity.list_memory)
    e.lists = std::min(e.lists, number_of(*most, "gravity.list_memory", config, {}));
  e.walk = walk_bytes(n.most);
}

// Bytes on the device during the comparison with a strict walk, whose lists are some four times as long as the run's.
double check_bytes(const Config& config, double n, const MemoryEstimate& e) {
  if (config.output.error_targets.value_or(0) == 0) return 0;
  return n * kForceCheckBytes + e.tree + std::min(4 * e.lists, static_cast<double>(kForceCheckLists));
}

// Complete shells keep their spools until no restart needs them: at most all spools.
void add_light_cones(const Config& config, const Shares& n, MemoryEstimate& e) {
  const LightConeBytes cones = light_cone_bytes(config, static_cast<std::uint64_t>(n.all));
  e.light_cones = cones.disk / n.sites + cones.disk_maps;
  e.spools = (config.run.restarts_kept > 0 ? cones.spools : cones.largest_spool) / n.sites;
  const int states = n.sites > 1 ? 1 + LightCone::kRemembered : 1;  // of the maps
  e.host_cones = cones.largest_shell / n.everywhere() + states * cones.maps / n.ranks;
  if (e.host_cones > 0) e.host_cones = e.host_cones * (n.ranks > 1 ? kUneven : 1) + kProgramBytes;
}

double host_start(const Config& config, double n) {
  const bool lpt = config.initial.kind == InitialKind::kLpt;
  const double grids = lpt && config.initial.lpt_order == 2 ? kLptBytes : 0;
  return n * std::max(grids, Snapshot::kBytes + kFrameBytes);
}

}  // namespace

// The largest sum at three times: at the start the device holds only the particles; at an output everything except
// scratch; in between the host holds only the kept states.
double MemoryEstimate::shared() const {
  const double copies = host_states + host_snapshot;
  const double start = host_start + particles, output = device() - scratch + copies + std::max(host_output, host_cones);
  return std::max({start, device() + copies + kProgramBytes, output}) + std::min(kPoolRoundingBytes, 0.25 * device());
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
  const auto all = static_cast<double>(particles);
  const double n = (everywhere > 1 ? kUneven : 1) * all / everywhere;
  const bool periodic = config.run.kind == RunKind::kCosmology, tree = config.gravity.method == Method::kTree;
  MemoryEstimate e;
  e.ranks = ranks;
  e.sites = sites;
  e.particles = n * ParticleRows::kBytes;
  e.accelerations = n * gravity_bytes(periodic, config.output.energy_interval > 0);
  if (tree) add_tree(config, {all, n, ranks, sites}, e);
  if (periodic) {
    const bool pencils = everywhere > 1 || config.run.deterministic;
    e.mesh = pencils ? pencil_mesh_bytes(mesh_options(config), all, ranks, sites)
                     : particle_mesh_bytes(mesh_options(config), all);
  }
  const double sort = tree ? n * MortonSorter::kBytes : 0;
  e.scratch = std::max({product_bytes(config, particles, periodic) / ranks, check_bytes(config, n, e), sort - e.lists});
  const double program = kProgramBytes + (ranks > 1 ? kMpiBytes : 0);
  e.host_start = host_start(config, all / ranks) + program;  // each site makes the whole set, then keeps its part
  const double gathered = (ranks > 1 ? 3 : 1) * gathered_bytes(config, particles, periodic) / ranks;
  const double gathered_groups = ranks > 1 ? 16 * all : 0;  // IDs of members and groups, on the first rank
  const double grouped = sites > 1 ? all / ranks : n;       // one site finds the groups of all
  const double groups = config.output.groups ? grouped * kGroupHostBytes + gathered_groups : 0;
  const WriteOptions written = snapshot_options(config);
  const double members = written.selection.in_groups ? n * kMembersBytes : 0;
  const double check = config.output.error_targets.value_or(0) > 0 ? n * kForceCheckHostBytes : 0;
  e.host_output = std::max({gathered, groups, members, check}) + program;
  e.host_snapshot = n * (OutputState::kCopyBytes + written.selection.fraction * snapshot_writer_bytes(written));
  // One site: the state being written, and the next one if wanted before that ends. Several: two kept, one being
  // written.
  const int states = sites > 1 ? 3 : config.run.restarts_kept > 0 ? 2 : 0;
  e.host_states = states * n * ParticleRows::kBytes;
  e.snapshot = all / sites * written.selection.fraction * snapshot_bytes(written);
  e.restart = all / sites * ParticleRows::kBytes;
  add_light_cones(config, {all, n, ranks, sites}, e);
  const int kept = restarts_to_keep(static_cast<int>(config.run.restarts_kept), sites > 1);
  e.restarts = kept > 0 ? kept + 1 : 0;
  return e;
}

}  // namespace maki
