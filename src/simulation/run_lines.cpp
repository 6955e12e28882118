#include "src/simulation/run_lines.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <ctime>

#include "src/io/json.hpp"

namespace maki {
namespace {

std::string now_utc() { return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::gmtime(std::time(nullptr))); }

JsonObject json_of(const Provenance& provenance) {
  return JsonObject()
      .add("version", provenance.version)
      .add("git_hash", provenance.git_hash)
      .add("compiler", provenance.compiler)
      .add("device", provenance.device)
      .add("configuration", provenance.configuration);
}

JsonObject json_of(const ForceError& error) {
  return JsonObject()
      .add("rms", error.rms)
      .add("median", error.median)
      .add("percentile_99", error.percentile_99)
      .add("targets", error.targets);
}

JsonObject phase_totals(const std::vector<RankRecord>& ranks) {
  JsonObject phases;
  for (const std::string& path : phase_paths(ranks)) {
    const Spread spread = spread_of(ranks, [&path](const RankRecord& r) { return phase_total(r, path); });
    phases.raw(path, fmt::format("[{:.6g}, {:.6g}, {:.6g}]", spread.min, spread.mean, spread.max));
  }
  return phases;
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::string head_line(const RunHead& head, const Provenance& provenance, std::optional<std::uint64_t> resumed_at) {
  std::vector<std::string> settings;
  for (const std::string& setting : head.settings) settings.push_back(json_string(setting));
  JsonObject line;
  line.add("run", head.run);
  if (resumed_at) line.add("resumed_at", *resumed_at);
  line.add("host", host_name()).add("began", now_utc()).add("ranks", head.ranks);
  if (!head.site.empty()) line.add("site", head.site);
  return line.raw("settings", json_array(settings)).add("provenance", json_of(provenance)).text();
}

std::string output_line(const OutputState& state, const std::string& file) {
  JsonObject line;
  line.add("output", state.index);
  if (state.header.comoving)
    line.add("a", state.header.time).add("z", state.header.redshift);
  else
    line.add("t", state.header.time);
  line.add("file", file);
  if (state.force_error) line.add("force_error", json_of(*state.force_error));
  return line.text();
}

std::string end_line(const RunEnd& end) {
  const RunResult& result = end.result;
  const Spread memory =
      spread_of(end.ranks, [](const RankRecord& r) { return static_cast<double>(r.memory_high_water); });
  JsonObject line;
  line.add("end", result.stopped_by)
      .add("site_lost", result.site_lost)
      .add("time", result.time)
      .add("steps", result.steps)
      .add("rebuilds", result.rebuilds)
      .add("long_steps", result.long_steps)
      .add("particles", result.particles);
  if (result.energy) line.add("worst_energy_error", result.worst_energy_error);
  return line.add("elapsed", end.elapsed)
      .add("phases", phase_totals(end.ranks))
      .add("memory_high_water", static_cast<std::uint64_t>(memory.max))
      .raw("memory", end.memory)
      .text();
}

std::string memory_json(const std::vector<PoolUse>& families) {
  JsonObject bytes;
  for (const PoolUse& use : families) bytes.add(use.name, use.bytes);
  return bytes.text();
}

}  // namespace maki
