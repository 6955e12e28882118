#include "src/simulation/metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <type_traits>

#include "src/io/json.hpp"
#include "wan/net/byte_codec.hpp"

namespace maki {
namespace {

// ---- records of ranks -----------------------------------------------------------------------------------------------

template <class Io>
void fields(Io& io, wan::Of<Io, RankRecord>& record) {
  for (auto* number : {&record.particles, &record.memory_high_water, &record.memory_held}) io.field(*number);
  auto counts = std::bit_cast<std::array<std::byte, sizeof record.gravity>>(record.gravity);
  io.field(counts);
  if constexpr (!std::is_const_v<wan::Of<Io, RankRecord>>) record.gravity = std::bit_cast<GravityCounts>(counts);
  io.list(record.phases, std::uint32_t{0xffff}, "too many phases", [](auto& each, auto& phase) {
    each.field(phase.path, 0xffff);
    each.field(phase.seconds);
    each.field(phase.total_seconds);
    each.field(phase.calls);
  });
}

// The phase with this path; zeros where there is none.
PhaseTime phase_of(const RankRecord& record, const std::string& path) {
  const auto found = std::ranges::find(record.phases, path, &PhaseTime::path);
  return found == record.phases.end() ? PhaseTime{} : *found;
}

}  // namespace

void add_counts(GravityCounts& total, const GravityCounts& step) {
  total.interactions += step.interactions;
  total.rewalked_groups += step.rewalked_groups;
  total.redone_groups += step.redone_groups;
  total.let_cells += step.let_cells;
  total.let_particles += step.let_particles;
  total.let_bytes += step.let_bytes;
  total.let_messages += step.let_messages;
  total.let_exchange_seconds += step.let_exchange_seconds;
  total.let_waited_seconds += step.let_waited_seconds;
  total.domain_imbalance = step.domain_imbalance;
}

std::vector<RankRecord> gather_records(const Communicator& ranks, const RankRecord& mine) {
  wan::ByteWriter message;
  fields(message, mine);
  std::vector<RankRecord> records;
  for (const std::vector<std::byte>& one : gather_lists(ranks, message.take())) {
    if (ranks.rank() > 0) break;
    wan::ByteReader reader(one, "the record of a rank", "the record of a rank makes no sense");
    fields(reader, records.emplace_back());
  }
  return records;
}

Spread spread_of(const std::vector<RankRecord>& ranks, const std::function<double(const RankRecord&)>& number) {
  Spread spread;
  if (ranks.empty()) return spread;
  spread.min = spread.max = number(ranks[0]);
  double sum = 0;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const double value = number(ranks[r]);
    sum += value;
    spread.min = std::min(spread.min, value);
    if (value > spread.max) {
      spread.max = value;
      spread.largest = static_cast<int>(r);
    }
  }
  spread.mean = sum / static_cast<double>(ranks.size());
  return spread;
}

Spread phase_spread(const std::vector<RankRecord>& ranks, const std::string& path, double PhaseTime::*number) {
  std::size_t place = 0;  // of the phase on the rank before: nearly all ranks have the same phases
  return spread_of(ranks, [&](const RankRecord& rank) {
    const std::vector<PhaseTime>& phases = rank.phases;
    if (place >= phases.size() || phases[place].path != path)
      place = static_cast<std::size_t>(std::ranges::find(phases, path, &PhaseTime::path) - phases.begin());
    return place < phases.size() ? phases[place].*number : 0;
  });
}

double phase_seconds(const RankRecord& rank, const std::string& path) { return phase_of(rank, path).seconds; }
double phase_total(const RankRecord& rank, const std::string& path) { return phase_of(rank, path).total_seconds; }

std::vector<std::string> phase_paths(const std::vector<RankRecord>& ranks) {
  std::vector<std::string> paths;
  const RankRecord* before = nullptr;
  for (const RankRecord& rank : ranks) {
    const bool known =
        before && std::ranges::equal(rank.phases, before->phases, {}, &PhaseTime::path, &PhaseTime::path);
    before = &rank;
    if (known) continue;
    for (const PhaseTime& phase : rank.phases) {
      if (std::find(paths.begin(), paths.end(), phase.path) != paths.end()) continue;
      // After the last of its siblings and their children; a parent always comes first.
      const std::string parent = phase.path.substr(0, phase.path.rfind('/') + 1);
      auto place = paths.end();
      if (!parent.empty()) {
        place = std::find(paths.begin(), paths.end(), parent.substr(0, parent.size() - 1)) + 1;
        while (place != paths.end() && place->compare(0, parent.size(), parent) == 0) ++place;
      }
      paths.insert(place, phase.path);
    }
  }
  return paths;
}

GravityCounts over_ranks(const std::vector<RankRecord>& ranks) {
  GravityCounts all = ranks.at(0).gravity;
  for (std::size_t r = 1; r < ranks.size(); ++r) {
    const GravityCounts& one = ranks[r].gravity;
    add_counts(all, one);
    all.longest_list = std::max(all.longest_list, one.longest_list);
    all.groups += one.groups;
    all.cells += one.cells;
  }
  return all;
}

// ---- the table at the end of a run ----------------------------------------------------------------------------------

