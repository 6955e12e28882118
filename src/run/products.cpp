#include "src/run/products.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <numbers>
#include <numeric>
#include <span>

#include "host/comm/communicator.hpp"
#include "host/measure/over_ranks.hpp"
#include "kernels/device/device.hpp"
#include "kernels/error.hpp"
#include "kernels/measure/gravity_sums.hpp"
#include "src/analysis/picture.hpp"
#include "src/config/presets.hpp"
#include "src/config/resolve.hpp"
#include "src/cosmology/tree_bispectrum.hpp"
#include "src/report/page.hpp"
#include "src/run/group_files.hpp"
#include "src/run/group_members.hpp"
#include "src/simulation/film.hpp"
#include "wan/sites/gathered_set.hpp"

namespace maki {
namespace {

double growth_factor(const SnapshotHeader& header) {
  if (!header.comoving || header.omega0 <= 0 || header.hubble <= 0) return 0;
  CosmologyParameters parameters;
  parameters.omega0 = header.omega0;
  parameters.omega_lambda = header.omega_lambda;
  parameters.hubble = header.hubble;
  return Cosmology(parameters, header.units).growth(header.time).d1;
}

std::string moment(const SnapshotHeader& header) {
  return header.comoving ? fmt::format("z = {:.2f}", std::abs(header.redshift))
                         : fmt::format("t = {:.4g}", header.time);
}

// Where a window of this extent begins on an axis, sides of the box.
double window_begin(const PictureOptions& given, const Frame& frame, std::size_t axis, double extent) {
  const double middle = given.centre ? ((*given.centre)[axis] - frame.corner[axis]) / frame.side : 0.5;
  return middle - extent / 2;
}

ProjectionOptions projection_options(const PictureOptions& given, const Frame& frame) {
  const double side = frame.side;
  const double extent = given.width > 0 ? std::min(1.0, given.width / side) : 1.0;
  const double depth = given.depth > 0 ? std::min(1.0, given.depth / side) : 1.0;
  ProjectionOptions options;
  options.axis = given.axis;
  options.width = options.height = given.pixels;
  options.extent = extent;
  options.left = window_begin(given, frame, given.axis == 0 ? 1 : 0, extent);
  options.bottom = window_begin(given, frame, given.axis == 2 ? 1 : 2, extent);
  options.depth = depth;
  options.front = window_begin(given, frame, static_cast<std::size_t>(given.axis), depth);
  return options;
}

// Mass in each pixel over the mean particle mass, smoothed where particles are few. In isolated sets each particle
// counts alike, as a star would outshine its disk. Empty on ranks above 0.
std::vector<double> particles_a_pixel(const Communicator& ranks, const DeviceSet& set, ProjectionOptions options) {
  const std::size_t n = set.particles.size();
  const SourceParticle* source = set.particles.data();
  options.count_particles = !set.frame.periodic;
  std::vector<double> density = project_density(ranks, set.stream, source, n, options);
  const auto all = static_cast<double>(particles_of_all(ranks, set));
  double mass = all;
  if (!options.count_particles) {
    mass = total_mass(set.stream, source, n);
    ranks.sum({&mass, 1});
  }
  if (ranks.rank() > 0) return {};
  const double pixel = options.extent / options.width;
  const double count = pixel * pixel * all / mass;
  for (double& value : density) value *= count;
  return smooth_where_sparse(density, static_cast<std::size_t>(options.width));
}

// The picture, densities in units of their mean; on rank 0.
std::vector<float> relative_density(const std::vector<double>& drawn) {
  const double mean = std::accumulate(drawn.begin(), drawn.end(), 0.0) / static_cast<double>(drawn.size());
  std::vector<float> density(drawn.size());
  std::transform(drawn.begin(), drawn.end(), density.begin(),
                 [mean](double value) { return static_cast<float>(mean > 0 ? value / mean : 0); });
  return density;
}

// Broadcast from rank 0 of site set.place to all ranks of all sites.
template <class T>
std::vector<T> from_place_of(const DeviceSet& set, const std::vector<T>& mine) {
  const auto bytes = std::as_bytes(std::span(mine));
  const sites::Message message = sites::from_site(*set.sites, set.place, {bytes.begin(), bytes.end()});
  std::vector<T> all(message.size() / sizeof(T));
  std::memcpy(all.data(), message.data(), all.size() * sizeof(T));
  return all;
}

MeshParticles particles_of(const DeviceSet& set) { return {set.particles.data(), set.particles.size()}; }

MeasuredPower measure(const Communicator& ranks, const DeviceSet& set, const SpectrumOptions& given) {
  MeasurePowerOptions options;
  options.cells = given.cells;
  MeasuredPower measured;
  if (set.here()) measured = measure_power_up_to(given.folding, ranks, set.stream, particles_of(set), options);
  if (!set.sites) return measured;
  measured.bins = from_place_of(set, measured.bins);
  measured.shot_noise = from_place_of(set, std::vector{measured.shot_noise}).at(0);
  return measured;
}

std::vector<double> values_at(const std::function<double(double)>& theory, const std::vector<double>& k) {
  std::vector<double> values;
  if (theory) std::transform(k.begin(), k.end(), std::back_inserter(values), theory);
  return values;
}

}  // namespace

std::uint64_t particles_of_all(const Communicator& ranks, const DeviceSet& set) {
  std::uint64_t count = set.particles.size();
  ranks.sum({&count, 1});
  return count;
}

PowerTable power_of(const Communicator& ranks, const DeviceSet& set, const SpectrumOptions& options) {
  if (!set.frame.periodic) throw Error("an isolated set has no power spectrum", "it needs a periodic box");
  const MeasuredPower measured = measure(ranks, set, options);
  const double side = set.frame.side, volume = side * side * side;
  PowerTable table;
  for (const PowerBin& bin : measured.bins) {
    table.k.push_back(bin.k / side);
    table.power.push_back(bin.power * volume);
    table.modes.push_back(bin.modes);
    table.folding.push_back(bin.folding);
  }
  table.linear = values_at(options.theory.linear, table.k);
  table.nonlinear = values_at(options.theory.nonlinear, table.k);
  table.shot_noise = measured.shot_noise * volume;
  table.mesh = options.cells;
  table.growth = growth_factor(set.header);
  table.length_unit = length_unit_name(set.header.units);
  return table;
}

void write_power_of(const Communicator& ranks, const DeviceSet& set, const SpectrumOptions& options,
                    const std::string& path, const Provenance& provenance, bool overwrite) {
  const PowerTable table = power_of(ranks, set, options);
  if (ranks.rank() == 0) write_power_file(path, table, set.header, provenance, overwrite);
}

CrossTable cross_power_of(const Communicator& ranks, const DeviceSet& first, const DeviceSet& second,
                          const SpectrumOptions& options) {
  const double side = first.frame.side, volume = side * side * side;
  if (!first.frame.periodic || !second.frame.periodic)
    throw Error("an isolated set has no power spectrum", "it needs a periodic box");
  if (std::abs(second.frame.side / side - 1) > 1e-6)
    throw Error("there is no cross spectrum of two boxes",
                fmt::format("their sides are {} and {}", side, second.frame.side), "give two snapshots of one box");
  MeasurePowerOptions measured;
  measured.cells = options.cells;
  second.stream.synchronize();
  CrossTable table{measure_cross_up_to(options.folding, ranks, first.stream,
                                       {particles_of(first), particles_of(second)}, measured),
                   options.cells, length_unit_name(first.header.units)};
  for (CrossBin& bin : table.power.bins) {
    bin.k /= side;
    bin.first *= volume, bin.second *= volume, bin.cross *= volume;
  }
  table.power.shot_noise_first *= volume;
  table.power.shot_noise_second *= volume;
  return table;
}

BispectrumTable bispectrum_of(const Communicator& ranks, const DeviceSet& set, const BispectrumOptions& options,
                              const std::function<double(double)>& linear) {
  if (!set.frame.periodic) throw Error("an isolated set has no bispectrum", "it needs a periodic box");
  const double side = set.frame.side, volume = side * side * side;
  BispectrumTable table{measure_bispectrum(ranks, set.stream, particles_of(set), options)};
  table.mesh = options.cells;
  table.length_unit = length_unit_name(set.header.units);
  table.measured.shot_noise *= volume;
  for (BispectrumBin& bin : table.measured.bins) {
    for (double* k : {&bin.k, &bin.begin, &bin.end}) *k /= side;
    bin.power *= volume;
    for (TriangleMean* mean : {&bin.equilateral, &bin.squeezed})
      mean->bispectrum *= volume * volume, mean->shot_noise *= volume * volume;
  }
  if (!linear) return table;
  const double wave = 2 * std::numbers::pi / side;
  const auto shell_of = [](const BispectrumBin& bin) { return WaveShell{bin.begin, bin.end}; };
  const WaveShell far = shell_of(table.measured.bins.at(table.measured.long_bin));
  for (const BispectrumBin& bin : table.measured.bins) {
    const WaveShell shell = shell_of(bin);
    table.equilateral_tree.push_back(mean_tree_bispectrum(linear, {shell, shell, shell}, wave));
    table.squeezed_tree.push_back(mean_tree_bispectrum(linear, {far, shell, shell}, wave));
  }
  return table;
}

std::vector<float> picture_of(const Communicator& ranks, const DeviceSet& set, const PictureOptions& given) {
  std::vector<float> density;
  if (set.here()) density = relative_density(particles_a_pixel(ranks, set, projection_options(given, set.frame)));
  return set.sites ? from_place_of(set, density) : density;
}

void write_picture_of(const Communicator& ranks, const DeviceSet& set, const PictureOptions& given,
                      const std::string& path, const Provenance& provenance, bool overwrite) {
  const std::vector<float> density = picture_of(ranks, set, given);
  if (ranks.rank() > 0) return;
  ImageOptions image;
  image.low = given.low;
  image.high = given.high;
  image.side = projection_options(given, set.frame).extent * set.frame.side;
  image.length_unit = length_unit_name(set.header.units);
  image.label = moment(set.header);
  image.overwrite = overwrite;
  const auto pixels = static_cast<std::size_t>(given.pixels);
  write_image(path, density, pixels, pixels, image, provenance);
}

std::string length_unit_name(const UnitSystem& units) { return unit_name(units, Dimension::kLength); }

int default_power_mesh(std::uint64_t particles) {
  return static_cast<int>(good_mesh(std::max(8.0, std::cbrt(static_cast<double>(particles)) - 1e-6)));
}

int default_bispectrum_mesh(std::uint64_t particles) {
  return static_cast<int>(good_mesh(1.5 * default_power_mesh(particles)));
}

double gathered_bytes(const Config& config, std::uint64_t particles, bool periodic) {
  const bool measured = (periodic && config.output.power_spectrum) || config.output.image || config.output.film > 0;
  return measured && config.sites.ring.size() > 1 ? 16 * static_cast<double>(particles) : 0;
}

double product_bytes(const Config& config, std::uint64_t particles, bool periodic) {
  double power = 0, picture = 0;
  if (periodic && config.output.power_spectrum) {
    const double m =
        config.output.power_mesh ? static_cast<double>(*config.output.power_mesh) : default_power_mesh(particles);
    power = (std::string(backend_name()) == "cuda" ? 16 : 8) * m * m * (m + 2);  // two meshes, and the GPU's counts
    if (config.output.power_folding > 1) power += sizeof(SourceParticle) * static_cast<double>(particles);
  }
  const bool film = config.output.film > 0;
  if (config.output.image || film) {
    const double pixels = static_cast<double>(config.output.image_pixels);
    picture = 8 * pixels * pixels + ((periodic ? 0 : 16) + (film ? kFilmBytes : 0)) * static_cast<double>(particles);
  }
  const double groups = config.output.groups ? kGroupDeviceBytes * static_cast<double>(particles) : 0;
  const double cones = config.lightcone.observers.empty() ? 0 : kCrossingBytes * static_cast<double>(particles);
  return std::max({power, picture, groups, cones}) + gathered_bytes(config, particles, periodic);
}

RunProducts::RunProducts(const RunFileOptions& options, const Provenance& provenance, const Prepared& run,
                         const RunPlace& place)
    : RunFiles(options, provenance, place), provenance_(provenance), overwrite_(options.overwrite) {
  const Config::Output& output = run.config.output;
  const bool comoving = run.config.run.kind == RunKind::kCosmology;
  if (comoving && output.power_spectrum) {
    power_mesh_ = output.power_mesh ? static_cast<int>(*output.power_mesh) : default_power_mesh(run.particles);
    power_folding_ = static_cast<int>(output.power_folding);
  }
  const auto length = [&run](const Auto<Quantity>& quantity, const char* key, double automatic) {
    return quantity ? number_of(*quantity, key, run.config, run.units) : automatic;
  };
  describe({run.particles, comoving ? static_cast<int>(run.config.gravity.mesh.value_or(0)) : 0,
            run.config.gravity.theta.value_or(0)});
  groups_ = comoving && output.groups;
  groups_alone_ = groups_ && output.groups_only;
  reports_ = output.report;
  if (run.config.initial.kind == InitialKind::kLpt) spectrum_ = run.config;
  pictures_ = output.image;
  picture_.pixels = static_cast<int>(output.image_pixels);
  picture_.width = length(output.image_width, "output.image_width", comoving ? 0 : run.side / 2);
  picture_.depth = length(output.image_depth, "output.image_depth", 0);
  picture_.axis = static_cast<int>(output.image_axis);
  if (!output.image_centre.empty()) picture_.centre = image_centre(run.config, run.units);
  picture_.low = output.image_low.value_or(0);
  picture_.high = output.image_high.value_or(0);
  if (!run.config.lightcone.observers.empty()) begin_cones(run, options);
}

void RunProducts::output(const OutputState& state) {
  if (groups_alone_ && state.index >= 0) {
    const std::shared_ptr<const ParticleSource> copy = state.copy();
    write_snapshot_of(state, {copy, {}, members_among(*copy, write_groups(state).member_ids, ranks())});
  } else {
    RunFiles::output(state);
    if (state.index < 0) return;  // a run stopped early is at no output that was asked for
    if (groups_) write_groups(state);
  }
  const DeviceBuffer<SourceParticle>& own = state.particles.source;
  if (!sites()) return write_products({state.stream, own, state.frame, state.header}, state.index);
  if (power_mesh_ <= 0 && !pictures_) return;
  const sites::GatheredSet all(*sites(), state.stream, own.data(), own.size());
  write_products({state.stream, all.share(), state.frame, state.header, sites(), all.place()}, state.index);
  count_output_traffic();
}

void RunProducts::film(const OutputState& state) {
  const std::string file = path(fmt::format("film_{:05}.png", state.index));
  const DeviceBuffer<SourceParticle>& own = state.particles.source;
  if (!sites())
    return write_picture_of(ranks(), {state.stream, own, state.frame, state.header}, picture_, file, provenance_,
                            overwrite_);
  const sites::GatheredSet all(*sites(), state.stream, own.data(), own.size());
  const DeviceSet set{state.stream, all.share(), state.frame, state.header, sites(), all.place()};
  write_picture_of(ranks(), set, picture_, file, provenance_, overwrite_);
  count_output_traffic();
}

void RunProducts::report() {
  if (!reports_ || ranks().rank() > 0) return;
  const std::string directory = std::filesystem::path(path("")).parent_path().string();
  try {
    message("Report: " + report::write_report(directory));
  } catch (const std::exception& error) {
    message(fmt::format("There is no report: {}. maki report {} writes it later.", error.what(), directory));
  }
}

// The expectation is nice to have: a run does not end because a table of its spectrum has been moved.
std::unique_ptr<const MassFunction> RunProducts::expected_masses(const SnapshotHeader& header) {
  try {
    if (spectrum_) return mass_function_of(*spectrum_, header);
  } catch (const Error& error) {
    message(fmt::format("{}: the mass function beside the groups has no expected one", error.what()));
  }
  return nullptr;
}

// Of a copy, which is sorted and divided among ranks anew; over several sites at one of them, for all.
GroupCatalogue RunProducts::groups_of(const OutputState& state) {
  const auto find = [&](Particles& particles) {
    return find_groups(state.stream, ranks(), particles, state.frame, state.header, GroupOptions{});
  };
  if (!sites()) {
    Particles particles = copy_of(state.stream, state.particles);
    return find(particles);
  }
  sites::GatheredParticles all(*sites(), state.stream, state.particles);
  GroupCatalogue found =
      catalogue_from_site(*sites(), all.place(), all.here() ? find(all.particles()) : GroupCatalogue{});
  found.header = state.header;
  count_output_traffic();
  return found;
}

GroupCatalogue RunProducts::write_groups(const OutputState& state) {
  GroupCatalogue found = groups_of(state);
  std::string summary = "Groups: " + summary_of(found);
  root_succeeds(ranks(), [&] {
    const auto expected = expected_masses(state.header);
    const auto catalogue = [this](int index) { return path(fmt::format("groups_{:03}.hdf5", index)); };
    write_group_files(catalogue(state.index), found, expected.get(), provenance_, overwrite_);
    if (state.index == 0 || !std::filesystem::exists(catalogue(state.index - 1))) return;
    try {
      summary += "; " + link_group_files(catalogue(state.index - 1), catalogue(state.index), overwrite_);
    } catch (const Error& error) {
      summary += fmt::format("; not linked to those before: {} (maki links does it later)", error.what());
    }
  });
  message(summary);
  return found;
}

PowerTheory RunProducts::theory(const SnapshotHeader& header) {
  try {
    if (spectrum_ && ranks().rank() == 0) return power_theory_of(*spectrum_, header);
  } catch (const Error& error) {
    message(fmt::format("{}: the power spectrum has no theory beside it", error.what()));
  }
  return {};
}

void RunProducts::write_products(const DeviceSet& set, int index) {
  if (power_mesh_ > 0) {
    const SpectrumOptions options{power_mesh_, power_folding_, theory(set.header)};
    write_power_of(ranks(), set, options, path(fmt::format("power_{:03}.txt", index)), provenance_, overwrite_);
  }
  if (pictures_) {
    write_picture_of(ranks(), set, picture_, path(fmt::format("image_{:03}.png", index)), provenance_, overwrite_);
  }
}

}  // namespace maki
