// Writing particle sets, over ranks.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "host/comm/communicator.hpp"
#include "kernels/error.hpp"
#include "src/io/gadget.hpp"
#include "src/io/gadget_write.hpp"
#include "src/io/safe_file.hpp"
#include "src/io/snapshot_io.hpp"
#include "wan/sites/sites.hpp"

namespace maki {

namespace {

using gadget::Part;

// Summary of the particles of a rank or a site, by which all choose how masses and ids are written.
struct Common {
  std::uint64_t n = 0;
  std::uint64_t largest_id = 0;
  float mass = 0;     // of the first particle
  bool equal = true;  // masses
};

Common common_of(const Snapshot& s) {
  Common mine{s.size(), 0, 0, true};
  if (s.size() > 0) {
    mine.largest_id = *std::max_element(s.ids.begin(), s.ids.end());
    mine.mass = s.masses.front();
    mine.equal = std::adjacent_find(s.masses.begin(), s.masses.end(), std::not_equal_to<>()) == s.masses.end();
  }
  return mine;
}

Common together(const std::vector<Common>& all) {
  Common whole;
  for (const Common& one : all) {
    if (one.n == 0) continue;
    const bool first = whole.n == 0;
    whole.equal = whole.equal && one.equal && (first || one.mass == whole.mass);
    if (first) whole.mass = one.mass;
    whole.n += one.n;
    whole.largest_id = std::max(whole.largest_id, one.largest_id);
  }
  return whole;
}

std::vector<Common> of_all(const Common& mine, const Communicator& ranks) {
  std::vector<Common> all(static_cast<std::size_t>(ranks.size()));
  ranks.all_gather(&mine, all.data(), sizeof(mine));
  return all;
}

std::vector<Common> of_all(const Common& mine, sites::Sites& sites) {
  std::vector<Common> all;
  for (const sites::Message& message :
       sites.gather(sites::Phase::kOutput, sites.next_number(sites::Phase::kOutput), sites::as_bytes_of(mine)))
    all.push_back(sites::value_of<Common>(message));
  return all;
}

// The whole set with the factors to the file's units: lengths and masses over h in comoving sets, velocities over the
// root of a.
Part whole_set(const Snapshot& s, const WriteOptions& options, const SnapshotWriters& writers) {
  const auto& [ranks, sites] = writers;
  const std::vector<Common> of_ranks = of_all(common_of(s), ranks);
  Common whole = together(of_ranks);
  if (sites) whole = together(of_all(whole, *sites));
  Part part{.snapshot = s, .ranks = ranks, .begins = {0}, .header = s.header};
  for (const Common& one : of_ranks) part.begins.push_back(part.begins.back() + one.n);
  part.total = whole.n;
  part.wraps = !options.replicas;
  part.files = sites ? sites->count() : options.files;
  SnapshotHeader& header = part.header;
  if (header.comoving) {
    part.velocity_factor = 1 / std::sqrt(header.time);
    header.redshift = 1 / header.time - 1;
    if (!header.units.with_h) part.length_factor = part.mass_factor = header.hubble;
    header.box_size *= part.length_factor;
    // G in units over h: length^1 mass^-1 velocity^2 is free of h, so the number stays.
  } else {
    header.redshift = 0;
  }
  header.units.with_h = header.comoving;
  part.equal_mass = whole.equal ? whole.mass * part.mass_factor : 0;
  part.wide_ids = options.id_bits == 64 || (options.id_bits == 0 && whole.largest_id > 0xffffffffu);
  if (options.id_bits == 32 && whole.largest_id > 0xffffffffu) {
    throw Error(fmt::format("the id {} does not fit into 32 bits", whole.largest_id), "", "write 64-bit ids");
  }
  if (options.files < 1 || (sites && options.files > 1) ||
      static_cast<std::uint64_t>(options.files) > std::max<std::uint64_t>(1, part.total)) {
    throw Error(fmt::format("cannot write {} particles to {} files", part.total, options.files));
  }
  return part;
}

// The rows of all ranks that go into one of the files.
Part part_of(const Part& all, int file) {
  const std::uint64_t begin = share_begin(all.total, file, all.files);
  const std::uint64_t end = share_begin(all.total, file + 1, all.files);
  Part part = all;
  for (std::uint64_t& row : part.begins) row = std::clamp(row, begin, end) - begin;
  part.first = std::max(begin, all.begin()) - all.begin();
  return part;
}

void check_arrays(const Snapshot& s, const WriteOptions& options, const std::vector<ExtraDataset>& extras) {
  if (s.velocities.size() != s.size() || s.masses.size() != s.size() || s.ids.size() != s.size()) {
    throw Error("cannot write a snapshot", "its arrays differ in length");
  }
  const SnapshotHeader& header = s.header;
  if (header.comoving && (!(header.time > 0) || (!header.units.with_h && !(header.hubble > 0)))) {
    throw Error("cannot write a snapshot", "a comoving set needs a scale factor and h");
  }
  for (const auto& extra : extras) {
    if (options.format != SnapshotFormat::kGadgetHdf5) {
      throw Error(fmt::format("cannot write '{}' to a binary file", extra.name), "", "write HDF5");
    }
    if (extra.values.size() != s.size() * extra.components) {
      throw Error(fmt::format("cannot write '{}'", extra.name), "it does not have one entry for each particle");
    }
  }
}

}  // namespace

SnapshotFormat snapshot_format(const std::string& name) {
  if (name == "hdf5") return SnapshotFormat::kGadgetHdf5;
  if (name == "gadget1") return SnapshotFormat::kGadgetBinary1;
  if (name == "gadget2") return SnapshotFormat::kGadgetBinary2;
  throw Error(fmt::format("unknown snapshot format '{}'", name), "", "use hdf5, gadget1 or gadget2");
}

ExtraDataset acceleration_dataset(const std::vector<std::array<double, 3>>& acceleration,
                                  const SnapshotHeader& header) {
  ExtraDataset extra;
  extra.name = "Acceleration";
  extra.description = "Minus the comoving gradient of Potential in units of U_V^2 /U_L";
  extra.components = 3;
  extra.values.reserve(3 * acceleration.size());
  for (const auto& a : acceleration) extra.values.insert(extra.values.end(), a.begin(), a.end());
  extra.length_scaling = -1;
  extra.velocity_scaling = 2;
  // The physical acceleration is a^-2 of this: Phi goes as 1/(a x), and the gradient brings one more 1/a.
  if (header.comoving) extra.a_scaling = -2, extra.h_scaling = 1;
  extra.gravitational_constant = header.newton();
  return extra;
}

ExtraDataset potential_dataset(const std::vector<double>& potential, const SnapshotHeader& header) {
  ExtraDataset extra;
  extra.name = "Potential";
  extra.description = "Potential Phi of the comoving density contrast in units of U_V^2 ";
  extra.values = potential;
  extra.velocity_scaling = 2;
  if (header.comoving) extra.a_scaling = -1;
  extra.gravitational_constant = header.newton();
  return extra;
}

std::vector<std::string> write_snapshot(const std::string& path, const Snapshot& snapshot, const Provenance& provenance,
                                        const WriteOptions& options, const std::vector<ExtraDataset>& extras,
                                        const SnapshotWriters& writers) {
  const auto& [ranks, sites] = writers;
  all_succeed(ranks, [&] { check_arrays(snapshot, options, extras); });
  const Part all = whole_set(snapshot, options, writers);
  std::vector<SafeFile> files;  // of rank 0
  std::vector<std::string> names;
  for (int i = 0; i < options.files; ++i) {
    gadget::FileName name{gadget::part_name(path, options.format, sites ? sites->me() : i, all.files), {}};
    root_succeeds(ranks, [&] {
      files.emplace_back(name.path, options.overwrite);
      name.temporary = files.back().temporary_path();
    });
    name.temporary = broadcast_text(ranks, name.temporary);
    const Part part = sites ? all : part_of(all, i);
    if (options.format == SnapshotFormat::kGadgetHdf5) {
      gadget::write_hdf5_file(name, part, provenance, options, extras);
    } else {
      gadget::write_binary_file(name, part, options);
    }
    names.push_back(name.path);
  }
  root_succeeds(ranks, [&] {
    for (SafeFile& file : files) file.commit();
  });
  return names;
}

}  // namespace maki
