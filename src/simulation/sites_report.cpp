#include "src/simulation/sites_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "src/io/json.hpp"
#include "src/model/published.hpp"

namespace maki {

namespace {

constexpr auto kOutput = static_cast<std::size_t>(sites::Phase::kOutput);
constexpr auto kMesh = static_cast<std::size_t>(sites::Phase::kMesh);
constexpr auto kTrees = static_cast<std::size_t>(sites::Phase::kTrees);
constexpr auto kParticles = static_cast<std::size_t>(sites::Phase::kParticles);

void add(sites::Traffic& to, const sites::Traffic& more) {
  to.messages_sent += more.messages_sent;
  to.bytes_sent += more.bytes_sent;
  to.messages_received += more.messages_received;
  to.bytes_received += more.bytes_received;
  to.bytes_passed_on += more.bytes_passed_on;
  to.waits += more.waits;
  to.waited += more.waited;
}

void add(SitesTraffic& to, const SitesTraffic& more) {
  for (std::size_t p = 0; p < to.size(); ++p) add(to[p], more[p]);
}

sites::Traffic sum(const SitesTraffic& traffic) {
  sites::Traffic all;
  for (const sites::Traffic& one : traffic) add(all, one);
  return all;
}

}  // namespace

OwnRecord own_record(const Communicator& ranks, const StepMetrics& metrics, const PhaseTimers& timers) {
  const RankRecord record = record_of(metrics, timers);
  const OwnRecord mine{
      .step = metrics.step,
      .rebuilt = metrics.gravity.rebuilt,
      .long_step_end = metrics.long_step_end,
      .seconds = metrics.seconds,
      .force_seconds = phase_seconds(record, "tree/walk") + phase_seconds(record, "tree/evaluate"),
      .tree_seconds = phase_seconds(record, "tree") + phase_seconds(record, "direct sum"),
      .mesh_seconds = phase_seconds(record, "mesh"),
      .transform_seconds = metrics.of_sites.transform_seconds,
      .coding_seconds = metrics.of_sites.coding_seconds,
      .local_seconds = metrics.gravity.let_waited_seconds / static_cast<double>(ranks.size()),
      .particles = metrics.own_particles,
      .interactions = metrics.gravity.interactions,
  };
  OwnRecord own = mine;
  own.local_seconds = 0, own.particles = own.interactions = 0;
  for (const OwnRecord& one : gathered(ranks, mine)) {
    own.seconds = std::max(own.seconds, one.seconds);
    own.force_seconds = std::max(own.force_seconds, one.force_seconds);
    own.tree_seconds = std::max(own.tree_seconds, one.tree_seconds);
    own.mesh_seconds = std::max(own.mesh_seconds, one.mesh_seconds);
    own.local_seconds += one.local_seconds;
    own.particles += one.particles;
    own.interactions += one.interactions;
  }
  return own;
}

double SiteSums::waited() const { return sum(traffic).waited; }

SitesReport::SitesReport(sites::Sites& sites, const SitesRunFacts& facts) : sites_(sites), facts_(facts) {
  sums_.ranks = sites.ranks().size();
}

void SitesReport::step(const OwnRecord& own, const SitesRecord& record, const SitesTraffic& traffic) {
  own_ = own;
  record_ = record;
  last_ = carried_;
  carried_ = {};
  add(last_, traffic);
  sums_.particles = own.particles;
  if (own.step == 0) return;  // sites start at different times, which is not the time of a step
  const sites::Traffic all = sum(last_);
  ++sums_.steps;
  sums_.mesh_steps += own.long_step_end ? 1 : 0;
  sums_.interactions += own.interactions;
  sums_.seconds += own.seconds;
  sums_.tree += std::max(0.0, own.tree_seconds - last_[kTrees].waited - last_[kParticles].waited);
  sums_.mesh += std::max(0.0, own.mesh_seconds - last_[kMesh].waited);
  sums_.transform += own.transform_seconds;
  sums_.coding += own.coding_seconds;
  sums_.local += own.local_seconds;
  SiteSums::Kind& kind = sums_.kinds[own.rebuilt ? 0 : own.long_step_end ? 1 : 2];
  ++kind.steps;
  kind.waits += all.waits;
  kind.seconds += own.seconds;
  kind.waited += all.waited;
  add(sums_.traffic, last_);
}

void SitesReport::output(const SitesTraffic& traffic) {
  add(sums_.outputs[kOutput], traffic[kOutput]);
  SitesTraffic rest = traffic;
  rest[kOutput] = {};
  add(carried_, rest);
}

std::string SitesReport::json() const {
  const auto seconds = [](double value) { return fmt::format("{:.6f}", value); };
  const sites::Traffic all = sum(last_);
  JsonObject phases, of_sites, own;
  own.raw("seconds", seconds(own_.seconds))
      .raw("force", seconds(own_.force_seconds))
      .raw("tree", seconds(own_.tree_seconds))
      .raw("mesh", seconds(own_.mesh_seconds))
      .raw("transform", seconds(own_.transform_seconds))
      .raw("coding", seconds(own_.coding_seconds))
      .add("particles", own_.particles)
      .add("interactions", own_.interactions);
  for (std::size_t p = 0; p < sites::kPhases; ++p)
    phases.raw(sites::name(static_cast<sites::Phase>(p)),
               fmt::format("[{:.6f}, {}, {}, {}, {}]", last_[p].waited, last_[p].waits, last_[p].bytes_sent,
                           last_[p].bytes_received, last_[p].bytes_passed_on));
  for (std::size_t i = 0; i < record_.sites.size() && static_cast<int>(i) < sites_.count(); ++i) {
    const SiteRecord& site = record_.sites[i];
    of_sites.add(sites_.name(static_cast<int>(i)), JsonObject()
                                                       .raw("force", seconds(site.force_seconds))
                                                       .add("particles", site.particles)
                                                       .add("interactions", site.interactions)
                                                       .add("begin", site.begin)
                                                       .add("end", site.end));
  }
  return JsonObject()
      .raw("waited", seconds(all.waited))
      .add("waits", all.waits)
      .add("sent", all.bytes_sent)
      .add("received", all.bytes_received)
      .add("phases", phases)
      .add("own", own)
      .add("told_of", record_.known_step)
      .add("all", of_sites)
      .text();
}

std::string SitesReport::finish() {
  add(sums_.outputs, carried_);
  std::vector<SiteSums> of_sites;
  std::vector<std::string> names;
  try {
    const auto messages =
        sites_.gather(sites::Phase::kOutput, sites_.next_number(sites::Phase::kOutput), sites::as_bytes_of(sums_));
    for (int i = 0; i < sites_.count(); ++i) {
      of_sites.push_back(sites::value_of<SiteSums>(messages[static_cast<std::size_t>(i)]));
      names.push_back(sites_.name(i));
    }
  } catch (const sites::SiteLost&) {
    of_sites = {sums_};
    names = {sites_.name(sites_.me())};
  }
  return sites_table(of_sites, names, facts_);
}

// ---- the tables -----------------------------------------------------------------------------------------------------

namespace {

using All = std::vector<SiteSums>;

constexpr double kSampledShare = 1e-4;  // r_samp of SUSHI's large runs

double steps_of(const SiteSums& site) { return static_cast<double>(std::max<std::uint64_t>(site.steps, 1)); }

int ranks_of(const All& sites) {
  int ranks = 0;
  for (const SiteSums& site : sites) ranks += site.ranks;
  return ranks;
}

// Mean over sites for one step, each site weighted by its share of the ranks.
double mean(const All& sites, const std::function<double(const SiteSums&)>& number) {
  double sum = 0;
  for (const SiteSums& site : sites) sum += site.ranks * number(site) / steps_of(site);
  return sum / ranks_of(sites);
}

double largest(const All& sites, const std::function<double(const SiteSums&)>& number) {
  double most = 0;
  for (const SiteSums& site : sites) most = std::max(most, number(site));
  return most;
}

// Seconds that one site with all ranks would save: all but one of the sites' transforms, and the coding of messages.
double spared(const All& sites, const SiteSums& site) {
  return site.coding + site.transform * (1 - 1 / static_cast<double>(sites.size()));
}

struct Row {
  int ranks = 0;
  std::string site, local, total;                   // name; seconds waited for other ranks, and for all
  double tree = 0, mesh = 0, other = 0, whole = 0;  // seconds
};

std::string text_of(const Row& row, const SitesRunFacts& facts) {
  const double n = std::cbrt(static_cast<double>(facts.particles));
  const auto cells = facts.mesh > 0 ? fmt::format("{}", facts.mesh) : "-";
  return fmt::format("{:>7.6g} {:>7} {:>6}  {:<18} {:>10} {:>10} {:>10.4f} {:>10.4f} {:>10.4f} {:>10.4f}\n", n, cells,
                     row.ranks, row.site, row.local, row.total, row.tree, row.mesh, row.other, row.whole);
}

std::string time_table(const All& sites, const std::vector<std::string>& names, const SitesRunFacts& facts) {
  std::string text = "Seconds a step, as in SUSHI's table 7; tree, PM and other without what was waited for\n";
  text += fmt::format("{:>7} {:>7} {:>6}  {:<18} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}\n", "N^1/3", "M^1/3",
                      "ranks", "site", "comm local", "comm total", "tree", "PM", "other", "exec.");
  const auto number = [](double value) { return fmt::format("{:.4f}", value); };
  for (std::size_t i = 0; i < sites.size(); ++i) {
    const SiteSums& s = sites[i];
    const double one = 1 / steps_of(s);
    text += text_of({.ranks = s.ranks,
                     .site = names[i],
                     .local = number(one * s.local),
                     .total = number(one * (s.local + s.waited())),
                     .tree = one * s.tree,
                     .mesh = one * s.mesh,
                     .other = one * (s.work() - s.tree - s.mesh),
                     .whole = one * s.seconds},
                    facts);
  }
  const double tree = mean(sites, [](const SiteSums& s) { return s.tree; });
  const double mesh = mean(sites, [&](const SiteSums& s) { return s.mesh - spared(sites, s); });
  const double whole = one_site_seconds(sites);
  return text + text_of({.ranks = ranks_of(sites),
                         .site = "one site, estimate",
                         .local = number(mean(sites, [](const SiteSums& s) { return s.local; })),
                         .total = "",
                         .tree = tree,
                         .mesh = mesh,
                         .other = whole - tree - mesh,
                         .whole = whole},
                        facts);
}

std::string kinds_table(const All& sites) {
  constexpr std::array<const char*, 3> names = {"new lists", "kept lists, mesh", "kept lists, no mesh"};
  std::string text = fmt::format("{:<24} {:>8} {:>12} {:>14} {:>14}\n", "kind of step", "steps", "seconds",
                                 "waited, most", "waits, most");
  for (std::size_t k = 0; k < names.size(); ++k) {
    const std::uint64_t steps = sites.front().kinds[k].steps;
    if (steps == 0) continue;
    const auto most = [&](const std::function<double(const SiteSums::Kind&)>& value) {
      return largest(sites, [&](const SiteSums& s) { return value(s.kinds[k]); }) / static_cast<double>(steps);
    };
    text += fmt::format("{:<24} {:>8} {:>12.4f} {:>14.4f} {:>14.2f}\n", names[k], steps,
                        most([](const SiteSums::Kind& kind) { return kind.seconds; }),
                        most([](const SiteSums::Kind& kind) { return kind.waited; }),
                        most([](const SiteSums::Kind& kind) { return static_cast<double>(kind.waits); }));
  }
  return text + fmt::format(
                    "of a step, at the site with most; a wait for what is still on its way is half a round trip; "
                    "SUSHI has {} exchanges a step (eq. 11)\n",
                    model::wan_exchanges({}, static_cast<int>(sites.size())));
}

struct Volume {
  sites::Phase phase;
  const char* name;
  std::uint64_t of;  // steps
  double predicted;  // bytes; below 0: eq. 12 has no term for it
};

std::string bytes_table(const All& sites, const SitesRunFacts& facts) {
  const int count = static_cast<int>(sites.size());
  const double s = count, n = static_cast<double>(facts.particles);
  const double m = std::pow(static_cast<double>(facts.mesh), 3), mb = 1e-6;
  const SiteSums& first = sites.front();
  const double trees = facts.theta > 0 ? model::wan_tree_bytes(n, facts.theta) : -1;
  const std::vector<Volume> volumes = {{sites::Phase::kSums, "sums and samples, a step", first.steps,
                                        model::wan_sample_bytes(n, kSampledShare)},
                                       {sites::Phase::kMesh, "mesh, a step with it", first.mesh_steps,
                                        model::wan_mesh_bytes(m, count)},
                                       {sites::Phase::kTrees, "trees, a step", first.steps, trees},
                                       {sites::Phase::kParticles, "particles, new lists", first.rebuilds(), -1}};
  std::string text = fmt::format("{:<26} {:>12} {:>12} {:>12} {:>12}\n", "MB of a site, mean", "sent", "received",
                                 "passed on", "eq. 12");
  for (const Volume& v : volumes) {
    if (v.of == 0) continue;
    sites::Traffic sum;
    for (const SiteSums& site : sites) add(sum, site.traffic[static_cast<std::size_t>(v.phase)]);
    const double each = mb / (s * static_cast<double>(v.of));
    text +=
        fmt::format("{:<26} {:>12.4f} {:>12.4f} {:>12.4f} {:>12}\n", v.name, each * static_cast<double>(sum.bytes_sent),
                    each * static_cast<double>(sum.bytes_received), each * static_cast<double>(sum.bytes_passed_on),
                    v.predicted < 0 ? "-" : fmt::format("{:.4f}", mb * v.predicted));
  }
  if (facts.mesh > 0)
    text += fmt::format("both interlaced meshes as 64-bit integers, 16 M (s - 1) / s: {:.4f} MB\n",
                        mb * 16 * m * (s - 1) / s);
  double outputs = 0, sent = 0;
  for (const SiteSums& site : sites) {
    outputs = std::max(outputs, site.outputs[kOutput].waited);
    sent += mb * static_cast<double>(site.outputs[kOutput].bytes_sent);
  }
  return text + fmt::format("outputs, not in the tables: {:.3f} s waited at most, {:.3f} MB sent by all sites\n",
                            outputs, sent);
}

}  // namespace

double one_site_seconds(const All& sites) {
  return mean(sites, [&](const SiteSums& s) { return s.work() - spared(sites, s); });
}

double efficiency(const All& sites) {
  const double whole = largest(sites, [](const SiteSums& s) { return s.seconds / steps_of(s); });
  return whole > 0 ? one_site_seconds(sites) / whole : 1;
}

std::string sites_table(const All& sites, const std::vector<std::string>& names, const SitesRunFacts& facts) {
  const bool all_known = std::all_of(sites.begin(), sites.end(), [](const SiteSums& s) { return s.transform > 0; });
  return time_table(sites, names, facts) +
         fmt::format(
             "{} steps. Efficiency E({}) = {:.3f} (SUSHI's eq. 14), of the estimate above: all sites' work "
             "without what they waited for, over all ranks{}.\n\n",
             sites.front().steps, sites.size(), efficiency(sites),
             facts.mesh > 0 && !all_known ? ", each site's transforms counted" : "") +
         kinds_table(sites) + '\n' + bytes_table(sites, facts);
}

}  // namespace maki
