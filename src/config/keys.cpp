#include "src/config/keys.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <stdexcept>

#include "src/config/key_access.hpp"
#include "src/config/resolve.hpp"

namespace maki::detail {

std::string write(double value) {
  std::string text = fmt::format("{}", value);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

std::string shown(const Value& value) {
  const auto* number = std::get_if<double>(&value);
  return number ? fmt::format("{}", *number) : std::visit([](const auto& one) { return write(one); }, value);
}

void refuse(const Key& key, const Value& value) {
  throw Error(fmt::format("{} does not fit", shown(value)), "", "give " + key.expectation());
}

void check_range(const Key& key, double number, const Value& value) {
  const bool inside =
      std::isfinite(number) && number <= key.max && (key.above_min ? number > key.min : number >= key.min);
  if (!inside) throw Error(fmt::format("{} is out of range", shown(value)), "", "give " + key.expectation());
}

}  // namespace maki::detail

namespace maki {
namespace {

// clang-format off
// The name of a key is the path of its field, so the two cannot disagree.
#define KEY(path) add(detail::make_key(#path, [](auto& config) -> auto& { return config.path; }))

constexpr double kAnyCount = 9.0e15;  // integers a double holds exactly

struct Table {
  std::vector<Key> keys;
  Key& add(Key key) { return keys.emplace_back(std::move(key)); }

  void run() {
    KEY(run.kind).means("comoving periodic box, or isolated system with a = 1");
    KEY(run.name).means("of the run; it names the output directory");
    KEY(run.output_directory).own().means("made where it is missing; auto: output/ and the name, and then the site's");
    KEY(run.overwrite).own().means("remove what an earlier run has left in the output directory, restarts too");
    KEY(run.preset).means("force accuracy and steps; sets every key below whose \"auto\" says so");
    KEY(run.threads).own().range(1, 4096)
        .means("host threads of each rank; auto: one for each processor that the job may use, shared by the machine's ranks");
    KEY(run.device).own().range(0, 1023)
        .means("which GPU, by its number; auto: the first, and the ranks of one machine take its GPUs in turn");
    KEY(run.deterministic)
        .means("share the work by counts and not by times: a run repeats itself to the last bit, a periodic box also "
               "with other numbers of ranks and sites");
    KEY(run.time_limit).own().unit(Dimension::kWallTime, "s").above(0)
        .means("wall-clock time from the start of the program within which the run stops cleanly, with a restart and "
               "stopped.hdf5 (room is left for as long as the longest took since the program began, or by 0.1 GB/s a rank); auto: none");
    KEY(run.restart_interval).own().unit(Dimension::kWallTime, "s").at_least(0)
        .means("wall-clock time between restarts, from which maki resume goes on (over sites that of the first site counts); 0: none for this reason");
    KEY(run.restart_steps).range(0, kAnyCount)
        .means("a restart after so many steps; 0: none for this reason. A run that is stopped or ends writes one too");
    KEY(run.restarts_kept).own().range(0, 1000)
        .means("the last restarts are kept, so many, and over sites two more; 0: none is written");
    KEY(run.ignore_memory).own()
        .means("start even where the estimate of memory (maki run --estimate) says it will not fit");
    KEY(run.machine).own().only(RunKind::kCosmology)
        .means("constants of this machine, a file that maki model calibrate -o writes: the log ends with modelled times beside "
               "the measured ones; auto: none");
    KEY(run.progress).own()
        .means("what a run says on stdout: text for people; json, each line an object, for programs (docs/running.md); none");
  }

  void units() {
    KEY(units.length).above(0).unit(Dimension::kLength)
        .means("of output files, and in isolated runs of plain numbers; auto: Mpc/h, isolated runs: pure numbers, with a file those that it states");
    KEY(units.mass).above(0).unit(Dimension::kMass).means("auto: 1e10 Msun/h, isolated runs: pure numbers");
    KEY(units.velocity).above(0).unit(Dimension::kVelocity)
        .means("auto: km/s, isolated runs: such that Newton's constant is 1 (but km/s or the like has to be said for a file)");
    KEY(units.gravitational_constant).above(0).only(RunKind::kIsolated)
        .means("Newton's constant; auto: from the units, 1 where they are pure numbers");
  }

