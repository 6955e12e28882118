#include "src/model/published.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "kernels/error.hpp"

namespace maki::model {

// ---- Accelerated FDPS -----------------------------------------------------------------------------------------------

namespace {

constexpr double kPi = std::numbers::pi;
constexpr double kSortPasses = 24;       // eq. 6: eight digits, each read twice and written once
constexpr double kParticlesOfACell = 4;  // eq. 8: n / 4 cells

// Table 3. Slow-down factors (alpha) have no unit.
constexpr struct {
  double const_list = 19, cp_all = 0.87, cp_epi = 1.0, cp_force = 1.2, cp_list = 1.0, d2h_force = 1.2, dc_sort = 7.7;
  double gather = 0.62, gpu_calc = 1.7, gpu_transfer = 2.7, h2d_all = 1.0, h2d_epi = 1.0, h2d_list = 0.86, key = 0.85;
  double link = 3.4, mom = 1.8, p2p = 1.0, reorder_lt = 1.1, reorder_gt_const = 5.0, reorder_gt_reuse = 1.0;
  double root = 0.70, sort = 1.1, write_back = 1.4;
  double b_epi = 24, b_epi_buf = 12, b_epj = 32, b_epj_buf = 16, b_force = 32, b_force_buf = 16, b_fp = 88;  // bytes
  double b_index = 4, b_id = 4, b_key = 16, b_pos = 24;                                                      // bytes
  double n_op = 23;                                      // operations an interaction
  double gather_startup = 1.2e-5, p2p_startup = 1.0e-5;  // seconds, K computer
} c;

// Keeps logarithms, and with them n_LET, from becoming negative.
double log2_or_zero(double x) { return x > 1 ? std::log2(x) : 0; }

double link_time(double particles, const Accelerator& m) {  // eqs. 8 and 14
  const double cells = particles / kParticlesOfACell;
  return cells * log2_or_zero(cells) * c.link * c.b_key / m.host_rate;
}

double sort_time(double particles, const Accelerator& m) {  // eqs. 6 and 12
  return particles * c.sort * kSortPasses * c.b_key / m.host_rate;
}

}  // namespace

double FdpsNode::force() const { return send_all + std::max({kernel, device_link, host}) + take_forces; }

double FdpsNode::whole() const { return root + local_tree + local_moments + global_tree + global_moments + force(); }

double list_length(double n, double group, double theta) {
  return group + 14 * std::pow(group, 2.0 / 3) / theta + 21 * kPi * std::cbrt(group) / (theta * theta) +
         28 * kPi / (3 * theta * theta * theta) * log2_or_zero(theta / 2.8 * (std::cbrt(n) - std::cbrt(group)));
}

double close_processes(const FdpsRun& run) {
  const double x = 1 / run.theta + 1;
  return std::min(6 * x + 3 * kPi * x * x + 4 * kPi / 3 * x * x * x, run.processes - 1);
}

double imported(const FdpsRun& run) {
  if (run.processes <= 1) return 0;
  const double n = run.particles, t = run.theta;
  const double far = log2_or_zero(t / 2.8 * (std::cbrt(n * run.processes) - std::cbrt(n)));
  return 14 * std::pow(n, 2.0 / 3) / t + 21 * kPi * std::cbrt(n) / (t * t) + 28 * kPi / (3 * t * t * t) * far +
         run.processes - close_processes(run);
}

FdpsNode fdps_node(const FdpsRun& run, const Accelerator& m, bool reuse) {
  const double n = run.particles, let = imported(run), all = n + let, host = m.host_rate, link = m.transfer_rate;
  const double list = list_length(n * std::max(run.processes, 1.0), run.group, run.theta);
  const double entry = run.index_lists ? c.b_id : c.b_epj_buf;  // bytes of a list's entry
  FdpsNode t;
  if (!reuse) {
    t.root = n * c.root * c.b_fp / host;                                                                    // eq. 3
    t.local_tree = n * c.key * (c.b_fp + c.b_key) / host + sort_time(n, m) +                                // eqs. 5, 6
                   n * c.reorder_lt * (2 * c.b_fp + c.b_epi + c.b_epj + c.b_key) / host + link_time(n, m);  // 7, 8
    t.global_tree = let * c.key * (c.b_key + c.b_epj) / host + sort_time(all, m) +                          // 11, 12
                    all * c.reorder_gt_const * (2 * c.b_epj + c.b_index) / host + link_time(all, m);        // 13, 14
  } else {
    t.global_tree = all * c.reorder_gt_reuse * (2 * c.b_epj + c.b_index) / host;  // eq. 15
  }
  t.local_moments = n * c.mom * c.b_epj / host;     // eq. 9
  t.global_moments = all * c.mom * c.b_epj / host;  // eq. 16
  t.send_all =
      std::max(all * c.cp_all * (c.b_epj + c.b_epj_buf) / host, all * c.h2d_all * c.b_epj_buf / link);  // 19, 20
  t.kernel =
      n * list *
      (c.gpu_calc * c.n_op / m.gpu_flops + c.gpu_transfer * (c.b_id + c.b_epj) / (run.group * m.gpu_rate));  // 21
  const double send_epi = n * c.h2d_epi * c.b_epi_buf / link;                                                // eq. 22
  const double send_lists = reuse ? 0 : n * list / run.group * c.h2d_list * entry / link;                    // eq. 23
  t.device_link = std::max(send_epi + send_lists, n * c.d2h_force * c.b_force_buf / link);                   // eq. 24
  const double make_lists = n * list / run.group * (c.const_list * c.b_id + c.cp_list * entry);  // eqs. 25 and 27
  t.host = ((reuse ? 0 : make_lists) + n * c.cp_epi * (c.b_epi + c.b_epi_buf) +                  // eq. 26
            n * c.write_back * (c.b_force + c.b_fp + c.b_epi + c.b_epj)) /
           host;                                                        // eq. 28
  t.take_forces = n * c.cp_force * (c.b_force + c.b_force_buf) / host;  // eq. 29
  return t;
}

double fdps_single(const FdpsRun& run, const Accelerator& m) {
  return (fdps_node(run, m, false).whole() + (run.reuse - 1) * fdps_node(run, m, true).whole()) / run.reuse;
}

FdpsStep fdps_step(const FdpsRun& run, const Accelerator& m) {
  FdpsStep step;
  step.single = fdps_single(run, m);
  if (run.processes <= 1) return step;
  if (m.inject_rate <= 0)
    throw Error("the machine has no network for many processes", "", "give inject_rate in [accelerator]");
  const double p = run.processes, close = close_processes(run), let = imported(run);
  const double samples = run.samples * std::pow(p, 2.0 / 3);
  const double collect =
      std::pow(p, 1.0 / 6) * c.gather_startup + samples * c.gather * c.b_pos / m.inject_rate;  // eq. 36
  const double sort = samples * std::log2(std::pow(run.samples, 3) * std::pow(p, 5.0 / 3)) * c.dc_sort * c.b_pos /
                      m.host_rate;  // eq. 37
  const double one_by_one = std::max(let - p + close, 0.0);
  step.domains = (collect + sort) / run.domains;
  step.trees_made = one_by_one * c.const_list * c.b_id / m.host_rate / run.reuse;                 // eq. 38
  step.gathered = std::pow(p, 0.25) * c.gather_startup + p * c.gather * c.b_epj / m.inject_rate;  // eq. 40
  step.neighbours = close * c.p2p_startup + 2 * one_by_one * c.p2p * c.b_epj / m.inject_rate;     // eq. 41
  return step;
}

// ---- SUSHI ----------------------------------------------------------------------------------------------------------

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