namespace {

using Ranks = std::vector<RankRecord>;

std::string phase_table(const Ranks& ranks) {
  const std::vector<std::string> paths = phase_paths(ranks);
  std::size_t width = 24;
  double whole = 0;  // mean over ranks
  for (const std::string& path : paths) {
    width = std::max(width, indented_name(path).size() + 2);
    if (path.find('/') != path.npos) continue;
    whole += phase_spread(ranks, path, &PhaseTime::total_seconds).mean;
  }
  std::string text = fmt::format("{:<{}}  {:>10}  {:>10}  {:>10}  {:>7}  {:>9}\n", "phase, seconds of a rank", width,
                                 "min", "mean", "max", "share", "max/mean");
  for (const std::string& path : paths) {
    const Spread s = phase_spread(ranks, path, &PhaseTime::total_seconds);
    text += fmt::format("{:<{}}  {:>10.3f}  {:>10.3f}  {:>10.3f}  {:>5.1f} %  {:>9.2f}\n", indented_name(path), width,
                        s.min, s.mean, s.max, whole > 0 ? 100 * s.mean / whole : 0, s.imbalance());
  }
  return text;
}

std::string work_table(const Ranks& ranks) {
  const auto line = [&ranks](const char* name, const std::function<double(const RankRecord&)>& number) {
    const Spread s = spread_of(ranks, number);
    return fmt::format("{:<26}  {:>12.5g}  {:>12.5g}  {:>12.5g}  {:>9.3f}  {:>5}\n", name, s.min, s.mean, s.max,
                       s.imbalance(), s.largest);
  };
  return fmt::format("{:<26}  {:>12}  {:>12}  {:>12}  {:>9}  {:>5}\n", "over ranks", "min", "mean", "max", "max/mean",
                     "rank") +
         line("particles", [](const RankRecord& r) { return static_cast<double>(r.particles); }) +
         line("interactions", [](const RankRecord& r) { return static_cast<double>(r.gravity.interactions); }) +
         line("tree/evaluate, s", [](const RankRecord& r) { return phase_total(r, "tree/evaluate"); }) +
         line("device memory, MB", [](const RankRecord& r) { return 1e-6 * static_cast<double>(r.memory_high_water); });
}

std::string exchange_lines(const Ranks& ranks, std::uint64_t steps) {
  const GravityCounts all = over_ranks(ranks);
  if (all.let_messages == 0) return "";
  const auto of_each = 1 / static_cast<double>(std::max<std::uint64_t>(steps, 1) * ranks.size());
  const double hidden =
      all.let_exchange_seconds > 0 ? 100 * (1 - all.let_waited_seconds / all.let_exchange_seconds) : 100;
  return fmt::format(
      "local essential trees, of a rank and a step: {:.0f} cells and {:.0f} particles received, {:.3f} MB in {:.1f} "
      "messages sent; {:.1f} % of the time of their exchange was hidden behind other work\n",
      static_cast<double>(all.let_cells) * of_each, static_cast<double>(all.let_particles) * of_each,
      1e-6 * static_cast<double>(all.let_bytes) * of_each, static_cast<double>(all.let_messages) * of_each, hidden);
}

std::string memory_of_ranks(const Ranks& ranks) {
  const int largest =
      spread_of(ranks, [](const RankRecord& r) { return static_cast<double>(r.memory_high_water); }).largest;
  std::string text = fmt::format("{:>6}  {:>12}  {:>14}  {:>10}\n", "rank", "particles", "MB at the peak", "MB held");
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    text +=
        fmt::format("{:>6}  {:>12}  {:>14.2f}  {:>10.2f}{}\n", r, ranks[r].particles,
                    1e-6 * static_cast<double>(ranks[r].memory_high_water),
                    1e-6 * static_cast<double>(ranks[r].memory_held), static_cast<int>(r) == largest ? "  (most)" : "");
  }
  return text;
}

}  // namespace

std::string run_report(const PhaseTimers& timers, const Ranks& ranks, std::uint64_t steps) {
  if (ranks.size() == 1) return timers.table();
  return phase_table(ranks) + '\n' + work_table(ranks) + exchange_lines(ranks, steps) + '\n' + memory_of_ranks(ranks);
}

// ---- the line of a step ---------------------------------------------------------------------------------------------

namespace {

double high_water(const RankRecord& rank) { return static_cast<double>(rank.memory_high_water); }

// Means over ranks of the phases that took time on any rank.
JsonObject mean_phases(const std::vector<RankRecord>& ranks) {
  JsonObject phases;
  for (const std::string& path : phase_paths(ranks)) {
    const double mean = phase_spread(ranks, path, &PhaseTime::seconds).mean;
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
  const Spread memory = spread_of(ranks, high_water);
  const Spread interactions = count(&GravityCounts::interactions);
  JsonObject phases;
  for (const std::string& path : phase_paths(ranks)) {
    const Spread seconds = phase_spread(ranks, path, &PhaseTime::seconds);
    if (seconds.max > 0) phases.raw(path, triple(seconds));
  }
  JsonObject object;
  object.add("count", ranks.size())
      .raw("particles", triple(spread_of(ranks, [](const RankRecord& r) { return static_cast<double>(r.particles); })))
      .raw("interactions", triple(interactions))
      .add("interaction_imbalance", interactions.imbalance())
      .add("evaluate_imbalance", phase_spread(ranks, "tree/evaluate", &PhaseTime::seconds).imbalance())
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
  record.gravity = metrics.gravity;
  record.phases = timers.phases();
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
      .raw("steps_left", metrics.step > 0 ? fmt::format("{:.1f}", metrics.steps_left) : "null")
      .add("phases", mean_phases(ranks));
  if (ranks.size() > 1) line.add("ranks", about_ranks(ranks, all));
  if (!metrics.sites.empty()) line.raw("sites", metrics.sites);
  return line.text();
}

}  // namespace maki
