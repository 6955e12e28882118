#include "host/comm/job.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <mpi.h>
#include <omp.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <map>
#include <numeric>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "host/comm/device_payload.hpp"
#include "host/comm/mpi_ranks.hpp"
#include "kernels/device/device.hpp"
#include "kernels/device/memory.hpp"
#include "kernels/error.hpp"

namespace maki {

void wait_to_speak() {
  static const bool waited = [] {
    int rank = 0;
    if (under_mpi()) MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    std::this_thread::sleep_for(std::chrono::duration<double>(mpi::turn_to_speak(rank)));
    return true;
  }();
  static_cast<void>(waited);
}

void abort_job(const std::string& message, int exit_code) {
  std::fflush(stdout);
  if (!under_mpi()) {
    std::fprintf(stderr, "maki: error: %s\n", message.c_str());
    std::fflush(stderr);
    std::_Exit(exit_code);
  }
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  wait_to_speak();
  std::fprintf(stderr, "maki: error: rank %d: %s\n", rank, message.c_str());
  std::fflush(stderr);
  // What MPICH's launcher has not read by then may be lost.
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::_Exit(exit_code);
}

void require_one_process(const std::string& what, const std::string& why, const std::string& advice) {
  const int ranks = Communicator::world().size();
  if (ranks > 1) throw Error(what + " one process, and these are " + std::to_string(ranks), why, advice);
}

void require_host_memory(const Communicator& ranks, const std::string& what, double bytes) {
  const double free = static_cast<double>(host_memory_available()) / find_machines(ranks).ranks_here;
  throw_together(ranks, free <= 0 || bytes <= free
                            ? ""
                            : Error("there is no memory for " + what,
                                    fmt::format("at least {:.2f} GB{}, and {:.2f} GB are free", 1e-9 * bytes,
                                                ranks.size() > 1 ? " of a rank" : "", 1e-9 * free),
                                    "use more machines, or one with more memory, or raise the job's limit")
                                  .what());
}

Launcher find_launcher(const std::function<const char*(const char*)>& variable) {
  const auto number = [&](const char* name) {
    const char* text = variable(name);
    return text ? std::atoi(text) : 0;
  };
  if (variable("OMPI_COMM_WORLD_SIZE")) return {true, number("OMPI_COMM_WORLD_SIZE")};
  const int tasks = number(variable("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS");
  if (variable("PMI_RANK") || variable("PMI_SIZE")) return {true, number("PMI_SIZE")};
  // HPE Cray's: of its mpiexec, and of srun there.
  if (variable("PMIX_RANK") || variable("PALS_RANKID")) return {true, variable("SLURM_PROCID") ? tasks : 0};
  // A batch script's own shell is no task of a step, though it has the allocation's variables.
  const char* environment = variable("ENVIRONMENT");
  const bool batch_shell =
      environment && std::string(environment) == "BATCH" && !variable("SLURM_STEP_ID") && number("SLURM_PROCID") == 0;
  if (variable("SLURM_PROCID") && tasks > 1 && !batch_shell) {
    throw Error("srun started " + std::to_string(tasks) + " tasks that cannot find each other",
                "it offers no process management interface, so that each would run the whole job by itself",
                "use 'srun --mpi=pmix' ('srun --mpi=list' tells what else there is), or mpirun inside the allocation");
  }
  return {};
}

std::vector<int> gpus_in_turn(const std::vector<std::vector<std::string>>& seen) {
  std::vector<std::size_t> order(seen.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t rank) { return seen[rank].size(); });
  std::map<std::string, int> taken;
  std::vector<int> chosen(seen.size());
  for (const std::size_t rank : order) {
    if (seen[rank].empty()) continue;
    const auto gpu = std::ranges::min_element(seen[rank], {}, [&](const std::string& name) { return taken[name]; });
    ++taken[*gpu];
    chosen[rank] = static_cast<int>(gpu - seen[rank].begin());
  }
  return chosen;
}

int usual_device(const Communicator& ranks) {
  if (ranks.size() == 1) return on_this_machine().number % std::max(device_count(), 1);
  if (std::string(backend_name()) == "cpu") return 0;
  const Communicator here = ranks.split_by_machine();
  std::vector<std::vector<std::string>> seen;
  for (const std::string& text : gather_texts(here, fmt::format("{}", fmt::join(device_addresses(), " ")))) {
    std::istringstream words(text);
    seen.emplace_back(std::istream_iterator<std::string>(words), std::istream_iterator<std::string>());
  }
  return gpus_in_turn(seen)[static_cast<std::size_t>(here.rank())];
}

int ranks_on_this_device(const Communicator& ranks) {
  const std::vector<std::string> all = gather_texts(ranks.split_by_machine(), device_address());
  return static_cast<int>(std::ranges::count(all, device_address()));
}

CoreSet own_cores() {
  CoreSet cores{};
  for (int place = 0; omp_get_proc_bind() != omp_proc_bind_false && place < omp_get_num_places(); ++place) {
    std::vector<int> of_place(static_cast<std::size_t>(omp_get_place_num_procs(place)));
    omp_get_place_proc_ids(place, of_place.data());
    for (const int core : of_place) cores.at(static_cast<std::size_t>(core) / 64) |= std::uint64_t{1} << core % 64;
  }
  if (cores == CoreSet{}) sched_getaffinity(0, sizeof cores, reinterpret_cast<cpu_set_t*>(cores.data()));
  return cores;
}

int share_of_cores(const std::vector<CoreSet>& of_ranks, std::size_t rank) {
  const auto may_run = [](const CoreSet& set, std::size_t core) { return set[core / 64] >> core % 64 & 1; };
  double share = 0;
  for (std::size_t core = 0; core < 64 * CoreSet{}.size(); ++core) {
    if (!may_run(of_ranks[rank], core)) continue;
    share += 1.0 / static_cast<double>(std::ranges::count_if(of_ranks, [&](auto& set) { return may_run(set, core); }));
  }
  return std::max(static_cast<int>(share + 1e-9), 1);
}

// More threads than the quota would be stopped while others wait for them at a barrier.
int usual_threads() {
  if (std::getenv("OMP_NUM_THREADS")) return 0;
  const OnMachine here = on_this_machine();
  const double quota = processor_quota() / here.ranks;
  if (quota >= (here.cores > 0 ? here.cores : omp_get_num_procs())) return here.cores;
  return std::max(static_cast<int>(quota + 1e-9), 1);
}

std::string describe_ranks(const Communicator& ranks) {
  const Machines machines = find_machines(ranks);
  const PayloadChoice choice = choose_payload_path(ranks);
  const auto number = [](int n, const char* what) { return std::to_string(n) + what + (n == 1 ? "" : "s"); };
  std::string text = number(ranks.size(), " rank") + " on ";
  if (machines.count == 1) {
    text += machines.name;
  } else {
    const bool even = machines.most_ranks * machines.count == ranks.size();
    text += number(machines.count, " machine") + ", " + (even ? "" : "up to ") + std::to_string(machines.most_ranks) +
            (even ? " on each" : " on one");
  }
  const auto on_a_device = largest_of(ranks, static_cast<std::uint64_t>(ranks_on_this_device(ranks)));
  if (std::string(backend_name()) != "cpu" && on_a_device > 1)
    text += ", up to " + std::to_string(on_a_device) + " on one GPU";
  return text + "; between devices by " + name(choice.path) + " (" + choice.reason + ")";
}

Machines find_machines(const Communicator& ranks) {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  const Communicator here = ranks.split_by_machine();
  Machines machines;
  machines.name = name.data();
  machines.ranks_here = here.size();
  std::uint64_t lowest = static_cast<std::uint64_t>(ranks.rank());
  here.broadcast(&lowest, sizeof lowest, 0);
  const std::vector<std::uint64_t> lowest_of = gathered(ranks, lowest);
  machines.count = 0;
  std::vector<int> members(ranks.size());
  for (std::size_t r = 0; r < lowest_of.size(); ++r) {
    if (r == lowest) machines.this_one = machines.count;
    machines.count += lowest_of[r] == r;
    machines.most_ranks = std::max(machines.most_ranks, ++members[lowest_of[r]]);
  }
  return machines;
}

}  // namespace maki
