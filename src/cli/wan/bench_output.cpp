#include "src/cli/wan/bench_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/cli/wan/path_options.hpp"
#include "src/config/key_access.hpp"
#include "src/io/json.hpp"
#include "wan/net/quantity.hpp"

namespace maki {
namespace {

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
  if (output.result.after_pause.count > 0)
    row(fmt::format("{:.4g} MB after silence", megabytes(double(output.result.after_pause.bytes))),
        output.result.after_pause);
  for (const std::size_t bytes : output.result.left_out)
    text += fmt::format("{:>22}  left out: it would take too long here (--full)\n",
                        fmt::format("{:.4g} MB", megabytes(double(bytes))));
  text += fmt::format("\nProcessor seconds per GB: {:.2f} here, {:.2f} there\n", output.result.cpu_here,
                      output.result.cpu_there);
  return text;
}

// The fastest that was seen, bytes/s.
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

}  // namespace

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

}  // namespace maki
