// maki wan bench: how fast two sites can talk, and by which settings.
#include <fmt/format.h>

#include <csignal>
#include <fstream>

#include "kernels/error.hpp"
#include "src/cli/wan/bench_output.hpp"
#include "src/cli/wan/path_options.hpp"
#include "src/cli/wan/wan_commands.hpp"
#include "wan/net/tune/bench.hpp"

namespace maki {
namespace {

struct Options {
  std::string peer, listen, json;
  bool quick = false, full = false, no_sweep = false, once = false;
  PathOptions path;
};

volatile std::sig_atomic_t interrupted = 0;

void serve(const Options& given) {
  const PathChoices choices = read_path_options(given.path);
  std::signal(SIGINT, [](int) { interrupted = 1; });
  std::signal(SIGTERM, [](int) { interrupted = 1; });
  wan::BenchService service;
  service.local = wan::Endpoint::parse(given.listen);
  service.security = choices.security;
  service.settings = choices.settings;
  service.relay = choices.relay;
  service.once = given.once;
  service.stop = [] { return interrupted != 0; };
  service.report = [](const std::string& line) { fmt::print("{}\n", line), std::fflush(stdout); };
  service.listening = [&](const wan::Endpoint& where) {
    service.report(fmt::format("measurements: listening on {}{} (Ctrl-C ends it)",
                               choices.relay.used() ? "the relay as " + choices.relay.target : where.text(),
                               choices.security.insecure ? ", without encryption" : ""));
  };
  wan::serve_bench(service);
}

// What the user set is kept, all else is searched.
void keep_given(const Options& given, const PathChoices& choices, wan::TuneOptions& tune) {
  const wan::PathSettings defaults;
  const auto is_given = [&](const char* key) {
    const auto found = given.path.given.find(key);
    return found != given.path.given.end() && !found->second.empty();
  };
  const wan::PathSettings& settings = choices.settings;
  tune.keep_streams = is_given("streams") || settings.streams != defaults.streams;
  tune.keep_window = is_given("window") || settings.window != defaults.window;
  tune.keep_pacing = is_given("pacing") || settings.pacing_rate != defaults.pacing_rate;
  tune.keep_congestion = is_given("congestion") || settings.congestion != defaults.congestion;
}

void write_json(const std::string& path, const BenchOutput& output) {
  std::ofstream file(path);
  file << bench_json(output);
  file.flush();
  if (!file) throw Error(fmt::format("cannot write '{}'", path));
}

void call(const Options& given) {
  BenchOutput output;
  output.peer = given.peer;
  output.choices = read_path_options(given.path);
  output.trial = {output.choices.settings, output.choices.settings.pacing_rate};
  const auto progress = [](const std::string& line) { fmt::print("{}\n", line), std::fflush(stdout); };
  wan::BenchClient link(wan::Endpoint::parse(given.peer), output.choices.security, output.choices.relay);
  if (!given.no_sweep) {
    wan::TuneOptions tune;
    tune.base = output.trial;
    tune.seconds = given.quick ? 20 : given.full ? 300 : 90;
    tune.thorough = given.full;
    tune.progress = progress;
    keep_given(given, output.choices, tune);
    output.swept = true;
    output.tuned = wan::tune(link, tune);
    output.trial = output.tuned.best.trial;
    progress("best: " + wan::describe(output.trial));
  }
  wan::BenchOptions measurement;
  measurement.seconds = given.quick ? 12 : given.full ? 180 : 60;
  measurement.progress = progress;
  output.result = wan::measure(link, output.trial, measurement);
  output.here = link.kernel_here();
  output.there = link.kernel_there();
  fmt::print("{}", bench_text(output));
  if (!given.json.empty()) write_json(given.json, output);
}

void run_bench(const Options& given) {
  if (given.peer.empty() == given.listen.empty())
    throw CLI::ValidationError("give HOST:PORT to call a measurement, or --listen ADDRESS:PORT to be called");
  given.listen.empty() ? call(given) : serve(given);
}

}  // namespace

void add_wan_bench(CLI::App& wan) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      add_command(wan, "bench", "Measure the way to another site, and find the settings for it",
                  "maki wan bench --listen :6000 --key site.key          # at the site that can be called\n"
                  "  maki wan bench OTHER-SITE:6000 --key site.key         # at the site that calls",
                  options, run_bench);
  command->add_option("HOST:PORT", options->peer, "call the measurement there");
  command->add_option("--listen", options->listen, "be called at this ADDRESS:PORT (an empty address: any)");
  command->add_flag("--once", options->once, "with --listen: end after one measurement");
  command->add_flag("--quick", options->quick, "half a minute");
  command->add_flag("--full", options->full, "several minutes, more repetitions");
  command->add_flag("--no-sweep", options->no_sweep, "measure with the settings given, look for no others");
  command->add_option("--json", options->json, "write all figures to this file");
  add_path_options(*command, options->path);
}

}  // namespace maki
