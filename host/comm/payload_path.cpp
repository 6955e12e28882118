#include <mpi.h>
#if defined(OPEN_MPI)
#include <mpi-ext.h>
#endif

#include <array>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "host/comm/device_payload.hpp"
#include "host/comm/job.hpp"
#include "host/comm/nccl_ranks.hpp"
#include "kernels/device/device.hpp"
#include "kernels/error.hpp"

namespace maki {
namespace {

// The paths that one rank can use.
struct Facts {
  int has_nccl = 0, mpi_takes_device = 0, machine = 0;
  std::array<char, 36> device{};
};

bool mpi_takes_device_addresses() {
#if defined(MPIX_CUDA_AWARE_SUPPORT)
  return under_mpi() && MPIX_Query_cuda_support() == 1;
#else
  return false;
#endif
}

std::vector<Facts> gather_facts(const Communicator& ranks) {
  Facts mine;
  mine.has_nccl = !nccl_version().empty();
  mine.mpi_takes_device = mpi_takes_device_addresses();
  mine.machine = find_machines(ranks).this_one;
  std::strncpy(mine.device.data(), device_address().c_str(), mine.device.size() - 1);
  std::vector<Facts> all(ranks.size());
  ranks.all_gather(&mine, all.data(), sizeof mine);
  return all;
}

// Why NCCL is not to be had; empty where it is.
std::string reason_against_nccl(const std::vector<Facts>& all) {
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (!all[r].has_nccl) return "this build is without NCCL";
    for (std::size_t s = 0; s < r; ++s) {
      if (all[s].machine == all[r].machine && all[s].device == all[r].device) {
        return "ranks " + std::to_string(s) + " and " + std::to_string(r) + " share the GPU " + all[r].device.data();
      }
    }
  }
  return "";
}

std::string reason_against_mpi(const std::vector<Facts>& all) {
  for (const Facts& rank : all) {
    if (!rank.mpi_takes_device) return mpi_library() + " is not CUDA-aware";
  }
  return "";
}

}  // namespace

PayloadChoice choose_payload_path(const Communicator& ranks) {
  if (std::string(backend_name()) == "cpu") return {PayloadPath::kDirect, "device memory is host memory"};
  if (ranks.size() == 1) return {PayloadPath::kDirect, "one rank sends nothing"};
  const std::vector<Facts> all = gather_facts(ranks);
  const std::string no_nccl = reason_against_nccl(all), no_mpi = reason_against_mpi(all);
  const char* const text = std::getenv("MAKI_PAYLOAD");
  const std::string asked = text ? text : "";
  if (!asked.empty() && asked != "nccl" && asked != "mpi" && asked != "staged") {
    throw Error("MAKI_PAYLOAD is '" + asked + "'", "it names no way to exchange", "use nccl, mpi or staged");
  }
  const char* const leave = "leave it unset for the best way that there is";
  if (asked == "nccl" && !no_nccl.empty()) throw Error("MAKI_PAYLOAD asks for NCCL", no_nccl, leave);
  if (asked == "mpi" && !no_mpi.empty()) throw Error("MAKI_PAYLOAD asks for MPI between GPUs", no_mpi, leave);
  if (asked == "nccl" || (asked.empty() && no_nccl.empty())) {
    return {PayloadPath::kNccl, "each rank has a GPU of its own; NCCL " + nccl_version()};
  }
  if (asked == "mpi" || (asked.empty() && no_mpi.empty())) {
    return {PayloadPath::kDirect, mpi_library() + " is CUDA-aware" + (asked.empty() ? "; " + no_nccl : "")};
  }
  return {PayloadPath::kStaged, asked.empty() ? no_nccl + "; " + no_mpi : "MAKI_PAYLOAD asks for it"};
}

}  // namespace maki
