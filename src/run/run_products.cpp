#include "src/run/run_products.hpp"

#include <fmt/format.h>

#include <boost/math/constants/constants.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "kernels/error.hpp"
#include "src/config/resolve.hpp"
#include "src/io/restart.hpp"
#include "src/lightcone/cone_state.hpp"
#include "src/report/status.hpp"
#include "src/run/products.hpp"
#include "src/run/run_options.hpp"
#include "src/run/start_run.hpp"

namespace maki {
namespace {

// In sides: each particle is then tested in some 10^4 columns of images.
constexpr double kFarthest = 50;

std::array<double, 3> direction_of(const std::vector<double>& directions, std::size_t observer) {
  if (directions.empty()) return {0, 0, 1};
  const std::size_t first = directions.size() > 3 ? 3 * observer : 0;
  const double x = directions[first], y = directions[first + 1], z = directions[first + 2];
  const double length = std::hypot(x, y, z);
  return {x / length, y / length, z / length};
}

void check_reach(const ConeShells& shells, double side) {
  const double reach = shells.distances.back() / side;
  if (reach <= kFarthest) return;
  throw Error(fmt::format("lightcone.edges reaches z = {:g}", shells.redshifts.back()),
              fmt::format("that is {:.0f} sides of the box away, and {:.0f} is the most", reach, kFarthest),
              "choose a nearer edge or a larger box");
}

// The folder of an observer's files in the run's output directory.
std::string light_cone_folder(const std::string& directory, std::size_t observer) {
  return (std::filesystem::path(directory) / fmt::format("lightcone_{:02}", observer)).string();
}

// A row of conesnap_*.hdf5: positions and scale factor in double precision, velocity, mass, an ID of 32 bits or 64.
constexpr double kShellRowBytes = 24 + 8 + 12 + 4 + 8;
// Host bytes a particle while a shell is written: its record, a row of the set, and the scale factor.
constexpr double kShellHostBytes = sizeof(ShellParticle) + Snapshot::kBytes + sizeof(double);

}  // namespace

LightConeOptions light_cone_options(const Prepared& run, const Timeline& timeline) {
  const Config::LightCone& given = run.config.lightcone;
  LightConeOptions options;
  options.shells = make_shells(timeline, given.edges, static_cast<int>(given.shells));
  check_reach(options.shells, run.side);
  options.particles = given.write_particles;
  options.nside = static_cast<int>(given.nside);
  options.compression = static_cast<int>(run.config.output.compression);
  for (const std::array<double, 3>& place : light_cone_observers(run.config, run.units)) {
    ConeObserver observer{place, {}};
    observer.view.axis = direction_of(given.directions, options.observers.size());
    if (given.opening_angle < 180)
      observer.view.cos_angle = std::cos(given.opening_angle * boost::math::double_constants::degree);
    options.observers.push_back(observer);
  }
  return options;
}

LightConeBytes light_cone_bytes(Config config, std::uint64_t particles) {
  const Config::LightCone& cone = config.lightcone;
  if (cone.observers.empty() || !config.box.size || config.initial.kind == InitialKind::kFile) return {};
  std::vector<std::string> notes;
  resolve_cosmology(config.cosmology, nullptr, notes);
  const UnitSystem units = run_units(config, nullptr);
  check_light_cones(config, units, config.initial.redshift.value_or(kUsualRedshift));
  const Timeline timeline = Timeline::comoving(cosmology_parameters(config), units);
  const ConeShells shells = make_shells(timeline, cone.edges, static_cast<int>(cone.shells));
  const double side = number_of(*config.box.size, "box.size", config, units);
  check_reach(shells, side);
  const double seen = (1 - std::cos(std::min(cone.opening_angle, 180.0) * boost::math::double_constants::degree)) / 2;
  std::vector<double> rows;
  for (std::size_t k = 0; k < shells.count(); ++k) {
    const double thick = std::pow(shells.distances[k + 1] / side, 3) - std::pow(shells.distances[k] / side, 3);
    rows.push_back(seen * 4 / 3.0 * boost::math::double_constants::pi * thick * static_cast<double>(particles));
  }
  const double met = *std::max_element(rows.begin(), rows.end()), written = cone.write_particles ? 1 : 0;
  const double all = written * std::accumulate(rows.begin(), rows.end(), 0.0), most = written * met;
  const double map = 12 * std::pow(static_cast<double>(cone.nside), 2) * sizeof(double);
  const double observers = static_cast<double>(cone.observers.size()) / 3;
  return {.disk = observers * all * kShellRowBytes,
          .disk_maps = observers * static_cast<double>(shells.count()) * map,
          .spools = observers * all * sizeof(ShellParticle),
          .largest_spool = observers * most * sizeof(ShellParticle),
          .largest_shell = most * kShellHostBytes,
          .most_met = met,
          .maps = observers * 2 * map};
}

std::string damage_of_light_cones(const std::string& directory, const Config& config, std::uint64_t step,
                                  const Communicator& ranks) {
  std::string damage;
  for (std::size_t i = 0; i < config.lightcone.observers.size() / 3 && damage.empty(); ++i)
    damage = damage_of_cone(light_cone_folder(directory, i), step, ranks);
  return damage;
}

// ---- products of a run ----------------------------------------------------------------------------------------------

RunProducts::RunProducts(const RunFileOptions& options, const Provenance& provenance, const Prepared& run,
                         const RunPlace& place)
    : RunFiles(options, provenance, place), provenance_(provenance), overwrite_(options.overwrite),
      config_(run.config) {
  const Config::Output& output = run.config.output;
  const bool comoving = run.config.run.kind == RunKind::kCosmology;
  if (comoving && output.power_spectrum)
    power_mesh_ = output.power_mesh ? static_cast<int>(*output.power_mesh) : default_power_mesh(run.particles);
  const auto length = [&run](const Auto<Quantity>& quantity, const char* key, double automatic) {
    return quantity ? number_of(*quantity, key, run.config, run.units) : automatic;
  };
  groups_ = comoving && output.groups;
  groups_alone_ = groups_ && output.groups_only;
  picture_.pixels = static_cast<int>(output.image_pixels);
  picture_.width = length(output.image_width, "output.image_width", comoving ? 0 : run.side / 2);
  picture_.depth = length(output.image_depth, "output.image_depth", 0);
  picture_.axis = static_cast<int>(output.image_axis);
  if (!output.image_centre.empty()) picture_.centre = image_centre(run.config, run.units);
  picture_.low = output.image_low.value_or(0);
  picture_.high = output.image_high.value_or(0);
  picture_.time_unit = options.time_unit;
  if (!run.config.lightcone.observers.empty()) begin_cones(run, options);
}

DeviceSet RunProducts::set_of(const OutputState& state, const sites::GatheredSet& all) const {
  return {state.stream, all.share(), state.frame, state.header, *place().sites, all.place()};
}

void RunProducts::output(const OutputState& state) {
  if (groups_alone_ && state.index >= 0) {
    const std::shared_ptr<const ParticleSource> copy = state.copy();
    write_snapshot_of(state, {copy, {}, members_among(*copy, write_groups(state).member_ids, ranks())});
  } else {
    RunFiles::output(state);
    if (state.index < 0) return;  // a run stopped early is not at a configured output
    if (groups_) write_groups(state);
  }
  if (power_mesh_ <= 0 && !config_.output.image) return;
  const sites::GatheredSet all(*place().sites, state.stream, state.particles.source);
  write_products(set_of(state, all), state.index);
  count_output_traffic();
}

void RunProducts::film(const OutputState& state) {
  keep_directory();
  const sites::GatheredSet all(*place().sites, state.stream, state.particles.source);
  write_picture(set_of(state, all), fmt::format("film_{:05}.png", state.index));
  count_output_traffic();
}

void RunProducts::report() {
  if (!config_.output.report || ranks().rank() > 0) return;
  const std::string directory = std::filesystem::path(path("")).parent_path().string();
  try {
    message("Report: " + report::write_report(directory));
  } catch (const std::exception& error) {
    message(fmt::format("There is no report: {}. maki report {} writes it later.", error.what(), directory));
  }
}

// What the linear spectrum of the initial conditions gives is optional, with a message on the `lack`: a run does not end
// because a table of its spectrum has been moved.
template <class Make>
auto RunProducts::of_spectrum(const char* lack, Make make) -> decltype(make()) {
  try {
    if (config_.initial.kind == InitialKind::kLpt) return make();
  } catch (const Error& error) {
    message(fmt::format("{}: {}", error.what(), lack));
  }
  return {};
}

// Finds groups in a copy of the particles, which is sorted and divided among ranks anew; over several sites at one
// site, for all.
GroupCatalogue RunProducts::groups_of(const OutputState& state) {
  sites::GatheredParticles all(*place().sites, state.stream, state.particles);
  GroupCatalogue found;
  if (all.here())
    found = find_groups(state.stream, ranks(), all.particles(), state.frame, state.header, GroupOptions{});
  found = catalogue_from_site(*place().sites, all.place(), std::move(found));
  found.header = state.header;
  set_file_units(found, config_.output.layout);
  count_output_traffic();
  return found;
}

void RunProducts::write_catalogue(const GroupCatalogue& found, int index) {
  std::string summary = "Groups: " + summary_of(found);
  const auto catalogue = [this](int number) { return path(fmt::format("groups_{:03}.hdf5", number)); };
  std::function<double(double)> expected;
  bool has_earlier = false;
  root_succeeds(ranks(), [&] {
    expected = of_spectrum("the mass function beside the groups has no expected one",
                           [&] { return mass_function_of(config_, found.header); });
    has_earlier = index > 0 && std::filesystem::exists(catalogue(index - 1));
  });
  write_group_files(catalogue(index), found, expected, provenance_, overwrite_, ranks());
  ranks().broadcast(&has_earlier, sizeof has_earlier, 0);
  try {
    if (has_earlier) summary += "; " + link_group_files(catalogue(index - 1), catalogue(index), overwrite_, ranks());
  } catch (const Error& error) {
    summary += fmt::format("; not linked to those before: {} (maki links does it later)", error.what());
  }
  message(summary);
}

// Snapshots of members alone are not written without their catalogue.
GroupCatalogue RunProducts::write_groups(const OutputState& state) {
  GroupCatalogue found = groups_of(state);
  const auto write = [&] { write_catalogue(found, state.index); };
  groups_alone_ ? write() : spare_the_run(write);
  return found;
}

void RunProducts::write_products(const DeviceSet& set, int index) {
  if (power_mesh_ > 0) {
    SpectrumOptions options{power_mesh_, static_cast<int>(config_.output.power_folding)};
    if (ranks().rank() == 0)
      options.theory = of_spectrum("the power spectrum has no theory beside it",
                                   [&] { return power_theory_of(config_, set.header); });
    spare_the_run(
        [&] { write_power_of(set, options, path(fmt::format("power_{:03}.txt", index)), provenance_, overwrite_); });
  }
  if (config_.output.image) write_picture(set, fmt::format("image_{:03}.png", index));
}

// A film has one warning, not one a picture.
void RunProducts::write_picture(const DeviceSet& set, const std::string& name) {
  spare_the_run([&] {
    if (write_picture_of(set, picture_, path(name), provenance_, overwrite_) || told_of_empty_picture_) return;
    told_of_empty_picture_ = true;
    message(
        fmt::format("Warning: no particle is in the picture {}; give another output.image_centre, image_width or "
                    "image_depth",
                    name));
  });
}

// A run goes on without a picture, a spectrum or a catalogue that cannot be written, on a full disk for example: it can
// be made from a snapshot. All ranks of a site throw such an error, or rank 0 alone after the last collective call.
void RunProducts::spare_the_run(const std::function<void()>& write) {
  try {
    write();
  } catch (const DeviceError&) {
    throw;
  } catch (const sites::SiteLost&) {
    throw;
  } catch (const Error& error) {
    message(fmt::format("{}. The run goes on without it.", error.what()));
  }
}

void RunProducts::begin_cones(const Prepared& run, const RunFileOptions& options) {
  timeline_ = timeline_of(run);
  const LightConeOptions cones = light_cone_options(run, *timeline_);
  for (std::size_t i = 0; i < cones.observers.size(); ++i) {
    cones_.emplace_back(cones, i, LightCone::Place{place(), light_cone_folder(path(""), i)}, provenance_);
    if (options.resumed_at) cones_.back().resume(*options.resumed_at);
  }
}

void RunProducts::drifted(const Drift& drift) {
  if (!cones_.empty()) keep_directory();
  for (LightCone& cone : cones_)
    for (const std::string& file : cone.drifted(drift, *timeline_)) message(fmt::format("Light cone: wrote {}", file));
}

void RunProducts::finish(const RunResult& result, const PhaseTimers& timers) {
  RunFiles::finish(result, timers);
  if (!result.stopped_by.empty()) return;
  try {
    for (LightCone& cone : cones_) cone.end([this](std::uint64_t step) { return may_have_restart(step); });
  } catch (const Error& error) {  // all that the run was to write is there
    message(fmt::format("Light cones: files that are needed no longer stay: {}", error.what()));
  }
}

// What cannot be seen at the moment may be there.
bool RunProducts::may_have_restart(std::uint64_t step) const {
  std::error_code error;
  return std::filesystem::exists(path(restart_folder::name_of(step)), error) || error;
}

// A restart without light cones would be useless: it does not begin where their state cannot be written.
void RunProducts::restart(const std::shared_ptr<const KeptState>& kept) {
  const std::uint64_t step = kept->state.result.steps;
  if (!wants_restart_of(step)) return;
  try {
    for (LightCone& cone : cones_) cone.save(step, [this](std::uint64_t other) { return may_have_restart(other); });
  } catch (const Error& error) {
    return no_restart(step, error.what());
  }
  RunFiles::restart(kept);
}

}  // namespace maki
