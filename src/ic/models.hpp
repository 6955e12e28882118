// Isolated model systems with G = 1, in the units of the parameters. Each particle depends only on seed and index; the
// centre of mass is at rest in the origin; ids start at 1; masses are equal unless stated otherwise. Collective over
// the ranks: rank r of P gets the particles N r/P ... N (r + 1)/P - 1 of N. The whole set has the same bits for any
// number of ranks and threads. All throw Error on parameters out of range.
#pragma once

#include <cstdint>
#include <numbers>

#include "host/comm/communicator.hpp"
#include "src/io/snapshot.hpp"

namespace maki {

// Plummer sphere in equilibrium, sampled as in Aarseth, Henon & Wielen 1974, A&A 37, 183. With mass 1 and the scale
// length 3 pi/16 the units are Henon's: energy -1/4, virial radius 1.
struct PlummerParameters {
  std::uint64_t seed = 1;
  std::uint64_t particles = 32768;
  double mass = 1;                                  // of the whole model
  double scale_length = 3 * std::numbers::pi / 16;  // a in rho ~ (1 + r^2/a^2)^(-5/2)
  // Particles are made only inside this radius (0: no limit), with the model's mass inside it, so that the sphere stays
  // in equilibrium. Without a limit the outermost of N particles is near a sqrt(3N/2).
  double truncation_radius = 0;
};
Snapshot make_plummer(const PlummerParameters& parameters, const Communicator& ranks = Communicator::self());

// Uniform sphere. The defaults are those of FDPS's cold collapse (Iwasawa et al. 2020, PASJ 72, 13, section 6.1; the
// radius is that of FDPS's sample program): mass 1, radius 3, at rest. It collapses at t = pi sqrt(R^3/(8 G M)) = 5.8.
struct ColdSphereParameters {
  std::uint64_t seed = 1;
  std::uint64_t particles = std::uint64_t{1} << 22;
  double mass = 1;
  double radius = 3;
  double virial_ratio = 0;  // 2T/|W|; velocities are Gaussian where it is not 0
};
Snapshot make_cold_sphere(const ColdSphereParameters& parameters, const Communicator& ranks = Communicator::self());

// One heavy particle (the first, id 1) and `particles` light ones on nearly circular Kepler orbits around it, as in a
// planetary ring. Orbits feel the central mass only; the disk lies in the x-y plane and turns counter-clockwise.
struct KeplerDiskParameters {
  std::uint64_t seed = 1;
  std::uint64_t particles = 65536;
  double central_mass = 1;
  double disk_mass = 1e-4;  // all light particles together
  double inner_radius = 1;  // of the semi-major axes
  double outer_radius = 2;
  double surface_density_slope = -1;  // surface density ~ r^slope
  double eccentricity = 0.01;         // rms values of Rayleigh distributions
  double inclination = 0.005;         // radian
};
Snapshot make_kepler_disk(const KeplerDiskParameters& parameters, const Communicator& ranks = Communicator::self());

// Two bodies at apocentre on the x axis, moving in the x-y plane. Period 2 pi sqrt(a^3/(m1 + m2)), energy -m1 m2/(2a).
struct TwoBodyParameters {
  double mass1 = 1;
  double mass2 = 1;
  double semi_major_axis = 1;
  double eccentricity = 0.5;
};
Snapshot make_two_body(const TwoBodyParameters& parameters, const Communicator& ranks = Communicator::self());

}  // namespace maki
