#include "src/groups/catalogue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <optional>
#include <utility>

#include "host/domain/migrate.hpp"
#include "host/domain/sampling.hpp"
#include "host/fft/particle_brick.hpp"
#include "kernels/error.hpp"
#include "kernels/measure/reductions.hpp"
#include "kernels/particles/particles.hpp"
#include "src/cosmology/cosmology.hpp"
#include "src/groups/links.hpp"
#include "src/io/gadget.hpp"
#include "src/io/gadget_write.hpp"
#include "src/io/safe_file.hpp"
#include "src/io/snapshot_writer.hpp"

namespace maki {
namespace {

// ---- finding --------------------------------------------------------------------------------------------------------

void check(const Frame& frame, const SnapshotHeader& header, const GroupOptions& options) {
  if (!frame.periodic) {
    throw Error("an isolated set has no friends-of-friends groups",
                "the linking length is in mean distances of a periodic box", "give a snapshot of a cosmological run");
  }
  if (!(header.omega0 > 0) || !(header.hubble > 0)) {
    throw Error("the groups' spheres need a cosmology", "the snapshot has no Omega0 or no HubbleParam",
                "write them into its header");
  }
  if (options.minimum < 1) throw Error("a group needs particles", "the minimum is 0", "give 1 or more");
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
void check_density(double mass, const GroupFrame& units) {
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
  migrate(stream, ranks, multisect(samples.points, choose_factors(ranks.size())), particles);
}

GroupFrame group_frame(const Frame& frame, const SnapshotHeader& header, double distance) {
  GroupFrame units;
  units.side = frame.side;
  units.corner = frame.corner;
  units.scale_factor = header.time;
  units.gravitational_constant = frame.gravitational_constant;
  units.softening = kCentreSoftening * distance;
  const Cosmology cosmology(header, header.units);
  units.hubble = cosmology.hubble(header.time);
  units.densities = sphere_densities(cosmology, header);
  return units;
}

// Brings the rows of all ranks' groups to rank 0, in the order of the catalogue, and their members into shares.
void gather(const Communicator& ranks, MeasuredGroups measured, GroupCatalogue& catalogue) {
  std::vector<std::vector<FofGroup>> rows = gather_lists(ranks, std::move(measured.groups));
  std::vector<std::vector<ArrayPart>> places(rows.size());  // of each rank's groups among all members
  struct Row {
    const FofGroup* group;
    ArrayPart* place;
  };
  std::vector<Row> order;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    places[r].resize(rows[r].size());
    for (std::size_t g = 0; g < rows[r].size(); ++g) order.push_back({&rows[r][g], &places[r][g]});
  }
  std::sort(order.begin(), order.end(), [](const Row& a, const Row& b) {
    return a.group->length != b.group->length ? a.group->length > b.group->length
                                              : a.group->least_id < b.group->least_id;
  });
  std::uint64_t next = 0;
  for (const Row& row : order) {
    catalogue.groups.push_back(*row.group);
    *row.place = {next, row.group->length};
    next += row.group->length;
  }
  rows.clear();
  const std::vector<ArrayPart> own = std::move(exchange_all(ranks, std::move(places))[0]);
  const std::uint64_t total = sum_of(ranks, std::uint64_t{measured.by_binding.size()});
  put_in_shares(ranks, total, own, measured.by_binding, catalogue.member_ids);
}

// ---- the catalogue --------------------------------------------------------------------------------------------------

using gadget::kTypes;  // of particles; ours are of type 1
using gadget::Scaling;

void write_header(hid_t file, const GroupCatalogue& catalogue) {
  const std::uint64_t groups = catalogue.groups.size(), ids = catalogue.members();
  H5Id header = create_group(file, "Header");
  write_attribute(header, "Ngroups_ThisFile", groups);
  write_attribute(header, "Ngroups_Total", groups);
  write_attribute(header, "Nsubhalos_ThisFile", std::uint64_t{0});
  write_attribute(header, "Nsubhalos_Total", std::uint64_t{0});
  write_attribute(header, "Nids_ThisFile", ids);
  write_attribute(header, "Nids_Total", ids);
  write_attribute(header, "NumFiles", std::int32_t{1});
  write_attribute(header, "Time", catalogue.header.time);
  write_attribute(header, "Redshift", catalogue.header.redshift);
  write_attribute(header, "BoxSize", catalogue.header.box_size);
  write_attribute(header, "Particles", catalogue.particles);

  H5Id config = create_group(file, "Config");  // GADGET-4's names of these choices
  write_attribute(config, "FOF_LINKLENGTH", catalogue.linking_length);
  write_attribute(config, "FOF_GROUP_MIN_LEN", static_cast<std::int32_t>(catalogue.minimum));
}

// Exponents of a and h in lengths and masses of the file.
struct Exponents {
  double a, h;
};

// Writes the datasets of /Group.
class GroupColumns {
 public:
  GroupColumns(hid_t group, const GroupCatalogue& catalogue)
      : group_(group), catalogue_(catalogue), h_(catalogue.header.units.with_h ? -1 : 0) {}

