// maki run, ic and config: the commands that take a configuration.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <csignal>
#include <memory>
#include <optional>

#include "host/comm/communicator.hpp"
#include "host/comm/job.hpp"
#include "kernels/error.hpp"
#include "src/cli/commands.hpp"
#include "src/config/parse.hpp"
#include "src/config/resolve.hpp"
#include "src/io/snapshot_io.hpp"
#include "src/run/build.hpp"
#include "src/run/estimate.hpp"
#include "src/run/filed_run.hpp"
#include "src/run/run_options.hpp"
#include "src/run/setup.hpp"
#include "src/run/start_run.hpp"

namespace maki {

namespace {

struct RunArguments {
  std::string config;
  std::vector<std::string> settings;
  std::string site;
  bool estimate = false, where = false, resume = false;
};

// Selects the device. Where any rank has none, returns the reason on all ranks. Collective.
std::string missing_device(const Config& config, const Communicator& ranks) {
  std::string problem;
  try {
    use_device(config);
  } catch (const DeviceError& error) {
    problem = error.what();
  }
  return first_text(ranks, problem);
}

// Throws Error where no run can begin with it, as far as that is known without its particles.
void check_plan(const Config& config) {
  check_kinds(config);
  if (config.run.kind == RunKind::kCosmology && config.initial.kind != InitialKind::kFile) prepare(config, false);
}

// The estimate makes, reads and writes nothing. Without a GPU it leaves out device-dependent numbers.
void print_estimate(const Config& config) {
  check_plan(config);
  const Communicator ranks = Communicator::world();
  check_file_units(config, ranks);
  const std::uint64_t particles = planned_particles(config, ranks);
  const MemoryEstimate estimate = estimate_memory(config, particles, ranks.size());
  std::optional<MachineMemory> memory;
  const std::string problem = missing_device(config, ranks);
  if (problem.empty()) memory = machine_memory(ranks);
  print_lines(stdout, describe(config, estimate, particles, memory ? &*memory : nullptr));
  const std::string step = step_estimate(modelled_run(config, particles, ranks));
  if (!step.empty()) print_lines(stdout, {step});
  if (!problem.empty()) print_lines(stdout, {problem});
}

// For scripts that look for the files of a run (configs/slurm.sh).
void print_directory(Config config, const std::string& site) {
  choose_site(config, site);
  if (Communicator::world().rank() == 0) fmt::print("{}\n", output_directory(config));
}

// A run goes on where nobody reads its progress any more.
void outlive_readers() { std::signal(SIGPIPE, SIG_IGN); }

// Makes the whole run, if there is something to do. What stdout could not take is in the log.
void run_to_end(FiledRun* run) {
  const int code = run ? run->run() : 0;
  std::fflush(stdout);
  std::clearerr(stdout);
  if (code != 0) throw CLI::RuntimeError(code);
}

void run_simulation(const RunArguments& given) {
  Config config = load_config(given.config, given.settings);
  if (given.estimate) return print_estimate(config);
  if (given.where) return print_directory(std::move(config), given.site);
  outlive_readers();
  const FiledRun::Options options{.site = given.site};
  const auto run = given.resume ? FiledRun::resume_or_begin(std::move(config), given.settings, options)
                                : FiledRun::begin(std::move(config), options);
  run_to_end(run.get());
}

}  // namespace

void add_run_command(CLI::App& program) {
  auto options = std::make_shared<RunArguments>();
  CLI::App* command = add_command(program, "run", "Run a simulation",
                                  "maki run configs/quickstart.toml initial.seed=7 output_directory=output/seven",
                                  options, run_simulation);
  command->add_option("CONFIG", options->config, "configuration (TOML)")->required();
  command->add_option("KEY=VALUE", options->settings,
                      "settings that override the file's: section.key=value, or key=value");
  command->add_option("--site", options->site, "which of the sites in [sites] this is, in a run over several of them")
      ->type_name("NAME");
  command->add_flag(
      "--resume", options->resume,
      "go on from the restarts in the output directory, where there are any (over several sites: that all "
      "of them have); else begin");
  command->add_flag(
      "--estimate", options->estimate,
      "say how much memory and disk the run will take, with run.machine how long a step, and how large it could be "
      "here, and do not run");
  command->add_flag("--where", options->where, "print the output directory, and do not run");
}

namespace {

struct IcArguments {
  std::string config;
  std::vector<std::string> settings;
  std::string output;
  std::string format = "hdf5";
  bool big_endian = false, overwrite = false;
};

void write_initial_conditions(const IcArguments& given) {
  const Config config = load_config(given.config, given.settings);
  const Communicator world = Communicator::world();
  WriteOptions write = whole_set_options(config, snapshot_format(given.format));
  write.big_endian = given.big_endian;
  write.overwrite = given.overwrite;
  root_succeeds(world, [&] {
    check_output(given.output, given.overwrite);
    for (const std::string& file : file_names(given.output, write)) check_output(file, given.overwrite);
  });
  use_threads(config);
  require_host_memory(world, "these initial conditions",
                      estimate_memory(config, planned_particles(config, world), world.size()).host_start);
  const Prepared run = prepare(config);
  print_lines(stdout, run.notes);
  const std::string beyond = run.initial.header.beyond_lambda();
  if (write.format != SnapshotFormat::kGadgetHdf5 && !beyond.empty())
    print_lines(stdout, {"Warning: a header of GADGET's binary types does not hold" + beyond.substr(1) +
                         ": give it to the run too"});
  const std::vector<std::string> files =
      write_snapshot(given.output, run.initial, provenance(to_toml(run.config), "host"), write, {}, world);
  if (world.rank() == 0) fmt::print("wrote {} particles to {}\n", run.particles, fmt::join(files, ", "));
}

}  // namespace

void add_ic_command(CLI::App& program) {
  auto options = std::make_shared<IcArguments>();
  CLI::App* command =
      add_command(program, "ic", "Make initial conditions and write them to a file",
                  "maki ic configs/quickstart.toml -o ic.hdf5 initial.seed=7", options, write_initial_conditions);
  command->add_option("CONFIG", options->config, "configuration (TOML)")->required();
  command->add_option("KEY=VALUE", options->settings, "settings that override the file's");
  add_output_options(*command, options->output, options->overwrite, "file to write");
  command
      ->add_option("--format", options->format,
                   "hdf5, gadget1 or gadget2 (with output.coordinates=float for readers of floats alone)")
      ->check(CLI::IsMember({"hdf5", "gadget1", "gadget2"}))
      ->capture_default_str();
  command->add_flag("--big-endian", options->big_endian, "byte order of gadget1 and gadget2");
}

void add_config_command(CLI::App& program) {
  struct Options {
    std::string file;
    std::vector<std::string> settings;
  };
  auto options = std::make_shared<Options>();
  const auto print = [](const Options& given) {
    if (given.file.empty()) return fmt::print("{}", describe_keys());
    const Config config = load_config(given.file, given.settings);
    if (config.box.size) check_plan(config);  // without a box it is the beginning of a configuration
    fmt::print("{}", to_toml(config));
  };
  CLI::App* command =
      add_command(program, "config",
                  "List every key with default, unit, range and meaning; or check and complete a configuration",
                  "maki config configs/quickstart.toml > my_run.toml", options, on_first_rank(print));
  command->add_option("CONFIG", options->file, "print all keys with the values that this file gives them");
  command->add_option("KEY=VALUE", options->settings, "settings that override the file's");
}

namespace {

struct Options {
  std::string directory;
  std::vector<std::string> settings;
  std::string site;
};

void resume_simulation(const Options& given) {
  outlive_readers();
  run_to_end(FiledRun::resume(given.directory, given.settings, {.site = given.site}).get());
}

}  // namespace

void add_resume_command(CLI::App& program) {
  auto options = std::make_shared<Options>();
  CLI::App* command = add_command(program, "resume", "Go on with a run that was stopped or ended by force",
                                  "maki resume output/quickstart", options, resume_simulation);
  command->add_option("DIRECTORY", options->directory, "output directory of the run, or one of the restarts in it")
      ->required();
  command->add_option("KEY=VALUE", options->settings, "settings that change from here on");
  command->add_option("--site", options->site, "which of the sites in [sites] this is, in a run over several of them")
      ->type_name("NAME");
}

}  // namespace maki
