// The lines of `maki info`.
#include <fitsio.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include "kernels/error.hpp"
#include "src/config/quantity.hpp"
#include "src/io/gadget.hpp"
#include "src/io/hdf5_file.hpp"

namespace maki {

std::string Background::beyond_lambda() const {
  std::string text;
  if (omega_radiation != 0) text += fmt::format(", omega_radiation {:g}", omega_radiation);
  if (w0 != -1 || wa != 0) text += fmt::format(", w0 {:g}, wa {:g}", w0, wa);
  return text;
}

namespace {

namespace fs = std::filesystem;
using gadget::FileHeader;

struct Lines {
  std::vector<std::string> text;

  template <class... Arguments>
  void add(const std::string& label, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    text.push_back(fmt::format("{:<12} {}", label, fmt::format(format, std::forward<Arguments>(arguments)...)));
  }
  void add_block(const std::string& block) {
    std::istringstream in(block);
    for (std::string line; std::getline(in, line);) text.push_back("  " + line);
  }
  // Name and size.
  void add_file(const std::string& path, std::size_t more_files, double bytes) {
    add("file", "{}{}, {:.1f} MiB", path, more_files > 0 ? fmt::format(" and {} more", more_files) : "",
        bytes / 1048576.0);
  }
};

// ---- particles ------------------------------------------------------------------------------------------------------

// Total mass by the header alone; 0 where it does not give all masses.
double header_mass(const FileHeader& header) {
  double mass = 0;
  for (std::size_t type = 0; type < gadget::kTypes; ++type) {
    if (header.totals[type] > 0 && header.mass_table[type] <= 0) return 0;
    mass += static_cast<double>(header.totals[type]) * header.mass_table[type];
  }
  return mass;
}

std::string length_name(const UnitSystem& units) {
  const double mpc = units.length_cgs / kMpcCgs;
  const char* h = units.with_h ? "/h" : "";
  if (std::abs(mpc - 1) < 1e-4) return fmt::format("Mpc{}", h);
  if (units.length_cgs == 1) return "";
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
    const bool told = header.has_units || (mass > 0 && set.omega0 > 0);  // by the mean density
    lines.add("box", "{:g} {}{}, comoving and periodic", set.box_size, length_name(units),
              told ? "" : " (or kpc/h: the masses, which tell, were not read)");
    lines.add("cosmology", "Omega0 {:g}, OmegaLambda {:g}, OmegaBaryon {:g}{}, h {:g}", set.omega0, set.omega_lambda,
              set.omega_baryon, set.beyond_lambda(), set.hubble);
  } else {
    const std::string unit = header.has_units ? unit_name(units, Dimension::kTime) : "";
    lines.add("time", "{}, isolated system", time_text(set.time, {1, unit}));
    if (set.box_size > 0) lines.add("box", "{:g} {}", set.box_size, length_name(units));
  }
  if (units.length_cgs == 1 && units.mass_cgs == 1)
    lines.add("units", "pure numbers{}", header.has_units ? "" : " (not in the file)");
  else
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
  lines.text.push_back("configuration");
  lines.add_block(p.configuration);
}

// ---- groups and their links -----------------------------------------------------------------------------------------

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
  const Hdf5Turn turn;
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

// ---- maps, pictures, tables -----------------------------------------------------------------------------------------

Error cut_off(const std::string& path, const char* kind) {
  return Error(fmt::format("cannot read '{}'", path), fmt::format("the {} is cut off", kind), "copy or make it again");
}

// ---- FITS, by CFITSIO -----------------------------------------------------------------------------------------------

struct Card {
  std::string name, value, comment;
};

std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

struct Close {
  void operator()(fitsfile* file) const {
    int status = 0;
    fits_close_file(file, &status);
  }
};

// The cards of the present header.
std::vector<Card> cards_of(fitsfile* file, int& status) {
  int count = 0;
  fits_get_hdrspace(file, &count, nullptr, &status);
  std::vector<Card> cards;
  for (int i = 1; i <= count && status == 0; ++i) {
    char name[FLEN_KEYWORD] = {}, value[FLEN_VALUE] = {}, comment[FLEN_COMMENT] = {};
    fits_read_keyn(file, i, name, value, comment, &status);
    std::string text = value;
    if (text.size() > 1 && text.front() == '\'') text = trimmed(text.substr(1, text.size() - 2));
    cards.push_back({name, text, comment});
  }
  return cards;
}

std::string value_of(const std::vector<Card>& cards, const std::string& name) {
  for (const Card& card : cards)
    if (card.name == name) return card.value;
  return "";
}

std::uint64_t number_of(const std::vector<Card>& cards, const std::string& name) {
  std::uint64_t number = 0;
  for (const char digit : value_of(cards, name)) {
    if (digit < '0' || digit > '9' || number > 1'000'000'000'000) return 0;
    number = 10 * number + static_cast<std::uint64_t>(digit - '0');
  }
  return number;
}

// Cards of the pixels and of the table's layout, which other lines tell.
bool is_told(const std::string& name) {
  for (const char* one :
       {"XTENSION", "BITPIX", "NAXIS", "PCOUNT", "GCOUNT", "TFIELDS", "TTYPE", "TFORM", "TUNIT", "EXTNAME", "FIRSTPIX",
        "LASTPIX", "COMMENT", "PIXTYPE", "ORDERING", "NSIDE", "OBJECT", "INDXSCHM", "END"})
    if (name.starts_with(one)) return true;
  return name.empty();
}

void describe_table(const std::vector<Card>& cards, Lines& lines) {
  const std::uint64_t nside = number_of(cards, "NSIDE");
  if (value_of(cards, "PIXTYPE") == "HEALPIX")
    lines.add("map", "HEALPix, {} order, {} pixels (NSIDE {})", value_of(cards, "ORDERING"), 12 * nside * nside, nside);
  lines.add("rows", "{}", number_of(cards, "NAXIS2"));
  for (std::uint64_t i = 1; i <= std::min<std::uint64_t>(number_of(cards, "TFIELDS"), 999); ++i) {
    const std::string unit = value_of(cards, fmt::format("TUNIT{}", i));
    lines.add("column", "{:<28} {:<8} {}", value_of(cards, fmt::format("TTYPE{}", i)),
              value_of(cards, fmt::format("TFORM{}", i)), unit);
  }
  for (const Card& card : cards)
    if (!is_told(card.name)) lines.add(card.name, "{}{}{}", card.value, card.comment.empty() ? "" : "  ", card.comment);
}

void describe_fits(const std::string& path, Lines& lines) {
  int status = 0, axes = 0, count = 0;
  fitsfile* opened = nullptr;
  fits_open_diskfile(&opened, path.c_str(), READONLY, &status);
  const std::unique_ptr<fitsfile, Close> file(opened);
  if (status == 0) fits_get_img_dim(opened, &axes, &status);
  if (status == 0 && axes > 0) return lines.add("format", "FITS, an image");
  if (status == 0) fits_get_num_hdus(opened, &count, &status);
  if (status != 0 || count < 2) throw cut_off(path, "FITS file");
  LONGLONG end = 0;
  fits_movabs_hdu(opened, 2, nullptr, &status);
  fits_get_hduaddrll(opened, nullptr, nullptr, &end, &status);
  const std::vector<Card> cards = status == 0 ? cards_of(opened, status) : std::vector<Card>{};
  if (status != 0 || fs::file_size(path) < static_cast<std::uint64_t>(end)) throw cut_off(path, "FITS file");
  lines.add("format", "FITS, a binary table{}", value_of(cards, "PIXTYPE") == "HEALPIX" ? ": a map of the sky" : "");
  describe_table(cards, lines);
}

// ---- PNG: chunks of a length, a name, the bytes and a checksum ------------------------------------------------------

constexpr std::string_view kPng = "\x89PNG\r\n\x1a\n";
constexpr std::uint32_t kLongestText = 1 << 20;

std::optional<std::uint32_t> read_number(std::ifstream& file) {
  std::array<unsigned char, 4> bytes{};
  if (!file.read(reinterpret_cast<char*>(bytes.data()), 4)) return std::nullopt;
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8 | bytes[3];
}

void describe_text_chunk(const std::string& text, Lines& lines) {
  const auto end = text.find('\0');
  if (end == std::string::npos) return;
  const std::string label = text.substr(0, end), value = text.substr(end + 1);
  if (value.find('\n') == std::string::npos) return lines.add(label, "{}", value);
  lines.text.push_back(label);
  lines.add_block(value);
}

void describe_png(const std::string& path, Lines& lines) {
  std::ifstream file(path, std::ios::binary);
  file.seekg(kPng.size());
  while (const auto length = read_number(file)) {
    std::string name(4, ' ');
    file.read(name.data(), 4);
    const std::streamoff next = std::streamoff{file.tellg()} + *length + 4;
    if (name == "IEND") return;
    if (name == "IHDR") {
      const auto width = read_number(file), height = read_number(file);
      lines.add("format", "PNG, a picture of {} x {} pixels", width.value_or(0), height.value_or(0));
    } else if (name == "tEXt" && *length <= kLongestText) {
      std::string text(*length, ' ');
      file.read(text.data(), *length);
      describe_text_chunk(text, lines);
    }
    file.seekg(next);
  }
  throw cut_off(path, "picture");
}

// ---- tables: comments, then rows of numbers -------------------------------------------------------------------------

std::size_t columns_of(const std::string& row) {
  std::istringstream words(row);
  std::size_t columns = 0;
  for (std::string word; words >> word; ++columns) {
    char* end = nullptr;
    std::strtod(word.c_str(), &end);
    if (*end != '\0') return 0;
  }
  return columns;
}

// False where this is other text.
bool describe_text_table(const std::string& path, Lines& lines) {
  std::ifstream file(path);
  std::vector<std::string> comments;
  std::size_t rows = 0, columns = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) {
      comments.push_back(line.substr(std::min<std::size_t>(line.size(), line.starts_with("# ") ? 2 : 1)));
      continue;
    }
    if (trimmed(line).empty()) continue;
    const std::size_t found = columns_of(line);
    if (found == 0 || (rows > 0 && found != columns)) return false;
    columns = found;
    ++rows;
  }
  if (rows == 0) return false;
  lines.add("format", "text, a table of numbers");
  lines.add("rows", "{}", rows);
  lines.add("columns", "{}{}", columns, comments.empty() ? "" : ": " + trimmed(comments.back()));
  if (!comments.empty()) comments.pop_back();
  for (const std::string& comment : comments) lines.text.push_back(comment);
  return true;
}

