// Reading GADGET's HDF5 files, as GADGET-2, 3 and 4, AREPO, N-GenIC, MUSIC and Maki write them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "kernels/error.hpp"
#include "src/config/quantity.hpp"
#include "src/io/gadget.hpp"
#include "src/io/gadget_write.hpp"
#include "src/io/hdf5_file.hpp"

namespace maki::gadget {

Provenance read_provenance(hid_t file) {
  Provenance p;
  if (!hdf5_exists(file, "Maki")) return p;
  H5Id maki = open_group(file, "Maki");
  p.version = read_text(maki, "Version").value_or("");
  p.git_hash = read_text(maki, "GitHash").value_or("");
  p.compiler = read_text(maki, "Compiler").value_or("");
  p.device = read_text(maki, "Device").value_or("");
  const auto rms = read_scalar<double>(maki, "ForceErrorRms");
  const auto targets = read_scalar<std::uint64_t>(maki, "ForceErrorTargets");
  if (rms && targets)
    p.force_error = {*rms, read_scalar<double>(maki, "ForceErrorMedian").value_or(0),
                     read_scalar<double>(maki, "ForceError99Percent").value_or(0), *targets};
  p.configuration = read_text_dataset(maki, "Configuration");
  return p;
}

namespace {

template <class T>
std::array<T, kTypes> six(hid_t group, const std::string& name) {
  std::array<T, kTypes> result{};
  const auto values = read_attribute<T>(group, name);
  std::copy_n(values.begin(), std::min(values.size(), kTypes), result.begin());
  return result;
}

// Looks up a number that codes store in different groups, under different names.
class Lookup {
 public:
  explicit Lookup(hid_t file) {
    for (const char* name : {"Header", "Parameters", "Cosmology", "Units", "Maki"}) {
      if (hdf5_exists(file, name)) groups_.push_back(open_group(file, name));
    }
  }
  std::optional<double> operator()(std::initializer_list<const char*> names) const {
    for (const auto& group : groups_) {
      for (const char* name : names) {
        if (const auto value = read_scalar<double>(group, name)) return value;
      }
    }
    return std::nullopt;
  }