  void box() {
    KEY(box.size).unit(Dimension::kLength, "Mpc/h").above(0)
        .means("side of the box, comoving; auto: the file's, isolated runs: large enough for the set");
  }

  void cosmology() {
    const auto generated = [](Key& key) -> Key& { return key.with(InitialKind::kLpt); };
    KEY(cosmology.omega0).above(0).range(0, 2).only(RunKind::kCosmology)
        .means("all matter, today; auto: the file's, else 0.308");
    KEY(cosmology.omega_lambda).range(-2, 3).only(RunKind::kCosmology)
        .means("dark energy, today; auto: the file's, else 1 - omega0 - omega_radiation");
    KEY(cosmology.omega_radiation).range(0, 0.1).only(RunKind::kCosmology)
        .means("photons and massless neutrinos, today (4.2e-5 / h^2), which expand and do not cluster; auto: the file's, else 0");
    KEY(cosmology.w0).range(-3, 0).only(RunKind::kCosmology)
        .means("dark energy's pressure over density, today; -1: a cosmological constant; auto: the file's, else -1");
    KEY(cosmology.wa).range(-10, 3).only(RunKind::kCosmology)
        .means("its change: w = w0 + wa (1 - a), w0 + wa at most -1/3; auto: the file's, else 0");
    KEY(cosmology.omega_baryon).range(0, 1).only(RunKind::kCosmology)
        .means("part of omega0, shapes the power spectrum; auto: the file's, else 0.0482");
    KEY(cosmology.hubble_param).range(0.1, 2).only(RunKind::kCosmology)
        .means("h, H0 in 100 km/s/Mpc; auto: the file's, else 0.678");
    generated(KEY(cosmology.sigma8)).range(0, 3).only(RunKind::kCosmology)
        .means("linear rms contrast in 8 Mpc/h spheres at z = 0; 0 takes a table's amplitude as it stands");
    generated(KEY(cosmology.n_s)).range(0.2, 2).only(RunKind::kCosmology).means("primordial spectral index");
    generated(KEY(cosmology.transfer)).only(RunKind::kCosmology).means("shape of the linear power spectrum");
    generated(KEY(cosmology.transfer_table)).own().only(RunKind::kCosmology)
        .means("for \"table\": text, k in h/Mpc and P(k) in (Mpc/h)^3, as CLASS and CAMB write");
    generated(KEY(cosmology.table_redshift)).range(0, 1100).only(RunKind::kCosmology)
        .means("with sigma8 = 0: of the table's spectrum, which is then scaled to z = 0 by the growth factor");
    generated(KEY(cosmology.power_law_index)).range(-2.99, 0.99).only(RunKind::kCosmology)
        .means("for \"power-law\": P(k) goes with k to this power");
  }

