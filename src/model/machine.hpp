// A machine for the performance models: sites in the order of their ring, the lines within and between them, an
// accelerator. Units are seconds and bytes a second. The files: src/config/parse.hpp.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "kernels/error.hpp"

namespace maki::model {

// SUSHI's constants of a site (its section 3; tables 2, 5 and 10), of one process.
struct Site {
  std::string name;
  double tree = 0;       // tau_tree, seconds an interaction of the tree
  double fft = 0;        // tau_fft, seconds an operation of the transforms
  double mesh = 0;       // tau_mesh, seconds a particle for assignment and interpolation
  double direct = 0;     // seconds an interaction of the direct sum (section 5.2); 0: that of the tree
  double processes = 1;  // the site's weight in averages: its processes, or any multiple of them
};

// Lines within a site and between neighbouring ones (SUSHI, tables 6 and 10).
struct Network {
  double lan_round_trip = 0, wan_round_trip = 0;  // lambda, seconds
  double lan_rate = 0, wan_rate = 0;              // sigma, bytes a second
  bool star = false;                              // s sites share one exchange: each gets wan_rate / (s - 1)
};

// Constants of a node and its network for the model of Accelerated FDPS (its section 6.2 and table 4).
struct Accelerator {
  double host_rate = 0;      // B_host, bytes a second of main memory (STREAM copy)
  double transfer_rate = 0;  // B_transfer, bytes a second between host and accelerator
  double gpu_rate = 0;       // B_GPU, bytes a second of the accelerator's memory
  double gpu_flops = 0;      // F_GPU, peak operations a second, single precision
  double inject_rate = 0;    // B_inj, bytes a second of a node into the network
};

// Constants of Maki's model on this machine, of one rank (`maki model calibrate`; the model: maki.hpp).
struct MakiConstants {
  double pair = 0;                  // seconds an interaction of the lists
  double interactions = 0;          // a particle, in the calibration's runs
  double reach = 2;                 // r_cut of the calibration's runs in mean distances of particles
  double made = 0, fixed_made = 0;  // steps with new lists, without forces by lists: seconds a particle, and a step
  double near = 0, doubling = 0;    // beyond `near` particles each doubling adds `doubling` to `made`; 0: never
  double kept = 0, fixed_kept = 0;  // the same as `made` and `fixed_made` with kept lists
  double mesh_particle = 0;         // seconds a particle: assignment and interpolation
  double mesh_cell = 0;             // seconds for each of the M log2 M operations of all transforms of a step
  double code_cell = 33e-9;         // seconds a cell: both meshes of other sites coded, decoded and added, one core
  double fixed_code = 1.4e-3;       // fixed seconds of this coding, and of handing messages on
};

struct Machine {
  std::string name;
  std::string source;  // where the constants are from
  Network network;
  std::vector<Site> sites;
  std::optional<Accelerator> accelerator;
  std::optional<MakiConstants> maki;
};

// The first `count` sites of the ring. A single listed site stands for any number of equal ones; otherwise throws Error
// where fewer than `count` are listed.
inline std::vector<Site> sites_of(const Machine& machine, int count) {
  const auto have = static_cast<int>(machine.sites.size());
  if (have == 0) throw Error(fmt::format("'{}' lists no sites", machine.name), "", "give a machine with [[site]]");
  if (have == 1) return std::vector<Site>(static_cast<std::size_t>(count), machine.sites.front());
  if (count > have) {
    throw Error(fmt::format("'{}' lists {} sites, not {}", machine.name, have, count), "",
                "ask for fewer, or give a machine of one site, which may be there any number of times");
  }
  return {machine.sites.begin(), machine.sites.begin() + count};
}

}  // namespace maki::model