 private:
  std::vector<H5Id> groups_;
};

void read_units(const Lookup& number, FileHeader& header) {
  const auto length = number({"UnitLength_in_cm", "UnitLength_In_CGS", "Unit length in cgs (U_L)"});
  const auto mass = number({"UnitMass_in_g", "UnitMass_In_CGS", "Unit mass in cgs (U_M)"});
  auto velocity = number({"UnitVelocity_in_cm_per_s", "UnitVelocity_In_CGS"});
  if (const auto time = number({"Unit time in cgs (U_t)"}); !velocity && length && time) velocity = *length / *time;
  if (!length || !mass || !velocity || !(*length > 0) || !(*mass > 0) || !(*velocity > 0)) return;
  header.set.units = {*length, *mass, *velocity, header.set.units.with_h};
  header.has_units = true;
}

void read_cosmology(const Lookup& number, FileHeader& header) {
  SnapshotHeader& set = header.set;
  set.omega0 = number({"Omega0", "OmegaMatter", "Omega_Matter", "Omega_m"}).value_or(0);
  const auto omega_lambda = number({"OmegaLambda", "Omega_Lambda", "Omega_lambda"});
  set.omega_lambda = omega_lambda.value_or(0);
  header.has_lambda = omega_lambda.has_value();
  set.omega_baryon = number({"OmegaBaryon", "Omega_Baryon", "Omega_b"}).value_or(0);
  set.hubble = number({"HubbleParam", "h"}).value_or(0);
  set.gravitational_constant = number({"GravityConstantInternal", "Gravitational_Constant_In_Code_Inits"}).value_or(0);
  if (const auto comoving = number({"ComovingIntegrationOn", "Cosmological run"})) header.comoving = *comoving != 0;
  set.omega_radiation = number({"Omega_r", "Omega_Radiation"}).value_or(0);
  set.w0 = number({"w_0"}).value_or(-1);
  set.wa = number({"w_a"}).value_or(0);
  header.has_neutrinos = number({"Omega_nu_0"}).value_or(0) != 0;
}

void read_writer(hid_t file, hid_t group, FileHeader& header) {
  if (hdf5_exists(file, "Maki")) {
    H5Id maki = open_group(file, "Maki");
    header.selection = {read_scalar<double>(maki, "Fraction").value_or(1), read_text(maki, "Particles") == "groups",
                        read_scalar<std::uint64_t>(maki, "ParticlesOfRun").value_or(0)};
    header.provenance = read_provenance(file);
    return;  // Code is a name of the layout
  }
  header.writer = read_text(group, "Code").value_or("");
  if (const auto commit = read_text(group, "Git_commit"))
    header.writer += (header.writer.empty() ? "commit " : ", commit ") + commit->substr(0, 12);
  const auto fractions = read_attribute<double>(group, kSubsetFractions);
  if (read_text(group, "OutputType") == "SubSampled" && fractions.size() > 1)
    header.selection.fraction = std::ranges::min(fractions);
}

std::string type_name(hid_t dataset) {
  H5Id type(H5Dget_type(dataset), H5Tclose);
  const std::size_t bits = 8 * H5Tget_size(type);
  const H5T_class_t kind = H5Tget_class(type);
  if (kind == H5T_FLOAT) return fmt::format("float{}", bits);
  if (kind == H5T_INTEGER) return fmt::format("{}int{}", H5Tget_sign(type) == H5T_SGN_NONE ? "u" : "", bits);
  return "other";
}

// The unit by the attributes of GADGET-4 ("km/s, times a^0.5: physical"), else the description; "" without attributes.
std::string unit_of(hid_t dataset, const UnitSystem& units) {
  std::vector<std::string> factors;
  for (const auto& [name, dimension] : {std::pair{"mass_scaling", Dimension::kMass},
                                        {"length_scaling", Dimension::kLength},
                                        {"velocity_scaling", Dimension::kVelocity}}) {
    const double power = read_scalar<double>(dataset, name).value_or(0);
    const std::string unit = unit_name(units, dimension);
    if (power == 0 || unit.empty()) continue;
    factors.push_back(power == 1 ? unit : fmt::format("({})^{:g}", unit, power));
  }
  if (factors.empty())
    return read_text(dataset, "Description").value_or(read_text(dataset, "VarDescription").value_or(""));
  const double a = read_scalar<double>(dataset, "a_scaling").value_or(0);
  return fmt::format("{}{}", fmt::join(factors, " "),
                     a == 0   ? ""
                     : a == 1 ? ", comoving"
                              : fmt::format(", times a^{:g}: physical", a));
}

}  // namespace

std::vector<std::string> list_datasets(hid_t file, const std::string& group_name, const UnitSystem& units) {
  if (!hdf5_exists(file, group_name)) return {};
  H5Id group = open_group(file, group_name);
  std::vector<std::string> lines;
  for (const std::string& name : link_names(group)) {
    H5Id dataset(H5Dopen2(group, name.c_str(), H5P_DEFAULT), H5Dclose);
    if (!dataset.valid()) continue;
    std::string shape;
    for (const std::size_t extent : dataset_shape(dataset))
      shape += fmt::format("{}{}", shape.empty() ? "" : " x ", extent);
    lines.push_back(fmt::format("{:<28} {:<8} {}", group_name + "/" + name, type_name(dataset), shape));
    if (const std::string unit = unit_of(dataset, units); !unit.empty()) lines.back() += ", " + unit;
  }
  return lines;
}

void read_hdf5_facts(hid_t file, FileHeader& header) {
  H5Id group = open_group(file, "Header");
  read_writer(file, group, header);
  const Lookup number(file);
  const auto time = number({"Time"}), redshift = number({"Redshift"});
  header.set.redshift = redshift.value_or(0);
  header.set.time = time.value_or(1 / (1 + header.set.redshift));
  header.states_time = time.has_value();
  header.set.box_size = number({"BoxSize"}).value_or(0);
  read_cosmology(number, header);
  header.has_time = time || redshift || header.comoving == false;
  if (!redshift && !header.comoving && time && *time > 0 && *time <= 1 && header.set.omega0 > 0)
    header.set.redshift = 1 / *time - 1;
  read_units(number, header);
  if (header.comoving == false) header.set.units.with_h = false;
  if (hdf5_exists(file, "Group") && hdf5_exists(file, "Group/GroupPos"))
    header.set.units.with_h = read_scalar<double>(open_dataset(file, "Group/GroupPos"), "h_scaling").value_or(-1) != 0;
}

namespace {

// The first of several names that exists in the group; empty where none does.
std::string present(hid_t group, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (hdf5_exists(group, name)) return name;
  }
  return {};
}

constexpr std::initializer_list<const char*> kMassNames = {"Masses", "Mass", "DynamicalMasses"};  // the last: SWIFT's

// The rows to read of one type of particle.
struct TypeRows {
  std::size_t type;
  std::uint64_t all;          // rows of this type in the file
  std::uint64_t skip, count;  // the rows to read among them
  std::uint64_t number;       // of the first row to read, in the whole set
  std::size_t at;             // its index in the snapshot