  void initial() {
    using enum InitialKind;
    KEY(initial.kind).means("lpt and pancake are cosmological, a file is either, the others are isolated");
    KEY(initial.file).own().with(kFile)
        .means("snapshot or initial conditions of Maki, GADGET (HDF5, or binary type 1 or 2) or SWIFT");
    KEY(initial.particles_per_side).with(kLpt, kPancake).range(4, 16384)
        .means("their cube is the number of particles; even");
    KEY(initial.particles).with(kPlummer, kColdSphere, kKeplerDisk).range(1, 4.2e9).means("number of particles");
    KEY(initial.seed).with(kLpt, kPlummer, kColdSphere, kKeplerDisk).range(0, kAnyCount)
        .means("of the random numbers; the same seed is the same universe at any resolution");
    KEY(initial.redshift).only(RunKind::kCosmology).with(kLpt, kPancake, kFile).range(0, 1000).above(0)
        .means("where the run starts; auto: 49, or the file's; files that do not tell theirs (SWIFT's without Scale-factor, "
               "GADGET's with Time = 0) need it");
    KEY(initial.lpt_order).with(kLpt).range(1, 2)
        .means("1: Zel'dovich, 2: second-order Lagrangian perturbation theory");
    KEY(initial.fixed_amplitudes).with(kLpt).means("every mode has the mean amplitude exactly, only phases are random");
    KEY(initial.flip_phases).with(kLpt).means("turn the density contrast around: the partner of a pair");
    KEY(initial.collapse_redshift).with(kPancake).range(-0.9, 100).means("where the pancake's shells first cross");
    KEY(initial.mass).with(kPlummer, kColdSphere, kKeplerDisk, kTwoBody).unit(Dimension::kMass).above(0)
        .means("total mass; of a kepler_disk the central body, of two_body the first");
    KEY(initial.second_mass).with(kTwoBody).unit(Dimension::kMass).above(0).means("the other body");
    KEY(initial.radius).with(kPlummer, kColdSphere, kKeplerDisk, kTwoBody).unit(Dimension::kLength).above(0)
        .means("Plummer's scale length, the sphere's radius, the disk's outer edge, the orbit's semi-major axis");
    KEY(initial.truncation_radius).with(kPlummer).unit(Dimension::kLength).above(0)
        .means("particles farther out are not made; auto: none");
    KEY(initial.virial_ratio).with(kColdSphere).range(0, 2).means("2T/|W|: 0 at rest, 1 in equilibrium");
    KEY(initial.disk_mass).with(kKeplerDisk).unit(Dimension::kMass).above(0).means("all light particles together");
    KEY(initial.inner_radius).with(kKeplerDisk).unit(Dimension::kLength).above(0).means("inner edge of the disk");
    KEY(initial.surface_density_slope).with(kKeplerDisk).range(-5, 5)
        .means("surface density goes with r to this power");
    KEY(initial.eccentricity).with(kKeplerDisk, kTwoBody).range(0, 0.99)
        .means("of the orbit; of a disk the rms of all, up to 0.5");
    KEY(initial.inclination).with(kKeplerDisk).range(0, 0.5).means("rms inclination of the orbits in radian");
  }

  void gravity() {
    KEY(gravity.softening).unit(Dimension::kLength, "kpc/h").above(0)
        .means("comoving, as GADGET counts it: the Plummer length of as deep a potential; auto: 1/30 of the mean distance of "
               "particles in cosmological runs, of the light ones of a zoom where these are at least half of all");
    KEY(gravity.softening_kind)
        .means("GADGET's spline, exactly Newton beyond 2.8 softening lengths, or Plummer's law, 6 % weak at 5 of them");
    KEY(gravity.max_physical_softening).unit(Dimension::kLength, "kpc/h").above(0).only(RunKind::kCosmology)
        .means("cap on softening times a; auto: none");
    KEY(gravity.method).only(RunKind::kIsolated).means("direct sums over all pairs, for small isolated sets");
    KEY(gravity.error).range(kLeastForceError, 1)
        .means("rms error of forces over the rms force, at most, in boxes of 50 to 1000 Mpc/h with a particle each 16 Mpc/h "
               "or closer from z = 49 on, and of isolated sets: sets theta, split_order, r_cut and gradient where they are auto, and output.error_targets; auto: "
               "preset");
    KEY(gravity.theta).range(0.05, 1.5).means("opening angle of the tree; auto: preset");
    KEY(gravity.opening).only(RunKind::kIsolated)
        .means("which cells are divided: those seen under a larger angle than theta, or those whose error would be too large a "
               "part of the last acceleration, with fewer interactions for as good forces; auto: error; angle without "
               "quadrupoles, and with run.deterministic or a number for gravity.reuse (with 1 a run resumed on one rank is "
               "the same to the bit)");
    KEY(gravity.theta_early).range(0.05, 1.5).only(RunKind::kCosmology)
        .means("opening angle while forces nearly cancel, which is measured; auto: preset, at most theta");
    KEY(gravity.quadrupoles).means("cells act with their quadrupoles too, not as points alone");
    KEY(gravity.split).only(RunKind::kCosmology).means("how the force is shared by tree and mesh; auto: preset");
    KEY(gravity.split_order).range(1, kMaxSplitOrder).only(RunKind::kCosmology)
        .means("degree of the polynomial split; higher needs more cells to r_cut; auto: preset");
    KEY(gravity.r_cut).range(1, 32).only(RunKind::kCosmology)
        .means("reach of the tree's force in mesh cells; auto: preset");
    KEY(gravity.mesh).range(8, 32768).only(RunKind::kCosmology).means("mesh cells along a side, even; auto: preset");
    KEY(gravity.assignment).only(RunKind::kCosmology)
        .means("particle shape on the mesh: 2, 3 or 4 cells wide; auto: preset");
    KEY(gravity.interlacing).only(RunKind::kCosmology)
        .means("a second mesh half a cell aside against aliasing; auto: preset");
    KEY(gravity.gradient).only(RunKind::kCosmology).means("how the mesh force comes from the potential; auto: preset");
    KEY(gravity.mesh_mass_bits).range(0, 40).only(RunKind::kCosmology)
        .means("masses on the mesh are rounded to about 2^-this of the lightest particle's; 0: exact; auto: 0, over sites or where "
               "deterministic by preset");
    KEY(gravity.leaf_size).range(1, 1024).means("a tree cell with more particles is divided");
    KEY(gravity.group_size).range(8, 2048).means("particles that share an interaction list, at most (n_crit)");
    KEY(gravity.reuse).range(1, 1000)
        .means("steps for which lists are kept; 1: none; auto: until their measured error or cost grows or, in a box, "
               "particles have gone r_cut / 20; in a periodic box where deterministic 2");
    KEY(gravity.reuse_tolerance).range(1, 100).means("error of kept lists over that of fresh ones; auto: preset");
    KEY(gravity.list_memory).own().unit(Dimension::kMemory, "B").above(0)
        .means("for interaction lists; beyond it they are made and used in batches; auto: what all else leaves free");
    KEY(gravity.let_compression)
        .means("many ranks: positions that ranks, and sites of an isolated set, send each other are in 16 bits, "
               "relative to their cell; not of ghosts");
  }

