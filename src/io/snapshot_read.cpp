// Reading particle sets, over ranks: names of a set's files, headers of every GADGET format and their completion, and
// the rows.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <numbers>
#include <numeric>
#include <sstream>

#include "host/comm/job.hpp"
#include "host/measure/totals.hpp"
#include "kernels/error.hpp"
#include "src/io/gadget.hpp"
#include "src/io/hdf5_file.hpp"
#include "src/io/snapshot_io.hpp"

namespace maki::gadget {

namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 2> kExtensions{".hdf5", ".h5"};

// A name taken apart: "dir/a.3.hdf5" -> {"dir/a", 3, ".hdf5"}; part -1 where there is no number.
struct PartName {
  std::string base;
  int part = -1;
  std::string extension;
};

PartName take_apart(const std::string& path) {
  PartName name{path, -1, ""};
  for (const std::string extension : kExtensions) {
    if (name.base.ends_with(extension)) {
      name.extension = extension;
      name.base.resize(name.base.size() - extension.size());
      break;
    }
  }
  const auto dot = name.base.find_last_of('.');
  if (dot == std::string::npos || name.base.find('/', dot) != std::string::npos) return name;
  const std::string digits = name.base.substr(dot + 1);
  if (digits.empty() || digits.size() > 6 || digits.find_first_not_of("0123456789") != std::string::npos) return name;
  name.part = std::stoi(digits);
  name.base.resize(dot);
  return name;
}

// The file of a name: itself, or the first file of the set with this base.
std::string first_file(const std::string& path) {
  std::error_code failure;  // a parent folder may be inaccessible, or the name too long
  if (fs::status(path, failure).type() == fs::file_type::none)
    throw Error(fmt::format("cannot read '{}'", path), failure.message(), "check the name, and the permissions");
  if (fs::is_regular_file(path)) return path;
  if (fs::is_directory(path)) {
    throw Error(fmt::format("cannot read '{}'", path), "it is a directory", "give the name of a snapshot in it");
  }
  const PartName name = take_apart(path);
  std::vector<std::string> candidates{path + ".0"};
  for (const std::string extension : kExtensions) {
    candidates.push_back(path + extension);
    candidates.push_back(path + ".0" + extension);
    if (name.part < 0 && !name.extension.empty()) candidates.push_back(name.base + ".0" + extension);
  }
  for (const auto& candidate : candidates) {
    if (fs::is_regular_file(candidate)) return candidate;
  }
  throw Error(fmt::format("cannot read '{}'", path), "no such file", "check the name of the snapshot");
}

}  // namespace

