#include "src/run/estimate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "host/comm/device_payload.hpp"
#include "host/comm/job.hpp"
#include "host/fft/pencil_mesh.hpp"
#include "host/let/local_essential_tree.hpp"
#include "kernels/device/device.hpp"
#include "kernels/device/memory.hpp"
#include "kernels/error.hpp"
#include "kernels/particles/particles.hpp"
#include "kernels/tree/walk.hpp"
#include "src/analysis/picture.hpp"
#include "src/config/resolve.hpp"
#include "src/gravity/kept_lists.hpp"
#include "src/gravity/source_trees.hpp"
#include "src/groups/catalogue.hpp"
#include "src/ic/lagrangian.hpp"
#include "src/io/restart.hpp"
#include "src/io/snapshot_io.hpp"
#include "src/io/snapshot_writer.hpp"
#include "src/lightcone/light_cone.hpp"
#include "src/run/products.hpp"
#include "src/run/run_options.hpp"
#include "src/run/run_products.hpp"
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

// Lengths of lists of an isolated set over those of a uniform sphere: concentrated sets have longer ones, and the first
// lists of a run that opens cells by estimated error are those of a smaller angle.
double longer_lists(const Config& config) {
  const double concentrated = config.initial.kind == InitialKind::kColdSphere ? 1 : 1.8;
  return concentrated * (config.gravity.opening == Opening::kError ? std::pow(kAngleAsGood, -1.35) : 1);
}

// Sets tree, lists, let and walk.
void add_tree(const Config& config, const Shares& n, MemoryEstimate& e) {
  const Config::Gravity& gravity = config.gravity;
  const bool periodic = config.run.kind == RunKind::kCosmology, others = n.everywhere() > 1;
  const double r_cut = periodic ? *gravity.r_cut / static_cast<double>(*gravity.mesh) : 1;
  const auto group_size = static_cast<double>(gravity.group_size);
  e.tree = n.most * tree_bytes(periodic, static_cast<double>(std::max<std::int64_t>(gravity.leaf_size, 4)));
  e.lists = KeptLists::kRoom / 1.15 * n.even() *
            (periodic ? cutoff_list_bytes(r_cut * std::cbrt(n.all), group_size)
                      : isolated_list_bytes(*gravity.theta, group_size) * longer_lists(config));
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
  const double maps = states * cones.maps / n.ranks;
  e.host_cones = cones.largest_shell / n.everywhere() + maps;
  if (e.host_cones > 0) e.host_cones = e.host_cones * (n.ranks > 1 ? n.most / n.even() : 1) + kProgramBytes;
  if (config.lightcone.observers.empty()) return;
  const double sky = 12 * std::pow(static_cast<double>(config.lightcone.nside), 2);
  const double met = cones.most_met * n.most / n.all, kept = std::max(2 * sky, static_cast<double>(PixelCounts::kMany));
  const double waiting = sky > 0 ? 2 * sizeof(PixelCount) * std::min(met, kept) : 0;  // twice: on their way to maps
  e.host_crossings = LightCone::kBatchBytes * n.most + waiting + maps + kProgramBytes;
}

double host_start(const Config& config, double n) {
  const bool lpt = config.initial.kind == InitialKind::kLpt;
  const double grids = lpt && config.initial.lpt_order == 2 ? kLptBytes : 0;
  return n * std::max(grids, Snapshot::kBytes + kFrameBytes);
}

constexpr double kUsable = 0.95;       // of free memory: estimates have errors, and other programs need some
constexpr double kFewestLists = 0.05;  // of free memory: the least for lists, which are then made in batches
constexpr double kMostForNccl = 0.1;   // of free memory

MemoryEstimate without_lists(MemoryEstimate e) {
  e.lists = 0;
  return e;
}

std::string gigabytes(double bytes) { return fmt::format("{:.2f} GB", bytes * 1e-9); }

bool is_lattice(const Config& config) {
  return config.initial.kind == InitialKind::kLpt || config.initial.kind == InitialKind::kPancake;
}

