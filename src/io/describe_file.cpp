// The lines of `maki info`.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "src/io/gadget.hpp"

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

class Lines {
 public:
  template <class... Arguments>
  void add(const char* label, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    text_.push_back(fmt::format("{:<12} {}", label, fmt::format(format, std::forward<Arguments>(arguments)...)));
  }
  std::vector<std::string> take() { return std::move(text_); }
  void add_line(const std::string& line) { text_.push_back(line); }
  void add_block(const std::string& text) {
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      text_.push_back("  " + text.substr(begin, end - begin));
      begin = end + 1;
    }
  }

 private:
  std::vector<std::string> text_;
};

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

void describe_provenance(const FileHeader& header, Lines& lines) {
  const Provenance& p = header.provenance;
  if (!header.writer.empty()) lines.add("written by", "{}", header.writer);
  if (!p.version.empty()) lines.add("written by", "{}, commit {}", p.version, p.git_hash);
  if (!p.compiler.empty()) lines.add("compiler", "{}", p.compiler);
  if (!p.device.empty()) lines.add("device", "{}", p.device);
  if (p.force_error) lines.add("force error", "{}", text_of(*p.force_error));
  if (p.configuration.empty()) return;
  lines.add_line("configuration");
  lines.add_block(p.configuration);
}

}  // namespace

std::string read_configuration(const std::string& path) {
  return gadget::read_header(gadget::find_files(path).front()).provenance.configuration;
}

std::vector<std::string> describe_file(const std::string& path) {
  const std::vector<std::string> files = gadget::find_files(path);
  FileHeader header = gadget::read_header(files[0]);
  const double mass = header_mass(header);
  std::vector<std::string> notes;
  gadget::complete_header(header, mass, notes);
  Lines lines;
  std::uintmax_t bytes = 0;
  for (const auto& file : files) bytes += std::filesystem::file_size(file);
  lines.add("file", "{}{}, {:.1f} MiB", files[0], files.size() > 1 ? fmt::format(" and {} more", files.size() - 1) : "",
            static_cast<double>(bytes) / 1048576.0);
  lines.add("format", "{}", header.format);
  describe_particles(header, lines);
  describe_selection(header, lines);
  describe_set(header, mass, lines);
  for (const auto& dataset : header.datasets) lines.add("dataset", "{}", dataset);
  for (const auto& note : notes) lines.add("note", "{}", note);
  describe_provenance(header, lines);
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
