#include "src/cli/placement.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <cstdlib>

#include "host/comm/device_payload.hpp"
#include "kernels/device/device.hpp"

namespace maki {
namespace {

constexpr std::size_t kProcessors = 4096;

// What a rank tells the others.
struct Place {
  int machine, device;
  std::array<std::uint64_t, kProcessors / 64> processors;  // those it may run on, a bit each
};

std::array<std::uint64_t, kProcessors / 64> own_processors() {
  std::array<std::uint64_t, kProcessors / 64> bits{};
  cpu_set_t* const set = CPU_ALLOC(kProcessors);
  if (set == nullptr) return bits;
  const std::size_t bytes = CPU_ALLOC_SIZE(kProcessors);
  if (sched_getaffinity(0, bytes, set) == 0) {
    for (std::size_t cpu = 0; cpu < kProcessors; ++cpu)
      if (CPU_ISSET_S(cpu, bytes, set)) bits[cpu / 64] |= std::uint64_t{1} << cpu % 64;
  }
  CPU_FREE(set);
  return bits;
}

int count(const std::array<std::uint64_t, kProcessors / 64>& bits) {
  int sum = 0;
  for (const std::uint64_t word : bits) sum += static_cast<int>(std::bitset<64>(word).count());
  return sum;
}

bool openmp_is_told() {
  const char* const threads = std::getenv("OMP_NUM_THREADS");
  return threads != nullptr && *threads != 0;
}

}  // namespace

int share_processors(int own, int all, int ranks) { return std::max(1, std::min(own, all / ranks)); }

Placement place_ranks(const Config& config, const Communicator& ranks) {
  Placement placement;
  placement.threads = static_cast<int>(config.run.threads.value_or(0));
  placement.device = static_cast<int>(config.run.device.value_or(0));
  if (ranks.size() == 1) return placement;
  placement.machines = find_machines(ranks);
  const Machines& machines = placement.machines;
  if (const int devices = device_count(); !config.run.device && devices > 0)
    placement.device = machines.number_here % devices;

  const Place mine{machines.this_one, placement.device, own_processors()};
  std::vector<Place> all(static_cast<std::size_t>(ranks.size()));
  ranks.all_gather(&mine, all.data(), sizeof mine);
  auto here = mine.processors;
  placement.sharing = 0;
  const bool one_memory = std::string(backend_name()) == "cpu";
  for (const Place& place : all) {
    if (place.machine != mine.machine) continue;
    placement.sharing += one_memory || place.device == mine.device;
    for (std::size_t w = 0; w < here.size(); ++w) here[w] |= place.processors[w];
  }
  if (placement.threads == 0 && !openmp_is_told())
    placement.threads = share_processors(count(mine.processors), count(here), machines.ranks_here);
  return placement;
}

void use_device(const Placement& placement) { select_device(placement.device, placement.threads); }

std::vector<std::string> describe_ranks(const Placement& placement, const Communicator& ranks) {
  if (ranks.size() == 1) return {};
  const Machines& machines = placement.machines;
  std::array<double, 2> numbers = {static_cast<double>(placement.sharing), static_cast<double>(thread_count())};
  ranks.max(numbers);
  const bool gpus = std::string(backend_name()) == "cuda";
  const int sharing = static_cast<int>(numbers[0]);
  std::string text = fmt::format("{} ranks on {} machine{}{}", ranks.size(), machines.count,
                                 machines.count == 1 ? "" : "s",
                                 machines.count > 1 ? fmt::format(", {} at most on one", machines.most_ranks) : "");
  if (gpus) text += sharing > 1 ? fmt::format("; up to {} share a GPU", sharing) : ", each with a GPU of its own";
  text += fmt::format("; {} {}thread{} each", numbers[1], gpus ? "host " : "", numbers[1] == 1 ? "" : "s");
  const PayloadChoice choice = choose_payload_path(ranks);
  return {text, fmt::format("messages between devices by {}: {}", name(choice.path), choice.reason)};
}

}  // namespace maki
