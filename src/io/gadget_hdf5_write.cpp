// Writing particles in GADGET-4's HDF5 layout.
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <optional>
#include <string_view>

#include "host/comm/agree.hpp"
#include "kernels/error.hpp"
#include "src/io/gadget.hpp"
#include "src/io/gadget_write.hpp"
#include "src/io/hdf5_metadata.hpp"

namespace maki::gadget {

namespace {

// Numbers in the file have the byte order of those in memory.
static_assert(std::endian::native == std::endian::little);

void write_header(hid_t file, const Part& part) {
  H5Id group = create_group(file, "Header");
  const std::uint64_t this_file[kTypes] = {0, part.rows(), 0, 0, 0, 0};
  const std::uint64_t total = part.total;
  const std::uint32_t low[kTypes] = {0, static_cast<std::uint32_t>(total), 0, 0, 0, 0};
  const std::uint32_t high[kTypes] = {0, static_cast<std::uint32_t>(total >> 32), 0, 0, 0, 0};
  const double masses[kTypes] = {0, part.equal_mass, 0, 0, 0, 0};
  write_attribute(group, "NumPart_ThisFile", this_file, kTypes);
  write_attribute(group, "NumPart_Total", low, kTypes);
  write_attribute(group, "NumPart_Total_HighWord", high, kTypes);
  write_attribute(group, "MassTable", masses, kTypes);
  write_attribute(group, "Time", part.header.time);
  write_attribute(group, "Redshift", part.header.redshift);
  write_attribute<std::int32_t>(group, "NumFilesPerSnapshot", part.files);
  write_cosmology(group, part.header);
  for (const char* flag : {"Flag_Sfr", "Flag_Cooling", "Flag_Feedback", "Flag_StellarAge", "Flag_Metals",
                           "Flag_Entropy_ICs"}) {  // GADGET-2 and 3 require these
    write_attribute<std::int32_t>(group, flag, 0);
  }
}

// One dataset of /PartType1, and this rank's rows of it.
struct Dataset {
  std::string name;
  hid_t type;
  RowSource source;
  Scaling scaling;
  double newton = 0;  // attribute "G" where not 0
};

template <class T, class Value>
Dataset make_dataset(const std::string& name, std::size_t columns, const Scaling& scaling, Value value) {
  return {name, hdf5_file_type<T>(), row_source<T>(columns, value), scaling};
}

template <class T>
Dataset coordinates_dataset(const Part& part, const Scaling& scaling) {
  return make_dataset<T>("Coordinates", 3, scaling,
                         [&](std::size_t i, std::size_t axis) { return coordinate<T>(part, i, axis); });
}

template <class T>
Dataset ids_dataset(const Part& part, const Scaling& scaling) {
  return make_dataset<T>("ParticleIDs", 1, scaling, [&](std::size_t i, std::size_t) { return id<T>(part, i); });
}

template <class T>
Dataset extra_dataset(const Part& part, const ExtraDataset& extra) {
  const double factor =
      std::pow(part.length_factor, extra.length_scaling) * std::pow(part.mass_factor, extra.mass_scaling);
  const Scaling scaling{extra.description.c_str(), extra.a_scaling,    extra.h_scaling,
                        extra.length_scaling,      extra.mass_scaling, extra.velocity_scaling};
  Dataset dataset = make_dataset<T>(extra.name, extra.components, scaling, [&, factor](std::size_t i, std::size_t k) {
    return static_cast<T>(factor * extra.values[(part.first + i) * extra.components + k]);
  });
  dataset.newton = extra.gravitational_constant;
  return dataset;
}

// The datasets of a file; they refer to `part` and `extras`.
std::vector<Dataset> list_datasets(const Part& part, const WriteOptions& options,
                                   const std::vector<ExtraDataset>& extras) {
  const double a = part.header.comoving ? 1 : 0;
  const double h = part.header.units.with_h ? -1 : 0;
  const Scaling lengths{"Coordinates in units of U_L", a, h, 1, 0, 0};
  const Scaling velocities{"Peculiar velocities over the root of a in units of U_V", a / 2, 0, 0, 0, 1};
  const Scaling masses{"Masses in units of U_M", 0, h, 0, 1, 0};
  const Scaling names{"Unique names of particles", 0, 0, 0, 0, 0};
  std::vector<Dataset> datasets;
  datasets.push_back(options.double_coordinates ? coordinates_dataset<double>(part, lengths)
                                                : coordinates_dataset<float>(part, lengths));
  datasets.push_back(make_dataset<float>("Velocities", 3, velocities, [&](std::size_t i, std::size_t axis) {
    return velocity<float>(part, i, axis);
  }));
  datasets.push_back(
      make_dataset<float>("Masses", 1, masses, [&](std::size_t i, std::size_t) { return mass<float>(part, i); }));
  datasets.push_back(part.wide_ids ? ids_dataset<std::uint64_t>(part, names) : ids_dataset<std::uint32_t>(part, names));
  for (const ExtraDataset& extra : extras) {
    datasets.push_back(extra.double_precision ? extra_dataset<double>(part, extra) : extra_dataset<float>(part, extra));
  }
  return datasets;
}

// The open file, on rank 0.
struct Output {
  H5Id file;
  std::vector<H5Id> datasets;
};

// Creates groups, attributes and empty datasets: all but the numbers of particles.
Output create_file(const FileName& name, const Part& part, const Provenance& provenance,
                   const std::vector<Dataset>& datasets, int deflate) {
  Output output;
  output.file = create_hdf5(name.temporary);
  write_header(output.file, part);
  write_metadata(output.file, part.header, provenance);
  H5Id group = create_group(output.file, "PartType1");
  for (const Dataset& d : datasets) {
    output.datasets.push_back(create_dataset(group, d.name, d.type, part.rows(), d.source.columns, deflate));
    write_scaling(output.datasets.back(), d.scaling, part.header.units);
    if (d.newton != 0) write_attribute(output.datasets.back(), "G", d.newton);
  }
  return output;
}

void close_file(Output& output, const FileName& name) {
  output.datasets.clear();
  close_hdf5(output.file, name.path);
}

// Writes the numbers: every rank to the addresses of the datasets in the file.
void write_numbers(const FileName& name, const Part& part, const std::vector<Dataset>& datasets,
                   const std::vector<std::uint64_t>& addresses) {
  std::optional<PositionedFile> file;
  all_succeed(part.ranks, [&] { file.emplace(name.temporary, name.path); });
  for (std::size_t i = 0; i < datasets.size(); ++i) write_in_place(*file, part, datasets[i].source, addresses[i]);
  all_succeed(part.ranks, [&] { file->finish(); });
}

}  // namespace

void write_hdf5_file(const FileName& name, const Part& part, const Provenance& provenance, const WriteOptions& options,
                     const std::vector<ExtraDataset>& extras) {
  const std::vector<Dataset> datasets = list_datasets(part, options, extras);
  std::vector<std::uint64_t> addresses(datasets.size());
  Output output;  // of rank 0
  try {
    root_succeeds(part.ranks, [&] {
      output = create_file(name, part, provenance, datasets, options.deflate);
      if (options.deflate > 0) return;
      for (std::size_t i = 0; i < datasets.size(); ++i) addresses[i] = dataset_address(output.datasets[i]);
      close_file(output, name);
    });
    for (std::size_t i = 0; options.deflate > 0 && i < datasets.size(); ++i) {
      write_deflated(part, datasets[i].source, options.deflate, output.file.valid() ? output.datasets[i] : hid_t{-1});
    }
    if (options.deflate > 0) root_succeeds(part.ranks, [&] { close_file(output, name); });
  } catch (const Error& error) {
    if (std::string_view(error.what()).find("'" + name.path + "'") != std::string_view::npos) throw;
    throw Error(fmt::format("cannot write '{}': {}", name.path, error.what()));
  }
  if (options.deflate > 0) return;
  part.ranks.broadcast(addresses.data(), addresses.size() * sizeof(addresses[0]), 0);
  write_numbers(name, part, datasets, addresses);
}

}  // namespace maki::gadget
