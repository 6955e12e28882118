// What a rank takes of its machine, and what the log says of ranks: see job.hpp.
#include <omp.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "host/comm/device_payload.hpp"
#include "host/comm/job.hpp"
#include "host/comm/machines.hpp"
#include "kernels/device/device.hpp"

namespace maki {

int usual_device() { return on_this_machine().number % std::max(device_count(), 1); }

int usual_threads() {
  const int ranks = on_this_machine().ranks;
  const bool bound = omp_get_num_procs() < sysconf(_SC_NPROCESSORS_ONLN);
  if (ranks == 1 || bound || std::getenv("OMP_NUM_THREADS")) return 0;
  return std::max(omp_get_num_procs() / ranks, 1);
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
  return text + "; between devices by " + name(choice.path) + " (" + choice.reason + ")";
}

}  // namespace maki
