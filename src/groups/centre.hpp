// The centre of each group, the member deepest in its potential, and spheres about it: the particles in
// them by distance, overdensities, circular velocities.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/groups/links.hpp"

namespace maki {

// In groups up to this length all potentials are exact sums over the members. In longer groups a tree (monopoles,
// opening angle 1/2) gives all potentials, and exact sums over the kExactCandidates deepest members select the centre.
inline constexpr std::uint64_t kDirectLength = 512;
inline constexpr std::size_t kExactCandidates = 64;

struct GroupPotentials {
  // By group, pointers into `members`; of equal potentials the member with the least ID.
  std::vector<const ParticleRecord*> deepest;
  // In the order of members.particles; mass / side: -sum m_j / sqrt(r_ij^2 + softening^2) over the others.
  std::vector<double> of_member;
};
// Softening in sides. Sums are in double, in an order that depends only on the group, so that the result does not
// depend on threads.
GroupPotentials group_potentials(const Stream& stream, const GroupMembers& members, double softening);

// All particles (nearest images), members of a group or not, up to a distance from a centre, sorted by distance and, at
// equal distances, by ID. Distances are compared as exact integers.
class Sphere {
 public:
  // `found`: the particles within squared_units(radius), in any order; radius in sides, at most 1/2.
  Sphere(const SourceParticle& centre, double radius, std::vector<ParticleRecord> found);

  std::size_t size() const { return particles_.size(); }
  double radius() const { return radius_; }  // sides
  const ParticleRecord& particle(std::size_t i) const { return particles_[i]; }
  double distance(std::size_t i) const { return distance_[i]; }    // sides
  double mass_up_to(std::size_t i) const { return enclosed_[i]; }  // of particles 0 to i

 private:
  double radius_;
  std::vector<ParticleRecord> particles_;
  std::vector<double> distance_, enclosed_;
};

// Looks up spheres among the particles of all ranks.
struct SphereQuery {
  SourceParticle centre;
  double radius;  // sides, at most 1/2
};
struct SphereSource {
  const SortedParticles& own;
  const RankBoxes& boxes;
  const Communicator& ranks;
  // Collective: each rank passes the queries for its own spheres, maybe none.
  std::vector<Sphere> look_up(const std::vector<SphereQuery>& queries) const;
};

// Number of innermost particles that are too few for a density or a circular velocity.
inline constexpr std::size_t kInnermost = 10;

struct Overdensity {
  double mass = 0, radius = 0;  // mass units, sides; 0 where there is none
};

// The sphere whose mean density is `density` (mass / side^3): the mass of its particles, and the radius at which they
// have that density. It is the first such radius beyond the kInnermost innermost particles; where the density within
// these is already lower, the last such radius among them. None where the density is higher out to the end of `sphere`.
std::optional<Overdensity> overdensity(const Sphere& sphere, double density);

// The maximum of M(<r) / r over particles up to `limit` (sides), without the kInnermost; zeros where there are none.
struct CircularPeak {
  double mass_over_radius = 0, radius = 0;  // mass / side, sides
};
CircularPeak circular_peak(const Sphere& sphere, double limit);

}  // namespace maki
