#include "src/run/resumed_config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <utility>

#include "kernels/error.hpp"
#include "src/config/key_access.hpp"
#include "src/config/keys.hpp"
#include "src/config/parse.hpp"
#include "src/config/resolve.hpp"
#include "src/config/text.hpp"
#include "src/run/filed_run.hpp"

namespace maki {
namespace {

namespace fs = std::filesystem;

bool makes_the_run(const Key& key) {
  return key.section == "units" || key.section == "box" || key.section == "cosmology" || key.section == "initial" ||
         key.section == "lightcone" || key.path() == "run.kind";
}

// For comparisons: a file may be given by another path than before.
Config with_full_paths(Config config) {
  const auto complete = [](std::string& path) {
    if (!path.empty()) path = fs::absolute(path).lexically_normal().string();
  };
  complete(config.cosmology.transfer_table);
  complete(config.initial.file);
  if (config.run.machine) complete(*config.run.machine);
  return config;
}

// Throws Error where settings differ that a resumed run cannot change, such as its initial conditions.
void check_unchanged(const Config& given_before, const Config& given_now) {
  const Config before = with_full_paths(given_before), now = with_full_paths(given_now);
  for (const Key& key : config_keys()) {
    if (!makes_the_run(key) || key.get(before) == key.get(now)) continue;
    throw Error(fmt::format("{} = {} would make another run", key.path(), key.get(now)),
                fmt::format("the run to resume was begun with {}", key.get(before)),
                "leave it out, or begin with maki run");
  }
}

// Throws Error where a setting names another output directory than that of the restart, or where a configuration cannot
// hold its name.
void check_directory(const std::string& directory, const std::vector<std::string>& settings, const Config& config) {
  if (!is_utf8(directory))
    throw Error(fmt::format("the name of '{}' is not UTF-8", directory),
                "files of a run hold its configuration, in UTF-8", "give the directory another name");
  const auto names_directory = [](const std::string& setting) { return sets(setting, "run.output_directory"); };
  if (std::ranges::none_of(settings, names_directory) || !config.run.output_directory) return;
  const std::string& given = *config.run.output_directory;
  if (fs::weakly_canonical(given) == fs::weakly_canonical(directory)) return;
  throw Error(fmt::format("run.output_directory = \"{}\" is not where the run is", given),
              fmt::format("its restarts are in '{}', and it goes on there", directory),
              "leave it out; a run moves with its directory");
}

// Settings "section.key=value" of those keys that make a run (makes_the_run()) and that `open` leaves to Maki: with the
// values that Maki has chosen in `chosen`.
std::vector<std::string> choices_of(const Config& chosen, const Config& open) {
  const std::string unset = wan::quoted("auto");
  std::vector<std::string> settings;
  for (const Key& key : config_keys())
    if (makes_the_run(key) && key.get(open) == unset && key.get(chosen) != unset)
      settings.push_back(fmt::format("{}={}", key.path(), key.get(chosen)));
  return settings;
}

// Takes from `outputs`, of this key, where they are those of the run so far, what lies after the new end. Returns a
// note about it, "" where there is nothing.
template <class T, class Moment>
std::string leave_late_outputs(const char* key, std::vector<T>& outputs, const std::vector<T>& before, const T& new_end,
                               Moment moment) {
  constexpr double kRounding = 1e-12;  // as in check_numbers()
  const auto is_late = [&](const T& one) { return moment(one) > moment(new_end) * (1 + kRounding); };
  std::vector<T> late;
  if (outputs == before) std::ranges::copy_if(outputs, std::back_inserter(late), is_late);
  if (late.empty()) return "";
  std::erase_if(outputs, is_late);
  return fmt::format("The run now ends earlier: its outputs after the new end are left out, {} = {}.", key,
                     detail::write(late));
}

// Adds to `outputs`, of this key, those that the run has made up to `now`, and its end where the new one is later (the
// run may have written it): they keep their numbers. `moment` gives an output's scale factor, or time. Throws Error
// where others have come before the restart.
template <class T, class Moment>
void keep_outputs(const char* key, std::vector<T>& outputs, std::vector<T> made, const T& end, const T& new_end,
                  double now, Moment moment) {
  constexpr double kRounding = 1e-9;
  const auto is_over = [&](const T& one) { return moment(one) <= now * (1 + kRounding); };
  const auto is_in = [&](const std::vector<T>& list, const T& one) {
    const double then = moment(one);
    return std::ranges::any_of(list,
                               [&](const T& other) { return std::fabs(moment(other) - then) <= kRounding * then; });
  };
  std::erase_if(made, [&](const T& one) { return !is_over(one); });
  if (moment(new_end) > moment(end) || (end == new_end && is_over(end))) made.push_back(end);
  for (const T& one : outputs)
    if (is_over(one) && !is_in(made, one))
      throw Error("the outputs before the restart are no longer what they were",
                  fmt::format("{} now holds {}, and the run so far has {}", key, detail::write(one),
                              detail::write(made)),
                  "change later outputs only");
  for (const T& one : made)
    if (!is_in(outputs, one)) outputs.push_back(one);
}

// Outputs of an isolated run after a restart. With another interval those so far, and the later ones at the new
// interval, become a list.
std::string keep_times(Config& config, const Config& before, const RunState& state) {
  const UnitSystem& units = state.header.units;
  const auto moment = [&](const Quantity& time) { return number_of(time, "output.times", config, units); };
  std::vector<Quantity>& times = config.output.times;
  std::vector<Quantity> made = before.output.times, later;
  const std::string note = leave_late_outputs("output.times", times, made, config.time.end_time, moment);
  if (config.output.interval != before.output.interval) {
    const auto multiples = [&](Config of) {
      of.output.times.clear();
      return output_times(of, units);
    };
    for (const double time : multiples(before)) made.push_back({time, ""});
    for (const double time : multiples(config))
      if (time > state.file_time) later.push_back({time, ""});
    config.output.interval.reset();
  }
  keep_outputs("output.times", times, std::move(made), before.time.end_time, config.time.end_time, state.file_time,
               moment);
  times.insert(times.end(), later.begin(), later.end());
  return note;
}

// Throws Error where the run has gone beyond its new end.
void check_end(const Config& config, const RunState& state) {
  constexpr double kRounding = 1e-9;
  const bool comoving = config.run.kind == RunKind::kCosmology;
  const UnitSystem& units = state.header.units;
  const double end =
      comoving ? 1 / (1 + config.time.end_redshift) : number_of(config.time.end_time, "time.end_time", config, units);
  if (end >= state.file_time * (1 - kRounding)) return;
  throw Error(fmt::format("the run is beyond its new end, {}",
                          comoving ? fmt::format("time.end_redshift = {:g}", config.time.end_redshift)
                                   : "time.end_time = " + to_string(config.time.end_time)),
              "the restart is of " + (comoving ? fmt::format("z = {:.6g}", 1 / state.file_time - 1)
                                               : "t = " + time_text(state.file_time, time_unit(config, units))),
              "give a later end, or the name of an earlier restart (maki resume DIRECTORY/restart_NNNNNN)");
}

// Whether the restart's outputs hold all of `given` but those after the end. They may also hold earlier ends of the run
// (keep_outputs()).
bool holds_outputs(const Config& before, const Config& given) {
  const auto holds_all = [](const auto& kept, const auto& wanted, const auto& is_late) {
    return std::ranges::all_of(wanted, [&](const auto& one) {
      return is_late(one) || std::ranges::find(kept, one) != kept.end();
    });
  };
  return holds_all(before.output.redshifts, given.output.redshifts,
                   [&](double z) { return z < before.time.end_redshift; }) &&
         holds_all(before.output.times, given.output.times,
                   [&](const Quantity& time) { return ratio_of_times(time, before.time.end_time) > 1; });
}

}  // namespace

Config configuration_of(const RestartInfo& info, std::vector<std::string> settings, const std::string& from) {
  const std::string name = info.path + "/complete.toml";
  const Config before = configuration_before(info);
  settings.insert(settings.begin(), info.site_keys.begin(), info.site_keys.end());
  Config config = parse_config(info.provenance.configuration, name, settings, from);
  // What Maki chose for the run stays chosen.
  if (const auto kept = choices_of(before, config); !kept.empty()) {
    settings.insert(settings.end(), kept.begin(), kept.end());
    config = parse_config(info.provenance.configuration, name, settings, from);
  }
  check_unchanged(before, config);
  const std::string parent = std::filesystem::path(info.path).parent_path().string();
  const std::string directory = parent.empty() ? "." : parent;
  check_directory(directory, settings, config);
  config.run.output_directory = directory;
  return config;
}

std::string keep_outputs(Config& config, const Config& before, const RunState& state) {
  check_end(config, state);
  if (config.run.kind != RunKind::kCosmology) return keep_times(config, before, state);
  const auto moment = [](double z) { return 1 / (1 + z); };
  std::vector<double>& redshifts = config.output.redshifts;
  const double end = config.time.end_redshift;
  const std::string note = leave_late_outputs("output.redshifts", redshifts, before.output.redshifts, end, moment);
  keep_outputs("output.redshifts", redshifts, before.output.redshifts, before.time.end_redshift, end, state.file_time,
               moment);
  return note;
}

void check_same_run(const Config& given, const Config& before, const std::string& directory) {
  for (const Key& key : config_keys()) {
    const std::string value = key.get(given), kept = key.get(before);
    if (!makes_the_run(key) || key.of_site || !key.applies_to(given) || value == kept || value == wan::quoted("auto"))
      continue;
    throw Error(fmt::format("'{}' holds another run", directory),
                fmt::format("it was begun with {0} = {1}, and the configuration has {0} = {2}", key.path(), kept,
                            value),
                "choose another run.output_directory, or leave out --resume and set run.overwrite = true");
  }
}

std::vector<std::string> left_out(const Config& as_given, const Config& as_before) {
  const Config given = with_full_paths(as_given), before = with_full_paths(as_before);
  const Config defaults;
  std::vector<std::string> others;
  for (const Key& key : config_keys()) {
    const std::string name = key.path(), value = key.get(given), kept = key.get(before);
    if (key.hidden || value == key.get(defaults) || value == kept || name == "run.output_directory" ||
        ((name == "output.redshifts" || name == "output.times") && holds_outputs(before, given)))
      continue;
    others.push_back(fmt::format("{} = {}, not {}", name, kept, value));
  }
  if (others.empty()) return {};
  return {
      fmt::format("The run keeps the configuration with which it was begun, where the file has changed since: {}. What "
                  "is to change stands behind the file as key=value.",
                  fmt::join(others, "; "))};
}

}  // namespace maki
