// maki forces, image and info: contents of a snapshot, and measurements of it.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "kernels/error.hpp"
#include "src/cli/commands.hpp"
#include "src/config/keys.hpp"
#include "src/config/parse.hpp"
#include "src/config/resolve.hpp"
#include "src/io/snapshot_io.hpp"
#include "src/run/build.hpp"
#include "src/run/forces.hpp"
#include "src/run/products.hpp"
#include "src/run/run_options.hpp"
#include "src/run/setup.hpp"
#include "src/run/start_run.hpp"

namespace maki {

namespace {

struct ForcesArguments {
  std::string snapshot;
  std::vector<std::string> settings;
  std::string config;
  std::string output;
  bool direct = false, ewald = false, overwrite = false;
  std::uint64_t targets = 0;
};

// Settings of gravity, and where they come from.
struct ForceSettings {
  std::vector<std::string> lines;  // as on a command line
  std::string origin;
};

// The settings of the run that wrote the snapshot, unless a configuration is given; none where neither tells them.
ForceSettings force_settings(const ForcesArguments& given) {
  if (!given.config.empty()) return {{}, given.config};
  const std::string text = read_configuration(given.snapshot);
  if (text.empty()) return {{}, "defaults: --config FILE takes those of a run"};
  ForceSettings found{{}, "of the run that wrote it"};
  Config run;
  try {
    run = parse_config(text, given.snapshot);
  } catch (const Error& error) {  // such as a key of another version
    return {{}, fmt::format("defaults: {}", error.what())};
  }
  for (const Key& key : config_keys())
    if (key.applies_to(run) && (key.section == "gravity" || key.path() == "run.preset"))
      found.lines.push_back(fmt::format("{}={}", key.path(), key.get(run)));
  return found;
}

// The last setting of a key on the command line, "key=value"; "" where there is none.
std::string given_setting(const ForcesArguments& given, const std::string& key) {
  std::string setting;
  for (const std::string& line : given.settings)
    if (sets(line, key)) setting = line;
  return setting;
}

// What the command line says of a set whose file leaves it open.
KnownOfSet known_of_set(const ForcesArguments& given) {
  std::vector<std::string> settings;
  for (const char* key : {"run.kind", "initial.redshift"})
    if (const std::string setting = given_setting(given, key); !setting.empty()) settings.push_back(setting);
  const Config config = parse_config("", "command line", settings);
  return {config.run.kind == RunKind::kIsolated, config.initial.redshift};
}

// The configuration gives the method for forces; box, units and, unless it is given, kind come from the set itself.
Config forces_config(const ForcesArguments& given, const ForceSettings& run, const Snapshot& set) {
  std::string kind = given_setting(given, "run.kind");
  if (kind.empty()) kind = set.header.comoving ? "run.kind=cosmology" : "run.kind=isolated";
  const std::vector<std::string> of_set{kind, "initial.kind=file", "initial.file=" + given.snapshot};
  const auto with = [&](const std::vector<std::string>& changes) {
    std::vector<std::string> settings = run.lines;
    settings.insert(settings.end(), changes.begin(), changes.end());
    settings.insert(settings.end(), of_set.begin(), of_set.end());
    return given.config.empty() ? parse_config("", "defaults", settings) : load_config(given.config, settings);
  };
  Config config = with(given.settings);
  if (!run.lines.empty()) choose_again(config, with({}), set.size());
  const Config::Output given_output = std::exchange(config.output, {});
  config.output.layout = given_output.layout;
  config.output.files = given_output.files;
  config.output.coordinates = given_output.coordinates;
  config.output.compression = given_output.compression;
  config.lightcone = {};
  config.time.end_redshift = -0.9;  // any end: no step is made
  config.time.end_time = Quantity{set.header.time + 1, ""};
  return config;
}

Snapshot select_particles(const Snapshot& all, const std::vector<std::size_t>& indices) {
  Snapshot some;
  some.header = all.header;
  for (const std::size_t i : indices) some.append(all, i);
  return some;
}

void compute_forces(const ForcesArguments& given) {
  check_output(given.output, given.overwrite, {given.snapshot});
  ReadReport report;
  Snapshot snapshot = read_snapshot(given.snapshot, &report, Communicator::self(), known_of_set(given));
  require_whole("there are no forces of the run in", given.snapshot, report);
  const ForceSettings settings = force_settings(given);
  const Config config = forces_config(given, settings, snapshot);
  WriteOptions write = whole_set_options(config);
  write.overwrite = given.overwrite;
  for (const std::string& file : file_names(given.output, write)) check_output(file, given.overwrite, report.files);
  const Prepared run = prepare(config, std::move(snapshot), std::move(report));
  print_lines(stdout, run.notes);
  use_device(run.config, Communicator::self());
  fmt::print("{}\n", device_text());
  const ForceMethod method = given.direct  ? ForceMethod::kDirect
                             : given.ewald ? ForceMethod::kEwald
                                           : ForceMethod::kRun;
  const std::string opening =
      method != ForceMethod::kRun
          ? ""
          : fmt::format(", preset {}, theta {}", name_of(run.config.run.preset), *run.config.gravity.theta);
  fmt::print("{}{} ({}{})\n", softening_text(run), opening, settings.origin,
             given.settings.empty() ? "" : ", changed on the command line");

  const std::vector<std::size_t> targets = spread_targets(run.particles, given.targets);
  const auto begin = std::chrono::steady_clock::now();
  const SetForces forces = forces_of(run, method, targets);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  fmt::print("forces on {} of {} particles in {:.2f} s\n", targets.size(), run.particles, seconds.count());

  const std::vector<ExtraDataset> extras = {acceleration_dataset(forces.acceleration, run.initial.header),
                                            potential_dataset(forces.potential, run.initial.header)};
  const bool all = targets.size() == run.particles;
  for (const std::string& file :
       write_snapshot(given.output, all ? run.initial : select_particles(run.initial, targets),
                      provenance(to_toml(run.config), device_text()), write, extras)) {
    fmt::print("wrote {}\n", file);
  }
}

}  // namespace

void add_forces_command(CLI::App& program) {
  auto options = std::make_shared<ForcesArguments>();
  CLI::App* command = add_command(program, "forces", "Write accelerations and potentials of a snapshot's particles",
                                  "maki forces output/quickstart/snapshot_003.hdf5 -o forces.hdf5 run.preset=precise",
                                  options, on_first_rank(compute_forces));
  command->add_option("SNAPSHOT", options->snapshot, "HDF5 or GADGET binary")->required();
  command->add_option("KEY=VALUE", options->settings, "settings, as for 'maki run'");
  add_output_options(*command, options->output, options->overwrite, "file to write");
  command->add_option("--config", options->config,
                      "take gravity's settings from this configuration, not from the run that wrote the snapshot");
  auto* direct =
      command->add_flag("--direct", options->direct, "isolated sets: sum over all pairs in double precision");
  command->add_flag("--ewald", options->ewald, "periodic boxes: Ewald's sum over all images in double precision")
      ->excludes(direct);
  command->add_option("--targets", options->targets, "only this many particles, evenly spread; they alone are written")
      ->check(above_zero());
}

namespace {

struct ImageArguments {
  std::string snapshot, output;
  std::string axis = "z", width, depth;
  std::vector<double> centre;
  PictureOptions picture;
  bool overwrite = false;
};

double length_of(const std::string& text, const SnapshotHeader& header) {
  if (text.empty()) return 0;
  const double length =
      in_units(parse_quantity(text, Dimension::kLength), Dimension::kLength, "", header.units, header.hubble);
  if (!(length > 0)) throw Error(fmt::format("'{}' is no length", text), "", "give one above 0, such as \"10 Mpc/h\"");
  return length;
}

void write_picture(const ImageArguments& given) {
  root_succeeds(Communicator::world(), [&] { check_output(given.output, given.overwrite, {given.snapshot}); });
  const LoadedSet loaded(given.snapshot);
  print_lines(stdout, loaded.report().notes);
  const DeviceSet set = loaded.set();
  PictureOptions picture = given.picture;
  picture.axis = given.axis[0] - 'x';
  picture.width = length_of(given.width, set.header);
  picture.depth = length_of(given.depth, set.header);
  if (picture.low > 0 && picture.high > 0 && picture.low >= picture.high)
    throw Error(fmt::format("--low {} is not below --high {}", picture.low, picture.high), "", "give a smaller --low");
  for (const double x : given.centre)
    if (!std::isfinite(x) || (set.frame.periodic && !(x >= 0 && x <= set.frame.side * (1 + 1e-9))))
      throw Error(fmt::format("--centre holds {:g}, which is not in the box", x),
                  fmt::format("its side is {:g}", set.frame.side), "give coordinates of the file");
  if (given.centre.size() == 3) picture.centre = {given.centre[0], given.centre[1], given.centre[2]};
  const bool seen = write_picture_of(set, loaded.fitted(picture), given.output, loaded.provenance(), given.overwrite);
  if (loaded.ranks().rank() > 0) return;
  if (!seen) fmt::print("Warning: no particle is in the picture; give another --centre, --width or --depth\n");
  fmt::print("wrote {}\n", given.output);
}

}  // namespace

void add_image_command(CLI::App& program) {
  auto options = std::make_shared<ImageArguments>();
  CLI::App* command =
      add_command(program, "image", "Draw the projected density of a snapshot as PNG",
                  "maki image output/quickstart/snapshot_003.hdf5 -o slab.png --depth \"5 Mpc/h\" --axis x", options,
                  write_picture);
  command->add_option("SNAPSHOT", options->snapshot, "HDF5 or GADGET binary")->required();
  add_output_options(*command, options->output, options->overwrite, "PNG file to write");
  command->add_option("--pixels", options->picture.pixels, "along a side")
      ->check(CLI::Range(16, 16384))
      ->capture_default_str();
  command->add_option("--axis", options->axis, "line of sight")
      ->check(CLI::IsMember({"x", "y", "z"}))
      ->capture_default_str();
  command->add_option("--width", options->width,
                      "of the part that is shown, with a unit or in the file's; default: all");
  command->add_option("--depth", options->depth, "of the slab that is projected, likewise; default: all");
  command
      ->add_option(
          "--centre", options->centre,
          "X Y Z in the file's unit of length: what width and depth lie about; default: the middle of the box, "
          "or amid most particles of an isolated set")
      ->expected(3);
  command->add_option("--low", options->picture.low, "lower end of the colour scale, in units of the mean")
      ->check(above_zero());
  command->add_option("--high", options->picture.high, "upper end")->check(above_zero());
}

void add_info_command(CLI::App& program) {
  struct Options {
    std::string file;
  };
  auto options = std::make_shared<Options>();
  const auto describe = [](const Options& given) {
    for (const std::string& line : describe_file(given.file)) fmt::print("{}\n", line);
  };
  CLI::App* command =
      add_command(program, "info",
                  "Say what is in a file: snapshots, initial conditions, groups and links, maps, tables, pictures",
                  "maki info output/quickstart/snapshot_003.hdf5", options, on_first_rank(describe));
  command->add_option("FILE", options->file, "file to describe; one file of a set stands for all")->required();
}

}  // namespace maki