  void write_all() const;

 private:
  template <class T, class Value>
  void write(const std::string& name, std::size_t columns, const Scaling& scaling, Value value) const {
    const std::vector<FofGroup>& groups = catalogue_.groups;
    H5Id dataset = write_column<T>(group_, name, groups.size(), columns,
                                   [&](std::size_t i, std::size_t k) { return value(groups[i], k); });
    gadget::write_scaling(dataset, scaling, catalogue_.header.units);
  }
  template <class T, class Number>
  void write(const std::string& name, const Scaling& scaling, Number FofGroup::*number) const {
    write<T>(name, 1, scaling, [number](const FofGroup& g, std::size_t) { return g.*number; });
  }
  Scaling pure(const char* what) const { return {what, 0, 0, 0, 0, 0}; }
  Scaling lengths(const char* what) const { return {what, 1, h_, 1, 0, 0}; }
  Scaling masses(const char* what) const { return {what, 0, h_, 0, 1, 0}; }
  Scaling velocities(const char* what) const { return {what, 0, 0, 0, 0, 1}; }

  hid_t group_;
  const GroupCatalogue& catalogue_;
  double h_;
};

void GroupColumns::write_all() const {
  write<std::int32_t>("GroupLen", pure("Particles"), &FofGroup::length);
  write<std::int32_t>("GroupLenType", kTypes, pure("Particles of each type"),
                      [](const FofGroup& g, std::size_t type) { return type == 1 ? g.length : 0; });
  std::uint64_t next = 0;
  write<std::int64_t>("GroupOffsetType", kTypes, pure("Where the particles of each type begin in /IDs/ID"),
                      [&](const FofGroup& g, std::size_t type) {
                        const std::uint64_t begin = next;
                        if (type == kTypes - 1) next += g.length;
                        return type == 1 ? begin : 0;
                      });
  write<std::uint64_t>("GroupIDDeepest", pure("ID of the particle at GroupPos"), &FofGroup::deepest_id);
  write<float>("GroupAscale", 1, pure("Scale factor"),
               [&](const FofGroup&, std::size_t) { return catalogue_.header.time; });

  const double box = catalogue_.header.box_size, a = catalogue_.header.time;
  const auto in_box = [box](double x) {  // a number that would round to the side becomes 0
    return static_cast<float>(x) >= static_cast<float>(box) ? 0 : x;
  };
  const Scaling masses_of = masses("Mass of the members in units of U_M");
  write<float>("GroupMass", masses_of, &FofGroup::mass);
  write<float>("GroupMassType", kTypes, masses_of,
               [](const FofGroup& g, std::size_t type) { return type == 1 ? g.mass : 0; });
  write<float>("GroupPos", 3, lengths("Member deepest in the group's own potential in units of U_L"),
               [&](const FofGroup& g, std::size_t k) { return in_box(g.position[k]); });
  write<float>("GroupCM", 3, lengths("Centre of mass of the members in units of U_L"),
               [&](const FofGroup& g, std::size_t k) { return in_box(g.centre_of_mass[k]); });
  write<float>("GroupCMOffset", lengths("Distance of GroupCM from GroupPos in units of U_L"), &FofGroup::offset);
  write<float>("GroupVel", 3, {"Mean peculiar velocity times a in units of U_V", -1, 0, 0, 0, 1},
               [a](const FofGroup& g, std::size_t k) { return g.velocity[k] * a; });
  write<float>("GroupVelDisp", velocities("Dispersion of peculiar velocities on one axis in units of U_V"),
               &FofGroup::velocity_dispersion);

  for (std::size_t kind = 0; kind < kSphereKinds; ++kind) {
    const std::string name = kSphereNames[kind];
    write<float>("Group_M_" + name, 1, masses("Mass of all particles in the sphere in units of U_M"),
                 [kind](const FofGroup& g, std::size_t) { return g.spheres[kind].mass; });
    write<float>("Group_R_" + name, 1, lengths("Radius of the sphere about GroupPos in units of U_L"),
                 [kind](const FofGroup& g, std::size_t) { return g.spheres[kind].radius; });
  }

  write<float>("GroupVmax", velocities("Largest circular velocity within Group_R_Mean200 in units of U_V"),
               &FofGroup::v_max);
  write<float>("GroupVmaxRad", lengths("Radius of GroupVmax in units of U_L"), &FofGroup::v_max_radius);
  write<float>("GroupSpin", pure("J / (sqrt(2) M V R) of the Crit200 sphere"), &FofGroup::spin);
  write<float>("GroupConcentration", pure("Of an NFW halo with the same GroupVmax over V_Crit200"),
               &FofGroup::concentration);
}

// The place of the members' IDs in a file.
struct IdsPlace {
  std::uint64_t address;
  bool wide;  // of 64 bits each, not of 32
};

// Writes all but the IDs, for which there is room then at the returned address.
std::uint64_t write_contents(hid_t file, const GroupCatalogue& catalogue, const Provenance& provenance, bool wide) {
  write_header(file, catalogue);
  gadget::write_metadata(file, catalogue.header, provenance);
  H5Id group = create_group(file, "Group");
  GroupColumns(group, catalogue).write_all();
  H5Id ids = create_group(file, "IDs");
  const hid_t type = wide ? hdf5_type<std::uint64_t>() : hdf5_type<std::uint32_t>();
  return dataset_address(create_dataset(ids, "ID", type, catalogue.members(), 1, 0));
}

void write_share(const std::string& temporary, const std::string& path, const IdsPlace& place, std::uint64_t first,
                 const std::vector<std::uint64_t>& ids) {
  if (ids.empty()) return;
  PositionedFile file(temporary, path);
  const auto id = [&](std::size_t i, std::size_t) { return ids[i]; };
  const RowSource rows = place.wide ? row_source<std::uint64_t>(1, id) : row_source<std::uint32_t>(1, id);
  write_rows_at(file, rows, ids.size(), place.address + first * rows.row_bytes());
  file.finish();
}

}  // namespace

std::uint64_t GroupCatalogue::members() const {
  std::uint64_t sum = 0;
  for (const FofGroup& group : groups) sum += group.length;
  return sum;
}

void put_in_shares(const Communicator& ranks, std::uint64_t total, const std::vector<ArrayPart>& parts,
                   std::span<const std::uint64_t> numbers, std::vector<std::uint64_t>& share) {
  const int size = ranks.size();
  std::vector<std::vector<ArrayPart>> places(static_cast<std::size_t>(size));
  std::vector<std::vector<std::uint64_t>> values(places.size());
  const std::uint64_t* next = numbers.data();
  for (ArrayPart left : parts) {
    while (left.size > 0) {
      const std::size_t to = rank_of_item(left.begin, total, size);
      const std::uint64_t end = share_begin(total, static_cast<int>(to) + 1, size);
      const std::uint64_t here = std::min(left.size, end - left.begin);
      places[to].push_back({left.begin, here});
      values[to].insert(values[to].end(), next, next + here);
      next += here, left.begin += here, left.size -= here;
    }
  }
  places = exchange_all(ranks, std::move(places));
  values = exchange_all(ranks, std::move(values));
  const Share own = share_of(total, ranks.rank(), size);
  share.resize(own.size());
  for (std::size_t r = 0; r < places.size(); ++r) {
    const std::uint64_t* from = values[r].data();
    for (const ArrayPart& part : places[r]) {
      std::copy_n(from, part.size, share.begin() + static_cast<std::ptrdiff_t>(part.begin - own.first));
      from += part.size;
    }
  }
}

void gather_members(const Communicator& ranks, GroupCatalogue& catalogue) {
  catalogue.member_ids = joined(gather_lists(ranks, std::move(catalogue.member_ids)));
}

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
  const double mass = sum_of(ranks, total_mass(stream, particles.source.data(), particles.size()));
  check_density(mass, units);
  const MassTotals masses = mass_totals(ranks, stream, particles.source.data(), particles.size());
  if (masses.range.smallest < masses.range.largest && 2 * masses.heaviest <= catalogue.particles)
    catalogue.lightest_distance = std::cbrt(masses.range.smallest * static_cast<double>(catalogue.particles) / mass);
  divide(stream, ranks, particles);
  const SortedParticles own = sort_particles(stream, particles);
  const RankBoxes boxes(own, ranks);
  const GroupMembers members = collect_groups(stream, own, boxes, length, options.minimum, ranks);
  const SphereSource source{own, boxes, ranks};
  gather(ranks, measure_groups(stream, members, source, units), catalogue);
  return catalogue;
}

