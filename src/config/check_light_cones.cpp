// Keys of light cones that are right one by one and wrong together.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "kernels/error.hpp"
#include "src/config/resolve.hpp"

namespace maki {
namespace {

void check_observers(const Config& config, const UnitSystem& units) {
  const Config::LightCone& cone = config.lightcone;
  if (cone.observers.size() % 3 != 0)
    throw Error(fmt::format("lightcone.observers has {} numbers", cone.observers.size()), "each observer is a place",
                "give three for each, x, y and z");
  const double side = number_of(*config.box.size, "box.size", config, units);
  for (const auto& place : light_cone_observers(config, units))
    for (const double x : place)
      if (!(x >= 0 && x <= side))
        throw Error(fmt::format("lightcone.observers holds {}, which is not in the box", x),
                    fmt::format("the side is {}", side), "coordinates go from 0 to the side, in the same units");
}

void check_directions(const Config::LightCone& cone) {
  const std::vector<double>& all = cone.directions;
  if (!all.empty() && all.size() != 3 && all.size() != cone.observers.size())
    throw Error(fmt::format("lightcone.directions has {} numbers", all.size()),
                fmt::format("there are {} observers", cone.observers.size() / 3),
                "give three for each observer, or three for all");
  for (std::size_t i = 0; i < all.size(); i += 3)
    if (all[i] == 0 && all[i + 1] == 0 && all[i + 2] == 0)
      throw Error("lightcone.directions holds 0, 0, 0", "that is no direction", "give a vector of any other length");
}

void check_edges(const Config& config, double start) {
  const std::vector<double>& edges = config.lightcone.edges;
  if (edges.size() < 2)
    throw Error(fmt::format("lightcone.edges has {} edges", edges.size()), "a shell lies between two",
                "give at least two, such as lightcone.edges = [0, 1]");
  if (!std::is_sorted(edges.begin(), edges.end(), std::less_equal<>()))
    throw Error("lightcone.edges does not ascend", "", "give the nearest edge first, and none twice");
  const double end = std::max(0.0, config.time.end_redshift);
  if (edges.front() < end || edges.back() > start)
    throw Error(fmt::format("lightcone.edges goes from {} to {}", edges.front(), edges.back()),
                fmt::format("the run goes from z = {} to {}, and its observers stand at z = 0", start, end),
                "leave shells out, or move time.end_redshift or the start");
}

}  // namespace

std::vector<std::array<double, 3>> light_cone_observers(const Config& config, const UnitSystem& units) {
  const std::vector<double>& numbers = config.lightcone.observers;
  std::vector<std::array<double, 3>> places(numbers.size() / 3);
  for (std::size_t i = 0; i < 3 * places.size(); ++i)
    places[i / 3][i % 3] = number_of({numbers[i], ""}, "box.size", config, units);
  return places;
}

void check_light_cones(const Config& config, const UnitSystem& units, double start) {
  const Config::LightCone& cone = config.lightcone;
  if (cone.observers.empty()) {
    if (cone == Config::LightCone{}) return;
    throw Error("there are keys of light cones and no observer", "",
                "give lightcone.observers = [x, y, z], or take the others out");
  }
  check_observers(config, units);
  check_directions(cone);
  check_edges(config, start);
  if ((cone.nside & (cone.nside - 1)) != 0)
    throw Error(fmt::format("lightcone.nside = {} is no power of two", cone.nside), "", "try 64, 256 or 1024");
  if (!cone.write_particles && cone.nside == 0)
    throw Error("light cones without particles and without maps hold nothing", "",
                "set lightcone.nside, or leave lightcone.write_particles out");
}

}  // namespace maki
