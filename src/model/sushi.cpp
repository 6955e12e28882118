#include "src/model/sushi.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "kernels/error.hpp"
#include "src/model/fdps.hpp"

namespace maki::model {
namespace {

constexpr double kListOverhead = 1.2;  // eq. 3: making lists and trees, as a share of the forces
constexpr double kCollectives = 18;    // eq. 7: collective operations of log p messages each
constexpr double kAllToAll = 2;        // eq. 7: exchanges of p messages each
constexpr double kBytesOfATarget =
    64;  // of a particle of the direct sum to other sites: our assumption ([23] is not printed)
constexpr double kTreesWithoutMesh = 2;  // eq. 16: essential trees are twice as large without a mesh for the far field

double tree_bytes_between_processes(const Problem& p, double processes) {  // eq. 8
  return (144 / p.theta + 72) * std::pow(p.particles / processes, 2.0 / 3);
}

double mean(const std::vector<Site>& sites, double Site::*constant) {
  double sum = 0, weight = 0;
  for (const Site& site : sites) sum += site.processes * site.*constant, weight += site.processes;
  return sum / weight;
}

double slowest(const std::vector<Site>& sites, double Site::*constant) {
  double most = 0;
  for (const Site& site : sites) most = std::max(most, site.*constant);
  return most;
}

double force_time(const Problem& p, const std::vector<Site>& sites, double processes) {
  const bool direct = p.method == Method::kDirect;
  std::vector<Site> used = sites;
  for (Site& site : used)
    if (direct && site.direct > 0) site.tree = site.direct;
  const double tau = mean(used, &Site::tree);
  return (direct ? 1 : kListOverhead) * tau * interactions(p) / processes;  // eq. 3
}

// Each site does the whole serial transform; the slowest site counts.
double mesh_time(const Problem& p, const std::vector<Site>& sites, double processes) {  // eq. 5
  return p.method != Method::kTreePm || p.cells <= 0 ? 0
                                                     : slowest(sites, &Site::fft) * p.cells * std::log2(p.cells) +
                                                           mean(sites, &Site::mesh) * p.particles / processes;
}

// All-to-all exchanges are those of mesh and particles; the codes of section 5.2 have none.
double lan_exchanges(const Problem& p, double local) {  // eq. 7
  return kCollectives * std::log2(local) + (p.method == Method::kTreePm ? kAllToAll * local : 0);
}

double lan_bytes(const Problem& p, double processes) {  // eq. 8
  if (p.method == Method::kDirect) return kBytesOfATarget * p.particles;
  const double mesh = p.method == Method::kTreePm ? 4 * p.cells : 0;
  const double trees = (p.method == Method::kTree ? kTreesWithoutMesh : 1) * tree_bytes_between_processes(p, processes);
  return mesh + trees + 12 * p.particles * p.sampled;
}

double wan_bytes(const Problem& p, int sites) {  // eqs. 12 and 16
  if (p.method == Method::kDirect) return kBytesOfATarget * p.particles;
  const double samples = wan_sample_bytes(p.particles, p.sampled);
  if (p.method == Method::kTree) return kTreesWithoutMesh * wan_tree_bytes(p.particles, p.theta) + samples + p.moved;
  return wan_mesh_bytes(p.cells, sites) + wan_tree_bytes(p.particles, p.theta) + samples + p.moved;
}

}  // namespace

const char* StepTime::largest() const {
  const std::array<std::pair<double, const char*>, 6> parts = {{{force, "forces"},
                                                                {mesh, "the mesh"},
                                                                {lan_latency, "latency within a site"},
                                                                {lan_volume, "bytes within a site"},
                                                                {wan_latency, "latency between sites"},
                                                                {wan_volume, "bytes between sites"}}};
  return std::max_element(parts.begin(), parts.end())->second;
}

double interactions(const Problem& p) {
  if (p.method == Method::kDirect) return p.particles * p.particles;
  if (p.method == Method::kTree) return p.particles * list_length(p.particles, p.group, p.theta);
  constexpr double kExponent = 16.0 / 15;  // printed as 1.0667
  return 460 * std::pow(p.particles, kExponent) / std::pow(p.theta, 1.35) * std::pow(p.particles / p.cells, 1.0 / 12) /
         std::sqrt(2.0);
}

double block_size(double particles) { return 0.2 * std::pow(particles, 0.81); }

double wan_mesh_bytes(double cells, int sites) { return 4 * sites * cells; }
double wan_tree_bytes(double particles, double theta) { return (48 / theta + 24) * std::pow(particles, 2.0 / 3); }
double wan_sample_bytes(double particles, double sampled) { return 4 * particles * sampled; }
double wan_exchanges(const Problem& p, int sites) {
  return p.method == Method::kTreePm ? 5 * sites + 3 : 4 * (sites - 1) + 4;
}

double memory_bytes(const Problem& p) { return (60 + 0.75 * 52) * p.particles + 4.5 * p.cells; }

StepTime step_time(const Problem& p, const Machine& machine, int count, double processes) {
  const std::vector<Site> sites = sites_of(machine, count);
  const Network& net = machine.network;
  if (net.lan_rate <= 0 || net.wan_rate <= 0)
    throw Error("'" + machine.name + "' has no [network]", "", "give one, or --sites with another machine");
  const double steps = p.block_steps ? p.particles / block_size(p.particles) : 1;  // messages; volumes do not change
  const double local = processes / count;
  StepTime time;
  time.force = force_time(p, sites, processes);
  time.mesh = mesh_time(p, sites, processes);
  time.lan_latency = steps * net.lan_round_trip * lan_exchanges(p, local);  // eq. 7
  time.lan_volume = lan_bytes(p, processes) / net.lan_rate;                 // eq. 8
  if (count == 1) return time;
  const double rate = net.star ? net.wan_rate / (count - 1) : net.wan_rate;  // table 6
  time.wan_latency = steps * net.wan_round_trip * wan_exchanges(p, count);   // eqs. 11 and 15
  time.wan_volume = wan_bytes(p, count) / rate;                              // eqs. 12 and 16
  return time;
}

double speedup(const Problem& p, const Machine& machine, int sites, double processes) {
  return step_time(p, machine, 1, processes).whole() / step_time(p, machine, sites, sites * processes).whole();
}

double efficiency(const Problem& p, const Machine& machine, int sites, double processes) {
  return step_time(p, machine, 1, processes).whole() / step_time(p, machine, sites, processes).whole();
}

double rate_for_efficiency(const Problem& p, Machine machine, int sites, double processes, double wanted) {
  const double allowed = step_time(p, machine, 1, processes).whole() / wanted;
  const StepTime time = step_time(p, machine, sites, processes);
  const double left = allowed - (time.whole() - time.wan_volume);
  return left > 0 ? machine.network.wan_rate * time.wan_volume / left : std::numeric_limits<double>::infinity();
}

}  // namespace maki::model