  void time() {
    KEY(time.end_redshift).range(-0.9, 1000).only(RunKind::kCosmology).means("where the run ends");
    KEY(time.end_time).unit(Dimension::kTime).above(0).only(RunKind::kIsolated).means("when the run ends");
    KEY(time.eta).above(0).range(0, 2)
        .means("step = eta sqrt(softening / acceleration), GADGET's ErrTolIntAccuracy is eta^2/2; auto: preset, less for "
               "few particles of a box");
    KEY(time.max_dlna).above(0).range(0, 0.5).only(RunKind::kCosmology)
        .means("longest step in ln a, but for 8 % where that spares one; auto: preset, less for few particles");
    KEY(time.long_dlna).above(0).range(0, 0.5).only(RunKind::kCosmology)
        .means("longest step of the mesh force in ln a where it has several short ones; auto: preset, less for few "
               "particles");
    KEY(time.growth_exact).only(RunKind::kCosmology)
        .means("kicks and drifts for which linear growth is exact in steps of any length; false: plain integrals over time");
    KEY(time.max_step).unit(Dimension::kTime).above(0).only(RunKind::kIsolated).means("longest step; auto: none");
    KEY(time.fixed_step).above(0).range(0, 1e30)
        .means("every step is this long, in ln a (0.5 at most) or the run's unit of time; auto: steps adapt");
  }

