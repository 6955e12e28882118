// All settings of a user, as plain fields. keys.cpp has the table of their names, units, ranges and meanings; the
// member path is the key: `config.gravity.theta` is `gravity.theta` in the file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/force/split.hpp"
#include "kernels/mesh/mesh.hpp"
#include "src/config/quantity.hpp"
#include "src/cosmology/power.hpp"
#include "src/io/snapshot.hpp"
#include "src/simulation/film.hpp"

namespace maki {

// Empty where the file says "auto" or nothing: the preset, the initial-conditions file or a rule decides.
template <class T>
using Auto = std::optional<T>;

// A key of [sites.path] or [sites.NAME.path] (text.hpp) with its value.
struct PathValue {
  std::string key, value;
  bool operator==(const PathValue&) const = default;
};
// One site of a run over several: [sites.NAME], with the key and [sites.NAME.path] of the link from it to the next site
// in the ring.
struct SiteAddress {
  std::string name;
  std::string address, listen;
  std::string relay, relay_key, relay_target;
  std::string key;
  std::vector<PathValue> path;  // in the order of path_keys()
  bool operator==(const SiteAddress&) const = default;
};

enum class RunKind { kCosmology, kIsolated };
enum class Preset { kFast, kStandard, kPrecise };
enum class InitialKind { kLpt, kPancake, kFile, kPlummer, kColdSphere, kKeplerDisk, kTwoBody };
enum class Method { kTree, kDirect };
enum class Opening { kAngle, kError };
enum class ProgressKind { kText, kJson, kNone };
enum class ImageAxis { kX, kY, kZ };

struct Config {
  struct Run {
    RunKind kind = RunKind::kCosmology;
    std::string name = "run";
    Auto<std::string> output_directory;
    bool overwrite = false;
    Preset preset = Preset::kStandard;
    Auto<std::int64_t> threads;
    Auto<std::int64_t> device;
    bool deterministic = false;
    Auto<Quantity> time_limit;
    Quantity restart_interval{30, "min"};
    std::int64_t restart_steps = 0;
    std::int64_t restarts_kept = 2;
    bool ignore_memory = false;
    Auto<std::string> machine;
    ProgressKind progress = ProgressKind::kText;
    bool operator==(const Run&) const = default;
  } run;

  struct Units {
    Auto<Quantity> length, mass, velocity;
    Auto<double> gravitational_constant;
    bool operator==(const Units&) const = default;
  } units;

  struct Box {
    Auto<Quantity> size;
    bool operator==(const Box&) const = default;
  } box;

  struct Cosmology {
    Auto<double> omega0, omega_lambda, omega_radiation, omega_baryon, w0, wa, hubble_param;
    double sigma8 = 0.829;
    double n_s = 0.96;
    PowerModel transfer = PowerModel::kEisensteinHu;
    std::string transfer_table;
    double table_redshift = 0;
    double power_law_index = -2;
    bool operator==(const Cosmology&) const = default;
  } cosmology;

  struct Initial {
    InitialKind kind = InitialKind::kLpt;
    std::string file;
    std::int64_t particles_per_side = 64;
    std::int64_t particles = 32768;
    std::int64_t seed = 1;
    Auto<double> redshift;
    std::int64_t lpt_order = 2;
    bool fixed_amplitudes = false;
    bool flip_phases = false;
    double collapse_redshift = 0;
    Quantity mass{1, ""};
    Quantity radius{1, ""};
    Auto<Quantity> truncation_radius;
    double virial_ratio = 0;
    Quantity disk_mass{1e-4, ""};
    Quantity inner_radius{0.5, ""};
    double surface_density_slope = -1;
    double eccentricity = 0.01;
    double inclination = 0.005;
    Quantity second_mass{1, ""};
    bool operator==(const Initial&) const = default;
  } initial;

  struct Gravity {
    Auto<Quantity> softening;
    Softening softening_kind = Softening::kSpline;
    Auto<Quantity> max_physical_softening;
    Method method = Method::kTree;
    Auto<double> error;
    Auto<double> theta;
    Auto<Opening> opening;
    Auto<double> theta_early;
    bool quadrupoles = true;
    Auto<Split> split;
    Auto<std::int64_t> split_order;
    Auto<double> r_cut;
    Auto<std::int64_t> mesh;
    Auto<Assignment> assignment;
    Auto<Interlacing> interlacing;
    Auto<Gradient> gradient;
    Auto<std::int64_t> mesh_mass_bits;
    std::int64_t leaf_size = 16;
    std::int64_t group_size = 64;
    Auto<std::int64_t> reuse;
    Auto<double> reuse_tolerance;
    Auto<Quantity> list_memory;
    bool let_compression = false;
    bool operator==(const Gravity&) const = default;
  } gravity;

  struct Time {
    double end_redshift = 0;
    Quantity end_time{1, ""};
    Auto<double> eta;
    Auto<double> max_dlna;
    Auto<double> long_dlna;
    bool growth_exact = true;
    Auto<Quantity> max_step;
    Auto<double> fixed_step;
    bool operator==(const Time&) const = default;
  } time;

  struct Output {
    std::vector<double> redshifts;
    std::vector<Quantity> times;
    Auto<Quantity> interval;
    std::string list;
    std::int64_t compression = 0;
    std::vector<std::string> fields = all_fields();
    CoordinateNumbers coordinates = CoordinateNumbers::kDouble;
    VelocityNumbers velocities = VelocityNumbers::kFloat;
    double subset = 1;
    bool groups_only = false;
    std::int64_t files = 1;
    FileLayout layout = FileLayout::kGadget4;
    bool power_spectrum = true;
    Auto<std::int64_t> power_mesh;
    std::int64_t power_folding = 2;
    bool groups = false;
    bool image = true;
    std::int64_t image_pixels = 1024;
    Auto<Quantity> image_width;
    Auto<Quantity> image_depth;
    ImageAxis image_axis = ImageAxis::kZ;
    std::vector<double> image_centre;
    Auto<double> image_low, image_high;
    std::int64_t film = 0;
    Cadence film_cadence = Cadence::kScaleFactor;
    std::int64_t metrics_interval = 1;
    std::int64_t energy_interval = 10;
    Auto<std::int64_t> error_targets;
    bool report = true;
    bool operator==(const Output&) const = default;
  } output;

  struct LightCone {
    std::vector<double> observers;
    std::vector<double> directions;
    double opening_angle = 180;
    std::vector<double> edges;
    std::int64_t shells = 1;
    bool write_particles = true;
    std::int64_t nside = 0;
    bool operator==(const LightCone&) const = default;
  } lightcone;

  struct Sites {
    std::vector<std::string> ring;
    std::string key;
    Auto<Quantity> wait;
    double max_boundary_move = 0.1;
    bool operator==(const Sites&) const = default;
  } sites;
  std::vector<SiteAddress> site_addresses;  // in no order
  std::vector<PathValue> site_path;         // for links without settings of their own, in the order of path_keys()

  bool operator==(const Config&) const = default;
};

}  // namespace maki