  std::string group() const { return fmt::format("PartType{}", type); }
};

// Throws Error where the library lacks a filter that the dataset went through, such as h5py's lzf.
void check_filters(hid_t dataset, const std::string& name) {
  H5Id properties(H5Dget_create_plist(dataset), H5Pclose);
  for (int i = 0; i < H5Pget_nfilters(properties); ++i) {
    char filter[64] = "";
    std::size_t no_values = 0;
    const H5Z_filter_t id = H5Pget_filter2(properties, static_cast<unsigned>(i), nullptr, &no_values, nullptr,
                                           sizeof(filter), filter, nullptr);
    if (id >= 0 && H5Zfilter_avail(id) <= 0)
      throw Error(fmt::format("the dataset '{}' was compressed by the filter '{}'", name, filter),
                  "the HDF5 library of this program does not have it", "write the file with gzip or uncompressed");
  }
}

// Throws Error where the library could not convert its entries, such as texts.
void check_numbers(hid_t dataset, const std::string& name) {
  H5Id type(H5Dget_type(dataset), H5Tclose);
  const H5T_class_t kind = H5Tget_class(type);
  if (kind == H5T_INTEGER || kind == H5T_FLOAT) return;
  throw Error(fmt::format("the dataset '{}' holds no numbers", name),
              kind == H5T_STRING ? "it holds text" : "its entries are neither integers nor floating-point numbers",
              "write it with numbers");
}

// Reads rows of `columns` numbers each.
void read_block(hid_t group, const TypeRows& rows, const std::string& name, std::size_t columns, hid_t memory_type,
                void* data) {
  H5Id dataset = open_dataset(group, name);
  check_numbers(dataset, fmt::format("{}/{}", rows.group(), name));
  check_filters(dataset, fmt::format("{}/{}", rows.group(), name));
  const auto shape = dataset_shape(dataset);
  const std::size_t entries = std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>());
  if (shape.empty() || shape.size() > 2 || shape[0] != rows.all || entries != rows.all * columns) {
    throw Error(fmt::format("the dataset '{}/{}' has the wrong size", rows.group(), name),
                fmt::format("{} numbers, the header promises {} x {}", entries, rows.all, columns),
                "the header and the data do not belong together; make the file again");
  }
  read_rows(dataset, rows.skip, rows.count, memory_type, data);
}

// IDs of a file with signed ones keep their bits, of which HDF5 would make 0 where they are negative.
void read_ids(hid_t group, const TypeRows& rows, std::uint64_t* ids) {
  H5Id dataset = open_dataset(group, "ParticleIDs");
  H5Id type(H5Dget_type(dataset), H5Tclose);
  const bool is_signed = H5Tget_class(type) == H5T_INTEGER && H5Tget_sign(type) == H5T_SGN_2;
  read_block(group, rows, "ParticleIDs", 1, is_signed ? H5T_NATIVE_INT64 : H5T_NATIVE_UINT64, ids);
  if (is_signed && H5Tget_size(type) == 4)
    for (std::uint64_t i = 0; i < rows.count; ++i) ids[i] &= 0xffffffffu;
}

[[noreturn]] void refuse_missing(hid_t file, hid_t group, const std::string& where, const char* name) {
  const bool ours = hdf5_exists(file, "Maki");
  const std::vector<std::string> others = link_names(group);
  if (!ours && name == std::string("Coordinates") && !others.empty())
    throw Error(fmt::format("particles of '{}' have no coordinates", where),
                fmt::format("it holds {}; tracers, as AREPO's, are no masses", fmt::join(others, ", ")),
                "copy the file without that type: its group, and its numbers in NumPart_ThisFile and NumPart_Total");
  throw Error(fmt::format("there is no dataset '{}/{}'", where, name),
              ours ? "the run that wrote the file had output.fields without it" : "",
              ours ? "take a snapshot that has it, a restart or the run's stopped.hdf5"
                   : "the file is incomplete; make it again");
}

// GADGET-4 with OUTPUT_COORDINATES_AS_INTEGERS counts positions in 2^-32 or 2^-64 of the side of a periodic box.
void read_integers(hid_t group, const FileHeader& header, const TypeRows& rows, std::array<double, 3>* positions) {
  const double side = header.set.box_size;
  if (!(side > 0) || header.comoving == false)
    throw Error(fmt::format("'{}/IntCoordinates' counts parts of an unknown length", rows.group()),
                "the set is isolated, and GADGET-4 does not write its extent",
                "write it without OUTPUT_COORDINATES_AS_INTEGERS");
  H5Id dataset = open_dataset(group, "IntCoordinates");
  H5Id type(H5Dget_type(dataset), H5Tclose);
  const double unit = side * std::exp2(-8.0 * static_cast<double>(H5Tget_size(type)));
  read_block(group, rows, "IntCoordinates", 3, H5T_NATIVE_DOUBLE, positions);
  for (std::uint64_t i = 0; i < rows.count; ++i)
    for (double& x : positions[i]) x *= unit;
}

