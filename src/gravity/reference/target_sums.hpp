// What the reference sums have in common: a sum for each target, over processes that hold parts of the set.
#pragma once

#include <algorithm>
#include <cstddef>

#include "src/gravity/reference/softened_pair.hpp"

namespace maki {

struct TargetSum {
  double ax = 0, ay = 0, az = 0, potential = 0;

  // Adds a pair with mg = m g, and mp = m p, at `d` from the target.
  void add(double mg, const Vector3& d, double mp) {
    ax += mg * d[0], ay += mg * d[1], az += mg * d[2];
    potential -= mp;
  }
};

class TargetSums {
 public:
  explicit TargetSums(std::size_t targets) : sums_(4 * targets) {}
  void set(std::size_t target, const TargetSum& s) {
    const double values[] = {s.ax, s.ay, s.az, s.potential};
    std::copy_n(values, 4, sums_.begin() + static_cast<std::ptrdiff_t>(4 * target));
  }

  ReferenceForces over_parts(const SumOfParts& sum) {
    sum(sums_);
    ReferenceForces forces;
    for (std::size_t i = 0; i < sums_.size(); i += 4) {
      forces.acceleration.push_back({sums_[i], sums_[i + 1], sums_[i + 2]});
      forces.potential.push_back(sums_[i + 3]);
    }
    return forces;
  }

 private:
  std::vector<double> sums_;  // [target][ax, ay, az, potential]
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
