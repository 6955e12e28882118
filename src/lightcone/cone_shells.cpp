#include "src/lightcone/cone_shells.hpp"

#include <boost/math/constants/constants.hpp>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "src/config/quantity.hpp"

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

// The opening angle from the middle to the edge, degrees.
double opening_angle(const ConeObserver& observer) {
  return std::acos(std::clamp(observer.view.cos_angle, -1.0, 1.0)) * boost::math::double_constants::radian;
}

// Lengths in the file are over h.
std::vector<HeaderNumbers> header_numbers(const ShellFacts& facts) {
  const double h = facts.header.units.with_h ? 1 : facts.header.hubble;
  const std::array<double, 3>&origin = facts.observer.position, &axis = facts.observer.view.axis;
  return {{"Origin", {h * origin[0], h * origin[1], h * origin[2]}},
          {"Direction", {axis[0], axis[1], axis[2]}},
          {"OpeningAngle", {opening_angle(facts.observer)}},
          {"Shell", {static_cast<double>(facts.shell)}},
          {"ShellDistances", {h * facts.near(), h * facts.far()}},
          {"ShellRedshifts", {facts.near_redshift(), facts.far_redshift()}}};
}

// Order by ID, scale factor and position, as a particle may have several images.
bool comes_before(const ShellParticle& a, const ShellParticle& b) {
  return std::tie(a.id, a.scale_factor, a.position) < std::tie(b.id, b.scale_factor, b.position);
}

// The writer divides velocities by the root of the file's scale factor; here that of each particle has to be used.
Snapshot snapshot_of(const std::vector<ShellParticle>& particles, const SnapshotHeader& header) {
  Snapshot set;
  set.header = header;
  set.resize(particles.size());  // exact, for kShellHostBytes in src/run/run_products.cpp
  for (std::size_t i = 0; i < particles.size(); ++i) {
    const ShellParticle& particle = particles[i];
    const auto factor = static_cast<float>(std::sqrt(header.time / particle.scale_factor));
    set.positions[i] = particle.position;
    for (std::size_t axis = 0; axis < 3; ++axis) set.velocities[i][axis] = particle.velocity[axis] * factor;
    set.masses[i] = particle.mass;
    set.ids[i] = particle.id;
  }
  return set;
}

ExtraDataset scale_factors(const std::vector<ShellParticle>& particles) {
  ExtraDataset extra;
  extra.name = "Ascale";
  extra.description = "Scale factor at which the light cone met the particle";
  extra.values.reserve(particles.size());
  for (const ShellParticle& particle : particles) extra.values.push_back(particle.scale_factor);
  extra.double_precision = true;
  return extra;
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

std::string write_shell(const std::string& path, std::vector<ShellParticle> particles, const ShellFacts& facts,
                        const Provenance& provenance, const RunPlace& writers) {
  std::sort(particles.begin(), particles.end(), comes_before);
  WriteOptions options;
  options.deflate = facts.options.compression;
  options.overwrite = options.replicas = options.own_times = true;
  options.header = header_numbers(facts);
  SnapshotHeader header = facts.header;
  header.redshift = (facts.near_redshift() + facts.far_redshift()) / 2;
  header.time = 1 / (1 + header.redshift);
  const Snapshot set = snapshot_of(particles, header);
  const std::vector<ExtraDataset> extras = {scale_factors(particles)};
  particles = {};
  return write_snapshot(path, set, provenance, options, extras, writers).front();
}

void write_shell_map(const std::string& path, const SkyMap& map, double quantum, const ShellFacts& facts,
                     const Provenance& provenance, const Communicator& ranks) {
  const std::string length = unit_name(facts.header.units, Dimension::kLength);
  SkyMapFile file{path, quantum, unit_name(facts.header.units, Dimension::kMass), {}, true};
  file.keys = {{"CREATOR", "", 0, provenance.version},
               {"GITHASH", "commit of the program", 0, provenance.git_hash},
               {"DISTNEAR", "comoving distance of the near edge, " + length, facts.near()},
               {"DISTFAR", "of the far edge", facts.far()},
               {"ZNEAR", "redshift of the near edge", facts.near_redshift()},
               {"ZFAR", "of the far edge", facts.far_redshift()},
               {"OBSX", "observer in the box, " + length, facts.observer.position[0]},
               {"OBSY", "", facts.observer.position[1]},
               {"OBSZ", "", facts.observer.position[2]},
               {"DIRX", "middle of the cone", facts.observer.view.axis[0]},
               {"DIRY", "", facts.observer.view.axis[1]},
               {"DIRZ", "", facts.observer.view.axis[2]},
               {"OPENING", "half the angle that is seen, degrees", opening_angle(facts.observer)}};
  write_sky_map(file, map, ranks);
}

}  // namespace maki
