#include "src/lightcone/light_cone.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "kernels/error.hpp"
#include "kernels/mesh/mass_unit.hpp"
#include "src/io/safe_file.hpp"
#include "src/lightcone/cone_state.hpp"
#include "wan/sites/sites.hpp"

namespace maki {
namespace {

namespace fs = std::filesystem;

// The shells that the light sphere is in during a drift.
std::vector<std::size_t> open_shells(const ConeShells& shells, double before, double after) {
  std::vector<std::size_t> open;
  for (std::size_t k = 0; k < shells.count(); ++k)
    if (shells.distances[k] < before && shells.distances[k + 1] > after) open.push_back(k);
  return open;
}

std::int64_t fine_units(double sides) { return std::llround(sides * kSideToFine); }

// A bound for the particles in a pixel: all images within the distance.
double most_in_a_pixel(std::uint64_t particles, double side, double distance) {
  return static_cast<double>(particles) * 4.2 * std::pow(distance / side + 1, 3);
}

}  // namespace

// Moments of a drift, and of the light sphere in it.
struct LightCone::Moments {
  double factor;  // of the drift
  LightSphere sphere;
  DriftCubic time;           // timeline
  double side;               // of the box, length units
  double nearest, farthest;  // distances at which images are met, length units
};

LightCone::LightCone(const LightConeOptions& options, std::size_t observer, const Place& place,
                     const Provenance& provenance)
    : options_(options), observer_(options.observers.at(observer)), place_(place), provenance_(provenance) {}

std::string LightCone::path(const std::string& name) const { return (fs::path(place_.folder) / name).string(); }

// The spools of this rank, and of ranks of earlier jobs that equal it modulo the number of ranks.
std::vector<std::string> LightCone::own_spools() const {
  std::vector<std::string> names;
  for (const std::string& name : names_in(place_.folder)) {
    if (const int rank = spool::rank_of(name); rank >= 0 && rank % place_.ranks.size() == place_.ranks.rank())
      names.push_back(name);
  }
  return names;
}

void LightCone::resume(std::uint64_t step) {
  resumed_at_ = step;
  old_ = read_cone_states(place_.folder, step, place_.ranks);
  spools_ = reopen_spools(place_.folder, old_, place_.ranks);
}

// The mass of a count of the maps, for this site's particles. Collective.
double LightCone::quantum_of(const Drift& drift) const {
  const std::uint64_t particles = sum_of(place_.ranks, std::uint64_t{drift.particles.size()});
  const double heaviest =
      largest_of(place_.ranks,
                 double{mass_range(drift.stream, drift.particles.source.data(), drift.particles.size()).largest});
  return sky_quantum(static_cast<float>(heaviest),
                     most_in_a_pixel(particles, drift.frame.side, options_.shells.distances.back()));
}

void LightCone::begin(const Drift& drift, const Radii& radii) {
  begun_ = true;
  const Communicator& ranks = place_.ranks;
  root_succeeds(ranks, [&] { ensure_output_directory(place_.folder); });
  for (const ConeState& state : old_) quantum_ = std::max(quantum_, state.quantum);
  quantum_ = largest_of(ranks, quantum_);
  if (quantum_ == 0) quantum_ = quantum_of(drift);
  if (!resumed_at_) return;
  for (std::size_t k = 0; k < options_.shells.count(); ++k)
    if (options_.shells.distances[k] >= radii.before) written_[k] = *resumed_at_;
  all_succeed(ranks, [&] { cut_back(); });
  refill_maps();
  old_.clear();
}

// Truncates spools, and removes files, to the state of the restart.
void LightCone::cut_back() {
  for (const std::string& name : own_spools())
    if (!written_.contains(static_cast<std::size_t>(spool::shell_of(name))))
      spool::cut(path(name), spools_[name].mark().bytes);
  if (place_.ranks.rank() > 0) return;
  for (const std::uint64_t step : cone_state_steps(place_.folder))
    if (step > *resumed_at_) remove_cone_state(place_.folder, step);
}

// The pixels may have been divided among other ranks.
void LightCone::refill_maps() {
  std::vector<std::uint64_t> shells(options_.shells.count());
  for (const ConeState& state : old_)
    for (const auto& [shell, map] : state.maps) shells.at(shell) = 1;
  place_.ranks.max(shells);
  for (std::size_t shell = 0; shell < shells.size(); ++shell) {
    if (shells[shell] == 0) continue;
    std::vector<PixelCount> pixels;
    for (ConeState& state : old_) {
      const MapShare& map = state.maps[shell];
      for (std::size_t i = 0; i < map.counts.size(); ++i)
        if (map.counts[i] > 0) pixels.push_back({map.first + i, map.counts[i]});
    }
    maps_.try_emplace(shell, place_.ranks, options_.nside).first->second.add(std::move(pixels));
  }
}

namespace {

// Four moments of a drift, and the fraction of its path that particles have then covered.
struct DriftNodes {
  std::array<double, 4> times, parts;
};
DriftNodes nodes_of(const Drift& drift) {
  DriftNodes nodes{{drift.begin, 0, 0, drift.end}, {0, 0, 0, 1}};
  const double factor = drift.since(drift.begin);
  for (std::size_t i = 1; i < 3; ++i) {
    nodes.times[i] = drift.begin + (drift.end - drift.begin) * static_cast<double>(i) / 3;
    nodes.parts[i] = 1 - drift.since(nodes.times[i]) / factor;
  }
  return nodes;
}

}  // namespace

std::vector<std::string> LightCone::drifted(const Drift& drift, const Timeline& timeline) {
  const std::vector<double>& edges = options_.shells.distances;
  const Radii radii{light_distance(timeline, drift.begin), light_distance(timeline, drift.end)};
  if (!begun_) begin(drift, radii);
  last_step_ = drift.step;
  std::vector<std::string> files;
  if (radii.after < edges.back() && radii.before > edges.front()) files = meet(drift, timeline, radii);
  if (!place_.sites->alone() && drift.boundary) {
    if (remembered_.size() == kRemembered) remembered_.erase(remembered_.begin());
    remembered_[drift.step] = state();
    drop_spools(remembered_.begin()->first);
  } else if (place_.sites->alone() && !files.empty()) {
    drop_spools(drift.step);
  }
  return files;
}

// Collects the crossings of a drift that are in shells.
std::vector<std::string> LightCone::meet(const Drift& drift, const Timeline& timeline, const Radii& radii) {
  root_succeeds(place_.ranks, [&] { ensure_output_directory(place_.folder); });  // it may have been removed
  const Moments moments = moments_of(drift, timeline, radii);
  PixelsByShell pixels;
  all_succeed(place_.ranks, [&] { pixels = collect(drift, moments); });
  if (options_.nside > 0) add_to_maps(radii, std::move(pixels));
  std::vector<std::string> files;
  const std::vector<double>& edges = options_.shells.distances;
  for (std::size_t k = options_.shells.count(); k-- > 0;) {
    if (edges[k] < radii.after || edges[k] >= radii.before) continue;
    for (std::string& file : write_files(k, drift)) files.push_back(std::move(file));
  }
  return files;
}

LightCone::Moments LightCone::moments_of(const Drift& drift, const Timeline& timeline, const Radii& radii) const {
  const double side = drift.frame.side;
  const DriftNodes nodes = nodes_of(drift);
  std::array<double, 4> distances;
  for (std::size_t i = 0; i < 4; ++i) distances[i] = light_distance(timeline, nodes.times[i]) / side;
  Moments moments{drift.since(drift.begin),         {}, cubic_through(nodes.parts, nodes.times), side, radii.after,
                  std::nextafter(radii.before, 0.0)};
  moments.sphere.before = fine_units(radii.before / side);
  moments.sphere.after = fine_units(std::max(0.0, radii.after) / side);  // negative beyond z = 0
  moments.sphere.radius = cubic_through(nodes.parts, distances);
  for (std::size_t axis = 0; axis < 3; ++axis)
    moments.sphere.observer[axis] = fine_units((observer_.position[axis] - drift.frame.corner[axis]) / side);
  return moments;
}

LightCone::PixelsByShell LightCone::collect(const Drift& drift, const Moments& moments) {
  PixelsByShell pixels;
  const auto take = [&](const std::vector<Crossing>& crossings) { keep(crossings, moments, pixels); };
  find_crossings(drift.stream, drift.particles, moments.factor, moments.sphere,
                 image_columns(moments.sphere, observer_.view), take);
  return pixels;
}

// A crossing and its shell; shell -1: none.
struct LightCone::Placed {
  int shell = -1;
  std::uint64_t pixel = 0;
  ShellParticle particle{};
};

LightCone::Placed LightCone::place(const Crossing& met, const Moments& moments) const {
  if (!observer_.view.holds(met.x, met.y, met.z)) return {};
  Placed placed;
  static_assert(sizeof placed == 72, "kBatchBytes");
  const double side = moments.side, a = std::exp(moments.time(met.part));
  const auto over_a = static_cast<float>(1 / a);
  placed.particle = {{side * met.x, side * met.y, side * met.z},
                     {met.px * over_a, met.py * over_a, met.pz * over_a},
                     met.mass,
                     met.id,
                     a};
  const auto& [x, y, z] = placed.particle.position;
  placed.shell = options_.shells.shell_of(std::clamp(std::hypot(x, y, z), moments.nearest, moments.farthest));
  if (options_.nside > 0 && placed.shell >= 0) placed.pixel = sky_pixel(options_.nside, placed.particle.position);
  return placed;
}

void LightCone::keep(const std::vector<Crossing>& crossings, const Moments& moments, PixelsByShell& pixels) {
  std::vector<Placed> all(crossings.size());
#pragma omp parallel for schedule(static)
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = place(crossings[i], moments);
  std::map<std::size_t, std::vector<ShellParticle>> particles;
  for (const Placed& one : all) {
    if (one.shell < 0) continue;
    const auto k = static_cast<std::size_t>(one.shell);
    if (options_.nside > 0)
      pixels[k].add({one.pixel, static_cast<std::uint64_t>(std::llround(one.particle.mass / quantum_))});
    if (options_.particles) particles[k].push_back(one.particle);
  }
  for (const auto& [k, found] : particles) {
    const std::string name = spool::name_of(k, place_.ranks.rank());
    spool::require_bytes(path(name), spools_[name].mark().bytes);
    spool::append(path(name), found);
    spools_[name].add(found);
  }
}

void LightCone::add_to_maps(const Radii& radii, PixelsByShell pixels) {
  for (const std::size_t shell : open_shells(options_.shells, radii.before, radii.after))
    maps_.try_emplace(shell, place_.ranks, options_.nside).first->second.add(pixels[shell].take());
}

std::vector<std::string> LightCone::write_files(std::size_t shell, const Drift& drift) {
  const ShellFacts facts{options_, observer_, shell, drift.header};
  std::vector<std::string> files;
  if (options_.particles) {
    std::vector<ShellParticle> particles;
    all_succeed(place_.ranks, [&] {
      for (const auto& [name, running] : spools_)
        if (spool::shell_of(name) == static_cast<int>(shell)) spool::read(path(name), running.mark(), particles);
    });
    files.push_back(
        write_shell(path(fmt::format("conesnap_{:03}.hdf5", shell)), std::move(particles), facts, provenance_, place_));
  }
  if (const auto map = maps_.find(shell); map != maps_.end()) {
    const std::string part = !place_.sites->alone() ? fmt::format(".{}", place_.sites->me()) : "";
    files.push_back(path(fmt::format("map_{:03}{}.fits", shell, part)));
    write_shell_map(files.back(), map->second, quantum_, facts, provenance_, place_.ranks);
    maps_.erase(map);
  }
  written_[shell] = drift.step;
  std::erase_if(spools_, [&](const auto& one) { return spool::shell_of(one.first) == static_cast<int>(shell); });
  return files;
}

ConeState LightCone::state() const {
  ConeState state;
  state.quantum = quantum_;
  for (const auto& [name, running] : spools_) state.spools[name] = running.mark();
  for (const auto& [shell, map] : maps_) state.maps[shell] = {map.share().first, map.counts()};
  return state;
}

void LightCone::save(std::uint64_t step, const std::function<bool(std::uint64_t)>& is_kept) {
  const auto remembered = remembered_.find(step);
  if (remembered == remembered_.end() && step != last_step_) return;  // the restart from which the run was resumed
  const ConeState now = remembered != remembered_.end() ? remembered->second : state();
  all_succeed(place_.ranks, [&] {
    for (const auto& [name, mark] : now.spools) spool::sync(path(name), mark.bytes);
  });
  root_succeeds(place_.ranks, [&] { ensure_output_directory(place_.folder); });  // it may have been removed
  write_cone_state(place_.folder, step, now, place_.ranks);
  remove_unneeded(remembered_.empty() ? step : std::min(step, remembered_.begin()->first),
                  [&](std::uint64_t other) { return other == step || is_kept(other); });
}

void LightCone::end(const std::function<bool(std::uint64_t)>& is_kept) {
  remembered_.clear();
  remove_unneeded(last_step_, is_kept);
}

// `oldest`: the oldest step that may be gone on from without a state on the disk.
void LightCone::remove_unneeded(std::uint64_t oldest, const std::function<bool(std::uint64_t)>& is_kept) {
  root_succeeds(place_.ranks, [&] {
    for (const std::uint64_t other : cone_state_steps(place_.folder)) {
      if (is_kept(other))
        oldest = std::min(oldest, other);
      else
        remove_cone_state(place_.folder, other);
    }
  });
  place_.ranks.broadcast(&oldest, sizeof oldest, 0);
  remove_spools(oldest);
}

// remove_spools() where there is no state on the disk; where there is one, save() removes spools.
void LightCone::drop_spools(std::uint64_t oldest) {
  if (std::ranges::none_of(written_, [&](const auto& shell) { return shell.second <= oldest; })) return;
  std::uint64_t states = 0;
  root_succeeds(place_.ranks, [&] { states = cone_state_steps(place_.folder).size(); });
  place_.ranks.broadcast(&states, sizeof states, 0);
  if (states == 0) remove_spools(oldest);
}

// Removes the spools of shells whose files were written by step `oldest`: only a restart before it needs these.
// `written_` changes first, so that ranks stay alike where one cannot remove a file.
void LightCone::remove_spools(std::uint64_t oldest) {
  const auto written = written_;
  if (std::ranges::none_of(written, [&](const auto& shell) { return shell.second <= oldest; })) return;
  std::erase_if(written_, [&](const auto& shell) { return shell.second <= oldest; });
  all_succeed(place_.ranks, [&] {
    for (const std::string& name : own_spools()) {
      const auto shell = written.find(static_cast<std::size_t>(spool::shell_of(name)));
      if (shell != written.end() && shell->second <= oldest) spool::cut(path(name), 0);
    }
  });
}

}  // namespace maki