std::uint64_t sum(const std::array<std::uint64_t, kTypes>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

FileHeader read_header(const std::string& path) {
  if (!fs::exists(path)) {
    throw Error(fmt::format("cannot read '{}'", path), "no such file", "check the name of the file");
  }
  if (access(path.c_str(), R_OK) != 0)
    throw Error(fmt::format("cannot read '{}'", path), std::strerror(errno), "check its permissions");
  if (is_hdf5(path)) return read_hdf5_header(path);
  if (looks_binary(path)) return read_binary_header(path);
  throw Error(fmt::format("cannot read '{}'", path), "neither an HDF5 file nor GADGET binary type 1 or 2",
              "give a snapshot in one of these formats");
}

std::string part_name(const std::string& path, SnapshotFormat format, int part, int files) {
  if (files == 1) return path;
  if (format != SnapshotFormat::kGadgetHdf5) return fmt::format("{}.{}", path, part);
  const PartName name = take_apart(path);
  return fmt::format("{}.{}{}", name.part < 0 ? name.base : path.substr(0, path.size() - name.extension.size()), part,
                     name.extension.empty() ? ".hdf5" : name.extension);
}

std::vector<std::string> find_files(const std::string& path) {
  const std::string first = first_file(path);
  const FileHeader header = read_header(first);
  if (header.files <= 1) return {first};
  const PartName name = take_apart(first);
  if (name.part < 0) {
    throw Error(fmt::format("'{}' is one of {} files, but its name holds no number", first, header.files), "",
                "name the files a.0.hdf5, a.1.hdf5, ... (HDF5) or a.0, a.1, ... (binary)");
  }
  std::vector<std::string> files;
  for (int part = 0; part < header.files; ++part) {
    files.push_back(fmt::format("{}.{}{}", name.base, part, name.extension));
    if (!fs::is_regular_file(files.back())) {
      throw Error(fmt::format("the snapshot '{}' is incomplete", name.base),
                  fmt::format("'{}' of {} files is missing", files.back(), header.files),
                  "put all files of the set into one directory");
    }
  }
  return files;
}

double mean_density_ratio(const SnapshotHeader& header, double mass) {
  const UnitSystem& units = header.units;
  if (!header.comoving || !(header.omega0 > 0) || !(header.box_size > 0)) return 0;
  const double h = units.with_h ? 1 : header.hubble;
  const double hubble = 100 * h * 1e5 / kMpcCgs * units.length_cgs / units.velocity_cgs;
  const double density = mass / std::pow(header.box_size, 3);
  return 8 * std::numbers::pi * header.newton() * density / (3 * hubble * hubble) / header.omega0;
}

namespace {

bool agree(double scale_factor, double redshift) { return std::abs(scale_factor * (1 + redshift) - 1) < 1e-3; }

}  // namespace

bool lacks_time(const FileHeader& header) {
  if (!header.has_time) return true;
  return header.comoving ? *header.comoving && !(header.set.time > 0) : !agree(header.set.time, header.set.redshift);
}

std::string why_isolated(const FileHeader& header) {
  const SnapshotHeader& set = header.set;
  if (header.comoving && !*header.comoving)
    return header.has_time ? "its header says so" : "its header has neither Scale-factor nor Redshift";
  if (header.comoving) return "";
  if (!(set.box_size > 0)) return "it has no BoxSize";
  if (!agree(set.time, set.redshift))
    return fmt::format("its Time {} is not 1 / (1 + Redshift), with a Redshift of {}", set.time, set.redshift);
  return set.omega0 > 0 || set.redshift > 0 ? "" : "it has neither Omega0 nor a Redshift";
}

void complete_kind(FileHeader& header, const KnownOfSet& known, std::vector<std::string>& notes) {
  if (known.redshift && lacks_time(header)) {
    header.comoving = true;
    header.set.time = 1 / (1 + *known.redshift);
    notes.push_back(fmt::format("the header tells no scale factor: z = {:g}, of initial.redshift", *known.redshift));
  }
  if (known.isolated && !header.comoving && header.set.redshift == 0 && why_isolated(header).empty()) {
    header.comoving = false;
    notes.push_back("the header (Time = 1, BoxSize, Omega0) fits a box of today too: run.kind = \"isolated\" decides");
  }
}

void complete_header(FileHeader& header, double mass, std::vector<std::string>& notes) {
  SnapshotHeader& set = header.set;
  set.comoving = why_isolated(header).empty();
  if (!set.comoving) {
    set.redshift = 0;
    set.units.with_h = false;
    if (!header.states_time) {
      set.time = 0;
      notes.push_back("the file has no Time: 0 is taken");
    }
    const bool cgs = set.units.length_cgs == 1 && set.units.mass_cgs == 1 && set.units.velocity_cgs == 1;
    if (header.has_units && cgs && !(set.gravitational_constant > 0)) {
      set.gravitational_constant = set.units.gravitational_constant();
      notes.push_back(
          fmt::format("Warning: the file states cgs units and no constant of gravity: G = {:.4g}; for G = 1 "
                      "set units.gravitational_constant = 1",
                      set.gravitational_constant));
    }
    return;
  }
  if (!(set.time > 0)) {
    throw Error(fmt::format("the header gives the scale factor {}", set.time), "a comoving set needs a positive one",
                "give maki run or maki forces its initial.redshift, or repair Time in the header");
  }
  set.redshift = 1 / set.time - 1;
  if (set.omega0 > 0 && !header.has_lambda) {
    set.omega_lambda = 1 - set.omega0 - set.omega_radiation;
    notes.push_back(fmt::format("the file holds no OmegaLambda: {:.6g}, of a flat universe", set.omega_lambda));
  }
  if (set.omega0 > 0 && !(set.hubble > 0))
    notes.push_back("the file holds no HubbleParam: it has to come from the configuration");
  if (!(set.omega0 > 0)) notes.push_back("the file holds no cosmology: it has to come from the configuration");
  if (!(set.omega0 > 0) && !header.over_root_a)
    notes.push_back("its units have SWIFT's names: lengths and masses are without h, velocities peculiar");
  if (header.has_neutrinos)
    notes.push_back(
        "Warning: the file's universe has massive neutrinos (Omega_nu_0); they are left out, and expansion and growth "
        "will differ");
  if (!header.has_units) notes.push_back(choose_length_unit(set, mass));
}

// The headers of a set of files, for all ranks.

namespace {

// Whether the headers' totals are those of the files; some codes write only the low 32 bits of each, and 2LPTic and
// N-GenIC the high ones at the place of type 2.
bool are_totals(const std::array<std::uint64_t, kTypes>& found, const std::array<std::uint64_t, kTypes>& totals) {
  for (std::size_t type = 0; type < kTypes; ++type) {
    const bool high_word = type == 2 && found[2] == 0 && totals[2] == found[1] >> 32;
    if (totals[type] != found[type] && totals[type] != (found[type] & 0xffffffffu) && !high_word) return false;
  }
  return true;
}

// Throws Error where headers of one set differ in any field that the reader needs. Completes their totals.
void check_agreement(std::vector<FileHeader>& headers, const std::vector<std::string>& files) {
  std::array<std::uint64_t, kTypes> found{};
  for (std::size_t i = 0; i < headers.size(); ++i) {
    if (i > 0 && (headers[i].files != headers[0].files || headers[i].totals != headers[0].totals ||
                  headers[i].set.time != headers[0].set.time)) {
      throw Error(fmt::format("'{}' and '{}' do not belong together", files[0], files[i]),
                  "their headers differ in time, number of files or number of particles",
                  "put all files of one snapshot, and no other, into one directory");
    }
    for (std::size_t type = 0; type < kTypes; ++type) found[type] += headers[i].counts[type];
  }
  if (headers.size() > 1 && !are_totals(found, headers[0].totals)) {
    throw Error(fmt::format("the snapshot '{}' is incomplete", files[0]),
                fmt::format("its {} files hold {} particles, the header promises {}", files.size(), sum(found),
                            sum(headers[0].totals)),
                "copy or make the set again");
  }
  for (FileHeader& header : headers) header.totals = found;
}

struct PackedHeader {
  FileFacts facts;
  char format[64];
};
static_assert(std::is_trivially_copyable_v<PackedHeader>);

}  // namespace

FileSet read_set_headers(const std::string& path, const Communicator& ranks) {
  std::vector<PackedHeader> packed;
  std::string names;
  root_succeeds(ranks, [&] {
    const std::vector<std::string> files = find_files(path);
    std::vector<FileHeader> headers;
    for (const auto& file : files) headers.push_back(read_header(file));
    check_agreement(headers, files);
    for (const auto& header : headers) {
      header.format.copy(packed.emplace_back(PackedHeader{header, {}}).format, sizeof(PackedHeader::format) - 1);
    }
    for (const auto& file : files) names += file + '\0';
  });
  names = broadcast_text(ranks, names);
  FileSet set;
  for (std::size_t begin = 0; begin < names.size(); begin += set.files.back().size() + 1) {
    set.files.emplace_back(names.c_str() + begin);
  }
  packed.resize(set.files.size());
  ranks.broadcast(packed.data(), packed.size() * sizeof(PackedHeader), 0);
  for (const auto& one : packed) {
    static_cast<FileFacts&>(set.headers.emplace_back()) = one.facts;
    set.headers.back().format = one.format;
  }
  return set;
}

}  // namespace maki::gadget

