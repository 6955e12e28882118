// Metadata of SWIFT's snapshots: groups and attributes with its names, for swiftsimio, pynbody and yt. Numbers are
// arrays of one element, and texts have a fixed length.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/io/gadget.hpp"
#include "src/io/gadget_write.hpp"

namespace maki::gadget {

namespace {

constexpr std::size_t kSwiftTypes = 7;  // of particles: GADGET's six, and neutrinos

template <class T>
void write_one(hid_t object, const std::string& name, T value) {
  write_attribute(object, name, &value, 1);
}

template <class T>
void write_of_type_1(hid_t object, const std::string& name, T value, T other = 0) {
  T values[kSwiftTypes];
  std::fill_n(values, kSwiftTypes, other);
  values[1] = value;
  write_attribute(object, name, values, kSwiftTypes);
}

double scale_factor(const SnapshotHeader& header) { return header.comoving ? header.time : 1; }

double seconds(const UnitSystem& units) { return units.length_cgs / units.velocity_cgs; }  // the unit of time

void write_counts(hid_t group, const Part& part) {
  write_of_type_1<std::uint64_t>(group, "NumPart_ThisFile", part.rows());
  write_of_type_1(group, "NumPart_Total", static_cast<std::uint32_t>(part.total));
  write_of_type_1(group, "NumPart_Total_HighWord", static_cast<std::uint32_t>(part.total >> 32));
  write_of_type_1(group, "MassTable", part.equal_mass);
  write_of_type_1<std::int32_t>(group, "CanHaveTypes", 1);
  write_of_type_1<std::uint32_t>(group, "Flag_Entropy_ICs", 0);
}

void write_swift_header(hid_t file, const Part& part) {
  const SnapshotHeader& header = part.header;
  H5Id group = create_group(file, "Header");
  const double box[3] = {header.box_size, header.box_size, header.box_size};
  write_attribute(group, "BoxSize", box, 3);
  write_one(group, "Time", time_gyr(header) * kSecondsPerGyr / seconds(header.units));
  write_one<std::int32_t>(group, "Dimension", 3);
  write_one(group, "Redshift", header.redshift);
  write_one(group, "Scale-factor", scale_factor(header));
  write_fixed_text(group, "Code", "SWIFT");  // yt identifies the layout by it; /Maki names the writer
  write_fixed_text(group, "RunName", "Maki");
  write_counts(group, part);
  write_one<std::int32_t>(group, "NumFilesPerSnapshot", part.files);
  write_one<std::int32_t>(group, "ThisFile", part.number);
  write_one<std::int32_t>(group, "Virtual", 0);
  write_fixed_text(group, "SelectOutput", "Default");
  write_fixed_text(group, "OutputType", "FullVolume");  // swiftsimio opens no other kind of snapshot
  if (part.selection.fraction < 1)
    write_of_type_1(group, kSubsetFractions, static_cast<float>(part.selection.fraction), 1.f);
}

void write_swift_cosmology(hid_t file, const SnapshotHeader& header) {
  H5Id group = create_group(file, "Cosmology");
  const double a = scale_factor(header), h = header.hubble > 0 ? header.hubble : 1;
  const double hubble = 100 * h * 1e5 / kMpcCgs * seconds(header.units);
  const double curvature = header.comoving ? 1 - header.omega0 - header.omega_lambda : 0;
  const double now = std::sqrt(header.omega0 / (a * a * a) + curvature / (a * a) + header.omega_lambda);
  write_one<std::int32_t>(group, "Cosmological run", header.comoving ? 1 : 0);
  const std::pair<const char*, double> numbers[] = {{"Scale-factor", a},
                                                    {"Redshift", header.redshift},
                                                    {"h", h},
                                                    {"H0 [internal units]", hubble},
                                                    {"H [internal units]", hubble * now},
                                                    {"Omega_m", header.omega0},
                                                    {"Omega_lambda", header.omega_lambda},
                                                    {"Omega_k", curvature},
                                                    {"Omega_b", header.omega_baryon},
                                                    {"Omega_cdm", header.omega0 - header.omega_baryon},
                                                    {"Omega_nu", 0},
                                                    {"Omega_nu_0", 0},
                                                    {"Omega_r", 0},
                                                    {"Omega_ur", 0},
                                                    {"w", -1},
                                                    {"w_0", -1},
                                                    {"w_a", 0},
                                                    {"N_eff", 0},
                                                    {"N_ur", 0},
                                                    {"M_nu_eV", 0},
                                                    {"deg_nu", 0},
                                                    {"T_CMB_0 [K]", 0}};
  for (const auto& [name, number] : numbers) write_one(group, name, number);
}

// yt reads these, as texts.
void write_parameters(hid_t file, const SnapshotHeader& header) {
  H5Id policy = create_group(file, "Policy");
  write_one<std::int32_t>(policy, "cosmological integration", header.comoving ? 1 : 0);
  write_one<std::int32_t>(policy, "self gravity", 1);
  H5Id parameters = create_group(file, "Parameters");
  write_fixed_text(parameters, "InitialConditions:periodic", header.comoving ? "1" : "0");
  if (!header.comoving) return;
  for (const auto& [name, number] : {std::pair{"Cosmology:Omega_m", header.omega0},
                                     {"Cosmology:Omega_lambda", header.omega_lambda},
                                     {"Cosmology:Omega_b", header.omega_baryon},
                                     {"Cosmology:h", header.hubble}})
    write_fixed_text(parameters, name, fmt::format("{}", number));
}

void write_swift_units(hid_t file, const UnitSystem& units) {
  for (const char* name : {"Units", "InternalCodeUnits"}) {
    H5Id group = create_group(file, name);
    write_one(group, "Unit length in cgs (U_L)", units.length_cgs);
    write_one(group, "Unit mass in cgs (U_M)", units.mass_cgs);
    write_one(group, "Unit time in cgs (U_t)", seconds(units));
    write_one(group, "Unit current in cgs (U_I)", 1.0);
    write_one(group, "Unit temperature in cgs (U_T)", 1.0);
  }
}

}  // namespace

void write_swift_groups(hid_t file, const Part& part, const Provenance& provenance) {
  write_swift_header(file, part);
  write_swift_cosmology(file, part.header);
  write_parameters(file, part.header);
  write_swift_units(file, part.header.units);
  for (const char* empty : {"HydroScheme", "SubgridScheme"}) create_group(file, empty);
  write_provenance(file, provenance);
  write_attribute(open_group(file, "Maki"), "GravityConstantInternal", part.header.newton());
}

void write_swift_scaling(hid_t dataset, const Scaling& s, const SnapshotHeader& header) {
  const UnitSystem& units = header.units;
  write_one(dataset, "U_L exponent", static_cast<float>(s.length + s.velocity));
  write_one(dataset, "U_M exponent", static_cast<float>(s.mass));
  write_one(dataset, "U_t exponent", static_cast<float>(-s.velocity));
  write_one(dataset, "U_I exponent", 0.f);
  write_one(dataset, "U_T exponent", 0.f);
  write_one(dataset, "a-scale exponent", static_cast<float>(s.a));
  write_one(dataset, "h-scale exponent", 0.f);
  write_one(dataset, "Conversion factor to CGS (not including cosmological corrections)", to_cgs(s, units));
  write_one(dataset, "Conversion factor to physical CGS (including cosmological corrections)",
            to_cgs(s, units) * std::pow(scale_factor(header), s.a));
  write_one<std::int32_t>(dataset, "Value stored as physical", 0);
  write_one<std::int32_t>(dataset, "Property can be converted to comoving", 1);
  write_fixed_text(dataset, "Description", s.description);
}

}  // namespace maki::gadget
