#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "host/comm/job.hpp"
#include "kernels/device/device.hpp"
#include "kernels/device/memory.hpp"
#include "kernels/error.hpp"
#include "src/run/estimate.hpp"

namespace maki {
namespace {

constexpr double kUsable = 0.95;       // of free memory: estimates have errors, and other programs need some
constexpr double kFewestLists = 0.05;  // of free memory: the least for lists, which are then made in batches

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

// In a CPU build all ranks of the machine, whose memory is the device's.
int ranks_on_this_device(const Communicator& ranks, int machine) {
  struct Place {
    int machine;
    std::array<char, 36> device;
  };
  Place mine{machine, {}};
  std::strncpy(mine.device.data(), device_address().c_str(), mine.device.size() - 1);
  const std::vector<Place> all = gathered(ranks, mine);
  return static_cast<int>(std::count_if(all.begin(), all.end(), [&mine](const Place& place) {
    return place.machine == mine.machine && place.device == mine.device;
  }));
}

}  // namespace

MachineMemory machine_memory() {
  const DeviceInfo device = device_info();
  MachineMemory memory;
  memory.device = device.name;
  memory.shared = device.backend == "cpu";
  memory.device_free = static_cast<double>(device.memory_free);
  memory.host_free = memory.shared ? memory.device_free : static_cast<double>(host_memory_available());
  return memory;
}

MachineMemory machine_memory(const Communicator& ranks) {
  MachineMemory memory = machine_memory();
  if (ranks.size() == 1) return memory;
  const Machines machines = find_machines(ranks);
  memory.device_free = smallest_of(ranks, memory.device_free / ranks_on_this_device(ranks, machines.this_one));
  memory.host_free = smallest_of(ranks, memory.host_free / machines.ranks_here);
  memory.ranks = ranks.size();
  memory.ranks_here = machines.most_ranks;
  return memory;
}

std::size_t list_budget(const Config& config, std::uint64_t particles, const MachineMemory& memory) {
  const MemoryEstimate rest = without_lists(estimate_memory(config, particles, memory.ranks));
  const double left = kUsable * memory.device_free - (memory.shared ? rest.shared() : rest.device());
  return static_cast<std::size_t>(std::max(left, kFewestLists * memory.device_free));
}

MemoryVerdict judge_memory(const MemoryEstimate& estimate, const MachineMemory& memory) {
  const auto need = [&memory](const MemoryEstimate& e) { return memory.shared ? e.shared() : e.device(); };
  MemoryVerdict v;
  v.where = memory.shared ? "this machine" : "the device";
  if (memory.ranks > 1) v.where = memory.shared ? "its machine's share" : "its device's share";
  v.available = memory.device_free;
  v.needed = need(estimate);
  v.lists_fit = v.needed <= kUsable * v.available;
  if (!v.lists_fit) {
    const double fewest = std::min(estimate.lists, kFewestLists * memory.device_free);
    v.needed = need(without_lists(estimate)) + fewest;
    v.fits = v.needed <= kUsable * v.available;
  }
  if (v.fits && !memory.shared && memory.host_free > 0 && estimate.host() > kUsable * memory.host_free) {
    v.fits = false;
    v.where = memory.ranks > 1 ? "its share of the host's memory" : "this machine's host memory";
    v.needed = estimate.host();
    v.available = memory.host_free;
  }
  return v;
}

std::string disk_note(const Config& config, const MemoryEstimate& e, double free) {
  const bool periodic = config.run.kind == RunKind::kCosmology;
  const int snapshots = static_cast<int>((periodic ? config.output.redshifts : config.output.times).size()) + 1;
  if (e.disk(snapshots) <= free) return {};
  return fmt::format(
      "Warning: the disk has {} free, and {} snapshots with up to {} restarts{} may take {} (without "
      "compression). Free some, or take fewer output.{}{} or a smaller run.restarts_kept.",
      gigabytes(free), snapshots, e.restarts, e.light_cones > 0 ? " and light cones" : "", gigabytes(e.disk(snapshots)),
      periodic ? "redshifts" : "times", e.light_cones > 0 ? ", nearer lightcone.edges" : "");
}

double free_disk(const std::string& directory) {
  std::error_code failure;
  std::filesystem::path there = std::filesystem::absolute(directory, failure);
  while (!std::filesystem::exists(there, failure) && there.has_relative_path()) there = there.parent_path();
  const std::filesystem::space_info space = std::filesystem::space(there, failure);
  return failure ? HUGE_VAL : static_cast<double>(space.available);
}

std::uint64_t largest_run(const Config& config, const MachineMemory& memory, bool kept_lists) {
  const bool lattice = is_lattice(config);
  const auto particles = [lattice](std::uint64_t k) {
    return lattice ? 8 * k * k * k : k;
  };  // lattices have 2 k particles a side
  const auto fits = [&](std::uint64_t k) {
    const MemoryVerdict v = judge_memory(estimate_memory(config, particles(k), memory.ranks), memory);
    return v.fits && (v.lists_fit || !kept_lists);
  };
  std::uint64_t low = 0, high = lattice ? 8192 : 1ull << 33;  // 16384 a side
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return particles(low);
}

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
  lines.insert(lines.end(), {row("host, a snapshot on its way to disk", e.host_snapshot)});
  if (e.host_states > 0) lines.push_back(row("host, states for restarts", e.host_states));
  if (memory && memory->shared) lines.push_back(row("this machine, both together", e.shared()));
  if (memory && memory->ranks_here > 1)
    lines.push_back(row(memory->shared ? "a machine, all its ranks" : "a machine's host, all its ranks",
                        memory->ranks_here * (memory->shared ? e.shared() : e.host())));
  lines.push_back(line("disk, each snapshot", e.snapshot, e.sites));
  if (e.restarts > 0) {
    const std::string what = fmt::format("disk, {} restarts", e.restarts);
    lines.push_back(line(what.c_str(), e.restarts * e.restart, e.sites));
  }
  if (e.light_cones > 0) lines.push_back(line("disk, light cones", e.light_cones, e.sites));
  if (e.spools > 0) lines.push_back(line("disk, their spools", e.spools, e.sites));
  if (!memory) return lines;
  std::string what = memory->shared ? "this machine" : fmt::format("this device ({})", memory->device);
  if (ranks > 1) what = fmt::format("a rank's share of {}", memory->shared ? "its machine" : memory->device);
  lines.push_back(fmt::format("{} has {} free{}", what, gigabytes(memory->device_free),
                              memory->shared ? "" : fmt::format(", its host {}", gigabytes(memory->host_free))));
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