void read_type(hid_t file, const FileHeader& header, const TypeRows& rows, Snapshot& s,
               std::vector<std::string>& notes) {
  const std::string where = rows.group();
  const float given_mass = static_cast<float>(header.mass_table[rows.type]);
  if (!hdf5_exists(file, where)) {
    throw Error(fmt::format("there is no group '{}'", where), fmt::format("the header promises {} particles", rows.all),
                "the file is incomplete; make it again");
  }
  H5Id group = open_group(file, where);
  const std::string velocities = present(group, {"Velocities", "Velocity"}), masses = present(group, kMassNames);
  for (const auto& [name, found] :
       {std::pair{"Coordinates", present(group, {"Coordinates", "IntCoordinates"})}, {"Velocities", velocities}}) {
    if (found.empty()) refuse_missing(file, group, where, name);
  }
  if (hdf5_exists(group, "Coordinates")) {
    read_block(group, rows, "Coordinates", 3, H5T_NATIVE_DOUBLE, &s.positions[rows.at]);
  } else {
    read_integers(group, header, rows, &s.positions[rows.at]);
  }
  read_block(group, rows, velocities, 3, H5T_NATIVE_FLOAT, &s.velocities[rows.at]);
  if (header.mass_table[rows.type] > 0) {
    std::fill_n(&s.masses[rows.at], rows.count, given_mass);
  } else if (!masses.empty()) {
    read_block(group, rows, masses, 1, H5T_NATIVE_FLOAT, &s.masses[rows.at]);
  } else {
    throw Error(fmt::format("particles of type {} have no masses", rows.type),
                fmt::format("MassTable[{}] is 0 and there is no dataset '{}/Masses'", rows.type, where),
                "give them a mass in one of the two places");
  }
  if (hdf5_exists(group, "ParticleIDs")) {
    read_ids(group, rows, &s.ids[rows.at]);
  } else {
    std::iota(&s.ids[rows.at], &s.ids[rows.at] + rows.count, rows.number + 1);
    notes.push_back(fmt::format("particles of type {} have no ids: they are numbered", rows.type));
  }
}

// Whether names have SWIFT's meaning. Its snapshots say so; initial conditions for it, as of monofonIC and swiftsimio,
// have its names of the units alone, and no h.
bool is_swift(hid_t file, hid_t header) {
  if (const auto code = read_text(header, "Code")) return *code == "SWIFT";
  if (!hdf5_exists(file, "Units") || H5Aexists(header, "HubbleParam") > 0) return false;
  H5Id units = open_group(file, "Units");
  return H5Aexists(units, "Unit length in cgs (U_L)") > 0 && H5Aexists(units, "UnitLength_in_cm") <= 0;
}

// SWIFT's meaning of the same names: Time is a time, lengths and masses are without h, velocities are peculiar. Initial
// conditions do not say whether they are comoving, and need not have a scale factor.
void read_swift(hid_t group, FileHeader& header) {
  header.over_root_a = false;
  header.set.units.with_h = false;
  const double from_redshift = 1 / (1 + std::max(0.0, header.set.redshift));
  const auto stated = read_scalar<double>(group, "Scale-factor");
  const double scale_factor = stated.value_or(from_redshift);
  header.has_time = header.comoving || stated || read_scalar<double>(group, "Redshift");
  header.comoving = header.comoving.value_or(scale_factor < 1);
  if (*header.comoving) header.set.time = scale_factor;
}

// Whether particles have masses of their own. These count, not the table, into which swiftsimio puts the first of them.
// In Maki's files with a table all masses are equal.
bool has_masses(hid_t file, const std::string& type, std::uint64_t count) {
  if (hdf5_exists(file, "Maki") || !hdf5_exists(file, type)) return false;
  H5Id group = open_group(file, type);
  const std::string name = present(group, kMassNames);
  if (name.empty()) return false;
  const auto shape = dataset_shape(open_dataset(group, name));
  return !shape.empty() && shape[0] == count;
}

void check_cube(const std::string& path, hid_t group) {
  const auto sides = read_attribute<double>(group, "BoxSize");
  if (std::adjacent_find(sides.begin(), sides.end(), std::not_equal_to<>()) != sides.end())
    throw Error(fmt::format("cannot read '{}'", path), "its box is no cube", "Maki's boxes are cubes");
}

}  // namespace

