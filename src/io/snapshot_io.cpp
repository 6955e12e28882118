#include "src/io/snapshot_io.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/device/error.hpp"
#include "src/io/check_snapshot.hpp"
#include "src/io/gadget.hpp"

namespace maki {

namespace {

using gadget::FileHeader;
using gadget::Part;

// Headers of one set have to agree in what the reader relies on.
void check_agreement(const std::vector<FileHeader>& headers, const std::vector<std::string>& files) {
  std::array<std::uint64_t, gadget::kTypes> found{};
  for (std::size_t i = 0; i < headers.size(); ++i) {
    if (headers[i].files != headers[0].files || headers[i].totals != headers[0].totals ||
        headers[i].set.time != headers[0].set.time) {
      throw Error(fmt::format("'{}' and '{}' do not belong together", files[0], files[i]),
                  "their headers differ in time, number of files or number of particles",
                  "put all files of one snapshot, and no other, into one directory");
    }
    for (std::size_t type = 0; type < gadget::kTypes; ++type) found[type] += headers[i].counts[type];
  }
  if (headers.size() > 1 && found != headers[0].totals) {
    throw Error(fmt::format("the snapshot '{}' is incomplete", files[0]),
                fmt::format("its {} files hold {} particles, the header promises {}", files.size(), gadget::sum(found),
                            gadget::sum(headers[0].totals)),
                "copy or make the set again");
  }
}

void read_particles(const std::vector<std::string>& files, const std::vector<FileHeader>& headers, Snapshot& s,
                    std::vector<std::string>& notes) {
  std::uint64_t n = 0;
  for (const auto& header : headers) n += gadget::sum(header.counts);
  try {
    s.positions.resize(n);
    s.velocities.resize(n);
    s.masses.resize(n);
    s.ids.resize(n);
  } catch (const std::exception&) {  // std::bad_alloc, std::length_error
    throw Error(fmt::format("cannot read '{}'", files[0]),
                fmt::format("no memory for the {} particles of its header", n),
                "use a machine with more memory, or make the file again if it cannot hold that many");
  }
  std::size_t first = 0;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (headers[i].format == "GADGET HDF5") {
      gadget::read_hdf5_particles(files[i], headers[i], s, first, notes);
    } else {
      gadget::read_binary_particles(files[i], headers[i], s, first);
    }
    first += gadget::sum(headers[i].counts);
  }
}

double total_mass(const Snapshot& s) { return std::accumulate(s.masses.begin(), s.masses.end(), 0.0); }

// Numbers in the file's units: lengths and masses over h in comoving sets, velocities over the root of a.
Part whole_set(const Snapshot& s, const WriteOptions& options) {
  Part part{s, 0, s.size(), options.files, s.header};
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
  const bool equal = std::adjacent_find(s.masses.begin(), s.masses.end(), std::not_equal_to<>()) == s.masses.end();
  if (equal && !s.masses.empty()) part.equal_mass = s.masses.front() * part.mass_factor;
  const std::uint64_t largest = s.ids.empty() ? 0 : *std::max_element(s.ids.begin(), s.ids.end());
  part.wide_ids = options.id_bits == 64 || (options.id_bits == 0 && largest > 0xffffffffu);
  if (options.id_bits == 32 && largest > 0xffffffffu) {
    throw Error(fmt::format("the id {} does not fit into 32 bits", largest), "", "write 64-bit ids");
  }
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
  if (options.files < 1 || static_cast<std::size_t>(options.files) > std::max<std::size_t>(1, s.size())) {
    throw Error(fmt::format("cannot write {} particles to {} files", s.size(), options.files));
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

namespace {

double newton(const SnapshotHeader& header) {
  return header.gravitational_constant > 0 ? header.gravitational_constant : header.units.gravitational_constant();
}

}  // namespace

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
  extra.gravitational_constant = newton(header);
  return extra;
}

ExtraDataset potential_dataset(const std::vector<double>& potential, const SnapshotHeader& header) {
  ExtraDataset extra;
  extra.name = "Potential";
  extra.description = "Potential Phi of the comoving density contrast in units of U_V^2 ";
  extra.values = potential;
  extra.velocity_scaling = 2;
  if (header.comoving) extra.a_scaling = -1;
  extra.gravitational_constant = newton(header);
  return extra;
}

std::vector<std::string> write_snapshot(const std::string& path, const Snapshot& snapshot, const Provenance& provenance,
                                        const WriteOptions& options, const std::vector<ExtraDataset>& extras) {
  check_arrays(snapshot, options, extras);
  const Part all = whole_set(snapshot, options);
  std::vector<SafeFile> files;
  files.reserve(static_cast<std::size_t>(options.files));
  for (int i = 0; i < options.files; ++i) {
    files.emplace_back(gadget::part_name(path, options.format, i, options.files), options.overwrite);
    Part part = all;
    part.first = all.count * static_cast<std::size_t>(i) / static_cast<std::size_t>(options.files);
    part.count = all.count * static_cast<std::size_t>(i + 1) / static_cast<std::size_t>(options.files) - part.first;
    if (options.format == SnapshotFormat::kGadgetHdf5) {
      gadget::write_hdf5_file(files.back(), part, provenance, options, extras);
    } else {
      gadget::write_binary_file(files.back(), part, options);
    }
  }
  std::vector<std::string> names;
  for (SafeFile& file : files) {
    file.commit();
    names.push_back(file.path());
  }
  return names;
}

std::uint64_t count_particles(const std::string& path) {
  std::uint64_t n = 0;
  for (const std::string& file : gadget::find_files(path)) n += gadget::sum(gadget::read_header(file).counts);
  return n;
}

Snapshot read_snapshot(const std::string& path, ReadReport* report) {
  ReadReport own;
  ReadReport& r = report ? *report : own;
  r = {};
  r.files = gadget::find_files(path);
  std::vector<FileHeader> headers;
  for (const auto& file : r.files) headers.push_back(gadget::read_header(file));
  check_agreement(headers, r.files);
  r.format = headers[0].format;
  r.counts = headers[0].totals;
  Snapshot s;
  read_particles(r.files, headers, s, r.notes);
  const double mass = total_mass(s);
  gadget::complete_header(headers[0], mass, r.notes);
  s.header = headers[0].set;
  if (s.header.comoving) {
    const float factor = static_cast<float>(std::sqrt(s.header.time));
    for (auto& v : s.velocities) v = {v[0] * factor, v[1] * factor, v[2] * factor};
  }
  check_snapshot(s, r.files[0], r.notes);
  r.mean_density_ratio = gadget::mean_density_ratio(s.header, mass);
  if (r.mean_density_ratio > 0 && std::abs(r.mean_density_ratio - 1) > 1e-3) {
    r.notes.push_back(fmt::format("the mean density is {:.6g} times what Omega0 = {} asks for", r.mean_density_ratio,
                                  s.header.omega0));
  }
  return s;
}

}  // namespace maki
