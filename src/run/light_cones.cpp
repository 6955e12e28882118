#include "src/run/light_cones.hpp"

#include <fmt/format.h>

#include <boost/math/constants/constants.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "kernels/error.hpp"
#include "src/config/resolve.hpp"
#include "src/lightcone/cone_state.hpp"

namespace maki {
namespace {

// In sides: each particle is then tested in some 10^4 columns of images.
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
// Host bytes a particle while a shell is written: its record, a row of the set, and the scale factor.
constexpr double kShellHostBytes = sizeof(ShellParticle) + Snapshot::kBytes + sizeof(double);

}  // namespace

LightConeBytes light_cone_bytes(Config config, std::uint64_t particles) {
  const Config::LightCone& cone = config.lightcone;
  if (cone.observers.empty() || !config.box.size || config.initial.kind == InitialKind::kFile) return {};
  std::vector<std::string> notes;
  resolve_cosmology(config.cosmology, nullptr, notes);
  const UnitSystem units = run_units(config, nullptr);
  check_light_cones(config, units, config.initial.redshift);
  const Timeline timeline = Timeline::comoving(cosmology_parameters(config), units);
  const ConeShells shells = make_shells(timeline, cone.edges, static_cast<int>(cone.shells));
  const double side = number_of(*config.box.size, "box.size", config, units);
  check_reach(shells, side);
  const double seen = (1 - std::cos(std::min(cone.opening_angle, 180.0) * boost::math::double_constants::degree)) / 2;
  std::vector<double> rows;
  for (std::size_t k = 0; k < shells.count(); ++k) {
    const double thick = std::pow(shells.distances[k + 1] / side, 3) - std::pow(shells.distances[k] / side, 3);
    rows.push_back(cone.write_particles
                       ? seen * 4 / 3.0 * boost::math::double_constants::pi * thick * static_cast<double>(particles)
                       : 0);
  }
  const double all = std::accumulate(rows.begin(), rows.end(), 0.0), most = *std::max_element(rows.begin(), rows.end());
  const double map = 12 * std::pow(static_cast<double>(cone.nside), 2) * sizeof(double);
  const double observers = static_cast<double>(cone.observers.size()) / 3;
  return {.disk = observers * all * kShellRowBytes,
          .disk_maps = observers * static_cast<double>(shells.count()) * map,
          .spools = observers * all * sizeof(ShellParticle),
          .largest_spool = observers * most * sizeof(ShellParticle),
          .largest_shell = most * kShellHostBytes,
          .maps = observers * 2 * map};
}

std::string light_cone_folder(const std::string& directory, std::size_t observer) {
  return (std::filesystem::path(directory) / fmt::format("lightcone_{:02}", observer)).string();
}

std::string damage_of_light_cones(const std::string& directory, const Config& config, std::uint64_t step,
                                  const Communicator& ranks) {
  std::string damage;
  for (std::size_t i = 0; i < config.lightcone.observers.size() / 3 && damage.empty(); ++i)
    damage = damage_of_cone(light_cone_folder(directory, i), step, ranks);
  return damage;
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
