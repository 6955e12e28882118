// What the reference sums have in common: a sum for each target, over processes that hold parts of the set.
#pragma once

#include <cstddef>

#include "src/gravity/reference/softened_pair.hpp"

namespace maki {

struct TargetSum {
  double ax = 0, ay = 0, az = 0, potential = 0;

  // A pair with mg = m g, and mp = m p, at `d` from the target.
  void add(double mg, const Vector3& d, double mp) {
    ax += mg * d[0], ay += mg * d[1], az += mg * d[2];
    potential -= mp;
  }
};

class TargetSums {
 public:
  explicit TargetSums(std::size_t targets) : sums_(targets) {}
  TargetSum& operator[](std::size_t target) { return sums_[target]; }

  ReferenceForces over_parts(const SumOfParts& sum) {
    sum(std::span(&sums_.data()->ax, 4 * sums_.size()));
    ReferenceForces forces;
    for (const TargetSum& s : sums_) {
      forces.acceleration.push_back({s.ax, s.ay, s.az});
      forces.potential.push_back(s.potential);
    }
    return forces;
  }

 private:
  std::vector<TargetSum> sums_;
};

// SumOfParts where this process holds all particles.
inline void whole_set(std::span<double>) {}

// Positions of the targets with these indices; of all where there are none.
inline std::vector<Vector3> places_of(const std::vector<Vector3>& positions, const std::vector<std::size_t>& targets) {
  if (targets.empty()) return positions;
  std::vector<Vector3> places;
  for (const std::size_t target : targets) places.push_back(positions[target]);
  return places;
}

}  // namespace maki
