// The published performance models of a step. Of a tree code with one accelerator a process, lists made or reused, on
// one node or many: Accelerated FDPS (Iwasawa et al. 2020, "Accelerated FDPS: Algorithms to use accelerators with
// FDPS", section 6, eqs. 1-43). Over sites of many processes each: SUSHI (Groen, Portegies Zwart, Ishiyama & Makino,
// "High Performance Gravitational N-body Simulations on a Planet-wide Distributed Supercomputer", eqs. 1-16).
//
// Where the equations of Accelerated FDPS disagree with each other, its model uses: eq. 12 with the 24 passes of eq. 6
// and eq. 14 with the size of a key and the bandwidth of eq. 8 (as in eqs. 31 and 33); eq. 19's sizes rather than eq.
// 31's; in eq. 21 the bytes of table 3, not the 440 of eq. 33; eq. 42 with a plus before n_p.
//
// The digits of SUSHI's tables show what its text leaves open: the exponent 1.0667 of eq. 4 is 16/15, logarithms are
// binary, constants are means over the sites weighted by processes, and the transforms, which every site does in full,
// take the slowest site's time.
#pragma once

#include "src/model/machine.hpp"

namespace maki::model {

// ---- Accelerated FDPS -----------------------------------------------------------------------------------------------

struct FdpsRun {
  double particles = 0;  // n, of one process
  double theta = 0.5;
  double group = 250;       // <n_i>, particles that share a list
  double reuse = 16;        // n_reuse: steps for which lists are used
  double domains = 16;      // n_dc: steps between domain decompositions
  double samples = 30;      // n_smp: particles of a process sampled for the domains
  double processes = 1;     // n_p
  bool index_lists = true;  // lists of indices (G2, G3); else of particles (G1), 16 bytes each
};

// Seconds of a step, of one process.
struct FdpsNode {
  double root = 0;                               // eq. 3
  double local_tree = 0, local_moments = 0;      // eqs. 4-9
  double global_tree = 0, global_moments = 0;    // eqs. 10-14 or 15, and 16
  double send_all = 0;                           // copies and sends of all sources, eqs. 19 and 20
  double kernel = 0, device_link = 0, host = 0;  // overlapping parts: eqs. 21, 22-24, 25-28
  double take_forces = 0;                        // eq. 29
  double force() const;                          // eqs. 17 and 18
  double whole() const;                          // eqs. 1 and 2
};

struct FdpsStep {
  double single = 0;      // eq. 33
  double domains = 0;     // T_dc / n_dc, eqs. 35-37
  double trees_made = 0;  // T_LET,const / n_reuse, eq. 38
  double gathered = 0;    // T_LET,allgather, eq. 40
  double neighbours = 0;  // T_LET,p2p, eq. 41
  double whole() const { return single + domains + trees_made + gathered + neighbours; }  // eq. 34
};

// Eq. 30: mean length of the list of `group` particles in a tree of `particles`.
double list_length(double particles, double group, double theta);
// Eq. 43, at most n_p - 1: processes that exchange trees one by one. Eq. 42: n_LET, received by a process; 0 for one
// process.
double close_processes(const FdpsRun& run);
double imported(const FdpsRun& run);

// Seconds of one process in a step, part by part; with `reuse` those of a step with kept lists.
FdpsNode fdps_node(const FdpsRun& run, const Accelerator& machine, bool reuse);
double fdps_single(const FdpsRun& run, const Accelerator& machine);
// Throws Error where the machine has no network constants.
FdpsStep fdps_step(const FdpsRun& run, const Accelerator& machine);

// ---- SUSHI ----------------------------------------------------------------------------------------------------------

enum class Method { kTreePm, kTree, kDirect };

struct Problem {
  double particles = 0;      // N
  double cells = 0;          // M, of the whole mesh
  double theta = 0.5;        // opening angle; the fits hold for 0.2 to 0.75
  double sampled = 1e-4;     // r_samp, particles sampled for the domains, as a share of N
  double moved = 0;          // bytes of particles that a site sends its neighbours in a step (SUSHI, section 4)
  double group = 1000;       // particles that share a list (SUSHI's ncrit); Method::kTree
  bool block_steps = false;  // individual steps in blocks; a "step" is then N / n_b blocks (section 5.2.2)
  Method method = Method::kTreePm;
};

// Seconds of a step.
struct StepTime {
  double force = 0;        // t_tree, or the direct sum
  double mesh = 0;         // t_pm
  double lan_latency = 0;  // t_1
  double lan_volume = 0;   // t_b
  double wan_latency = 0;  // w_1
  double wan_volume = 0;   // w_b

  double local() const { return lan_latency + lan_volume; }                    // t_comm, eq. 6
  double communication() const { return local() + wan_latency + wan_volume; }  // t_comm + w_comm, eqs. 6 and 10
  double whole() const { return force + mesh + communication(); }              // t_exec, eqs. 2 and 9
  const char* largest() const;                                                 // the largest part, in words
};

// Eq. 4, of all particles. kTree: eq. 30 of Accelerated FDPS, in place of Makino (1991), whose expression
// for a Plummer sphere SUSHI's text does not print. kDirect: N^2.
double interactions(const Problem& problem);
// n_b = 0.2 N^0.81, the mean of particles in a block (section 5.2.2).
double block_size(double particles);

// Bytes of a site on the wide area in a step, the terms of eqs. 12 and 16.
double wan_mesh_bytes(double cells, int sites);             // 4 s M
double wan_tree_bytes(double particles, double theta);      // (48 / theta + 24) N^(2/3)
double wan_sample_bytes(double particles, double sampled);  // 4 N r_samp
double wan_exchanges(const Problem& problem, int sites);    // 5 s + 3 (eq. 11), or 4 (s - 1) + 4 (eq. 15)

// Bytes of memory (SUSHI, section 2.1.4): 60 a particle, 52 a tree node (0.75 nodes a particle), 4.5 a mesh cell.
double memory_bytes(const Problem& problem);

// A step of `processes` in all, spread evenly over the first `sites` of the machine (eqs. 2-12, 15, 16). Throws
// Error where the machine has fewer sites, or no network.
StepTime step_time(const Problem& problem, const Machine& machine, int sites, double processes);
// Eq. 13: `processes` at each site. Eq. 14: `processes` in all.
double speedup(const Problem& problem, const Machine& machine, int sites, double processes);
double efficiency(const Problem& problem, const Machine& machine, int sites, double processes);
// The least rate between sites, bytes a second, at which eq. 14 reaches `wanted`; infinity where no rate does.
double rate_for_efficiency(const Problem& problem, Machine machine, int sites, double processes, double wanted);

}  // namespace maki::model
