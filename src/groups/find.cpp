#include "src/groups/catalogue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "host/domain/migrate.hpp"
#include "host/domain/sampling.hpp"
#include "kernels/error.hpp"
#include "kernels/measure/gravity_sums.hpp"
#include "kernels/particles/particles.hpp"
#include "src/cosmology/cosmology.hpp"
#include "src/groups/links.hpp"

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

Cosmology cosmology_of(const SnapshotHeader& header) {
  CosmologyParameters parameters;
  parameters.omega0 = header.omega0;
  parameters.omega_lambda = header.omega_lambda;
  parameters.hubble = header.hubble;
  return Cosmology(parameters, header.units);
}

// Comoving densities of the spheres, with the set's own constant of gravity.
std::array<double, kSphereKinds> sphere_densities(const Cosmology& cosmology, const SnapshotHeader& header) {
  const double mean = cosmology.mean_density() * header.units.gravitational_constant() / header.newton();
  const double omega = cosmology.omega_matter(header.time), critical = mean / omega;
  std::array<double, kSphereKinds> densities;
  densities[kMean200] = 200 * mean;
  densities[kCrit200] = 200 * critical;
  densities[kCrit500] = 500 * critical;
  densities[kTopHat200] = virial_overdensity(omega, header.omega_lambda != 0) * critical;
  return densities;
}

// If the particles exceed the mean density by far, spheres of 200 times that density would hold all of them.
void check_density(const Stream& stream, const Communicator& ranks, const Particles& particles,
                   const GroupFrame& units) {
  const double mass = sum_of(ranks, total_mass(stream, particles.source.data(), particles.size()));
  const double ratio = mass / (units.side * units.side * units.side) / (units.densities[kMean200] / 200);
  if (ratio < 2) return;
  throw Error("the particles' masses do not fit the cosmology",
              fmt::format("their mean density is {:.3g} times that of Omega0", ratio),
              "check units, masses and Omega0 of the snapshot");
}

// Sends particles to the ranks of compact domains with about equal numbers.
void divide(const Stream& stream, const Communicator& ranks, Particles& particles) {
  if (ranks.size() == 1) return;
  MortonSorter().sort(stream, particles, nullptr);
  const Samples samples = gather_samples(stream, ranks, particles, {}, 0);
  migrate(stream, ranks, multisect(samples.points, {}, choose_factors(ranks.size())), particles);
}

GroupFrame group_frame(const Frame& frame, const SnapshotHeader& header, double distance) {
  GroupFrame units;
  units.side = frame.side;
  units.corner = frame.corner;
  units.scale_factor = header.time;
  units.gravitational_constant = frame.gravitational_constant;
  units.softening = kCentreSoftening * distance;
  const Cosmology cosmology = cosmology_of(header);
  units.hubble = cosmology.hubble(header.time);
  units.densities = sphere_densities(cosmology, header);
  return units;
}

// Rows and members of all ranks' groups, on rank 0, in the order of the catalogue.
void gather(const Communicator& ranks, MeasuredGroups measured, GroupCatalogue& catalogue) {
  std::vector<std::vector<FofGroup>> rows(static_cast<std::size_t>(ranks.size()));
  std::vector<std::vector<std::uint64_t>> ids(rows.size());
  rows[0] = std::move(measured.groups);
  ids[0] = std::move(measured.by_binding);
  rows = exchange_all(ranks, std::move(rows));
  ids = exchange_all(ranks, std::move(ids));
  struct Row {
    const FofGroup* group;
    const std::uint64_t* ids;
  };
  std::vector<Row> order;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const std::uint64_t* next = ids[r].data();
    for (const FofGroup& group : rows[r]) {
      order.push_back({&group, next});
      next += group.length;
    }
  }
  std::sort(order.begin(), order.end(), [](const Row& a, const Row& b) {
    return a.group->length != b.group->length ? a.group->length > b.group->length
                                              : a.group->least_id < b.group->least_id;
  });
  std::size_t members_of_all = 0;
  for (const auto& of_rank : ids) members_of_all += of_rank.size();
  catalogue.member_ids.reserve(members_of_all);
  for (const Row& row : order) {
    catalogue.groups.push_back(*row.group);
    catalogue.member_ids.insert(catalogue.member_ids.end(), row.ids, row.ids + row.group->length);
  }
}

}  // namespace

GroupCatalogue find_groups(const Stream& stream, const Communicator& ranks, Particles& particles, const Frame& frame,
                           const SnapshotHeader& header, const GroupOptions& options) {
  check(frame, header, options);
  GroupCatalogue catalogue;
  catalogue.header = header;
  catalogue.linking_length = options.linking_length;
  catalogue.minimum = options.minimum;
  catalogue.particles = sum_of(ranks, std::uint64_t{particles.size()});
  if (catalogue.particles == 0) return catalogue;
  const double distance = 1 / std::cbrt(static_cast<double>(catalogue.particles));  // sides
  const double length = options.linking_length * distance;
  require_linking_length(length);
  const GroupFrame units = group_frame(frame, header, distance);
  check_density(stream, ranks, particles, units);
  divide(stream, ranks, particles);
  const SortedParticles own = sort_particles(stream, particles);
  const RankBoxes boxes(own, ranks);
  const GroupMembers members = collect_groups(stream, own, boxes, length, options.minimum, ranks);
  const SphereSource source(own, boxes, ranks);
  gather(ranks, measure_groups(stream, members, source, units), catalogue);
  return catalogue;
}

}  // namespace maki
