// Writing particles in GADGET-4's HDF5 layout.
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <optional>
#include <string_view>

#include "host/comm/communicator.hpp"
#include "kernels/error.hpp"
#include "src/io/gadget.hpp"
#include "src/io/gadget_write.hpp"

namespace maki::gadget {

namespace {

constexpr double kSecondsPerGyr = 3.15576e16;
constexpr double kMpcCgs = 3.085677581491367e24;

// Age of the universe at scale factor a, or the time of an isolated set, in Gyr: the integral of da / (a H) by
// Simpson's rule, over s = a^(3/2) so that the integrand is smooth at 0.
double time_gyr(const SnapshotHeader& header) {
  if (!header.comoving) return header.time * header.units.length_cgs / header.units.velocity_cgs / kSecondsPerGyr;
  if (!(header.omega0 > 0) || !(header.hubble > 0)) return 0;
  const double curvature = 1 - header.omega0 - header.omega_lambda;
  const int intervals = 512;
  const double step = std::pow(header.time, 1.5) / intervals;
  double total = 0;
  for (int i = 0; i <= intervals; ++i) {
    const double a = std::pow(i * step, 2.0 / 3.0);
    const double integrand = 2.0 / 3.0 / std::sqrt(header.omega0 + curvature * a + header.omega_lambda * a * a * a);
    total += integrand * (i == 0 || i == intervals ? 1 : i % 2 ? 4 : 2);
  }
  const double hubble = header.hubble * 100 * 1e5 / kMpcCgs;
  return total * step / 3 / hubble / kSecondsPerGyr;
}

// GADGET's names of the units, in /Parameters and /Units.
void write_units(hid_t group, const UnitSystem& units) {
  write_attribute(group, "UnitLength_in_cm", units.length_cgs);
  write_attribute(group, "UnitMass_in_g", units.mass_cgs);
  write_attribute(group, "UnitVelocity_in_cm_per_s", units.velocity_cgs);
}

}  // namespace

void write_cosmology(hid_t group, const SnapshotHeader& header) {
  write_attribute(group, "BoxSize", header.box_size);
  write_attribute(group, "Omega0", header.omega0);
  write_attribute(group, "OmegaLambda", header.omega_lambda);
  write_attribute(group, "OmegaBaryon", header.omega_baryon);
  write_attribute(group, "HubbleParam", header.hubble > 0 ? header.hubble : 1.0);
  write_attribute(group, "Time_GYR", time_gyr(header));
}

void write_metadata(hid_t file, const SnapshotHeader& header, const Provenance& provenance) {
  const UnitSystem& units = header.units;
  H5Id parameters = create_group(file, "Parameters");
  write_cosmology(parameters, header);
  write_units(parameters, units);
  write_attribute<std::int32_t>(parameters, "ComovingIntegrationOn", header.comoving ? 1 : 0);
  write_attribute(parameters, "Hubble", 100 * 1e5 / kMpcCgs * units.length_cgs / units.velocity_cgs);
  write_attribute(parameters, "GravityConstantInternal", header.newton());

  H5Id unit_group = create_group(file, "Units");
  const double seconds = units.length_cgs / units.velocity_cgs;
  write_units(unit_group, units);
  write_attribute(unit_group, "UnitTime_in_s", seconds);
  write_attribute(unit_group, "UnitEnergy_in_cgs", units.mass_cgs * units.velocity_cgs * units.velocity_cgs);
  write_attribute(unit_group, "Unit length in cgs (U_L)", units.length_cgs);
  write_attribute(unit_group, "Unit mass in cgs (U_M)", units.mass_cgs);
  write_attribute(unit_group, "Unit time in cgs (U_t)", seconds);
  write_attribute(unit_group, "Unit current in cgs (U_I)", 1.0);
  write_attribute(unit_group, "Unit temperature in cgs (U_T)", 1.0);

  H5Id constants = create_group(file, "Constants");
  const UnitSystem cgs{1, 1, 1, false};
  write_attribute(constants, "GRAVITY", cgs.gravitational_constant());
  write_attribute(constants, "CM_PER_MPC", kMpcCgs);
  write_attribute(constants, "SEC_PER_GYR", kSecondsPerGyr);

  H5Id maki = create_group(file, "Maki");
  write_attribute(maki, "Version", provenance.version);
  write_attribute(maki, "GitHash", provenance.git_hash);
  write_attribute(maki, "Compiler", provenance.compiler);
  write_attribute(maki, "Device", provenance.device);
  if (const auto& error = provenance.force_error) {
    write_attribute(maki, "ForceErrorRms", error->rms);
    write_attribute(maki, "ForceErrorMedian", error->median);
    write_attribute(maki, "ForceError99Percent", error->percentile_99);
    write_attribute(maki, "ForceErrorTargets", error->targets);
  }
  write_text_dataset(maki, "Configuration", provenance.configuration);
}

void write_scaling(hid_t dataset, const Scaling& s, const UnitSystem& units) {
  const double to_cgs = std::pow(units.length_cgs, s.length) * std::pow(units.mass_cgs, s.mass) *
                        std::pow(units.velocity_cgs, s.velocity);
  write_attribute(dataset, "a_scaling", s.a);
  write_attribute(dataset, "h_scaling", s.h);
  write_attribute(dataset, "length_scaling", s.length);
  write_attribute(dataset, "mass_scaling", s.mass);
  write_attribute(dataset, "velocity_scaling", s.velocity);
  write_attribute(dataset, "to_cgs", to_cgs);
  write_attribute(dataset, "VarDescription", s.description);
  write_attribute(dataset, "CGSConversionFactor", to_cgs);
  write_attribute(dataset, "aexp-scale-exponent", s.a);
  write_attribute(dataset, "h-scale-exponent", s.h);
}

namespace {

// Numbers in the file have the byte order of those in memory.
static_assert(std::endian::native == std::endian::little);

void write_header(hid_t file, const Part& part, const std::vector<HeaderNumbers>& more) {
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
  for (const HeaderNumbers& one : more)
    write_attribute(group, one.name, one.values.data(), one.values.size() == 1 ? 0 : one.values.size());
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
                   const std::vector<Dataset>& datasets, const WriteOptions& options) {
  Output output;
  output.file = create_hdf5(name.temporary);
  write_header(output.file, part, options.header);
  write_metadata(output.file, part.header, provenance);
  H5Id group = create_group(output.file, "PartType1");
  for (const Dataset& d : datasets) {
    output.datasets.push_back(create_dataset(group, d.name, d.type, part.rows(), d.source.columns, options.deflate));
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
      output = create_file(name, part, provenance, datasets, options);
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
