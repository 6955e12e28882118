#include "src/simulation/sites_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "kernels/error.hpp"
#include "src/io/json.hpp"

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

const char* phase_name(std::size_t phase) { return sites::name(static_cast<sites::Phase>(phase)); }

std::string columns(const sites::Sites& sites, bool comoving) {
  std::string text = fmt::format(
      "step,{},rebuilt,mesh,seconds,waited,waits,force_seconds,tree_seconds,mesh_seconds,transform_seconds,"
      "coding_seconds,particles,interactions",
      comoving ? "a" : "t");
  for (std::size_t p = 0; p < sites::kPhases; ++p)
    text += fmt::format(",{0}_sent,{0}_received,{0}_passed_on,{0}_waits,{0}_waited", phase_name(p));
  text += ",told_of";
  for (int i = 0; i < sites.count(); ++i)
    text += fmt::format(",{0}_force_seconds,{0}_particles,{0}_interactions,{0}_begin,{0}_end", sites.name(i));
  return text;
}

// What the columns mean.
std::string explanation(const sites::Sites& sites) {
  return fmt::format(
      "# One line a step, written at the site {0}. Bytes, seconds, and fractions of the box side.\n"
      "# rebuilt: lists were made anew; mesh: the long-range force was evaluated\n"
      "# seconds: the step; waited: of that, in receives from other sites that were not there yet; waits: how many\n"
      "# force_seconds: lists walked and evaluated; tree_seconds and mesh_seconds: all of the short- and of the\n"
      "#   long-range force, with what was waited for; transform_seconds: of the mesh, what every site does for all;\n"
      "#   coding_seconds: of the mesh, coding and decoding messages\n"
      "# particles, interactions: of this site\n"
      "# PHASE_sent, _received, _passed_on (for other sites): bytes; PHASE_waits, _waited: as above\n"
      "# told_of: the step that the following columns, known to all sites alike, tell of\n"
      "# SITE_begin, SITE_end: its slab in x\n",
      sites.name(sites.me()));
}

// The lines of a trace up to this step, with its header.
std::string lines_until(const std::string& path, std::uint64_t step) {
  std::ifstream in(path);
  std::string lines;
  for (std::string line; std::getline(in, line) && !in.eof();) {
    const bool row = !line.empty() && line.front() >= '0' && line.front() <= '9';
    if (!row || std::stoull(line) <= step) lines += line + '\n';
  }
  return lines;
}

}  // namespace

OwnRecord own_record(const Communicator& ranks, const StepMetrics& metrics, const PhaseTimers& timers) {
  struct RankTimes {
    double seconds, force, tree, mesh, local;
    std::uint64_t particles, interactions;
  };
  const RankRecord record = record_of(metrics, timers);
  const RankTimes mine{metrics.seconds,
                       phase_seconds(record, "tree/walk") + phase_seconds(record, "tree/evaluate"),
                       phase_seconds(record, "tree") + phase_seconds(record, "direct sum"),
                       phase_seconds(record, "mesh"),
                       metrics.gravity.let_waited_seconds,
                       metrics.own_particles,
                       metrics.gravity.interactions};
  const std::vector<RankTimes> all = gathered(ranks, mine);
  OwnRecord own;
  own.step = metrics.step;
  own.comoving = metrics.comoving;
  own.time = metrics.time;
  own.rebuilt = metrics.gravity.rebuilt;
  own.long_step_end = metrics.long_step_end;
  for (const RankTimes& one : all) {
    own.seconds = std::max(own.seconds, one.seconds);
    own.force_seconds = std::max(own.force_seconds, one.force);
    own.tree_seconds = std::max(own.tree_seconds, one.tree);
    own.mesh_seconds = std::max(own.mesh_seconds, one.mesh);
    own.local_seconds += one.local / static_cast<double>(ranks.size());
    own.particles += one.particles;
    own.interactions += one.interactions;
  }
  return own;
}

double SiteSums::waited() const { return sum(traffic).waited; }

SitesReport::SitesReport(sites::Sites& sites, std::string path, bool overwrite, std::optional<std::uint64_t> resumed_at)
    : sites_(sites), path_(std::move(path)), overwrite_(overwrite), resumed_at_(resumed_at) {
  sums_.ranks = sites.ranks().size();
}

void SitesReport::open() {
  if (resumed_at_) {
    const std::string lines = lines_until(path_, *resumed_at_);
    file_.emplace(path_);
    *file_ << lines;
    if (!lines.empty()) return;
  } else if (!overwrite_ && std::filesystem::exists(path_)) {
    throw Error("cannot write " + path_, "the file exists",
                "choose another output directory, or set run.overwrite = true");
  }
  if (!file_) file_.emplace(path_);
  *file_ << explanation(sites_) << columns(sites_, own_.comoving) << '\n';
}

void SitesReport::write_line(const SitesTraffic& traffic) {
  if (!file_) open();
  const sites::Traffic all = sum(traffic);
  std::string line = fmt::format("{},{:.9g},{:d},{:d},{:.6f},{:.6f},{},{:.6f},{:.6f},{:.6f},{:.6f},{:.6f},{},{}",
                                 own_.step, own_.time, own_.rebuilt, own_.long_step_end, own_.seconds, all.waited,
                                 all.waits, own_.force_seconds, own_.tree_seconds, own_.mesh_seconds,
                                 own_.transform_seconds, own_.coding_seconds, own_.particles, own_.interactions);
  for (const sites::Traffic& one : traffic)
    line += fmt::format(",{},{},{},{},{:.6f}", one.bytes_sent, one.bytes_received, one.bytes_passed_on, one.waits,
                        one.waited);
  const bool known = static_cast<int>(record_.sites.size()) == sites_.count();
  line += known ? fmt::format(",{}", record_.known_step) : ",";
  for (int i = 0; i < sites_.count(); ++i) {
    if (!known) {
      line += ",,,,,";
      continue;
    }
    const SiteRecord& site = record_.sites[static_cast<std::size_t>(i)];
    line += fmt::format(",{:.6f},{},{},{:.9g},{:.9g}", site.force_seconds, site.particles, site.interactions,
                        site.begin, site.end);
  }
  *file_ << line << std::endl;
  if (!*file_) throw Error("cannot write " + path_, "the write failed", "is the disk full?");
}

void SitesReport::step(const OwnRecord& own, const SitesRecord& record, const SitesTraffic& traffic) {
  own_ = own;
  record_ = record;
  own_.transform_seconds = record.transform_seconds;
  own_.coding_seconds = record.coding_seconds;
  last_ = carried_;
  carried_ = {};
  add(last_, traffic);
  if (sites_.ranks().rank() == 0) write_line(last_);
  sums_.particles = own.particles;
  if (own.step == 0) return;  // sites start at different times, which is not the time of a step
  const sites::Traffic all = sum(last_);
  ++sums_.steps;
  sums_.mesh_steps += own.long_step_end ? 1 : 0;
  sums_.interactions += own.interactions;
  sums_.seconds += own.seconds;
  sums_.tree += std::max(0.0, own.tree_seconds - last_[kTrees].waited - last_[kParticles].waited);
  sums_.mesh += std::max(0.0, own.mesh_seconds - last_[kMesh].waited);
  sums_.transform += own_.transform_seconds;
  sums_.coding += own_.coding_seconds;
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
  JsonObject phases, of_sites;
  for (std::size_t p = 0; p < sites::kPhases; ++p)
    phases.raw(phase_name(p), fmt::format("[{:.6f}, {}, {}, {}]", last_[p].waited, last_[p].waits, last_[p].bytes_sent,
                                          last_[p].bytes_received));
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

}  // namespace maki
