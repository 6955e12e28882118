// Spheres about a centre: the particles in them by distance, overdensities, circular velocities.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/groups/links.hpp"

namespace maki {

// All particles, members of a group or not, up to a distance from a centre, nearest image, ascending; of equal distances
// the least ID first. Distances are compared as exact integers.
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
class SphereSource {
 public:
  // Refers to its arguments.
  SphereSource(const SortedParticles& own, const RankBoxes& boxes, const Communicator& ranks)
      : own_(own), boxes_(boxes), ranks_(ranks) {}
  const Communicator& ranks() const { return ranks_; }
  // Collective: each rank asks for its own spheres, maybe none.
  std::vector<Sphere> look_up(const std::vector<SphereQuery>& queries) const;

 private:
  const SortedParticles& own_;
  const RankBoxes& boxes_;
  const Communicator& ranks_;
};

// The innermost particles whose few numbers say nothing of a density or a circular velocity.
inline constexpr std::size_t kInnermost = 10;

struct Overdensity {
  double mass = 0, radius = 0;  // mass units, sides; 0 where there is none
};

// The sphere whose mean density is `density` (mass / side^3): mass of the particles in it, and the radius at which they
// have that density. It is the first one that the density falls to outward of the kInnermost innermost particles; where
// these are less dense than that already, the last one within them. Nothing where the sphere is not large enough to tell.
std::optional<Overdensity> overdensity(const Sphere& sphere, double density);

// Where M(<r) / r is largest, for particles up to `limit` (sides) but for the kInnermost; zeros where there are none.
struct CircularPeak {
  double mass_over_radius = 0, radius = 0;
};
CircularPeak circular_peak(const Sphere& sphere, double limit);

}  // namespace maki
