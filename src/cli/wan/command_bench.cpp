// maki wan bench: the speed of a path between two sites, and its best settings.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "kernels/error.hpp"
#include "src/cli/commands.hpp"
#include "src/cli/wan/path_options.hpp"
#include "src/io/json.hpp"
#include "src/io/safe_file.hpp"
#include "wan/net/settings.hpp"
#include "wan/net/tune/bench.hpp"
#include "wan/net/tune/measure.hpp"

namespace maki {
namespace {

// The results of `maki wan bench`, as text and as JSON.
struct BenchOutput {
  std::string peer;
  PathChoices choices;  // as the user gave them
  wan::Trial trial;     // as measured
  bool swept = false;
  wan::Tuned tuned;
  wan::BenchResult result;
  wan::KernelLimits here, there;
};

double megabytes(double bytes) { return 1e-6 * bytes; }

std::string table(const BenchOutput& output) {
  const wan::Latency& latency = output.result.latency;
  std::string text = fmt::format("\n8 bytes there and back: {:.3f} ms least, {:.3f} median, {:.3f} 99 % ({} times)\n\n",
                                 1e3 * latency.least, 1e3 * latency.median, 1e3 * latency.percentile_99, latency.count);
  text +=
      fmt::format("{:>22}  {:>20}  {:>20}  {:>20}\n", "message", "out: s, MB/s", "in: s, MB/s", "both: s, MB/s each");
  const auto row = [&](const std::string& name, const wan::SizeRow& sizes) {
    const auto cell = [&](double seconds) {
      return fmt::format("{:>9.4f} {:>10.1f}", seconds, megabytes(static_cast<double>(sizes.bytes)) / seconds);
    };
    text += fmt::format("{:>22}  {}  {}  {}\n", name, cell(sizes.out), cell(sizes.in), cell(sizes.both));
  };
  for (const wan::SizeRow& sizes : output.result.rows)
    row(fmt::format("{:.4g} MB", megabytes(double(sizes.bytes))), sizes);
  row(fmt::format("{:.4g} MB after silence", megabytes(double(output.result.after_pause.bytes))),
      output.result.after_pause);
  for (const std::size_t bytes : output.result.left_out)
    text += fmt::format("{:>22}  left out: it would take too long here (--full)\n",
                        fmt::format("{:.4g} MB", megabytes(double(bytes))));
  text += fmt::format("\nProcessor seconds per GB: {:.2f} here, {:.2f} there\n", output.result.cpu_here,
                      output.result.cpu_there);
  return text;
}

// The largest measured rate, bytes/s.
double best_rate(const BenchOutput& output) {
  double rate = 0;
  for (const wan::SizeRow& row : output.result.rows)
    rate = std::max({rate, static_cast<double>(row.bytes) / row.out, static_cast<double>(row.bytes) / row.in});
  return rate;
}

std::string limits_text(const BenchOutput& output) {
  std::string text;
  const auto add = [&](const char* where, const wan::KernelLimits& kernel) {
    for (const wan::Limit& limit :
         wan::limits_of(kernel, output.trial.settings, best_rate(output), output.result.latency.least)) {
      text += fmt::format("  {}: {}\n", where, limit.what);
      if (!limit.remedy.empty()) text += fmt::format("    {}\n", limit.remedy);
    }
  };
  add("here", output.here);
  add("there", output.there);
  return text.empty() ? "\nNothing that the kernels are set to stands in the way.\n"
                      : "\nWhat may stand in the way, and what an administrator could set:\n" + text;
}

PathChoices chosen(const BenchOutput& output, double pacing) {
  PathChoices choices = output.choices;
  choices.settings = output.trial.settings;
  choices.settings.pacing_rate = pacing;
  return choices;
}

std::string settings_text(const BenchOutput& output) {
  const double out = output.trial.settings.pacing_rate, in = output.trial.pacing_in;
  const bool alike = std::abs(out - in) <= 0.05 * std::max(out, in);
  std::string text =
      output.swept && !output.tuned.in_time ? "\nNot all was tried in the time: --full takes more.\n" : "";
  text += fmt::format("\nSettings, for a file that --config names{}:\n\n",
                      alike ? " at both ends" : " at this end (at the other, pacing = \"" + wan::rate_text(in) + "\")");
  return text + path_toml(chosen(output, alike ? std::min(out, in) : out));
}

JsonObject row_json(const wan::SizeRow& row) {
  return JsonObject()
      .add("bytes", row.bytes)
      .add("count", row.count)
      .add("out_s", row.out)
      .add("in_s", row.in)
      .add("both_s", row.both);
}

JsonObject trial_json(const wan::Trial& trial) {
  const wan::PathSettings& settings = trial.settings;
  return JsonObject()
      .add("streams", settings.streams)
      .add("window", settings.window)
      .add("send_chunk", settings.send_chunk)
      .add("receive_chunk", settings.receive_chunk)
      .add("pacing_out", settings.pacing_rate)
      .add("pacing_in", trial.pacing_in)
      .add("congestion", settings.congestion);
}

JsonObject tried_json(const wan::Tried& tried) {
  return JsonObject()
      .add("settings", trial_json(tried.trial))
      .add("bytes", tried.bytes)
      .add("out_s", tried.warm.out)
      .add("in_s", tried.warm.in)
      .add("after_silence_s", tried.after_pause);
}

std::string bench_text(const BenchOutput& output) {
  return table(output) + limits_text(output) + settings_text(output);
}

std::string bench_json(const BenchOutput& output) {
  const wan::Latency& latency = output.result.latency;
  std::vector<std::string> rows, tried;
  for (const wan::SizeRow& row : output.result.rows) rows.push_back(row_json(row).text());
  for (const wan::Tried& one : output.tuned.tried) tried.push_back(tried_json(one).text());
  return JsonObject()
             .add("peer", output.peer)
             .add("encrypted", !output.choices.security.insecure)
             .add("settings", trial_json(output.trial))
             .add("latency_s", JsonObject()
                                   .add("count", latency.count)
                                   .add("least", latency.least)
                                   .add("median", latency.median)
                                   .add("percentile_99", latency.percentile_99))
             .raw("messages", json_array(rows))
             .add("after_silence", row_json(output.result.after_pause))
             .add("cpu_s_per_gb",
                  JsonObject().add("here", output.result.cpu_here).add("there", output.result.cpu_there))
             .raw("tried", json_array(tried))
             .text() +
         '\n';
}

struct Options {
  std::string peer, listen, json;
  bool quick = false, full = false, no_sweep = false, once = false;
  PathOptions path;
};

void serve(const Options& given) {
  const PathChoices choices = read_path_options(given.path);
  wan::BenchService service;
  if (given.listen.empty() && !choices.relay.used())
    throw CLI::ValidationError(
        "give HOST:PORT to call a measurement, or --listen ADDRESS:PORT or a relay to be called");
  if (!given.listen.empty() && choices.relay.used())
    throw CLI::ValidationError(
        "--listen and a relay: a measurement is called at an address or through a relay, give one");
  if (!given.listen.empty()) service.local = wan::Endpoint::parse(given.listen);
  service.security = choices.security;
  service.settings = choices.settings;
  service.relay = choices.relay;
  service.once = given.once;
  service.stop = end_on_signals();
  service.report = say;
  service.listening = [&](const wan::Endpoint& where) {
    say(fmt::format("measurements: listening on {}{} (Ctrl-C ends it)",
                    choices.relay.used() ? "the relay as " + choices.relay.target : where.text(),
                    choices.security.insecure ? ", without encryption" : ""));
  };
  wan::serve_bench(service);
}

// Keeps the user's settings; all others are searched.
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

void write_json(const std::string& path, std::ios::openmode mode, const std::string& text) {
  errno = 0;
  std::ofstream file(path, mode);
  file << text;
  file.flush();
  if (!file)
    throw Error(fmt::format("cannot write '{}'", path), errno ? std::strerror(errno) : "",
                "see that its folder is there, and has room");
}

// Throws Error where the file cannot be written, before minutes have gone into its figures.
void look_for(const std::string& path) {
  if (std::filesystem::exists(path))
    write_json(path, std::ios::app, "");
  else
    SafeFile(path, true);  // gone at once
}

void call(const Options& given) {
  if (!given.json.empty()) look_for(given.json);
  BenchOutput output;
  output.peer = given.peer;
  output.choices = read_path_options(given.path);
  output.trial = {output.choices.settings, output.choices.settings.pacing_rate};
  wan::BenchClient link(wan::Endpoint::parse(given.peer), output.choices.security, output.choices.relay);
  if (!given.no_sweep) {
    wan::TuneOptions tune;
    tune.base = output.trial;
    tune.seconds = given.quick ? 20 : given.full ? 300 : 90;
    tune.thorough = given.full;
    tune.progress = say;
    keep_given(given, output.choices, tune);
    output.swept = true;
    output.tuned = wan::tune(link, tune);
    output.trial = output.tuned.best.trial;
    say("best: " + wan::describe(output.trial));
  }
  wan::BenchOptions measurement;
  measurement.seconds = given.quick ? 12 : given.full ? 180 : 60;
  measurement.progress = say;
  output.result = wan::measure(link, output.trial, measurement);
  output.here = link.kernel_here();
  output.there = link.kernel_there();
  fmt::print("{}", bench_text(output));
  if (!given.json.empty()) write_json(given.json, std::ios::trunc, bench_json(output));
}

void run_bench(const Options& given) {
  if (!given.peer.empty() && !given.listen.empty())
    throw CLI::ValidationError("HOST:PORT calls a measurement, and --listen ADDRESS:PORT is called: give one");
  given.peer.empty() ? serve(given) : call(given);
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
  CLI::Option* quick = command->add_flag("--quick", options->quick, "half a minute");
  command->add_flag("--full", options->full, "several minutes, more repetitions")->excludes(quick);
  command->add_flag("--no-sweep", options->no_sweep, "measure with the settings given, look for no others");
  command->add_option("--json", options->json, "write all figures to this file");
  add_path_options(*command, options->path);
}

}  // namespace maki
