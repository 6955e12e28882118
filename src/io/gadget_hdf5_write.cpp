// Metadata of HDF5 files in the layouts of GADGET-4 and of SWIFT.
#include <fmt/format.h>

#include <boost/math/quadrature/gauss.hpp>

#include <cmath>

#include "src/io/gadget.hpp"
#include "src/io/gadget_write.hpp"

namespace maki::gadget {
namespace {

// In SWIFT's snapshots, read by swiftsimio, pynbody and yt, numbers are arrays of one element, and texts have a fixed
// length.

constexpr std::size_t kSwiftTypes = 7;  // of particles: GADGET's six, and neutrinos

template <class T>
void write_one(hid_t object, const std::string& name, T value) {
  write_attribute(object, name, &value, 1);
}

// An array over types of particles.
template <class T>
void write_of_type_1(hid_t object, const std::string& name, std::size_t types, T value, T other = 0) {
  std::vector<T> values(types, other);
  values[1] = value;
  write_attribute(object, name, values.data(), types);
}

double scale_factor(const SnapshotHeader& header) { return header.comoving ? header.time : 1; }

double seconds(const UnitSystem& units) { return units.length_cgs / units.velocity_cgs; }  // the unit of time

// GADGET-4 reads the whole total from NumPart_Total, SWIFT, as GADGET-2, two halves. A reader that adds the halves is
// right with both.
void write_counts(hid_t group, const Part& part, std::size_t types) {
  const bool halves = part.options.layout == FileLayout::kSwift;
  write_of_type_1<std::uint64_t>(group, "NumPart_ThisFile", types, part.rows());
  if (halves)
    write_of_type_1(group, "NumPart_Total", types, static_cast<std::uint32_t>(part.total));
  else
    write_of_type_1<std::uint64_t>(group, "NumPart_Total", types, part.total);
  write_of_type_1(group, "NumPart_Total_HighWord", types, static_cast<std::uint32_t>(halves ? part.total >> 32 : 0));
  write_of_type_1(group, "MassTable", types, part.equal_mass);
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
  write_counts(group, part, kSwiftTypes);
  write_of_type_1<std::int32_t>(group, "CanHaveTypes", kSwiftTypes, 1);
  write_of_type_1<std::uint32_t>(group, "Flag_Entropy_ICs", kSwiftTypes, 0);
  write_one<std::int32_t>(group, "NumFilesPerSnapshot", part.files);
  write_one<std::int32_t>(group, "ThisFile", part.number);
  write_one<std::int32_t>(group, "Virtual", 0);
  write_fixed_text(group, "SelectOutput", "Default");
  write_fixed_text(group, "OutputType", "FullVolume");  // swiftsimio opens no other kind of snapshot
  if (part.options.selection.fraction < 1)
    write_of_type_1(group, kSubsetFractions, kSwiftTypes, static_cast<float>(part.options.selection.fraction), 1.f);
}

void write_swift_cosmology(hid_t file, const SnapshotHeader& header) {
  H5Id group = create_group(file, "Cosmology");
  const double a = scale_factor(header), h = header.hubble > 0 ? header.hubble : 1;
  const double hubble = 100 * h * 1e5 / kMpcCgs * seconds(header.units);
  const double now = header.comoving ? header.expansion(a) : 0;
  write_one<std::int32_t>(group, "Cosmological run", header.comoving ? 1 : 0);
  const std::pair<const char*, double> numbers[] = {{"Scale-factor", a},
                                                    {"Redshift", header.redshift},
                                                    {"h", h},
                                                    {"H0 [internal units]", hubble},
                                                    {"H [internal units]", hubble * now},
                                                    {"Omega_m", header.omega0},
                                                    {"Omega_lambda", header.omega_lambda},
                                                    {"Omega_k", header.comoving ? header.omega_curvature() : 0},
                                                    {"Omega_b", header.omega_baryon},
                                                    {"Omega_cdm", header.omega0 - header.omega_baryon},
                                                    {"Omega_nu", 0},
                                                    {"Omega_nu_0", 0},
                                                    {"Omega_r", header.omega_radiation},
                                                    {"Omega_ur", 0},
                                                    {"w", header.pressure_ratio(a)},
                                                    {"w_0", header.w0},
                                                    {"w_a", header.wa},
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

double time_gyr(const SnapshotHeader& header) {
  if (!header.comoving) return header.time * header.units.length_cgs / header.units.velocity_cgs / kSecondsPerGyr;
  if (!(header.omega0 > 0) || !(header.hubble > 0)) return 0;
  const auto integrand = [&](double a) { return 1 / (a * header.expansion(a)); };
  double total = 0;  // by octaves; what is left before the last is 1e-12 of all
  for (double end = header.time; end > 1e-8 * header.time; end /= 2)
    total += boost::math::quadrature::gauss<double, 20>::integrate(integrand, end / 2, end);
  const double hubble = header.hubble * 100 * 1e5 / kMpcCgs;
  return total / hubble / kSecondsPerGyr;
}

namespace {

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
  write_attribute(group, "Omega_r", header.omega_radiation);
  write_attribute(group, "w_0", header.w0);
  write_attribute(group, "w_a", header.wa);
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

  write_provenance(file, provenance);
}

void write_provenance(hid_t file, const Provenance& provenance) {
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

double to_cgs(const Scaling& s, const UnitSystem& units) {
  return std::pow(units.length_cgs, s.length) * std::pow(units.mass_cgs, s.mass) *
         std::pow(units.velocity_cgs, s.velocity);
}

void write_scaling(hid_t dataset, const Scaling& s, const UnitSystem& units) {
  write_attribute(dataset, "a_scaling", s.a);
  write_attribute(dataset, "h_scaling", s.h);
  write_attribute(dataset, "length_scaling", s.length);
  write_attribute(dataset, "mass_scaling", s.mass);
  write_attribute(dataset, "velocity_scaling", s.velocity);
  write_attribute(dataset, "to_cgs", to_cgs(s, units));
  write_attribute(dataset, "VarDescription", s.description);
  write_attribute(dataset, "CGSConversionFactor", to_cgs(s, units));
  write_attribute(dataset, "aexp-scale-exponent", s.a);
  write_attribute(dataset, "h-scale-exponent", s.h);
}

namespace {

void write_header(hid_t file, const Part& part) {
  H5Id group = create_group(file, "Header");
  write_counts(group, part, kTypes);
  write_attribute(group, "Time", part.header.time);
  write_attribute(group, "Redshift", part.header.redshift);
  write_attribute<std::int32_t>(group, "NumFilesPerSnapshot", part.files);
  write_cosmology(group, part.header);
  for (const char* flag : {"Flag_Sfr", "Flag_Cooling", "Flag_Feedback", "Flag_StellarAge", "Flag_Metals",
                           "Flag_Entropy_ICs"}) {  // GADGET-2 and 3 require these
    write_attribute<std::int32_t>(group, flag, 0);
  }
  write_attribute<std::int32_t>(group, "Flag_DoublePrecision",
                                part.options.coordinates != CoordinateNumbers::kFloat ? 1 : 0);  // AREPO requires it
  for (const HeaderNumbers& one : part.options.header)
    write_attribute(group, one.name, one.values.data(), one.values.size() == 1 ? 0 : one.values.size());
  if (part.options.selection.fraction >= 1) return;
  write_of_type_1(group, kSubsetFractions, kTypes, static_cast<float>(part.options.selection.fraction), 1.f);
  write_attribute(group, "OutputType", "SubSampled");
}

// Which particles a file holds, if not all.
void write_selection(hid_t file, const ParticleSelection& selection) {
  H5Id maki = open_group(file, "Maki");
  write_attribute(maki, "ParticlesOfRun", selection.of_particles);
  write_attribute(maki, "Fraction", selection.fraction);
  write_attribute(maki, "Particles", selection.in_groups ? "groups" : "all");
}

void write_swift_groups(hid_t file, const Part& part, const Provenance& provenance) {
  write_swift_header(file, part);
  write_swift_cosmology(file, part.header);
  write_parameters(file, part.header);
  write_swift_units(file, part.header.units);
  for (const char* empty : {"HydroScheme", "SubgridScheme"}) create_group(file, empty);
  write_provenance(file, provenance);
  write_attribute(open_group(file, "Maki"), "GravityConstantInternal", part.header.newton());
}

}  // namespace

void write_groups(hid_t file, const Part& part, const Provenance& provenance) {
  if (part.options.layout == FileLayout::kSwift) {
    write_swift_groups(file, part, provenance);
  } else {
    write_header(file, part);
    write_metadata(file, part.header, provenance);
  }
  if (!part.options.selection.is_whole()) write_selection(file, part.options.selection);
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