  void output() {
    KEY(output.redshifts).range(-0.9, 1000).only(RunKind::kCosmology)
        .means("output list: a snapshot at each, hit exactly, and always one at the end");
    KEY(output.times).unit(Dimension::kTime).range(0, 1e30).only(RunKind::kIsolated)
        .means("output list, such as [0.5, \"1 Gyr\"] (plain numbers are in the run's unit of time), and always one at the end");
    KEY(output.interval).unit(Dimension::kTime).above(0).only(RunKind::kIsolated)
        .means("a snapshot at each multiple of this time too, from 0 to the end; auto: at none");
    KEY(output.list).own()
        .means("instead of redshifts or times a file, as GADGET's OutputListFilename: in each line a scale factor (isolated runs: a time), and 0 "
               "behind it where there is to be no output; read at the start, restarts hold its numbers");
    KEY(output.compression).range(0, 9).means("level of HDF5's shuffle and deflate; 0: none, 1: about 2/3 of the size");
    KEY(output.fields).means("datasets of a snapshot, of Coordinates, Velocities, Masses and ParticleIDs");
    KEY(output.coordinates)
        .means("of snapshots: double has 8 bytes; float 4, off by 2^-24 of the box at most; fixed32 about 4, off by 2^-32 of the "
               "box at most, and every reader sees doubles, by HDF5's own scale-offset filter (isolated sets: of 2048 times "
               "the geometric mean distance, if particles are farther; 8 where some are 3e7 times as far)");
    KEY(output.velocities)
        .means("of snapshots: float has 4 bytes; half, IEEE's 16 bits, 2, off by 2^-11 of a component at most");
    KEY(output.subset).above(0).range(0, 1)
        .means("fraction of the particles that snapshots hold, chosen by a hash of their IDs: the same ones at all times");
    KEY(output.groups_only).only(RunKind::kCosmology)
        .means("snapshots hold the members of friends-of-friends groups alone, which output.groups finds");
    KEY(output.files).range(1, 65536)
        .means("of each snapshot, where the file system likes several: snapshot_NNN.0.hdf5 and so on; one site's runs alone");
    KEY(output.layout)
        .means("of snapshots: GADGET-4's, with units over h, or SWIFT's, without, which swiftsimio opens");
    KEY(output.power_spectrum).only(RunKind::kCosmology).means("P(k) as text beside each snapshot");
    KEY(output.power_mesh).range(8, 8192).only(RunKind::kCosmology)
        .means("mesh for P(k), even; auto: as many cells as particles along a side");
    KEY(output.power_folding).range(1, 4096).only(RunKind::kCosmology)
        .means("P(k) to so many times the Nyquist wave number of its mesh, by folding the box 1, 2, 4, ... times onto itself, "
               "a power of two; above 1 it takes 16 bytes a particle");
    KEY(output.groups).only(RunKind::kCosmology)
        .means("friends of friends beside each snapshot: catalogue, mass function, links to progenitors (docs/groups.md)");
    KEY(output.image).means("projected density as PNG beside each snapshot");
    KEY(output.image_pixels).range(16, 16384).means("along a side");
    KEY(output.image_width)
        .unit(Dimension::kLength, "Mpc/h")
        .above(0)
        .means("of the part about image_centre that is shown; auto: the whole box, isolated runs: half of it");
    KEY(output.image_depth).unit(Dimension::kLength, "Mpc/h").above(0)
        .means("of the slab about image_centre that is projected; auto: the whole box");
    KEY(output.image_axis).means("line of sight; the picture's axes are the other two, in the order x, y, z");
    KEY(output.image_centre).range(-1e30, 1e30)
        .means("three numbers, in Mpc/h, isolated runs: in the run's unit of length: what image_width and image_depth lie about, across the edge "
               "of a periodic box where they must; around an isolated set is empty space; none: the middle of the box");
    KEY(output.image_low).above(0).means("lower end of the colour scale in units of the mean (of the box, of an isolated set's picture); auto: from each picture");
    KEY(output.image_high).above(0).means("upper end; auto: from each picture, which may flicker in a film");
    KEY(output.film).range(0, 99999)
        .means("as many pictures film_NNNNN.png from the start to the end of the run, as image_* has them; their moments need not "
               "be ends of steps, which stay as they are; 0: none");
    KEY(output.film_cadence).only(RunKind::kCosmology).means("what is even between the pictures of a film");
    KEY(output.metrics_interval).range(1, 1e6).means("steps between lines of the metrics file");
    KEY(output.energy_interval).range(0, 1e6)
        .means("steps between energies; each costs a force with potential; 0: none");
    KEY(output.error_targets).range(0, 1e6)
        .means("particles whose forces are compared with exact sums at each output: errors go to the log and into the "
               "snapshot; 1000 tell the median error to 10 %, the rms error, in haloes that of few particles, to some 40 %; "
               "0: none; auto: 1000 where gravity.error is given, else none");
    KEY(output.report).own()
        .means("report.html at the end of the run: what it did, on one page (maki report writes it at any time)");
  }

