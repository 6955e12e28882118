#include "src/simulation/metrics.hpp"

#include <fmt/format.h>

#include "src/io/json.hpp"

namespace maki {

namespace {

double high_water(const RankRecord& rank) { return static_cast<double>(rank.memory_high_water); }

// Means over ranks of the phases that took time on any rank.
JsonObject mean_phases(const std::vector<RankRecord>& ranks) {
  JsonObject phases;
  for (const std::string& path : phase_paths(ranks)) {
    const double mean = spread_of(ranks, [&path](const RankRecord& r) { return phase_seconds(r, path); }).mean;
    if (mean > 0) phases.raw(path, fmt::format("{:.6f}", mean));
  }
  return phases;
}

std::string triple(const Spread& spread) {
  return fmt::format("[{:.6g}, {:.6g}, {:.6g}]", spread.min, spread.mean, spread.max);
}

// Triples are smallest, mean and largest.
JsonObject about_ranks(const std::vector<RankRecord>& ranks, const GravityCounts& all) {
  const auto count = [&ranks](std::uint64_t GravityCounts::*field) {
    return spread_of(ranks, [field](const RankRecord& r) { return static_cast<double>(r.gravity.*field); });
  };
  const auto phase = [&ranks](const std::string& path) {
    return spread_of(ranks, [&path](const RankRecord& r) { return phase_seconds(r, path); });
  };
  const Spread memory = spread_of(ranks, high_water);
  const Spread interactions = count(&GravityCounts::interactions);
  JsonObject phases;
  for (const std::string& path : phase_paths(ranks))
    if (phase(path).max > 0) phases.raw(path, triple(phase(path)));
  JsonObject object;
  object.add("count", ranks.size())
      .raw("particles", triple(spread_of(ranks, [](const RankRecord& r) { return static_cast<double>(r.particles); })))
      .raw("interactions", triple(interactions))
      .add("interaction_imbalance", interactions.imbalance())
      .add("evaluate_imbalance", phase("tree/evaluate").imbalance())
      .add("domain_imbalance", all.domain_imbalance)
      .raw("memory_high_water", triple(memory))
      .add("largest_memory_rank", memory.largest)
      .add("let_cells", all.let_cells)
      .add("let_particles", all.let_particles)
      .add("let_bytes", all.let_bytes)
      .add("let_messages", all.let_messages)
      .add("let_exchange_seconds", all.let_exchange_seconds)
      .add("let_waited_seconds", all.let_waited_seconds)
      .add("phases", phases);
  return object;
}

void add_gravity(JsonObject& line, const GravityCounts& counts) {
  line.add("rebuilt", counts.rebuilt)
      .add("theta", counts.theta)
      .add("interactions", counts.interactions)
      .add("mean_list", counts.mean_list)
      .add("longest_list", counts.longest_list)
      .add("groups", counts.groups)
      .add("fill", counts.mean_fill)
      .add("rewalked", counts.rewalked_groups)
      .add("redone", counts.redone_groups)
      .add("probe_error", counts.probe_error)
      .add("fresh_error", counts.fresh_error);
}

}  // namespace

RankRecord record_of(const StepMetrics& metrics, const PhaseTimers& timers) {
  RankRecord record;
  record.particles = metrics.own_particles;
  record.memory_high_water = metrics.memory_high_water;
  record.seconds = metrics.seconds;
  record.gravity = metrics.gravity;
  record.phases = phase_times(timers);
  return record;
}

std::string to_json(const StepMetrics& metrics, const std::vector<RankRecord>& ranks) {
  const GravityCounts all = over_ranks(ranks);
  JsonObject line;
  line.add("step", metrics.step);
  if (metrics.comoving)
    line.add("a", metrics.time).add("z", 1 / metrics.time - 1).add("dt", metrics.dt).add("dlna", metrics.dlna);
  else
    line.add("t", metrics.time).add("dt", metrics.dt);
  line.add("long", metrics.long_step_end)
      .add("substep", metrics.substep)
      .add("particles", metrics.particles)
      .add("max_acceleration", metrics.max_acceleration)
      .add("rms_acceleration", metrics.rms_acceleration)
      .add("rms_momentum", metrics.rms_momentum);
  add_gravity(line, all);
  if (metrics.energy) {
    line.add("kinetic", metrics.energy->kinetic).add("potential", metrics.energy->potential);
    if (metrics.comoving) line.add("layzer_irvine_integral", metrics.energy->integral);
    line.add("energy_error", metrics.energy->error)
        .add("momentum_drift", metrics.momentum_drift)
        .add("force_residual", metrics.force_residual);
  }
  line.add("memory_high_water", static_cast<std::uint64_t>(spread_of(ranks, high_water).max))
      .raw("seconds", fmt::format("{:.6f}", metrics.seconds))
      .raw("elapsed", fmt::format("{:.3f}", metrics.elapsed))
      .raw("steps_left", fmt::format("{:.1f}", metrics.steps_left))
      .add("phases", mean_phases(ranks));
  if (ranks.size() > 1) line.add("ranks", about_ranks(ranks, all));
  if (!metrics.sites.empty()) line.raw("sites", metrics.sites);
  return line.text();
}

}  // namespace maki