std::string number_text(const Config& config, std::uint64_t n) {
  if (!is_lattice(config)) return fmt::format("{}", n);
  return fmt::format("{}^3", std::llround(std::cbrt(static_cast<double>(n))));
}

}  // namespace

// The largest sum at three times: at the start the device holds only the particles; at an output everything except
// scratch; in between the host holds only the kept states, and what light cones meet.
double MemoryEstimate::shared() const {
  const double copies = host_states + host_snapshot;
  const double start = host_start + particles, output = device() - scratch + copies + std::max(host_output, host_cones);
  const double between = device() + copies + std::max(kProgramBytes, host_crossings);
  return std::max({start, between, output}) + std::min(kPoolRoundingBytes, 0.25 * device());
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

MemoryEstimate estimate_memory(Config config, std::uint64_t particles, int ranks, double uneven) {
  resolve_presets(config, particles);
  const int sites = std::max(1, static_cast<int>(config.sites.ring.size())), everywhere = ranks * sites;
  const auto all = static_cast<double>(particles);
  const double n = (everywhere > 1 ? uneven : 1) * all / everywhere;
  const bool periodic = config.run.kind == RunKind::kCosmology, tree = config.gravity.method == Method::kTree;
  MemoryEstimate e;
  e.ranks = ranks;
  e.sites = sites;
  e.particles = n * ParticleRows::kBytes;
  e.accelerations = n * gravity_bytes(periodic, config.output.energy_interval > 0);
  if (tree) add_tree(config, {all, n, ranks, sites}, e);
  if (periodic) {
    const bool pencils = everywhere > 1 || (config.run.deterministic && !ParticleMesh::has_bits_of_pencils());
    e.mesh = pencils ? pencil_mesh_bytes(mesh_options(config), all, ranks, sites, uneven)
                     : particle_mesh_bytes(mesh_options(config), all);
    if (sites > 1 && std::string(backend_name()) != "cpu")
      e.host_mesh = shared_counts_bytes(mesh_options(config)) / ranks;
  }
  const double sort = tree ? n * MortonSorter::kBytes : 0;
  e.scratch = std::max({product_bytes(config, particles, periodic, ranks > 1 ? uneven : 1) / ranks,
                        check_bytes(config, n, e), sort - e.lists});
  const double program = kProgramBytes + (ranks > 1 ? kMpiBytes : 0);
  e.host_start = host_start(config, all / ranks) + program;  // each site makes the whole set, then keeps its part
  const double gathered = (ranks > 1 ? 3 : 1) * gathered_bytes(config, particles, periodic) / ranks;
  const double groups = config.output.groups ? (sites > 1 ? all / ranks : n) * kGroupHostBytes : 0;  // of all, at one
  if (config.output.groups && everywhere > 1) e.host_first = all * kGroupRowBytes;
  const WriteOptions written = snapshot_options(config);
  const double members = written.selection.in_groups ? n * kMembersBytes : 0;
  const bool draws = config.output.image || config.output.film > 0;
  const double picture = draws ? kSmoothingBytes * std::pow(static_cast<double>(config.output.image_pixels), 2) : 0;
  const double check = config.output.error_targets.value_or(0) > 0 ? n * kForceCheckHostBytes : 0;
  const bool folds = ranks > 1 && periodic && config.output.power_spectrum && config.output.power_folding > 1;
  const double folded = folds ? 2 * kFoldedBytes * uneven * all / ranks : 0;  // sent and received
  e.host_output = std::max({gathered, groups, members, check, picture, folded}) + program;
  e.host_snapshot = n * (OutputState::kCopyBytes + written.selection.fraction * snapshot_writer_bytes(written));
  // One site: the state being written, and the next one if wanted before that ends. Several: two kept besides, of which
  // one may be that being written where all are of ends of long steps.
  const int states = sites > 1 ? (periodic ? 4 : 3) : config.run.restarts_kept > 0 ? 2 : 0;
  const double of_state = ParticleRows::kBytes + (periodic ? ParticleRows::kLongBytes : 0);  // within a long step
  e.host_states = states * n * of_state;
  e.snapshot =
      all / sites * written.selection.fraction * snapshot_bytes(written, particles >= (std::uint64_t{1} << 32));
  e.restart = all / sites * of_state;
  add_light_cones(config, {all, n, ranks, sites}, e);
  const int kept = restarts_to_keep(static_cast<int>(config.run.restarts_kept), sites > 1);
  e.restarts = kept > 0 ? kept + 1 : 0;
  return e;
}

// ---- the verdict on a machine's memory ------------------------------------------------------------------------------

MachineMemory machine_memory() {
  const DeviceInfo device = device_info();
  MachineMemory memory;
  memory.device = device.name;
  memory.host_is_device = device.backend == "cpu";
  memory.device_free = static_cast<double>(device.memory_free);
  memory.host_free = memory.host_is_device ? memory.device_free : static_cast<double>(host_memory_available());
  return memory;
}

MachineMemory machine_memory(const Communicator& ranks) {
  MachineMemory memory = machine_memory();
  if (ranks.size() == 1) return memory;
  const Machines machines = find_machines(ranks);
  // Cards with little memory have slow links, and few channels over these.
  memory.device_free -= std::min(DevicePayload::nccl_bytes(ranks), kMostForNccl * memory.device_free);
  memory.device_free = smallest_of(ranks, memory.device_free / ranks_on_this_device(ranks));
  memory.host_free = smallest_of(ranks, memory.host_free / machines.ranks_here);
  memory.ranks = ranks.size();
  memory.ranks_here = machines.most_ranks;
  return memory;
}

namespace {

// What the first rank alone takes, for each rank of its machine.
double first_share(const MemoryEstimate& estimate, const MachineMemory& memory) {
  return estimate.host_first / std::max(1, memory.ranks_here);
}

}  // namespace

double most_uneven(const Config& config, std::uint64_t particles, const MachineMemory& memory) {
  if (memory.ranks == 1) return kUneven;  // a site's particles are all its one rank's
  const auto fits = [&](double uneven) {
    MemoryEstimate e = estimate_memory(config, particles, memory.ranks, uneven);
    e.lists *= 2;
    const MemoryVerdict v = judge_memory(e, memory);
    return v.fits && v.lists_fit;
  };
  double most = kMostUneven;
  while (most > kUneven && !fits(most)) most -= 0.25;
  return most;
}

std::size_t list_budget(const Config& config, std::uint64_t particles, const MachineMemory& memory, double uneven) {
  const MemoryEstimate rest = without_lists(estimate_memory(config, particles, memory.ranks, uneven));
  const double left = kUsable * memory.device_free -
                      (memory.host_is_device ? rest.shared() + first_share(rest, memory) : rest.device());
  return static_cast<std::size_t>(std::max(left, kFewestLists * memory.device_free));
}

MemoryVerdict judge_memory(const MemoryEstimate& estimate, const MachineMemory& memory) {
  const double first = first_share(estimate, memory), host = estimate.host() + first;
  const auto need = [&](const MemoryEstimate& e) { return memory.host_is_device ? e.shared() + first : e.device(); };
  MemoryVerdict v;
  v.where = memory.host_is_device ? "this machine" : "the device";
  if (memory.ranks > 1) v.where = memory.host_is_device ? "its machine's share" : "its device's share";
  v.available = memory.device_free;
  v.needed = need(estimate);
  v.lists_fit = v.needed <= kUsable * v.available;
  if (!v.lists_fit) {
    const double fewest = std::min(estimate.lists, kFewestLists * memory.device_free);
    v.needed = need(without_lists(estimate)) + fewest;
    v.fits = v.needed <= kUsable * v.available;
  }
  if (v.fits && !memory.host_is_device && memory.host_free > 0 && host > kUsable * memory.host_free) {
    v.fits = false;
    v.where = memory.ranks > 1 ? "its share of the host's memory" : "this machine's host memory";
    v.needed = host;
    v.available = memory.host_free;
  }
  return v;
}

std::string disk_note(const Config& config, const MemoryEstimate& e, double free) {
  const bool periodic = config.run.kind == RunKind::kCosmology;
  const std::vector<double>& redshifts = config.output.redshifts;
  const bool end_listed = periodic && std::ranges::find(redshifts, config.time.end_redshift) != redshifts.end();
  int snapshots = static_cast<int>(periodic ? redshifts.size() : config.output.times.size()) + (end_listed ? 0 : 1);
  if (!periodic && config.output.interval)  // not counted where the units of one of both are not known yet
    if (const double more = ratio_of_times(config.time.end_time, *config.output.interval); more < kMostIntervals)
      snapshots += static_cast<int>(more) + 1;
  if (e.disk(snapshots) <= free) return {};
  return fmt::format(
      "Warning: the disk has {} free, and {} snapshots with up to {} restarts{} may take {} (without "
      "compression). Free some, or take fewer output.{}{} or a smaller run.restarts_kept.",
      gigabytes(free), snapshots, e.restarts, e.light_cones > 0 ? " and light cones" : "", gigabytes(e.disk(snapshots)),
      periodic ? "redshifts" : "times or a longer output.interval",
      e.light_cones > 0 ? ", nearer lightcone.edges" : "");
}

double free_disk(const std::string& directory) {
  std::error_code failure;
  std::filesystem::path there = std::filesystem::absolute(directory, failure);
  while (!std::filesystem::exists(there, failure) && there.has_relative_path()) there = there.parent_path();
  const std::filesystem::space_info space = std::filesystem::space(there, failure);
  return failure ? HUGE_VAL : static_cast<double>(space.available);
}

namespace {

// The largest number of particles with which a run of this configuration fits, with kept lists or with lists in
// batches.
std::uint64_t largest_run(const Config& config, const MachineMemory& memory, bool kept_lists) {
  const bool lattice = is_lattice(config);
  const auto particles = [lattice](std::uint64_t k) {
    return lattice ? 8 * k * k * k : k;
  };  // lattices have 2 k particles a side
  const auto fits = [&](std::uint64_t k) {
    const MemoryVerdict v = judge_memory(estimate_memory(config, particles(k), memory.ranks), memory);
    return v.fits && (v.lists_fit || !kept_lists);
  };
  std::uint64_t low = 0, high = 8192;  // 16384 a side
  while (!lattice && fits(high) && high < std::uint64_t{1} << 50) high *= 2;
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return particles(low);
}

}  // namespace

std::vector<std::string> describe(const Config& config, const MemoryEstimate& e, std::uint64_t particles,
                                  const MachineMemory* memory) {
  const int ranks = e.ranks, everywhere = ranks * e.sites;
  const auto line = [&](const char* what, double bytes, int parts) {
    return fmt::format("{:<36}{:>10.3f} GB  {:>7.1f} bytes a particle", what, bytes * 1e-9,
                       bytes * parts / static_cast<double>(particles));
  };
  const auto row = [&](const char* what, double bytes) { return line(what, bytes, everywhere); };
  const char* const lists = config.gravity.list_memory ? "interaction lists" : "interaction lists, all kept";
  std::vector<std::string> lines = {fmt::format("{} particles", particles)};
  if (e.sites > 1) lines.push_back(fmt::format("over {} sites, at each of them:", e.sites));
  if (ranks > 1) lines.push_back(fmt::format("on each of {} ranks, where most is taken:", ranks));
  lines.insert(lines.end(), {row("particles", e.particles), row("accelerations and potentials", e.accelerations),
                             row("tree", e.tree), row(lists, e.lists), row("mesh", e.mesh)});
  const bool ghosts = config.run.deterministic && config.run.kind == RunKind::kCosmology;
  if (e.let > 0) lines.push_back(row(ghosts ? "ghosts, and the tree with them" : "local essential trees", e.let));
  lines.insert(lines.end(), {row("scratch of walks, sorting or outputs", std::max(e.walk, e.scratch)),
                             row("device, about", e.device()), row("host, at the start", e.host_start),
                             row("host, at an output", e.host_output)});
  if (e.host_cones > 0) lines.push_back(row("host, a shell of a light cone", e.host_cones));
  if (e.host_first > 0) lines.push_back(line("host, groups on the first rank", e.host_first, 1));
  if (e.host_crossings > 0) lines.push_back(row("host, what a light cone meets", e.host_crossings));
  lines.insert(lines.end(), {row("host, a snapshot on its way to disk", e.host_snapshot)});
  if (e.host_mesh > 0) lines.push_back(row("host, masses of the mesh for other sites", e.host_mesh));
  if (e.host_states > 0) lines.push_back(row("host, states for restarts", e.host_states));
  if (memory && memory->host_is_device) lines.push_back(row("this machine, both together", e.shared()));
  if (memory && memory->ranks_here > 1)
    lines.push_back(row(memory->host_is_device ? "a machine, all its ranks" : "a machine's host, all its ranks",
                        memory->ranks_here * (memory->host_is_device ? e.shared() : e.host())));
  lines.push_back(line("disk, each snapshot", e.snapshot, e.sites));
  if (e.restarts > 0) {
    const std::string what = fmt::format("disk, {} restarts", e.restarts);
    lines.push_back(line(what.c_str(), e.restarts * e.restart, e.sites));
  }
  if (e.light_cones > 0) lines.push_back(line("disk, light cones", e.light_cones, e.sites));
  if (e.spools > 0) lines.push_back(line("disk, their spools", e.spools, e.sites));
  if (!memory) return lines;
  std::string what = memory->host_is_device ? "this machine" : fmt::format("this device ({})", memory->device);
  if (ranks > 1) what = fmt::format("a rank's share of {}", memory->host_is_device ? "its machine" : memory->device);
  lines.push_back(
      fmt::format("{} has {} free{}", what, gigabytes(memory->device_free),
                  memory->host_is_device ? "" : fmt::format(", its host {}", gigabytes(memory->host_free))));
  const std::uint64_t kept = largest_run(config, *memory, true), in_batches = largest_run(config, *memory, false);
  lines.push_back(fmt::format("largest such run on {}: {} particles{}",
                              e.sites > 1 ? "such sites"
                              : ranks > 1 ? "these ranks"
                                          : "it",
                              number_text(config, kept),
                              in_batches == kept ? ""
                                                 : fmt::format(", or {} with lists made and used in batches",
                                                               number_text(config, in_batches))));
  return lines;
}

std::vector<std::string> require_memory(const Config& config, const MemoryEstimate& estimate, std::uint64_t particles,
                                        const MachineMemory& memory) {
  const MemoryVerdict v = judge_memory(estimate, memory);
  if (v.fits && v.lists_fit) return {};
  if (v.fits)
    return {
        fmt::format("All interaction lists together may come to {}, more than {} leaves them: where they do, they "
                    "are made and used in batches, and not kept from step to step.",
                    gigabytes(estimate.lists), v.where)};
  const bool periodic = config.run.kind == RunKind::kCosmology;
  const std::string shortage =
      fmt::format("{} particles{} need about {} of {}{}, and {} are free", particles,
                  memory.ranks > 1 ? fmt::format(" on {} ranks: each may", memory.ranks) : "", gigabytes(v.needed),
                  v.where, v.lists_fit ? "" : " even with lists made and used in batches", gigabytes(v.available));
  if (config.run.ignore_memory) return {fmt::format("run.ignore_memory is set: {}.", shortage)};
  const std::uint64_t most = largest_run(config, memory, false);
  throw Error("the run does not fit into memory", shortage,
              fmt::format("{}; take fewer{}, or set run.ignore_memory = true to go on regardless",
                          most > 0 ? fmt::format("at most {} particles do", number_text(config, most))
                                   : "no number of particles does with these settings",
                          estimate.host_cones > estimate.device() ? ", more lightcone.shells or nearer lightcone.edges"
                          : periodic                              ? ", a smaller gravity.mesh or output.power_mesh"
                                                                  : ""));
}

}  // namespace maki