// Whether the beginning is plain text: no control characters except ends of lines and tabs.
bool is_text(const std::string& beginning) {
  return !beginning.empty() && std::all_of(beginning.begin(), beginning.end(), [](unsigned char c) {
    return c >= 0x20 ? c != 0x7f : c == '\n' || c == '\t' || c == '\r';
  });
}

void refuse_restart(const std::string& path) {
  const fs::path folder = fs::is_directory(path) ? fs::path(path) : fs::path(path).parent_path();
  if (!fs::exists(folder / "complete.toml")) return;
  throw Error(fmt::format("'{}' is {}a restart", path, fs::is_directory(path) ? "" : "part of "),
              "it holds the state of a run's memory, which is no snapshot",
              fmt::format("'maki resume' goes on from it; '{}' is text and has its step and configuration",
                          (folder / "complete.toml").string()));
}

// Describes a map of the sky (FITS), a picture (PNG) or a table (text), told by their first bytes; false where the file
// is none of them. Throws Error for a restart and for other text, which is there to be read as it stands, and for files
// that are cut off.
bool describe_plain_file(const std::string& path, Lines& lines) {
  std::error_code unreadable;
  if (fs::exists(path, unreadable)) refuse_restart(path);
  if (!fs::is_regular_file(path, unreadable)) return false;
  std::ifstream file(path, std::ios::binary);
  std::string beginning(512, '\0');
  file.read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
  beginning.resize(static_cast<std::size_t>(file.gcount()));
  const bool fits = beginning.starts_with("SIMPLE  ="), png = beginning.starts_with(kPng);
  if (!fits && !png && !is_text(beginning)) return false;
  lines.add_file(path, 0, static_cast<double>(fs::file_size(path)));
  if (fits) describe_fits(path, lines);
  if (png) describe_png(path, lines);
  if (fits || png || describe_text_table(path, lines)) return true;
  throw Error(fmt::format("there is nothing to tell of '{}'", path), "it is text, and no table of numbers",
              "read it as it is");
}

}  // namespace

std::string read_configuration(const std::string& path) {
  return gadget::read_header(gadget::find_files(path).front()).provenance.configuration;
}

std::vector<std::string> describe_file(const std::string& path) {
  Lines lines;
  if (describe_plain_file(path, lines) || describe_groups(path, lines)) return lines.text;
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
  return lines.text;
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