void set_file_units(GroupCatalogue& catalogue, FileLayout layout) {
  const FileFactors factors = set_file_units(catalogue.header, layout);
  for (FofGroup& group : catalogue.groups) {
    group.mass *= factors.mass;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      group.position[axis] *= factors.length;
      group.centre_of_mass[axis] *= factors.length;
    }
    group.offset *= factors.length;
    group.v_max_radius *= factors.length;
    for (Overdensity& sphere : group.spheres) sphere.mass *= factors.mass, sphere.radius *= factors.length;
  }
}

void write_group_catalogue(const std::string& path, const GroupCatalogue& catalogue, const Provenance& provenance,
                           bool overwrite, const Communicator& ranks) {
  const auto largest = std::ranges::max_element(catalogue.member_ids);
  const std::uint64_t id = largest_of(ranks, largest == catalogue.member_ids.end() ? 0 : *largest);
  IdsPlace place{0, id >> 32 != 0};
  std::optional<SafeFile> file;
  root_succeeds(ranks, [&] {
    for (const FofGroup& group : catalogue.groups) {
      if (group.length >> 31 == 0) continue;
      throw Error(fmt::format("cannot write '{}'", path),
                  fmt::format("GADGET-4's GroupLen does not hold {} particles", group.length),
                  "choose a shorter linking length");
    }
    file.emplace(path, overwrite);
    const Hdf5Turn turn;
    H5Id hdf5 = create_hdf5(file->temporary_path());
    place.address = write_contents(hdf5, catalogue, provenance, place.wide);
    close_hdf5(hdf5, path);
  });
  ranks.broadcast(&place, sizeof place, 0);
  const std::string temporary = broadcast_text(ranks, file ? file->temporary_path() : "");
  const std::uint64_t total = sum_of(ranks, std::uint64_t{catalogue.member_ids.size()});
  all_succeed(ranks, [&] {
    write_share(temporary, path, place, share_begin(total, ranks.rank(), ranks.size()), catalogue.member_ids);
  });
  root_succeeds(ranks, [&] { file->commit(); });
}

