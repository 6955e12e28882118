#include "src/run/light_cones.hpp"

#include <fmt/format.h>

#include <boost/math/constants/constants.hpp>

#include <algorithm>
#include <cmath>

#include "kernels/error.hpp"
#include "src/config/resolve.hpp"

namespace maki {
namespace {

// Of sides: then there are some 10^4 columns of images, through which each particle looks.
constexpr double kFarthest = 50;

std::array<double, 3> direction_of(const std::vector<double>& directions, std::size_t observer) {
  if (directions.empty()) return {0, 0, 1};
  const std::size_t first = directions.size() > 3 ? 3 * observer : 0;
  const double x = directions[first], y = directions[first + 1], z = directions[first + 2];
  const double length = std::hypot(x, y, z);
  return {x / length, y / length, z / length};
}

void check_reach(const ConeShells& shells, double side) {
  const double reach = shells.distances.back() / side;
  if (reach <= kFarthest) return;
  throw Error(fmt::format("lightcone.edges reaches z = {:g}", shells.redshifts.back()),
              fmt::format("that is {:.0f} sides of the box away, and {:.0f} is the most", reach, kFarthest),
              "choose a nearer edge or a larger box");
}

// A row of conesnap_*.hdf5: positions and scale factor in double precision, velocity, mass, an ID of 32 bits or 64.
constexpr double kShellRowBytes = 24 + 8 + 12 + 4 + 8;

}  // namespace

double light_cone_bytes(Config config, std::uint64_t particles) {
  const Config::LightCone& cone = config.lightcone;
  if (cone.observers.empty() || !config.box.size || config.initial.kind == InitialKind::kFile) return 0;
  std::vector<std::string> notes;
  resolve_cosmology(config.cosmology, nullptr, notes);
  const UnitSystem units = run_units(config, nullptr);
  const Timeline timeline = Timeline::comoving(cosmology_parameters(config), units);
  const std::vector<double> reach = make_shells(timeline, cone.edges, 1).distances;
  const double seen = (1 - std::cos(std::min(cone.opening_angle, 180.0) * boost::math::double_constants::degree)) / 2;
  const double volume =
      seen * 4 / 3.0 * boost::math::double_constants::pi * (std::pow(reach.back(), 3) - std::pow(reach.front(), 3));
  const double boxes = volume / std::pow(number_of(*config.box.size, "box.size", config, units), 3);
  const double rows = cone.write_particles ? boxes * static_cast<double>(particles) : 0;
  const double maps = static_cast<double>(cone.shells) * static_cast<double>(reach.size() - 1) * 12 *
                      std::pow(static_cast<double>(cone.nside), 2) * sizeof(double);
  return static_cast<double>(cone.observers.size()) / 3 * (rows * kShellRowBytes + maps);
}

LightConeOptions light_cone_options(const Prepared& run, const Timeline& timeline) {
  const Config::LightCone& given = run.config.lightcone;
  LightConeOptions options;
  if (given.observers.empty()) return options;
  options.shells = make_shells(timeline, given.edges, static_cast<int>(given.shells));
  check_reach(options.shells, run.side);
  options.particles = given.write_particles;
  options.nside = static_cast<int>(given.nside);
  options.compression = static_cast<int>(run.config.output.compression);
  for (const std::array<double, 3>& place : light_cone_observers(run.config, run.units)) {
    ConeObserver observer{place, {}};
    observer.view.axis = direction_of(given.directions, options.observers.size());
    if (given.opening_angle < 180)
      observer.view.cos_angle = std::cos(given.opening_angle * boost::math::double_constants::degree);
    options.observers.push_back(observer);
  }
  return options;
}

}  // namespace maki
