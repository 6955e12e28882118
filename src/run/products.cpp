#include "src/run/products.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <numeric>
#include <span>

#include "host/comm/job.hpp"
#include "host/measure/spectra.hpp"
#include "kernels/device/device.hpp"
#include "kernels/error.hpp"
#include "kernels/lightcone/crossings.hpp"
#include "kernels/measure/reductions.hpp"
#include "src/analysis/picture.hpp"
#include "src/config/keys.hpp"
#include "src/config/parse.hpp"
#include "src/config/resolve.hpp"
#include "src/cosmology/nonlinear.hpp"
#include "src/groups/catalogue.hpp"
#include "src/io/restart.hpp"
#include "src/io/snapshot_io.hpp"
#include "src/run/build.hpp"
#include "src/run/initial_sets.hpp"
#include "src/simulation/film.hpp"
#include "wan/sites/gathered_set.hpp"

namespace maki {
namespace {

// ---- linear theory --------------------------------------------------------------------------------------------------

CosmologyParameters parameters_of(const Config& config, const SnapshotHeader& header) {
  const Config::Cosmology& from = config.cosmology;
  CosmologyParameters parameters{header, from.sigma8, from.n_s};
  if (!(parameters.omega_baryon > 0)) parameters.omega_baryon = from.omega_baryon.value_or(Background{}.omega_baryon);
  return parameters;
}

PowerSpectrum spectrum_of(const Config& config, const SnapshotHeader& header) {
  return PowerSpectrum(power_options(config), parameters_of(config, header), header.units);
}

double growth_factor(const SnapshotHeader& header) {
  if (!header.comoving || header.omega0 <= 0 || header.hubble <= 0) return 0;
  return Cosmology(header, header.units).growth(header.time).d1;
}

std::string moment(const SnapshotHeader& header, const std::optional<TimeUnit>& unit) {
  if (header.comoving) return fmt::format("z = {:.2f}", shown_redshift(header.redshift));
  return "t = " + time_text(header.time, unit.value_or(TimeUnit{1, unit_name(header.units, Dimension::kTime)}), 4);
}

// The beginning of a window of this extent on an axis, sides of the box.
double window_begin(const PictureOptions& given, const Frame& frame, std::size_t axis, double extent) {
  const double middle = given.centre ? ((*given.centre)[axis] - frame.corner[axis]) / frame.side : 0.5;
  return middle - extent / 2;
}

// A width or depth, sides of the box; 0: the whole box. The box of an isolated set does not limit it. Throws Error.
double sides_of(double length, const Frame& frame) {
  if (length == 0) return 1;
  const double sides = length / frame.side;
  if (frame.periodic && sides > 1) return 1;
  if (sides >= kLeastProjected && sides <= kMostProjected) return sides;
  throw Error(fmt::format("a picture cannot be {:g} wide or deep", length),
              fmt::format("the particles' box has a side of {:g}", frame.side),
              fmt::format("give {:g} to {:g}", kLeastProjected * frame.side,
                          (frame.periodic ? 1 : kMostProjected) * frame.side));
}

// Throws Error where a width or depth cannot be drawn.
ProjectionOptions projection_options(const PictureOptions& given, const Frame& frame) {
  const double extent = sides_of(given.width, frame), depth = sides_of(given.depth, frame);
  ProjectionOptions options;
  options.periodic = frame.periodic;
  options.axis = given.axis;
  options.width = options.height = given.pixels;
  options.extent = extent;
  options.left = window_begin(given, frame, given.axis == 0 ? 1 : 0, extent);
  options.bottom = window_begin(given, frame, given.axis == 2 ? 1 : 2, extent);
  options.depth = depth;
  if (frame.periodic || given.depth > 0)  // else all of an isolated set, whatever the centre
    options.front = window_begin(given, frame, static_cast<std::size_t>(given.axis), depth);
  return options;
}

double pixel_area(const ProjectionOptions& options) { return std::pow(options.extent / options.width, 2); }

// Mass in each pixel over the mean particle mass, smoothed where particles are few. In isolated sets all particles have
// equal weight, as a star would outshine its disk. Empty on ranks above 0.
std::vector<double> particles_a_pixel(const DeviceSet& set, ProjectionOptions options, std::uint64_t all) {
  const std::size_t n = set.particles.size();
  const SourceParticle* source = set.particles.data();
  options.count_particles = !set.frame.periodic;
  std::vector<double> density = project_density(set.ranks(), set.stream, source, n, options);
  const auto count = static_cast<double>(all);
  const double mass = options.count_particles ? count : sum_of(set.ranks(), total_mass(set.stream, source, n));
  if (set.ranks().rank() > 0) return {};
  for (double& value : density) value *= pixel_area(options) * count / mass;
  return smooth_where_sparse(density, static_cast<std::size_t>(options.width));
}

// The picture, densities in units of their mean; on rank 0. The mean is the box's through the picture's depth, so that
// zooms and slices that move keep their scale; an isolated set has no other than its picture's.
std::vector<float> relative_density(const DeviceSet& set, const ProjectionOptions& options) {
  const std::uint64_t all = particles_of_all(set);
  const std::vector<double> drawn = particles_a_pixel(set, options, all);
  const double mean = set.frame.periodic
                          ? pixel_area(options) * options.depth * static_cast<double>(all)
                          : std::accumulate(drawn.begin(), drawn.end(), 0.0) / static_cast<double>(drawn.size());
  std::vector<float> density(drawn.size());
  std::transform(drawn.begin(), drawn.end(), density.begin(),
                 [mean](double value) { return static_cast<float>(mean > 0 ? value / mean : 0); });
  return density;
}

// Broadcast from rank 0 of site set.place to all ranks of all sites.
template <class T>
std::vector<T> from_place_of(const DeviceSet& set, const std::vector<T>& mine) {
  const auto bytes = std::as_bytes(std::span(mine));
  const sites::Message message = sites::from_site(set.sites, set.place, {bytes.begin(), bytes.end()});
  std::vector<T> all(message.size() / sizeof(T));
  std::memcpy(all.data(), message.data(), all.size() * sizeof(T));
  return all;
}

MeshParticles particles_of(const DeviceSet& set) { return {set.particles.data(), set.particles.size()}; }

MeasuredPower measure(const DeviceSet& set, const SpectrumOptions& given) {
  MeasurePowerOptions options;
  options.cells = given.cells;
  MeasuredPower measured;
  if (set.here()) measured = measure_power_up_to(given.folding, set.ranks(), set.stream, particles_of(set), options);
  measured.bins = from_place_of(set, measured.bins);
  measured.shot_noise = from_place_of(set, std::vector{measured.shot_noise}).at(0);
  return measured;
}

std::vector<double> values_at(const std::function<double(double)>& theory, const std::vector<double>& k) {
  std::vector<double> values;
  if (theory) std::transform(k.begin(), k.end(), std::back_inserter(values), theory);
  return values;
}

// The device is chosen before a stream exists, and after world() has found this rank's share of its machine.
// Collective.
const std::string& on_usual_device(const std::string& origin, const Communicator& ranks) {
  select_device(usual_device(ranks), usual_threads());
  return origin;
}

}  // namespace

// ---- spectra and pictures -------------------------------------------------------------------------------------------

PowerTheory power_theory_of(const Config& config, const SnapshotHeader& header) {
  const Cosmology cosmology(parameters_of(config, header), header.units);
  const PowerSpectrum spectrum = spectrum_of(config, header);
  const double growth = cosmology.growth(header.time).d1;
  return {[spectrum, growth](double k) { return growth * growth * spectrum(k); },
          HalofitPower(spectrum, cosmology, header.time)};
}

std::function<double(double)> mass_function_of(const Config& config, const SnapshotHeader& header) {
  return MassFunction(spectrum_of(config, header), Cosmology(parameters_of(config, header), header.units), header.time);
}

namespace {

std::optional<Config> spectrum_config(const std::string& config, const std::string& snapshot) {
  if (!config.empty()) {
    const Config given = load_config(config);
    if (given.run.kind == RunKind::kCosmology) return given;
    throw Error(fmt::format("'{}' has no power spectrum", config), "it is of an isolated set",
                "give the configuration of a cosmological run");
  }
  const std::string text = read_configuration(snapshot);
  if (text.find("[cosmology]") == std::string::npos) return {};
  const Config own = parse_config(text, snapshot);
  return own.initial.kind == InitialKind::kLpt ? std::optional(own) : std::nullopt;
}

// Omega and h are those of the file, whatever a configuration has beside its spectrum.
void tell_of_cosmology(const std::string& name, const Config& given, const SnapshotHeader& header,
                       const std::function<void(const std::string&)>& say) {
  const Config::Cosmology& c = given.cosmology;
  const auto differ = [](const std::optional<double>& other, double own) {
    return other && std::fabs(*other - own) > 1e-4 * std::fabs(own);
  };
  if (differ(c.omega0, header.omega0) || differ(c.omega_lambda, header.omega_lambda) ||
      differ(c.hubble_param, header.hubble) || differ(c.omega_radiation, header.omega_radiation) ||
      differ(c.w0, header.w0) || differ(c.wa, header.wa))
    say(fmt::format(
        "'{}' has another cosmology than the snapshot: sigma8 = {:g}, n_s = {:g} and transfer \"{}\" are taken "
        "from it, Omega0 = {:g}, OmegaLambda = {:g}{} and h = {:g} from the snapshot",
        name, c.sigma8, c.n_s, name_of(c.transfer), header.omega0, header.omega_lambda, header.beyond_lambda(),
        header.hubble));
}

}  // namespace

void with_spectrum(const std::string& config, const std::string& snapshot, const std::string& product,
                   const std::function<void(const Config&)>& use, const std::function<void(const std::string&)>& say) {
  try {
    if (const std::optional<Config> known = spectrum_config(config, snapshot)) return use(*known);
    say(fmt::format("the snapshot does not say which linear spectrum it came from: no {} (--config gives one)",
                    product));
  } catch (const Error& error) {
    if (!config.empty()) throw;
    say(fmt::format("{}: no {} (--config gives a spectrum)", error.what(), product));
  }
}

PowerTheory power_theory_of_file(const std::string& config, const std::string& snapshot, const SnapshotHeader& header,
                                 const std::function<void(const std::string&)>& say) {
  PowerTheory theory;
  const auto use = [&](const Config& known) {
    if (!config.empty()) tell_of_cosmology(config, known, header, say);
    theory = power_theory_of(known, header);
  };
  with_spectrum(config, snapshot, "theory", use, say);
  return theory;
}

std::uint64_t particles_of_all(const DeviceSet& set) {
  return sum_of(set.ranks(), std::uint64_t{set.particles.size()});
}

PowerTable power_of(const DeviceSet& set, const SpectrumOptions& options) {
  if (!set.frame.periodic) throw Error("an isolated set has no power spectrum", "it needs a periodic box");
  const MeasuredPower measured = measure(set, options);
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
  table.length_unit = unit_name(set.header.units, Dimension::kLength);
  return table;
}

void write_power_of(const DeviceSet& set, const SpectrumOptions& options, const std::string& path,
                    const Provenance& provenance, bool overwrite) {
  const PowerTable table = power_of(set, options);
  root_succeeds(set.ranks(), [&] { write_power_file(path, table, set.header, provenance, overwrite); });
}

CrossTable cross_power_of(const DeviceSet& first, const DeviceSet& second, const SpectrumOptions& options) {
  const double side = first.frame.side, volume = side * side * side;
  if (!first.frame.periodic || !second.frame.periodic)
    throw Error("an isolated set has no power spectrum", "it needs a periodic box");
  const auto mpc_h = [](const DeviceSet& set) {
    return set.frame.side * length_unit_in_mpc_h(set.header.units, set.header.hubble);
  };
  if (!(std::abs(mpc_h(second) / mpc_h(first) - 1) < 1e-5))
    throw Error("there is no cross spectrum of two boxes",
                fmt::format("their sides are {:g} and {:g} Mpc/h", mpc_h(first), mpc_h(second)),
                "give two snapshots of one box");
  MeasurePowerOptions measured;
  measured.cells = options.cells;
  second.stream.synchronize();
  CrossTable table{measure_cross_up_to(options.folding, first.ranks(), first.stream,
                                       {particles_of(first), particles_of(second)}, measured),
                   options.cells, unit_name(first.header.units, Dimension::kLength)};
  for (CrossBin& bin : table.power.bins) {
    bin.k /= side;
    bin.first *= volume, bin.second *= volume, bin.cross *= volume;
  }
  table.power.shot_noise_first *= volume;
  table.power.shot_noise_second *= volume;
  return table;
}

BispectrumTable bispectrum_of(const DeviceSet& set, const BispectrumOptions& options,
                              const std::function<double(double)>& linear) {
  if (!set.frame.periodic) throw Error("an isolated set has no bispectrum", "it needs a periodic box");
  const double side = set.frame.side, volume = side * side * side;
  BispectrumTable table{measure_bispectrum(set.ranks(), set.stream, particles_of(set), options)};
  table.mesh = options.cells;
  table.length_unit = unit_name(set.header.units, Dimension::kLength);
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

std::vector<float> picture_of(const DeviceSet& set, const PictureOptions& given) {
  const ProjectionOptions options = projection_options(given, set.frame);
  std::vector<float> density;
  if (set.here()) density = relative_density(set, options);
  return from_place_of(set, density);
}

bool write_picture_of(const DeviceSet& set, const PictureOptions& given, const std::string& path,
                      const Provenance& provenance, bool overwrite) {
  const std::vector<float> density = picture_of(set, given);
  ImageOptions image;
  image.low = given.low;
  image.high = given.high;
  image.side = projection_options(given, set.frame).extent * set.frame.side;
  image.length_unit = unit_name(set.header.units, Dimension::kLength);
  image.label = moment(set.header, given.time_unit);
  image.overwrite = overwrite;
  const auto pixels = static_cast<std::size_t>(given.pixels);
  root_succeeds(set.ranks(), [&] { write_image(path, density, pixels, pixels, image, provenance); });
  return std::ranges::any_of(density, [](float value) { return value > 0; });
}

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

double product_bytes(const Config& config, std::uint64_t particles, bool periodic, double uneven) {
  const bool many_ranks = uneven > 1;
  double power = 0, picture = 0;
  if (periodic && config.output.power_spectrum) {
    const double m =
        config.output.power_mesh ? static_cast<double>(*config.output.power_mesh) : default_power_mesh(particles);
    power = 16 * m * m * (m + 2);                                    // two meshes, and counts
    if (many_ranks) power += 3 * sizeof(std::uint64_t) * m * m * m;  // bricks, as they are, sent and received
    const double folded = many_ranks ? 3.25 : 1;  // copies of the folded set: while it goes to its owners, with indices
    if (config.output.power_folding > 1) power += uneven * folded * kFoldedBytes * static_cast<double>(particles);
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

// ---- a set from a file ----------------------------------------------------------------------------------------------

LoadedSet::LoadedSet(const std::string& path, const Communicator& ranks)
    : place_(ranks), origin_(on_usual_device(path, ranks)) {
  const Snapshot snapshot = read_snapshot(path, &report_, ranks);
  if (!report_.why_isolated.empty() && snapshot.header.box_size > 0)  // it looks like a periodic box
    report_.notes.push_back("taken as an isolated set: " + report_.why_isolated);
  load(snapshot);
}

LoadedSet::LoadedSet(const Snapshot& snapshot, const std::string& origin, const Communicator& ranks)
    : place_(ranks), origin_(on_usual_device(origin, ranks)) {
  load(snapshot);
}

void LoadedSet::load(const Snapshot& snapshot) {
  header_ = snapshot.header;
  IsolatedBox box{header_.box_size, {}};
  if (header_.comoving) {
    box.centre.fill(box.side / 2);
  } else {
    box = isolated_box(snapshot, place_.ranks);
    middle_ = median_of(snapshot, place_.ranks);
  }
  frame_ = make_frame(header_, box.side, box.centre);
  require_host_memory(place_.ranks, "the set on its way to the device",
                      (kFrameBytes + (device_info().backend == "cpu" ? ParticleRows::kBytes : 0)) *
                          static_cast<double>(snapshot.size()));
  load_particles(stream_, snapshot, frame_, particles_);
}

PictureOptions LoadedSet::fitted(PictureOptions options) const {
  if (frame_.periodic) {
    if (std::max(options.width, options.depth) > frame_.side * (1 + 1e-9))
      throw Error("the picture's width or depth is more than the box", fmt::format("its side is {:g}", frame_.side),
                  "give a smaller one");
    return options;
  }
  if (!options.centre && (options.width > 0 || options.depth > 0)) options.centre = middle_;
  if (options.width == 0) options.width = frame_.side / 2;
  return options;
}

Provenance LoadedSet::provenance() const { return maki::provenance("# of " + origin_ + "\n", device_text()); }

}  // namespace maki