// ---- the mass function ----------------------------------------------------------------------------------------------

namespace {

constexpr double kBin = 0.2;  // in log10(M)

std::string comments(const GroupCatalogue& catalogue, const Provenance& p, bool expected) {
  const SnapshotHeader& header = catalogue.header;
  const char* over_h = header.units.with_h ? "/h" : "";
  std::string text = "# Mass function of friends-of-friends groups, by the mass within 200 times the mean density\n";
  text += fmt::format("# Time {:.10g}\n# Redshift {:.10g}\n# BoxSize {:.10g}\n# Particles {}\n", header.time,
                      header.redshift, header.box_size, catalogue.particles);
  text += fmt::format("# LinkingLength {:.10g}\n# MinimumLength {}\n# Groups {}\n", catalogue.linking_length,
                      catalogue.minimum, catalogue.groups.size());
  text += fmt::format("# {}, commit {}\n# Compiler {}\n# Device {}\n", p.version, p.git_hash, p.compiler, p.device);
  text += fmt::format(
      "# log10(M) of the middle of a bin, M in solar masses{}; dn/dlnM per cubed unit of length, {:.6g} cm{}\n", over_h,
      header.units.length_cgs, over_h);
  text += expected ? "# Tinker08: mean over the bin of Tinker et al. 2008, from the linear power spectrum\n"
                   : "# Tinker08: 0, as the linear power spectrum is not known\n";
  text += fmt::format("#{:>11} {:>14} {:>14} {:>14} {:>8}\n", "log10(M)", "dn/dlnM", "Error", "Tinker08", "Groups");
  return text;
}

// The mean over a bin about a mass, in ln M, by Simpson's rule.
double mean_over_bin(const std::function<double(double)>& function, double mass) {
  const double edge = std::pow(10, kBin / 2);
  return (function(mass / edge) + 4 * function(mass) + function(mass * edge)) / 6;
}

}  // namespace

void write_mass_function(const std::string& path, const GroupCatalogue& catalogue,
                         const std::function<double(double)>& expected, const Provenance& provenance, bool overwrite) {
  const double unit = catalogue.header.units.mass_cgs / kSolarMassCgs;
  std::map<int, std::uint64_t> counts;
  for (const FofGroup& group : catalogue.groups) {
    const double mass = group.spheres[kMean200].mass;
    if (mass > 0) ++counts[static_cast<int>(std::floor(std::log10(mass * unit) / kBin))];
  }
  SafeFile file(path, overwrite);
  file.write(comments(catalogue, provenance, static_cast<bool>(expected)));
  const double volume = std::pow(catalogue.header.box_size, 3), width = kBin * std::numbers::ln10;
  for (const auto& [bin, count] : counts) {
    const double middle = (bin + 0.5) * kBin, number = static_cast<double>(count);
    const double theory = expected ? mean_over_bin(expected, std::pow(10, middle) / unit) : 0;
    file.write(fmt::format("{:12.3f} {:14.6e} {:14.6e} {:14.6e} {:8d}\n", middle, number / (volume * width),
                           std::sqrt(number) / (volume * width), theory, count));
  }
  file.commit();
}

}  // namespace maki
