#include "src/run/filed_run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "src/config/parse.hpp"
#include "src/io/run_directory.hpp"

namespace maki {
namespace {

namespace fs = std::filesystem;

// The name of the run whose metrics are beside the restarts. Without metrics, all restarts have to be of one run.
std::string run_beside(const std::string& directory, const RunThere& beside, const std::vector<RestartInfo>& found) {
  const std::string name = beside.name.value_or(found.empty() ? "" : found.back().run);
  const auto is_other = [&](const RestartInfo& info) { return info.run != name; };
  if (!beside.name && std::any_of(found.begin(), found.end(), is_other))
    throw Error(fmt::format("'{}' holds restarts of several runs", directory),
                "metrics.jsonl, which says whose it is, is missing",
                "name the restart to go on from, moved to a directory of its own");
  return name;
}

// Removes restarts of other runs than the directory's.
void keep_own(RestartsThere& there) {
  if (there.own.empty()) return;
  const std::string last = there.own.back().path;
  std::erase_if(there.own, [&](const RestartInfo& info) { return info.run != there.run; });
  if (there.own.empty())
    throw Error(fmt::format("'{}' is a restart of another run", last), "metrics.jsonl beside it names its own",
                "move the restart to an empty directory to go on from it, or begin with maki run");
}

// The damage of a restart, with its light cones; empty where it is whole. It begins with "cannot read" only where the
// file may be whole, as in damage_of().
std::string damage_here(const RestartInfo& info, const Communicator& ranks) {
  if (std::string damage = damage_of(info, ranks); !damage.empty()) return damage;
  const std::string directory = fs::path(info.path).parent_path().string();
  return damage_of_light_cones(directory, configuration_before(info), info.step, ranks);
}

constexpr const char* kBeginAgain = "copy a whole one back, or begin again with maki run and run.overwrite = true";

}  // namespace

Config configuration_before(const RestartInfo& info) {
  return parse_config(info.provenance.configuration, info.path + "/complete.toml");
}

RestartsThere restarts_in(const std::string& path, const Communicator& ranks) {
  RestartsThere there;
  there.own = find_restarts(path, ranks, &there.damaged);
  const std::string directory = there.own.empty() ? path : fs::path(there.own.back().path).parent_path().string();
  root_succeeds(ranks, [&] {
    there.beside = run_in(directory);
    there.run = run_beside(directory, there.beside, there.own);
    there.ended = there.beside.ended && directory == path;
  });
  there.run = broadcast_text(ranks, there.run);
  there.last_configuration = broadcast_text(ranks, there.beside.configuration.value_or(""));
  ranks.broadcast(&there.ended, sizeof there.ended, 0);
  keep_own(there);
  return there;
}

namespace {

// Throws Error where the directory holds the state of a stopped run, or its metrics name a restart, though there is no
// restart.
void require_no_state(const std::string& directory, const RestartsThere& there) {
  if (there.beside.overwritten) return;
  const auto is_state = [](const std::string& name) { return name.starts_with("stopped."); };
  const std::vector<std::string> files = files_of_a_run(directory);
  if (const auto state = std::ranges::find_if(files, is_state); state != files.end())
    throw Error(fmt::format("'{}' holds a stopped run without a restart", directory), "run.restarts_kept was 0",
                fmt::format("begin with initial.kind=file initial.file=.../{0} and another run.output_directory, or "
                            "remove {0}",
                            *state));
  if (there.beside.last_restart)
    throw Error(fmt::format("the restarts of the run in '{}' are gone", directory),
                fmt::format("the last was restart_{:06}", *there.beside.last_restart),
                "copy it back, or begin again with maki run and run.overwrite = true, without --resume");
}

}  // namespace

void require_restart(const RestartsThere& there, const std::string& path) {
  if (there.own.empty() && !there.damaged.empty())
    throw Error(fmt::format("there is nothing to resume in '{}'", path),
                fmt::format("{} {} damaged, and no other restart is complete", fmt::join(there.damaged, ", "),
                            there.damaged.size() > 1 ? "are" : "is"),
                kBeginAgain);
  if (there.own.empty())
    throw Error(fmt::format("there is nothing to resume in '{}'", path), "it holds no complete restart",
                "give the output directory of a run that was stopped (run.restart_interval, run.restart_steps), or "
                "begin with maki run");
  require_known_format(there.own.back());
}

std::vector<std::uint64_t> steps_of(const std::vector<RestartInfo>& restarts) {
  std::vector<std::uint64_t> steps;
  for (const RestartInfo& info : restarts)
    if (info.format == kRestartFormat) steps.push_back(info.step);
  return steps;
}

RestartInfo newest_whole(const std::vector<RestartInfo>& own, const OpenSites& ring, const Communicator& ranks,
                         const std::function<void(const std::string&)>& say) {
  sites::Sites& sites = *ring.sites;
  if (ring.common.empty())
    throw_at_all_sites(ring, Error("the sites have no restart in common",
                                   fmt::format("here there are steps {}", fmt::join(steps_of(own), ", ")),
                                   "give the directories of the same run at all sites, or begin with maki run"));
  std::vector<std::string> damaged;
  for (const std::uint64_t step : ring.common) {
    const auto info = std::ranges::find(own, step, &RestartInfo::step);
    const std::vector<std::string> damage = gather_texts(sites, damage_here(*info, ranks));
    const auto first = std::ranges::find_if(damage, [](const std::string& text) { return !text.empty(); });
    if (first == damage.end()) {
      for (const std::string& text : damaged) say(text + ": the one before has to serve.");
      return *info;
    }
    const int site = static_cast<int>(first - damage.begin());
    const std::string where = sites.alone() ? "" : fmt::format(" at site {}", sites.name(site));
    // Going on from an older restart would remove this one, which may be whole.
    if (first->starts_with("cannot read"))
      throw_at_all_sites(ring, Error(fmt::format("the restart of step {} cannot be read{}", step, where), *first,
                                     "see to the permissions of its files and to the disk, or move it away to go on "
                                     "from the one before"));
    damaged.push_back(fmt::format("The restart of step {} is damaged{} ({})", step, where, *first));
  }
  throw_at_all_sites(ring, Error("no restart is whole", fmt::format("{}", fmt::join(damaged, "; ")), kBeginAgain));
}

RestartsThere restarts_or_none(const std::string& directory, const Communicator& ranks) {
  bool is_there = false;
  root_succeeds(ranks, [&] { is_there = fs::is_directory(directory); });
  ranks.broadcast(&is_there, sizeof is_there, 0);
  if (!is_there) return {};
  RestartsThere there = restarts_in(directory, ranks);
  if (!there.own.empty() || !there.damaged.empty()) require_restart(there, directory);
  try {
    if (there.own.empty() && !there.ended) root_succeeds(ranks, [&] { require_no_state(directory, there); });
  } catch (const Error& error) {
    there.lost = error;
  }
  return there;
}

bool goes_on(const RestartsThere& there, const OpenSites& ring) {
  sites::Sites& sites = *ring.sites;
  if (sites.alone()) return !ring.common.empty();
  const std::vector<std::string> runs = gather_texts(sites, there.run);
  const std::vector<std::string> steps = gather_texts(sites, fmt::format("{}", fmt::join(steps_of(there.own), ", ")));
  const auto with = std::ranges::find_if(steps, [](const std::string& list) { return !list.empty(); });
  if (with == steps.end()) return false;
  const auto first = static_cast<std::size_t>(with - steps.begin());
  const auto name = [&](std::size_t site) { return sites.name(static_cast<int>(site)); };
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (runs[i] != runs[first])
      throw_at_all_sites(
          ring,
          Error(fmt::format("site {} holds restarts of a run, and site {} nothing of that run", name(first), name(i)),
                fmt::format("of the steps {}", steps[first]),
                "give the directories of the same run at all sites, or remove its restarts to begin again"));
  if (!ring.common.empty()) return true;
  if (std::ranges::find(steps, std::string()) != steps.end()) return false;
  const std::string& here = steps[static_cast<std::size_t>(sites.me())];
  throw_at_all_sites(ring, Error("the sites have no restart in common", fmt::format("here there are steps {}", here),
                                 kBeginAgain));
}

bool has_same_end(const RestartsThere& there, const Config& now) {
  const Config::Time then = there.last_configuration.empty()
                                ? configuration_before(there.own.back()).time
                                : parse_config(there.last_configuration, "metrics.jsonl").time;
  return then.end_redshift == now.time.end_redshift && then.end_time == now.time.end_time;
}

void require_way_on(const RestartsThere& there, const Config& now, const std::string& directory,
                    const Communicator& ranks) {
  if (!there.ended || !there.own.empty() || there.last_configuration.empty() || has_same_end(there, now)) return;
  root_succeeds(ranks, [&] {
    throw Error(
        fmt::format("the run in '{}' has come to its end, and cannot go on to another one", directory),
        "it has no restart (run.restarts_kept was 0, or they were removed)",
        fmt::format("begin from its last snapshot: initial.kind=file initial.file={} and another run.output_directory",
                    (fs::path(directory) / there.beside.last_output).string()));
  });
}

bool has_ended_everywhere(const RestartsThere& there, const Config& now, const OpenSites& ring) {
  const std::string kEnded = "ended", kAlone = "ended, without a restart";
  const bool ended = there.ended && (there.own.empty() || has_same_end(there, now));
  const std::vector<std::string> all = gather_texts(*ring.sites, !ended ? "" : there.own.empty() ? kAlone : kEnded);
  const auto alone = std::ranges::find(all, kAlone);
  if (std::ranges::find(all, "") == all.end()) return true;
  if (alone == all.end()) return false;
  throw_at_all_sites(
      ring, Error(fmt::format("the run has ended at site {}, which has no restart of it, and not at all sites",
                              ring.sites->name(static_cast<int>(alone - all.begin()))),
                  "it cannot go on together",
                  "copy the restarts back, or begin again with maki run and run.overwrite = true, without --resume"));
}

}  // namespace maki
