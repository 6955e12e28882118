#include "src/cli/estimate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace maki {
namespace {

// Bytes a particle. Those of the tree were measured with leaves of 16 (19 to 32 bytes, uniform to centrally
// concentrated), those of lists at theta 0.5 and 128 particles a group: 16 in an early universe, 45 in a clustered one,
// 80 where there is no cut-off.
constexpr double kState = 16 + 6 + 12 + 8;
constexpr double kRange = 12 + 4;  // acceleration and potential
constexpr double kKeys = 8;
constexpr double kTree = 26, kTreeLeaf = 16;
constexpr double kListsWithCutoff = 45, kListsWithout = 80;
constexpr double kAssignment = 6 + 4.25;
constexpr double kHostSet = 24 + 12 + 4 + 8;
constexpr double kLptGrids = 11 * 8;

// Interactions go with theta^-1.35 (Groen et al. 2011, eq. 4), words a particle with the group size to the power -0.75.
double list_bytes(const Config& config) {
  const Config::Gravity& gravity = config.gravity;
  const double theta = std::min(*gravity.theta, gravity.theta_early.value_or(*gravity.theta));
  const double plain = config.run.kind == RunKind::kCosmology ? kListsWithCutoff : kListsWithout;
  return plain * std::pow(0.5 / theta, 1.35) * std::pow(static_cast<double>(gravity.group_size) / 128, -0.75);
}

double mesh_bytes(const Config::Gravity& gravity) {
  const double cells = std::pow(static_cast<double>(*gravity.mesh), 3);
  const double meshes = *gravity.interlacing == Interlacing::kFull ? 3 : 2;
  return 4 * cells * (meshes + 1.0 / 3);  // a third for the influence functions, which have symmetries
}

}  // namespace

MemoryEstimate estimate_memory(const Config& config, std::uint64_t particles, double list_budget) {
  const auto n = static_cast<double>(particles);
  const bool periodic = config.run.kind == RunKind::kCosmology;
  MemoryEstimate estimate;
  estimate.particles = n * (kState + kRange * (periodic ? 2 : 1));
  if (config.gravity.method == Method::kTree) {
    estimate.tree =
        n * (kKeys + kTree * kTreeLeaf / static_cast<double>(std::max<std::int64_t>(config.gravity.leaf_size, 4)));
    estimate.lists = n * list_bytes(config);
    if (list_budget > 0) estimate.lists = std::min(estimate.lists, list_budget);
  }
  if (periodic) estimate.mesh = mesh_bytes(config.gravity) + n * kAssignment;
  estimate.host = n * (kHostSet + (config.initial.kind == InitialKind::kLpt ? kLptGrids : 0));
  estimate.snapshot = n * kHostSet;
  return estimate;
}

std::vector<std::string> describe(const MemoryEstimate& e, std::uint64_t particles) {
  const auto line = [particles](const char* what, double bytes) {
    return fmt::format("{:<28}{:>10.3f} GB  {:>7.1f} bytes a particle", what, bytes * 1e-9,
                       bytes / static_cast<double>(particles));
  };
  return {line("particles", e.particles),         line("tree", e.tree),
          line("interaction lists", e.lists),     line("mesh", e.mesh),
          line("device, about", e.device()),      line("host, at the start", e.host),
          line("disk, each snapshot", e.snapshot)};
}

}  // namespace maki
