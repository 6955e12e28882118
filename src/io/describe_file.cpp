// The lines of `maki info`.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "src/io/description.hpp"
#include "src/io/gadget.hpp"
#include "src/io/hdf5_file.hpp"

namespace maki {

namespace {

using gadget::FileHeader;

// Total mass by the header alone; 0 where it does not give all masses.
double header_mass(const FileHeader& header) {
  double mass = 0;
  for (std::size_t type = 0; type < gadget::kTypes; ++type) {
    if (header.totals[type] > 0 && header.mass_table[type] <= 0) return 0;
    mass += static_cast<double>(header.totals[type]) * header.mass_table[type];
  }
  return mass;
}

using Lines = DescriptionLines;

std::string length_name(const UnitSystem& units) {
  const double mpc = units.length_cgs / 3.085677581491367e24;
  const char* h = units.with_h ? "/h" : "";
  if (std::abs(mpc - 1) < 1e-4) return fmt::format("Mpc{}", h);
  if (std::abs(mpc * 1e3 - 1) < 1e-4) return fmt::format("kpc{}", h);
  return fmt::format("{:g} cm{}", units.length_cgs, h);
}

void describe_particles(const FileHeader& header, Lines& lines) {
  lines.add("particles", "{}", gadget::sum(header.totals));
  for (std::size_t type = 0; type < gadget::kTypes; ++type) {
    if (header.totals[type] == 0) continue;
    const std::string mass = header.mass_table[type] > 0 ? fmt::format("mass {:g} each", header.mass_table[type])
                                                         : std::string("masses of their own");
    lines.add(fmt::format("  type {}", type).c_str(), "{}, {}", header.totals[type], mass);
  }
}

void describe_selection(const FileHeader& header, Lines& lines) {
  const std::string part = text_of(header.selection, gadget::sum(header.totals));
  if (!part.empty()) lines.add("part", "{}", part);
  if (header.light_cone)
    lines.add("part", "a shell of a light cone: places from the observer, each particle when it was met (Ascale)");
}

void describe_set(const FileHeader& header, double mass, Lines& lines) {
  const SnapshotHeader& set = header.set;
  const UnitSystem& units = set.units;
  if (set.comoving) {
    lines.add("time", "z = {:.6g}, a = {:.8g}", set.redshift, set.time);
    lines.add("box", "{:g} {}, comoving and periodic", set.box_size, length_name(units));
    lines.add("cosmology", "Omega0 {:g}, OmegaLambda {:g}, OmegaBaryon {:g}, h {:g}", set.omega0, set.omega_lambda,
              set.omega_baryon, set.hubble);
  } else {
    lines.add("time", "{:g}, isolated system", set.time);
    if (set.box_size > 0) lines.add("box", "{:g} {}", set.box_size, length_name(units));
  }
  lines.add("units", "length {:g} cm, mass {:g} g, velocity {:g} cm/s{}{}", units.length_cgs, units.mass_cgs,
            units.velocity_cgs, units.with_h ? ", length and mass over h" : "",
            header.has_units ? "" : " (not in the file)");
  lines.add("G", "{:.8g} {}", set.newton(), set.gravitational_constant > 0 ? "(in the file)" : "(from the units)");
  const double ratio = mass > 0 && !header.light_cone ? gadget::mean_density_ratio(set, mass) : 0;
  if (ratio > 0) lines.add("density", "the mean is {:.6f} of Omega0 rho_crit", ratio);
}

void describe_provenance(const Provenance& p, Lines& lines) {
  if (!p.version.empty()) lines.add("written by", "{}, commit {}", p.version, p.git_hash);
  if (!p.compiler.empty()) lines.add("compiler", "{}", p.compiler);
  if (!p.device.empty()) lines.add("device", "{}", p.device);
  if (p.force_error) lines.add("force error", "{}", text_of(*p.force_error));
  if (p.configuration.empty()) return;
  lines.add_line("configuration");
  lines.add_block(p.configuration);
}

// ---- groups and their links ----------------------------------------------------------------------------------------------------

void describe_catalogue(hid_t file, Lines& lines) {
  FileHeader header;
  gadget::read_hdf5_facts(file, header);
  std::vector<std::string> notes;
  gadget::complete_header(header, 0, notes);
  H5Id group = open_group(file, "Header");
  const auto count = [&](const char* name) { return read_scalar<std::uint64_t>(group, name).value_or(0); };
  lines.add("format", "GADGET-4 HDF5, a catalogue of groups");
  lines.add("groups", "{}, with {} members{}", count("Ngroups_Total"), count("Nids_Total"),
            count("Particles") > 0 ? fmt::format(" of {} particles", count("Particles")) : "");
  if (const auto files = count("NumFiles"); files > 1)
    lines.add("part", "one of {} files; it holds {} groups", files, count("Ngroups_ThisFile"));
  if (hdf5_exists(file, "Config")) {
    H5Id config = open_group(file, "Config");
    if (const auto length = read_scalar<double>(config, "FOF_LINKLENGTH"))
      lines.add("friends", "linking length {:g} mean distances, groups of {} and more", *length,
                read_scalar<std::int32_t>(config, "FOF_GROUP_MIN_LEN").value_or(1));
  }
  describe_set(header, 0, lines);
  for (const char* name : {"Group", "IDs"})
    for (const auto& dataset : gadget::list_datasets(file, name, header.set.units)) lines.add("dataset", "{}", dataset);
  describe_provenance(header.provenance, lines);
}

void describe_links(hid_t file, Lines& lines) {
  H5Id group = open_group(file, "Header");
  const auto catalogue = [&](const std::string& earlier) {
    return fmt::format("'{}', z = {:.6g}, {} groups", read_text(group, earlier + "Catalogue").value_or("?"),
                       read_scalar<double>(group, earlier + "Redshift").value_or(0),
                       read_scalar<std::uint64_t>(group, earlier + "Ngroups").value_or(0));
  };
  lines.add("format", "HDF5, links of groups to their progenitors");
  lines.add("catalogue", "{}", catalogue(""));
  lines.add("earlier one", "{}", catalogue("Previous"));
  for (const char* name : {"Progenitors", "Group", "PreviousGroup"})
    for (const auto& dataset : gadget::list_datasets(file, name, {})) lines.add("dataset", "{}", dataset);
  describe_provenance(gadget::read_provenance(file), lines);
}

// False where the file holds particles, or something else.
bool describe_groups(const std::string& path, Lines& lines) {
  std::error_code unreadable;
  if (!std::filesystem::is_regular_file(path, unreadable) || !is_hdf5(path)) return false;
  H5Id file = open_hdf5(path);
  if (!hdf5_exists(file, "Header") || hdf5_exists(file, "PartType1")) return false;
  H5Id header = open_group(file, "Header");
  const bool catalogue = read_scalar<std::uint64_t>(header, "Ngroups_Total").has_value();
  if (!catalogue && !hdf5_exists(file, "Progenitors")) return false;
  lines.add_file(path, 0, static_cast<double>(std::filesystem::file_size(path)));
  catalogue ? describe_catalogue(file, lines) : describe_links(file, lines);
  return true;
}

}  // namespace

std::string read_configuration(const std::string& path) {
  return gadget::read_header(gadget::find_files(path).front()).provenance.configuration;
}

std::vector<std::string> describe_file(const std::string& path) {
  Lines lines;
  if (describe_plain_file(path, lines) || describe_groups(path, lines)) return lines.take();
  const std::vector<std::string> files = gadget::find_files(path);
  FileHeader header = gadget::read_header(files[0]);
  const double mass = header_mass(header);
  std::vector<std::string> notes;
  gadget::complete_header(header, mass, notes);
  std::uintmax_t bytes = 0;
  for (const auto& file : files) bytes += std::filesystem::file_size(file);
  lines.add_file(files[0], files.size() - 1, static_cast<double>(bytes));
  lines.add("format", "{}", header.format);
  describe_particles(header, lines);
  describe_selection(header, lines);
  describe_set(header, mass, lines);
  for (const auto& dataset : header.datasets) lines.add("dataset", "{}", dataset);
  for (const auto& note : notes) lines.add("note", "{}", note);
  if (!header.writer.empty()) lines.add("written by", "{}", header.writer);
  describe_provenance(header.provenance, lines);
  return lines.take();
}

std::string text_of(const ParticleSelection& selection, std::uint64_t particles) {
  if (selection.is_whole()) return {};
  std::string text = fmt::format("it holds {} of the {} particles of its run:", particles, selection.of_particles);
  if (selection.fraction < 1) text += fmt::format(" a fraction of {:g} by their IDs", selection.fraction);
  if (selection.in_groups) text += fmt::format("{} members of groups", selection.fraction < 1 ? ", and of these" : "");
  return text;
}

std::string text_of(const ForceError& error) {
  return fmt::format(
      "{:.2g} of the rms force; relative to each particle's force {:.2g} (median), {:.2g} (99 %); {} particles",
      error.rms, error.median, error.percentile_99, error.targets);
}

}  // namespace maki
