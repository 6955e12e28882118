// Properties of friends-of-friends groups.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "src/groups/centre.hpp"

namespace maki {

// The overdensities of GADGET-4: 200 times the mean density of matter, 200 and 500 times the critical density at the
// time, and the virial density of a spherical collapse.
enum SphereKind { kMean200, kCrit200, kCrit500, kTopHat200, kSphereKinds };
inline constexpr std::array<const char*, kSphereKinds> kSphereNames = {"Mean200", "Crit200", "Crit500", "TopHat200"};

// Units and cosmology of a set, as groups need them.
struct GroupFrame {
  double side = 1;                               // length units
  std::array<double, 3> corner{};                // length units
  double scale_factor = 1;                       // a
  double hubble = 0;                             // H(a), velocity / length, of physical lengths
  double gravitational_constant = 1;             // length velocity^2 / mass, of physical lengths
  double softening = 0;                          // of the potential that defines centres, sides; above 0
  std::array<double, kSphereKinds> densities{};  // of the spheres, mass / length^3, comoving
};

// Lengths are comoving, in length units; velocities are peculiar, in velocity units.
struct FofGroup {
  std::uint64_t length = 0;  // particles
  std::uint64_t least_id = 0;
  double mass = 0;
  std::array<double, 3> position{};        // of the deepest particle, in the box
  std::uint64_t deepest_id = 0;            // that particle
  std::array<double, 3> velocity{};        // mean, by mass
  std::array<double, 3> centre_of_mass{};  // in the box
  double offset = 0;                       // from position to centre of mass
  double velocity_dispersion = 0;          // on one axis, about the mean velocity
  // From all particles about the position, members or not:
  std::array<Overdensity, kSphereKinds> spheres{};  // mass units, length units
  double v_max = 0;                                 // largest circular velocity within the Mean200 sphere
  double v_max_radius = 0;                          // radius of v_max
  double spin = 0;           // of the Crit200 sphere: J / (sqrt(2) M V R), Bullock et al. 2001, ApJ 555, 240, eq. 5
  double concentration = 0;  // of the NFW halo with this v_max / v_Crit200; 0 where it would be below 2.163
};

struct MeasuredGroups {
  std::vector<FofGroup> groups;  // in the order of the members' groups
  // IDs of the members of one group after another, the most bound first: by kinetic energy about the group's mean
  // velocity, with the Hubble flow about its centre, and the potential of its members; for equal energies by ID.
  std::vector<std::uint64_t> by_binding;
};

// Groups in the order of `members`, their spheres from `particles`. Collective, as SphereSource is; parallel over
// groups. The order of computation within a group depends only on the set, so that its numbers have the same bits for
// any number of threads and ranks.
MeasuredGroups measure_groups(const Stream& stream, const GroupMembers& members, const SphereSource& particles,
                              const GroupFrame& frame);

// The virial density over the critical one for a universe that is flat or has no Lambda (Bryan & Norman 1998, ApJ 495,
// 80, eq. 6), used for dark energy of any w; `omega_matter`: Omega_m at the time.
double virial_overdensity(double omega_matter, bool has_lambda);

// c of sqrt(0.216 c / f(c)) = v_max / v_200, f(c) = ln(1 + c) - c / (1 + c) (Prada et al. 2012, MNRAS 423, 3018, eqs. 9
// and 10); 0 for ratios below 1 (c = 2.163, with v_max at the halo's own radius).
double concentration_of(double velocity_ratio);

}  // namespace maki