namespace maki {

namespace {

// The texts of all ranks, each once, in the order of ranks.
std::vector<std::string> merge_notes(const Communicator& ranks, const std::vector<std::string>& notes) {
  std::vector<std::string> merged;
  for (const std::string& text : gather_texts(ranks, fmt::format("{}", fmt::join(notes, "\n")))) {
    std::istringstream lines(text);
    for (std::string note; std::getline(lines, note);)
      if (std::ranges::find(merged, note) == merged.end()) merged.push_back(note);
  }
  return merged;
}

void make_room(Snapshot& s, std::uint64_t n, const std::string& file) {
  try {
    s.resize(n);
  } catch (const std::exception&) {  // std::bad_alloc, std::length_error
    throw Error(fmt::format("cannot read '{}'", file), fmt::format("no memory for the {} particles of its header", n),
                "use a machine with more memory, or make the file again if it cannot hold that many");
  }
}

std::uint64_t rows_of(const gadget::FileSet& set) {
  std::uint64_t n = 0;
  for (const auto& header : set.headers) n += gadget::sum(header.counts);
  return n;
}

// Reads this rank's share of all rows; opens only files with rows of it.
void read_particles(const gadget::FileSet& set, Snapshot& s, std::vector<std::string>& notes,
                    const Communicator& ranks) {
  const std::uint64_t n = rows_of(set);
  const std::uint64_t begin = share_begin(n, ranks.rank(), ranks.size());
  const std::uint64_t end = share_begin(n, ranks.rank() + 1, ranks.size());
  std::vector<std::string> own_notes;
  require_host_memory(ranks, fmt::format("'{}' with the {} particles of its header", set.files[0], n),
                      static_cast<double>(end - begin) * Snapshot::kBytes);
  all_succeed(ranks, [&] { make_room(s, end - begin, set.files[0]); });
  all_succeed(ranks, [&] {
    std::uint64_t file_begin = 0;
    for (std::size_t i = 0; i < set.files.size(); ++i) {
      const std::uint64_t file_rows = gadget::sum(set.headers[i].counts);
      const std::uint64_t first = std::max(begin, file_begin), last = std::min(end, file_begin + file_rows);
      const gadget::Rows rows{first - file_begin, last - file_begin, first, first - begin};
      file_begin += file_rows;
      if (first >= last) continue;
      if (set.headers[i].format.ends_with("HDF5")) {
        gadget::read_hdf5_particles(set.files[i], set.headers[i], rows, s, own_notes);
      } else {
        gadget::read_binary_particles(set.files[i], set.headers[i], rows, s);
      }
    }
  });
  notes = merge_notes(ranks, own_notes);
}

}  // namespace

double total_mass(const Snapshot& share, const Communicator& ranks) {
  DoubleDouble mass;
  for (const float m : share.masses) mass = mass + static_cast<double>(m);
  sum_over_ranks(ranks, {&mass, 1});
  return mass.value();
}

std::string choose_length_unit(SnapshotHeader& header, double mass) {
  const double as_mpc = gadget::mean_density_ratio(header, mass);
  const bool is_kpc = as_mpc > 0 && std::abs(std::log(as_mpc * 1e9)) < std::abs(std::log(as_mpc));
  if (is_kpc) header.units.length_cgs *= 1e-3;
  const bool fit = as_mpc > 0 && std::abs(as_mpc * (is_kpc ? 1e9 : 1) - 1) < 0.01;
  return fmt::format("the file states no units: {}/h, 1e10 Msun/h and km/s {}", is_kpc ? "kpc" : "Mpc",
                     fit ? "fit its mean density" : "are assumed");
}

std::string density_note(const SnapshotHeader& header, double mass) {
  const double ratio = gadget::mean_density_ratio(header, mass), off = std::abs(ratio - 1);
  if (!(ratio > 0) || off <= 1e-3) return "";
  const std::string note =
      fmt::format("the mean density is {:.6g} times what Omega0 = {} asks for", ratio, header.omega0);
  return off <= 0.01 ? note
                     : fmt::format(
                           "Warning: {}; check the units (units.length and the others for a file "
                           "that states none), with or without h, and the cosmology",
                           note);
}

void require_density(const SnapshotHeader& header, double mass) {
  constexpr double kMostOff = 0.1;  // what a smooth component, as of neutrinos, may lack
  const double ratio = gadget::mean_density_ratio(header, mass);
  if (!(ratio > 0) || std::abs(ratio - 1) <= kMostOff) return;
  throw Error("the particles' masses do not fit the cosmology",
              fmt::format("their mean density is {:.6g} times what Omega0 = {} asks for", ratio, header.omega0),
              "correct the units (units.length and the others for a file that states none), with or without h, the "
              "masses, or cosmology.omega0");
}

std::uint64_t count_particles(const std::string& path, const Communicator& ranks) {
  return rows_of(gadget::read_set_headers(path, ranks));
}

std::optional<UnitSystem> stated_units(const std::string& path, const KnownOfSet& known, const Communicator& ranks) {
  gadget::FileHeader header = gadget::read_set_headers(path, ranks).headers[0];
  if (!header.has_units) return {};
  std::vector<std::string> notes;
  gadget::complete_kind(header, known, notes);
  gadget::complete_header(header, 0, notes);
  return header.set.units;
}

Snapshot read_snapshot(const std::string& path, ReadReport* report, const Communicator& ranks,
                       const KnownOfSet& known) {
  ReadReport own;
  ReadReport& r = report ? *report : own;
  r = {};
  gadget::FileSet set = gadget::read_set_headers(path, ranks);
  gadget::FileHeader& header = set.headers[0];
  if (header.light_cone)
    throw Error(fmt::format("'{}' is a shell of a light cone", set.files[0]),
                "its particles are of many times, and in many images of the box",
                "read it with h5py (docs/lightcones.md), or give a snapshot of the box");
  r.files = set.files;
  r.format = header.format;
  r.counts = header.totals;
  Snapshot s;
  read_particles(set, s, r.notes, ranks);
  const double mass = total_mass(s, ranks);
  r.mass = mass;
  r.has_units = header.has_units;
  gadget::complete_kind(header, known, r.notes);
  r.why_isolated = gadget::why_isolated(header);
  r.lacks_time = gadget::lacks_time(header);
  gadget::complete_header(header, mass, r.notes);
  s.header = header.set;
  r.selection = header.selection;
  if (s.header.comoving && header.over_root_a) {
    const float factor = static_cast<float>(std::sqrt(s.header.time));
    for (auto& v : s.velocities) v = {v[0] * factor, v[1] * factor, v[2] * factor};
  }
  check_snapshot(s, r.files[0], r.notes, ranks);
  r.mean_density_ratio = gadget::mean_density_ratio(s.header, mass);
  if (const std::string part = text_of(header.selection, gadget::sum(header.totals)); !part.empty()) {
    r.notes.push_back(part);
  } else if (const std::string note = density_note(s.header, mass); !note.empty()) {
    r.notes.push_back(note);
  }
  return s;
}

}  // namespace maki
