// Writing GADGET-4's HDF5 layout, with the attributes of other codes beside it, so that any reader finds the units:
// GADGET-4's a_scaling ... to_cgs, GADGET-3's (EAGLE's) VarDescription ... CGSConversionFactor, SWIFT's /Units.
// yt takes units from a file only where it also finds GADGET-3's /Constants and Header/Time_GYR.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/device/error.hpp"
#include "src/io/gadget.hpp"
#include "src/io/hdf5_file.hpp"

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

void write_cosmology(hid_t group, const SnapshotHeader& header) {
  write_attribute(group, "BoxSize", header.box_size);
  write_attribute(group, "Omega0", header.omega0);
  write_attribute(group, "OmegaLambda", header.omega_lambda);
  write_attribute(group, "OmegaBaryon", header.omega_baryon);
  write_attribute(group, "HubbleParam", header.hubble > 0 ? header.hubble : 1.0);
  write_attribute(group, "Time_GYR", time_gyr(header));
}

void write_header(hid_t file, const Part& part) {
  H5Id group = create_group(file, "Header");
  const std::uint64_t this_file[kTypes] = {0, part.count, 0, 0, 0, 0};
  const std::uint64_t total = part.snapshot.size();
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
                           "Flag_Entropy_ICs"}) {  // GADGET-2 and 3 ask for them
    write_attribute<std::int32_t>(group, flag, 0);
  }
}

// GADGET's names of the units, in /Parameters and /Units.
void write_units(hid_t group, const UnitSystem& units) {
  write_attribute(group, "UnitLength_in_cm", units.length_cgs);
  write_attribute(group, "UnitMass_in_g", units.mass_cgs);
  write_attribute(group, "UnitVelocity_in_cm_per_s", units.velocity_cgs);
}

void write_metadata(hid_t file, const Part& part, const Provenance& provenance) {
  const SnapshotHeader& header = part.header;
  const UnitSystem& units = header.units;
  H5Id parameters = create_group(file, "Parameters");
  write_cosmology(parameters, header);
  write_units(parameters, units);
  write_attribute<std::int32_t>(parameters, "ComovingIntegrationOn", header.comoving ? 1 : 0);
  write_attribute(parameters, "Hubble", 100 * 1e5 / kMpcCgs * units.length_cgs / units.velocity_cgs);
  write_attribute(parameters, "GravityConstantInternal", header.gravitational_constant);

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
  write_text_dataset(maki, "Configuration", provenance.configuration);
}

// How a dataset's numbers become physical cgs: value * to_cgs * a^a h^h, to_cgs = length^l mass^m velocity^v.
struct Scaling {
  const char* description;
  double a, h, length, mass, velocity;
};

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

// Writes a dataset slab by slab; `value(i, column)` gives the numbers, of type T in memory and in the file.
template <class T, class Value>
H5Id write_block(hid_t group, const char* name, const Part& part, std::size_t columns, int deflate, Value value) {
  H5Id dataset = create_dataset(group, name, hdf5_file_type<T>(), part.count, columns, deflate);
  std::vector<T> slab;
  for (std::size_t first = 0; first < part.count; first += kSlabRows) {
    const std::size_t rows = std::min(kSlabRows, part.count - first);
    slab.resize(rows * columns);
    for (std::size_t i = 0; i < rows * columns; ++i) slab[i] = value(first + i / columns, i % columns);
    write_rows(dataset, first, rows, hdf5_memory_type<T>(), slab.data());
  }
  return dataset;
}

template <class T> H5Id write_ids(hid_t group, const Part& part, int deflate) {
  return write_block<T>(group, "ParticleIDs", part, 1, deflate, [&](std::size_t i, std::size_t) {
    return static_cast<T>(part.snapshot.ids[part.first + i]);
  });
}

template <class T> H5Id write_coordinates(hid_t group, const Part& part, int deflate) {
  return write_block<T>(group, "Coordinates", part, 3, deflate,
                        [&](std::size_t i, std::size_t axis) { return coordinate<T>(part, i, axis); });
}

void write_particles(hid_t group, const Part& part, const WriteOptions& options) {
  const UnitSystem& units = part.header.units;
  const double a = part.header.comoving ? 1 : 0;
  const double h = units.with_h ? -1 : 0;
  const int deflate = options.deflate;
  H5Id coordinates = options.double_coordinates ? write_coordinates<double>(group, part, deflate)
                                                : write_coordinates<float>(group, part, deflate);
  write_scaling(coordinates, {"Coordinates in units of U_L", a, h, 1, 0, 0}, units);
  H5Id velocities = write_block<float>(group, "Velocities", part, 3, deflate, [&](std::size_t i, std::size_t axis) {
    return velocity<float>(part, i, axis);
  });
  write_scaling(velocities, {"Peculiar velocities over the root of a in units of U_V", a / 2, 0, 0, 0, 1}, units);
  H5Id masses = write_block<float>(group, "Masses", part, 1, deflate,
                                   [&](std::size_t i, std::size_t) { return mass<float>(part, i); });
  write_scaling(masses, {"Masses in units of U_M", 0, h, 0, 1, 0}, units);
  H5Id ids = part.wide_ids ? write_ids<std::uint64_t>(group, part, deflate)
                           : write_ids<std::uint32_t>(group, part, deflate);
  write_scaling(ids, {"Unique names of particles", 0, 0, 0, 0, 0}, units);
}

void write_extra(hid_t group, const Part& part, const ExtraDataset& extra, int deflate) {
  const std::size_t columns = extra.components;
  const double factor =
      std::pow(part.length_factor, extra.length_scaling) * std::pow(part.mass_factor, extra.mass_scaling);
  const auto value = [&](std::size_t i, std::size_t column) {
    return factor * extra.values[(part.first + i) * columns + column];
  };
  H5Id dataset = extra.double_precision
                     ? write_block<double>(group, extra.name.c_str(), part, columns, deflate, value)
                     : write_block<float>(group, extra.name.c_str(), part, columns, deflate, [&](auto i, auto column) {
                         return static_cast<float>(value(i, column));
                       });
  write_scaling(dataset,
                {extra.description.c_str(), extra.a_scaling, extra.h_scaling, extra.length_scaling,
                 extra.mass_scaling, extra.velocity_scaling},
                part.header.units);
  if (extra.gravitational_constant != 0) write_attribute(dataset, "G", extra.gravitational_constant);
}

}  // namespace

void write_hdf5_file(const SafeFile& output, const Part& part, const Provenance& provenance,
                     const WriteOptions& options, const std::vector<ExtraDataset>& extras) {
  try {
    H5Id file = create_hdf5(output.temporary_path());
    write_header(file, part);
    write_metadata(file, part, provenance);
    {
      H5Id group = create_group(file, "PartType1");
      write_particles(group, part, options);
      for (const ExtraDataset& extra : extras) write_extra(group, part, extra, options.deflate);
    }
    close_hdf5(file, output.path());
  } catch (const Error& error) {
    throw Error(fmt::format("cannot write '{}': {}", output.path(), error.what()));
  }
}

}  // namespace maki::gadget
