#include "src/lightcone/cone_shells.hpp"

#include <algorithm>
#include <cmath>

namespace maki {
namespace {

// The redshift at a comoving distance between those of z = near and far, by bisection.
double redshift_at(const Timeline& timeline, double distance, double near, double far) {
  for (int i = 0; i < 60; ++i) {
    const double middle = (near + far) / 2;
    (light_distance(timeline, -std::log1p(middle)) < distance ? near : far) = middle;
  }
  return (near + far) / 2;
}

}  // namespace

int ConeShells::shell_of(double distance) const {
  const auto above = std::upper_bound(distances.begin(), distances.end(), distance);
  if (above == distances.begin() || above == distances.end()) return -1;
  return static_cast<int>(above - distances.begin()) - 1;
}

double light_distance(const Timeline& timeline, double t) {
  const double light = kLightCgs / timeline.cosmology().units().velocity_cgs;
  return light * timeline.kick_factor(t, 0);
}

ConeShells make_shells(const Timeline& timeline, const std::vector<double>& redshifts, int parts) {
  ConeShells shells;
  const auto distance = [&](double z) { return light_distance(timeline, std::log(1 / (1 + z))); };
  for (std::size_t i = 0; i < redshifts.size(); ++i) {
    shells.redshifts.push_back(redshifts[i]);
    shells.distances.push_back(distance(redshifts[i]));
    if (i + 1 == redshifts.size()) break;
    const double near = shells.distances.back(), thickness = (distance(redshifts[i + 1]) - near) / parts;
    for (int part = 1; part < parts; ++part) {
      shells.distances.push_back(near + part * thickness);
      shells.redshifts.push_back(redshift_at(timeline, shells.distances.back(), redshifts[i], redshifts[i + 1]));
    }
  }
  return shells;
}

}  // namespace maki
