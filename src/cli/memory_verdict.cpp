#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/device/device.hpp"
#include "kernels/device/error.hpp"
#include "src/cli/estimate.hpp"
#include "src/cli/machine_memory.hpp"
#include "src/config/resolve.hpp"

namespace maki {
namespace {

constexpr double kUsable = 0.95;      // of what is free: the estimate is one, and others want some
constexpr double kFewestLists = 0.05;  // of what is free, for lists in batches

MemoryEstimate without_lists(MemoryEstimate e) {
  e.lists = 0;
  return e;
}

double lists_asked_for(const Config& config) {
  const Auto<Quantity>& given = config.gravity.list_memory;
  return given ? number_of(*given, "gravity.list_memory", config, {}) : 0;
}

// With the user's own limit for lists, where there is one.
MemoryEstimate limited(const Config& config, std::uint64_t particles) {
  MemoryEstimate e = estimate_memory(config, particles);
  if (const double most = lists_asked_for(config); most > 0) e.lists = std::min(e.lists, most);
  return e;
}

std::string gigabytes(double bytes) { return fmt::format("{:.2f} GB", bytes * 1e-9); }

std::string number_text(const Config& config, std::uint64_t n) {
  const bool lattice = config.initial.kind == InitialKind::kLpt || config.initial.kind == InitialKind::kPancake;
  return lattice ? fmt::format("{}^3", std::llround(std::cbrt(static_cast<double>(n)))) : fmt::format("{}", n);
}

}  // namespace

MachineMemory machine_memory() {
  const DeviceInfo device = device_info();
  MachineMemory memory;
  memory.device = device.name;
  memory.shared = device.backend == "cpu";
  memory.host_free = static_cast<double>(host_memory_available());
  if (memory.host_free == 0) memory.host_free = static_cast<double>(device.memory_free);
  memory.device_free = memory.shared ? memory.host_free : static_cast<double>(device.memory_free);
  return memory;
}

std::size_t list_budget(const Config& config, std::uint64_t particles, const MachineMemory& memory) {
  const MemoryEstimate rest = without_lists(estimate_memory(config, particles));
  const double left = kUsable * memory.device_free - (memory.shared ? rest.shared() : rest.device());
  return static_cast<std::size_t>(std::max(left, kFewestLists * memory.device_free));
}

MemoryVerdict judge_memory(const MemoryEstimate& estimate, const MachineMemory& memory) {
  const auto need = [&memory](const MemoryEstimate& e) { return memory.shared ? e.shared() : e.device(); };
  MemoryVerdict v;
  v.where = memory.shared ? "this machine" : "the device";
  v.available = memory.device_free;
  v.needed = need(estimate);
  v.lists_fit = v.needed <= kUsable * v.available;
  if (!v.lists_fit) {
    const double fewest = std::min(estimate.lists, kFewestLists * memory.device_free);
    v.needed = need(without_lists(estimate)) + fewest;
    v.fits = v.needed <= kUsable * v.available;
  }
  if (v.fits && !memory.shared && estimate.host() > kUsable * memory.host_free) {
    v.fits = false;
    v.where = "this machine's host memory";
    v.needed = estimate.host();
    v.available = memory.host_free;
  }
  return v;
}

std::uint64_t largest_run(const Config& config, const MachineMemory& memory, bool kept_lists) {
  const bool lattice = config.initial.kind == InitialKind::kLpt || config.initial.kind == InitialKind::kPancake;
  const auto particles = [lattice](std::uint64_t k) { return lattice ? 8 * k * k * k : k; };  // 2 k a side
  const auto fits = [&](std::uint64_t k) {
    const MemoryVerdict v = judge_memory(limited(config, particles(k)), memory);
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
  const auto line = [particles](const char* what, double bytes) {
    return fmt::format("{:<34}{:>10.3f} GB  {:>7.1f} bytes a particle", what, bytes * 1e-9,
                       bytes / static_cast<double>(particles));
  };
  std::vector<std::string> lines = {line("particles", e.particles),
                                    line("accelerations and potentials", e.accelerations),
                                    line("tree", e.tree),
                                    line("interaction lists, all kept", e.lists),
                                    line("mesh", e.mesh),
                                    line("scratch of sorting or outputs", e.scratch),
                                    line("device, about", e.device()),
                                    line("host, at the start", e.host_start),
                                    line("host, at an output", e.host_output),
                                    line("disk, each snapshot", e.snapshot)};
  if (!memory) return lines;
  if (memory->shared) lines.insert(lines.end() - 1, line("this machine, both together", e.shared()));
  const std::string what = memory->shared ? "this machine" : fmt::format("this device ({})", memory->device);
  lines.push_back(fmt::format("{} has {} free{}", what, gigabytes(memory->device_free),
                              memory->shared ? "" : fmt::format(", its host {}", gigabytes(memory->host_free))));
  lines.push_back(fmt::format("largest such run on it: {} particles, or {} with lists made and used in batches",
                              number_text(config, largest_run(config, *memory, true)),
                              number_text(config, largest_run(config, *memory, false))));
  return lines;
}

std::vector<std::string> require_memory(const Config& config, const MemoryEstimate& estimate, std::uint64_t particles,
                                        const MachineMemory& memory) {
  MemoryEstimate asked = estimate;
  if (const double most = lists_asked_for(config); most > 0) asked.lists = std::min(asked.lists, most);
  const MemoryVerdict v = judge_memory(asked, memory);
  if (v.fits && v.lists_fit) return {};
  if (v.fits)
    return {fmt::format("All interaction lists together may come to {}, more than {} leaves them: where they do, they "
                        "are made and used in batches, and not kept from step to step.",
                        gigabytes(asked.lists), v.where)};
  const std::string shortage = fmt::format("{} particles need about {} of {}, and {} are free", particles,
                                           gigabytes(v.needed), v.where, gigabytes(v.available));
  if (config.run.ignore_memory) return {fmt::format("run.ignore_memory is set: {}.", shortage)};
  throw Error("the run does not fit into memory", shortage,
              fmt::format("at most {} particles do; take fewer, a smaller gravity.mesh or output.power_mesh, or set "
                          "run.ignore_memory = true to go on regardless",
                          number_text(config, largest_run(config, memory, false))));
}

}  // namespace maki
