// maki model: the predicted time of a step on a machine, and what limits it.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <optional>

#include "host/comm/job.hpp"
#include "kernels/device/device.hpp"
#include "kernels/error.hpp"
#include "src/cli/commands.hpp"
#include "src/config/parse.hpp"
#include "src/config/resolve.hpp"
#include "src/gravity/gravity.hpp"
#include "src/io/safe_file.hpp"
#include "src/model/reports.hpp"
#include "src/run/estimate.hpp"
#include "src/run/setup.hpp"
#include "src/run/start_run.hpp"

namespace maki {

namespace {

struct Options {
  std::string config;
  std::vector<std::string> settings;
  std::optional<Config> run;  // the configuration read
  std::string machine, sites_file;
  std::string kind, method;
  double particles = 0, mesh = 0, theta = 0, processes = 1;
  int sites = 1;
  bool block_steps = false, csv = false;
  double moved = 0, sampled = 1e-4, group = 250, reuse = 16;
  double cut = 0, rebuild_every = 0, long_every = model::MakiRun().long_every;
  std::string svg;
  bool overwrite = false;
};

double cube(double side) { return side * side * side; }

// Takes values that no option gives from a configuration: numbers, mesh, opening angle, reach, and how long lists are
// kept.
void take_from_config(Options& given) {
  if (given.config.empty()) return;
  Config chosen = load_config(given.config, given.settings);
  // What the configuration leaves to the number of particles, for the one that is asked for.
  if (given.particles > 0 && chosen.run.kind == RunKind::kCosmology && chosen.initial.kind != InitialKind::kFile)
    chosen.initial.particles_per_side = 2 * std::llround(std::ceil(given.particles / 2));
  const Prepared run = prepare(chosen, false, Communicator::self());
  if (given.particles == 0) given.particles = std::cbrt(static_cast<double>(run.particles));
  if (given.mesh == 0) given.mesh = static_cast<double>(run.config.gravity.mesh.value_or(0));
  if (given.theta == 0) given.theta = run.config.gravity.theta.value_or(0);
  if (given.cut == 0) given.cut = run.config.gravity.r_cut.value_or(0);
  if (given.rebuild_every == 0)
    given.rebuild_every =
        static_cast<double>(run.config.gravity.reuse.value_or(run.config.run.deterministic ? kGhostReuse : 0));
  if (given.method.empty() && run.config.run.kind == RunKind::kIsolated)
    given.method = run.config.gravity.method == Method::kDirect ? "direct" : "tree";
  given.run = run.config;
}

void fill_defaults(Options& given) {
  if (given.method.empty()) given.method = "treepm";
  if (given.theta == 0) given.theta = 0.5;
  if (given.cut == 0) given.cut = preset_numbers(Preset::kStandard).r_cut;
  if (given.rebuild_every == 0) given.rebuild_every = model::MakiRun().rebuild_every;
  if (given.kind == "maki" && given.mesh == 0)
    given.mesh = static_cast<double>(force_mesh(preset_numbers(Preset::kStandard).mesh_factor, given.particles));
}

void check(const Options& given) {
  if (given.particles <= 0)
    throw Error("there is no problem to model", "", "give a configuration, or --particles (along a side)");
  if (given.kind == "sushi" && given.method == "treepm" && given.mesh <= 0)
    throw Error("a TreePM run has a mesh", "none was given", "give --mesh (cells along a side), or --method tree");
  if (given.kind == "maki" && given.method != "treepm")
    throw Error("Maki's own model is of periodic boxes", "this run is an isolated system",
                "take --model sushi with a machine that has [[site]], or one of configs/machines/ with [accelerator]");
}

model::Problem problem_of(const Options& given) {
  model::Problem p;
  p.particles = cube(given.particles), p.cells = given.method == "treepm" ? cube(given.mesh) : 0;
  p.theta = given.theta, p.sampled = given.sampled, p.moved = given.moved, p.block_steps = given.block_steps;
  p.method = given.method == "direct" ? model::Method::kDirect
             : given.method == "tree" ? model::Method::kTree
                                      : model::Method::kTreePm;
  return p;
}

// Memory of the configuration, or of a box with all defaults.
model::RankMemory memory_of(const Options& given, const model::MakiRun& run) {
  Config config = given.run ? *given.run : parse_config("", "maki model", {"run.kind=cosmology", "box.size=1 Mpc/h"});
  config.gravity.mesh = std::llround(std::cbrt(run.cells));
  config.gravity.r_cut = run.cut;
  config.sites.ring.resize(static_cast<std::size_t>(run.sites));
  const auto particles = static_cast<std::uint64_t>(std::llround(run.particles));
  const MemoryEstimate e = estimate_memory(config, particles, static_cast<int>(std::ceil(run.ranks / run.sites)));
  return {e.device(), e.host(), e.shared()};
}

model::MakiRun maki_run(const Options& given) {
  model::MakiRun run;
  run.particles = cube(given.particles), run.cells = cube(given.mesh), run.cut = given.cut;
  run.ranks = given.processes, run.sites = given.sites;
  run.rebuild_every = given.rebuild_every, run.long_every = given.long_every;
  run.memory = memory_of(given, run);
  return run;
}

model::Machine machine_of(const Options& given) {
  model::Machine machine = read_machine(given.machine);
  if (given.sites_file.empty()) return machine;
  const model::Machine other = read_machine(given.sites_file);
  machine.name += ", " + other.name, machine.network = other.network;
  if (!other.sites.empty()) machine.sites = other.sites;
  return machine;
}

// The same report by each of the models.
struct ReportOfModels {
  model::Report (*sushi)(const model::Problem&, const model::Machine&, int sites, double processes);
  model::Report (*fdps)(const model::FdpsRun&, const model::Machine&);
  model::Report (*maki)(const model::MakiRun&, const model::Machine&);
};

void print(const Options& given, const model::Report& report) {
  fmt::print("{}", given.csv ? report.table.csv() : report.table.text());
  if (!given.csv) {
    fmt::print("\n");
    for (const std::string& note : report.notes) fmt::print("{}\n", note);
  }
  if (given.svg.empty()) return;
  SafeFile file(given.svg, given.overwrite);
  file.write(report.plot.svg());
  file.commit();
}

void add_report(CLI::App& group, const char* name, const char* meaning, const char* example,
                const ReportOfModels& report) {
  const bool each_site = std::string_view(name) == "speedup";  // --processes is the number at each
  auto options = std::make_shared<Options>();
  CLI::App* command = add_command(group, name, meaning, example, options, [=](Options given) {
    check_output(given.svg, given.overwrite);
    const bool of_run = given.particles == 0;  // CONFIG has particles of the whole run, --particles those of a process
    take_from_config(given);
    const model::Machine machine = machine_of(given);
    if (given.kind.empty()) given.kind = machine.maki ? "maki" : machine.sites.empty() ? "fdps" : "sushi";
    fill_defaults(given);
    check(given);
    if (!each_site && given.processes < given.sites) {
      throw Error(fmt::format("{:g} processes are too few for {} sites", given.processes, given.sites), "",
                  "give --processes, of all sites together");
    }
    if (given.kind == "sushi")
      return print(given, report.sushi(problem_of(given), machine, given.sites, given.processes));
    if (given.kind == "maki") return print(given, report.maki(maki_run(given), machine));
    model::FdpsRun run;
    run.particles = cube(given.particles), run.theta = given.theta;
    run.group = given.group, run.reuse = run.domains = given.reuse;
    run.processes = given.processes;
    if (of_run && !each_site) run.particles /= given.processes;
    print(given, report.fdps(run, machine));
  });
  command->add_option("CONFIG", options->config,
                      "configuration of a run (TOML): its particles, mesh and opening angle");
  command->add_option("KEY=VALUE", options->settings, "settings that override the file's");
  command->add_option("--machine", options->machine, "constants of the machine, one of configs/machines/ or your own")
      ->required()
      ->type_name("FILE");
  command->add_option("--sites", options->sites_file, "a machine whose network and sites take the place of the first's")
      ->type_name("FILE");
  command
      ->add_option(
          "--model", options->kind,
          "maki: this code; sushi: TreePM, tree and direct over sites; fdps: a tree with accelerators. Else the "
          "first of these that the machine has constants for")
      ->check(CLI::IsMember({"maki", "sushi", "fdps"}))
      ->type_name("NAME");
  command->add_option("--particles", options->particles, "along a side; of fdps, those of a process (speedup: of all)")
      ->check(within(1, 1e6));
  command->add_option("--mesh", options->mesh, "cells along a side")->check(within(8, 1e6));
  command->add_option("--theta", options->theta, "opening angle; 0.5 where nothing says it")->check(within(0.1, 1.5));
  command->add_option("--method", options->method, "of sushi: treepm, tree, direct")
      ->check(CLI::IsMember({"treepm", "tree", "direct"}));
  command->add_flag("--block-steps", options->block_steps, "individual steps in blocks (SUSHI, section 5.2.2)");
  command->add_option("--over", options->sites, "so many sites, or up to so many")->check(CLI::Range(1, 4096));
  command->add_option("--processes", options->processes, "or ranks, in all; of 'speedup', at each site")
      ->check(above_zero());
  command->add_option("--moved", options->moved, "bytes of particles that leave a site in a step")
      ->check(within(0, 1e18));
  command->add_option("--sampled", options->sampled, "share of particles sampled for domains")
      ->check(within(0, 1))
      ->capture_default_str();
  command->add_option("--group", options->group, "of fdps: particles that share a list")->check(above_zero());
  command->add_option("--reuse", options->reuse, "of fdps: steps that lists live for")->check(above_zero());
  command
      ->add_option("--cut", options->cut,
                   "of maki: gravity.r_cut, in mesh cells; else the configuration's or the standard preset's")
      ->check(above_zero());
  command
      ->add_option("--rebuild-every", options->rebuild_every,
                   "of maki: steps between new lists; else the configuration's, or 9")
      ->check(within(1, 1e6));
  command->add_option("--long-every", options->long_every, "of maki: steps between uses of the mesh")
      ->check(within(1, 1e6))
      ->capture_default_str();
  command->add_flag("--csv", options->csv, "comma-separated values");
  command->add_option("--svg", options->svg, "write a plot as well")->type_name("FILE");
  command->add_flag("--overwrite", options->overwrite, "replace the plot where it exists");
}

// maki model calibrate: the machine file of this machine, measured.

struct CalibrateOptions {
  std::string output;
  int particles = 0;
  bool overwrite = false;
};

void calibrate_here(const CalibrateOptions& given) {
  require_one_process(
      "calibrate is measured by", "its constants are those of one rank, alone on its cores or GPU",
      "start it without mpirun or as one task, with the threads that a rank will have (OMP_NUM_THREADS)");
  std::optional<SafeFile> file;  // refused before the measurement, not after
  check_output(given.output, given.overwrite);
  if (!given.output.empty()) file.emplace(given.output, given.overwrite);
  select_device(usual_device(Communicator::self()), usual_threads());
  const std::string text = calibrate(given.particles, say);
  fmt::print("\n{}", text);
  if (!file) return;
  file->write(text);
  file->commit();
}

void add_model_calibrate(CLI::App& model) {
  auto options = std::make_shared<CalibrateOptions>();
  CLI::App* command = add_command(
      model, "calibrate",
      "Measure what Maki takes on this machine, in a minute, as a machine for the other commands (without its network)",
      "maki model calibrate -o desk.toml", options, calibrate_here);
  command->add_option("-o,--output", options->output, "write it to this file too")->type_name("FILE");
  command->add_flag("--overwrite", options->overwrite, "replace the file where it exists");
  command
      ->add_option("--particles", options->particles,
                   "along a side of the largest run, rounded to a multiple of 8; else 128, on a GPU 256")
      ->check(CLI::Range(64, 512));
}

}  // namespace

void add_model_commands(CLI::App& program) {
  CLI::App* group = program.add_subcommand("model", "How long a step will take, where, and what limits it");
  group->require_subcommand(1);
  group->footer(
      "\nExample:\n  maki model predict --machine configs/machines/global_grid.toml --particles 2048 --mesh 256 "
      "--processes 2048 --over 8\n");
  add_report(
      *group, "table", "Seconds of the parts of a step, over 1, 2, ... sites; of fdps, of each phase",
      "maki model table --machine configs/machines/das3.toml --particles 256 --mesh 128 --theta 0.3 --processes 60 "
      "--over 5 --sampled 4e-4",
      ReportOfModels{model::table_report, model::fdps_table_report, model::maki_efficiency_report});
  add_report(
      *group, "speedup", "Speed over that of one site, each with so many processes (SUSHI, eq. 13)",
      "maki model speedup --machine configs/machines/global_grid.toml --particles 2048 --mesh 256 --processes 128 "
      "--over 32 --svg speedup.svg",
      ReportOfModels{model::speedup_report, model::fdps_speedup_report, model::maki_speedup_report});
  add_report(
      *group, "efficiency", "Speed over that of one site with as many processes in all (SUSHI, eq. 14)",
      "maki model efficiency --machine configs/machines/global_grid.toml --particles 2048 --mesh 256 --processes "
      "2048 --over 16",
      ReportOfModels{model::efficiency_report, model::fdps_efficiency_report, model::maki_efficiency_report});
  add_report(
      *group, "bandwidth", "Efficiency against the rate between sites; of fdps, time against bandwidths of a node",
      "maki model bandwidth --machine configs/machines/global_grid.toml --particles 2048 --mesh 1024 --processes 2048 "
      "--over 8",
      ReportOfModels{model::bandwidth_report, model::fdps_bandwidth_report, model::maki_bandwidth_report});
  add_report(*group, "predict", "One step: seconds by part, what takes most, memory",
             "maki model predict configs/cosmo_128.toml --machine configs/machines/h100_node.toml",
             ReportOfModels{model::predict_report, model::fdps_predict_report, model::maki_predict_report});
  add_model_calibrate(*group);
}

}  // namespace maki
