#include "src/groups/find.hpp"

#include <fmt/format.h>

#include <cmath>

#include "kernels/error.hpp"
#include "src/cosmology/cosmology.hpp"

namespace maki {
namespace {

void check(const Frame& frame, const SnapshotHeader& header, const GroupOptions& options) {
  if (!frame.periodic) {
    throw Error("an isolated set has no groups of friends", "the linking length is in mean distances of a periodic box",
                "give a snapshot of a cosmological run");
  }
  if (!(header.omega0 > 0) || !(header.hubble > 0)) {
    throw Error("the groups' spheres need a cosmology", "the snapshot has no Omega0 or no HubbleParam",
                "write them into its header");
  }
  if (options.minimum < 1) throw Error("a group needs particles", "the minimum is 0", "give 1 or more");
}

// Comoving densities of the spheres, with the set's own constant of gravity.
std::array<double, kSphereKinds> sphere_densities(const SnapshotHeader& header) {
  CosmologyParameters parameters;
  parameters.omega0 = header.omega0;
  parameters.omega_lambda = header.omega_lambda;
  parameters.hubble = header.hubble;
  const Cosmology cosmology(parameters, header.units);
  const double mean = cosmology.mean_density() * header.units.gravitational_constant() / header.newton();
  const double omega = cosmology.omega_matter(header.time), critical = mean / omega;
  std::array<double, kSphereKinds> densities;
  densities[kMean200] = 200 * mean;
  densities[kCrit200] = 200 * critical;
  densities[kCrit500] = 500 * critical;
  densities[kTopHat200] = virial_overdensity(omega, header.omega_lambda != 0) * critical;
  return densities;
}

}  // namespace

GroupCatalogue find_groups(const Stream& stream, Particles& particles, const Frame& frame, const SnapshotHeader& header,
                           const GroupOptions& options) {
  check(frame, header, options);
  GroupCatalogue catalogue;
  catalogue.header = header;
  catalogue.linking_length = options.linking_length;
  catalogue.minimum = options.minimum;
  catalogue.particles = particles.size();
  if (particles.size() == 0) return catalogue;
  const double distance = 1 / std::cbrt(static_cast<double>(particles.size()));  // sides
  const SortedParticles sorted = link_particles(stream, particles, options.linking_length * distance);
  const GroupMembers members = list_members(sorted, options.minimum);
  GroupFrame units;
  units.side = frame.side;
  units.corner = frame.corner;
  units.scale_factor = header.time;
  units.gravitational_constant = frame.gravitational_constant;
  units.softening = kCentreSoftening * distance;
  units.densities = sphere_densities(header);
  catalogue.groups = measure_groups(stream, sorted, members, units);
  for (const std::uint32_t i : members.particles) catalogue.member_ids.push_back(sorted.ids[i]);
  return catalogue;
}

}  // namespace maki