  void lightcone() {
    KEY(lightcone.observers).range(-1e30, 1e30).only(RunKind::kCosmology)
        .means("past light cones: three numbers for each observer, a place in the box in Mpc/h "
               "(docs/lightcones.md); none: no light cones");
    KEY(lightcone.directions).range(-1e30, 1e30).only(RunKind::kCosmology)
        .means("three numbers for each observer, or three for all: the middle of what is seen; none: z");
    KEY(lightcone.opening_angle).above(0).range(0, 180).only(RunKind::kCosmology)
        .means("from the middle to the edge of what is seen, degrees; 180: the whole sky");
    KEY(lightcone.edges).range(0, 1000).only(RunKind::kCosmology)
        .means("redshifts of the edges of shells, ascending, within those of the run: two or more");
    KEY(lightcone.shells).range(1, 10000).only(RunKind::kCosmology)
        .means("shells of equal comoving thickness between two neighbouring edges");
    KEY(lightcone.write_particles).only(RunKind::kCosmology)
        .means("write the particles of each shell: positions, velocities, IDs, scale factors");
    KEY(lightcone.nside).range(0, 8192).only(RunKind::kCosmology)
        .means("a HEALPix map of each shell's mass with this NSIDE, a power of two, as FITS; 0: none");
  }

  void sites() {
    KEY(sites.ring).means("one simulation over several sites: their names, in the order of their slabs in x");
    KEY(sites.key).hide().means("key file (maki wan keygen) of all links that have none of their own (sites.NAME.key)");
    KEY(sites.wait).own().unit(Dimension::kWallTime, "s").above(0)
        .means("at the start, how long the other sites are waited for; auto: until they come");
    KEY(sites.max_boundary_move).range(0, 0.5)
        .means("how far a boundary between slabs moves at once, in sides of the box; 0: slabs stay even");
  }
};
// clang-format on

std::string limits_text(const Key& key) {
  const bool low = std::isfinite(key.min), high = std::isfinite(key.max);
  if (low && high) {
    return key.above_min ? fmt::format("above {}, at most {}", key.min, key.max)
                         : fmt::format("{} to {}", key.min, key.max);
  }
  if (low) return fmt::format("{} {}", key.above_min ? "above" : "at least", key.min);
  return "";
}

std::string example_text(const Key& key) {
  constexpr unsigned kOfBoxes = bit(InitialKind::kLpt) | bit(InitialKind::kPancake) | bit(InitialKind::kFile);
  if ((key.initial_kinds & kOfBoxes) == 0 && key.dimension == Dimension::kLength) return "a length such as \"1 kpc\"";
  if ((key.initial_kinds & kOfBoxes) == 0 && key.dimension == Dimension::kMass) return "a mass such as \"1e10 Msun\"";
  switch (key.dimension) {
    case Dimension::kLength:
      return std::string(key.plain_unit) == "kpc/h" ? "a length such as \"20 kpc/h\"" : "a length such as \"50 Mpc/h\"";
    case Dimension::kMass: return "a mass such as \"1e10 Msun/h\"";
    case Dimension::kVelocity: return "a velocity such as \"1 km/s\"";
    case Dimension::kTime: return "a time such as 10.0 or \"1 Gyr\"";
    case Dimension::kWallTime: return "a time such as \"0.5 h\"";
    case Dimension::kMemory: return "a size such as \"4 GB\"";
    default: return "a number";
  }
}

}  // namespace

std::string Key::expectation() const {
  std::string text;
  switch (type) {
    case ValueType::kSwitch: text = "true or false"; break;
    case ValueType::kInteger: text = "an integer"; break;
    case ValueType::kReal: text = "a number"; break;
    case ValueType::kText: text = "text in quotes"; break;
    case ValueType::kChoice: text = "one of \"" + fmt::format("{}", fmt::join(choices, "\", \"")) + "\""; break;
    case ValueType::kQuantity: text = example_text(*this); break;
    case ValueType::kList: text = "a list of numbers"; break;
    case ValueType::kTexts: text = "a list of texts in quotes"; break;
    case ValueType::kQuantities: text = "a list of numbers and texts such as [1, \"2 Gyr\"]"; break;
  }
  const std::string limits = limits_text(*this);
  if (!limits.empty()) text += ", " + limits;
  if (has_auto) text += ", or \"auto\"";
  return text;
}

const std::vector<Key>& config_keys() {
  static const std::vector<Key> keys = [] {
    Table table;
    table.run(), table.units(), table.box(), table.cosmology(), table.initial();
    table.gravity(), table.time(), table.output(), table.lightcone(), table.sites();
    return table.keys;
  }();
  return keys;
}

const Key& find_key(const std::string& path) {
  const auto found = std::ranges::find(config_keys(), path, &Key::path);
  if (found == config_keys().end()) throw std::logic_error("no such key: " + path);
  return *found;
}

}  // namespace maki