FileHeader read_hdf5_header(const std::string& path) {
  const Hdf5Turn turn;
  H5Id file = open_hdf5(path);
  if (!hdf5_exists(file, "Header")) {
    throw Error(fmt::format("cannot read '{}'", path), "an HDF5 file without the group 'Header'",
                "give a snapshot in GADGET's layout");
  }
  if (hdf5_exists(file, "Units") && H5Aexists(open_group(file, "Units"), "KpcUnit") > 0)
    throw Error(fmt::format("cannot read '{}'", path), "it is in PKDGRAV3's layout and units",
                "make it in GADGET's or SWIFT's layout (monofonIC: gadget_hdf5 or SWIFT)");
  H5Id group = open_group(file, "Header");
  FileHeader header;
  const bool swift = is_swift(file, group);
  header.format = swift ? "SWIFT HDF5" : "GADGET HDF5";
  read_hdf5_facts(file, header);
  const auto counts = read_attribute<std::uint64_t>(group, "NumPart_ThisFile");
  if (counts.empty()) {
    throw Error(fmt::format("cannot read '{}'", path), "'Header' has no attribute 'NumPart_ThisFile'",
                "give a snapshot in GADGET's layout");
  }
  if (counts.size() > kTypes && std::any_of(counts.begin() + kTypes, counts.end(), [](auto n) { return n > 0; })) {
    throw Error(fmt::format("cannot read '{}'", path), fmt::format("{} types of particles", counts.size()),
                "only types 0 to 5 can be read");
  }
  header.counts = six<std::uint64_t>(group, "NumPart_ThisFile");
  header.totals = six<std::uint64_t>(group, "NumPart_Total");
  const auto high = six<std::uint64_t>(group, "NumPart_Total_HighWord");
  for (std::size_t type = 0; type < kTypes; ++type) {  // some codes write all 64 bits into the low word as well
    if (high[type] > 0) header.totals[type] = (header.totals[type] & 0xffffffffu) + (high[type] << 32);
  }
  header.mass_table = six<double>(group, "MassTable");
  header.files = read_scalar<std::int32_t>(group, "NumFilesPerSnapshot").value_or(1);
  if (header.files <= 1) header.totals = header.counts;
  check_cube(path, group);
  if (swift) read_swift(group, header);
  for (std::size_t type = 0; type < kTypes; ++type) {
    const std::string name = fmt::format("PartType{}", type);
    for (const std::string& line : list_datasets(file, name, header.set.units)) header.datasets.push_back(line);
    if (has_masses(file, name, header.counts[type])) header.mass_table[type] = 0;
  }
  header.light_cone = std::any_of(header.datasets.begin(), header.datasets.end(), [](const std::string& dataset) {
    return dataset.find("/Ascale ") != std::string::npos;
  });
  return header;
}

void read_hdf5_particles(const std::string& path, const FileHeader& header, const Rows& rows, Snapshot& snapshot,
                         std::vector<std::string>& notes) {
  const Hdf5Turn turn;
  H5Id file = open_hdf5(path);
  std::uint64_t type_begin = 0;
  for (std::size_t type = 0; type < kTypes; type_begin += header.counts[type], ++type) {
    const std::uint64_t begin = std::max(rows.begin, type_begin);
    const std::uint64_t end = std::min(rows.end, type_begin + header.counts[type]);
    if (begin >= end) continue;
    const std::uint64_t before = begin - rows.begin;
    at_place(fmt::format("cannot read '{}'", path), [&] {
      read_type(file, header,
                {type, header.counts[type], begin - type_begin, end - begin, rows.number + before, rows.at + before},
                snapshot, notes);
    });
  }
}

}  // namespace maki::gadget

namespace maki {

std::vector<double> read_extra_dataset(const std::string& path, const std::string& name) {
  const Hdf5Turn turn;
  H5Id file = open_hdf5(path);
  if (!hdf5_exists(file, "PartType1") || !hdf5_exists(open_group(file, "PartType1"), name)) {
    throw Error(fmt::format("'{}' has no dataset 'PartType1/{}'", path, name), "", "write it with 'maki forces'");
  }
  H5Id group = open_group(file, "PartType1");
  H5Id dataset = open_dataset(group, name);
  const auto shape = dataset_shape(dataset);
  std::vector<double> values(std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>()));
  read_rows(dataset, 0, shape.empty() ? 0 : shape[0], H5T_NATIVE_DOUBLE, values.data());
  return values;
}

}  // namespace maki
