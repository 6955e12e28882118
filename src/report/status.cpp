#include "src/report/status.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <system_error>

#include "kernels/error.hpp"
#include "src/config/keys.hpp"
#include "src/config/parse.hpp"
#include "src/config/resolve.hpp"
#include "src/cosmology/cosmology.hpp"
#include "src/io/run_directory.hpp"
#include "src/report/figures.hpp"
#include "src/simulation/progress.hpp"
#include "src/simulation/step_log.hpp"
#include "src/simulation/stop_request.hpp"

namespace maki::report {
namespace {

// ---- a run in words -------------------------------------------------------------------------------------------------

std::string cosmology_words(const Config& config) {
  const Config::Cosmology& c = config.cosmology;
  const Background background{.omega_radiation = c.omega_radiation.value_or(0),
                              .w0 = c.w0.value_or(-1),
                              .wa = c.wa.value_or(0)};
  std::string text = fmt::format("Omega0 = {:g}, OmegaLambda = {:g}, OmegaBaryon = {:g}{}, h = {:g}",
                                 c.omega0.value_or(0), c.omega_lambda.value_or(0), c.omega_baryon.value_or(0),
                                 background.beyond_lambda(), c.hubble_param.value_or(0));
  if (config.initial.kind == InitialKind::kLpt)
    text += fmt::format(", sigma8 = {:g}, n_s = {:g}, transfer function \"{}\"", c.sigma8, c.n_s, name_of(c.transfer));
  return text + ".";
}

std::string initial_words(const Config& config) {
  const Config::Initial& initial = config.initial;
  switch (initial.kind) {
    case InitialKind::kFile: return fmt::format("Initial conditions: {}.", initial.file);
    case InitialKind::kLpt:
      return fmt::format("Initial conditions: {} order Lagrangian perturbation theory at z = {:g}, seed {}.",
                         initial.lpt_order == 1 ? "first" : "second", initial.redshift.value_or(kUsualRedshift),
                         initial.seed);
    case InitialKind::kPancake:
    case InitialKind::kTwoBody: return fmt::format("Initial conditions: {}.", name_of(initial.kind));
    default: return fmt::format("Initial conditions: {}, seed {}.", name_of(initial.kind), initial.seed);
  }
}

std::string written_at(const std::string& directory) {
  struct stat status {};
  if (stat(metrics_path(directory).c_str(), &status) != 0) return "?";
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(status.st_mtime));
}

}  // namespace

std::optional<Config> configuration_of(const RunRecords& records, std::string& problem) {
  try {
    const std::string name = "the configuration in metrics.jsonl";
    return parse_config(records.beginnings.back().provenance.configuration, name);
  } catch (const Error& error) {
    problem = error.what();
  }
  return {};
}

std::string moment(const RunRecords& records, double time) {
  return records.comoving() ? fmt::format("z = {:.4g}", shown_redshift(1 / time - 1))
                            : "t = " + time_text(time, records.time_unit());
}

std::string what_was_run(const RunRecords& records, const Config& config) {
  const double particles = records.steps.empty() ? 0 : records.steps.front().particles;
  const bool box = config.run.kind == RunKind::kCosmology;
  std::string text =
      box ? fmt::format("A periodic box of {}", !config.box.size ? "?"
                                                                 : to_string(*config.box.size) +
                                                                       (config.box.size->unit.empty() ? " Mpc/h" : ""))
          : "An isolated system";
  if (particles > 0) text += fmt::format(" with {:.0f} particles", particles);
  if (!records.steps.empty()) text += ", from " + moment(records, records.steps.front().time);
  Quantity end = config.time.end_time;
  if (end.unit.empty()) end.unit = records.time_unit().name;
  text += box ? fmt::format(" to z = {:g}", config.time.end_redshift) : " to t = " + to_string(end);
  text += fmt::format(", preset \"{}\". ", name_of(config.run.preset)) + initial_words(config);
  return box ? text + " " + cosmology_words(config) : text;
}

State state_of(const RunRecords& records) {
  if (!records.error.empty()) return State::kFailed;
  if (!records.end) return State::kOpen;
  if (records.end->site_lost && records.end->stopped_by != kStopFileReason) return State::kSiteLost;
  return records.end->stopped_by.empty() ? State::kEnded : State::kStopped;
}

namespace {

std::string resume_here(const RunRecords& records, const std::string& directory) {
  return resume_command(directory, records.beginnings.empty() ? "" : records.beginnings.back().site);
}

// How to go on with a run that has ended before its end.
std::string way_on(const RunRecords& records, const std::string& directory) {
  const auto is_restart = [](const std::string& name) { return name.starts_with("restart_"); };
  const std::vector<std::string> files = files_of_a_run(directory);
  if (std::ranges::any_of(files, is_restart)) return "To go on: " + resume_here(records, directory);
  if (std::ranges::find(files, "stopped.hdf5") != files.end())
    return fmt::format("It has left no restart; a new run begins from initial.file={}/stopped.hdf5.", directory);
  return "It has left no restart (see the end of log.txt).";
}

}  // namespace

std::string state_text(const RunRecords& records, const std::string& directory) {
  if (records.steps.empty())
    return records.error.empty() ? "Not one step has been recorded yet." : "Ended by an error: " + records.error;
  const std::string where = fmt::format("{}, step {}", moment(records, records.reached()), records.last_step());
  switch (state_of(records)) {
    case State::kEnded:
      return fmt::format("Came to its end at {}, in {}{}.", where, duration_text(records.end->elapsed),
                         records.beginnings.size() > 1 ? " since it was last resumed" : "");
    case State::kStopped:
      return fmt::format("Stopped at {} by {}, before its end. {}", where, records.end->stopped_by,
                         way_on(records, directory));
    case State::kSiteLost:
      return fmt::format("Stopped at {} by {}. To go on, at all sites, here: {}", where, records.end->stopped_by,
                         resume_here(records, directory));
    case State::kFailed:
      return fmt::format("Ended by an error at {}: {}. {}", where, records.error, way_on(records, directory));
    case State::kOpen: break;
  }
  return fmt::format("Not finished: it is under way, or ended by force. The last line is of {}, written {}.", where,
                     written_at(directory));
}

// ---- following a run ------------------------------------------------------------------------------------------------

namespace {

constexpr std::uint64_t kTail = 1 << 20;  // bytes that are read at first
constexpr std::size_t kStepsRemembered = 200;

void require_directory(const std::string& directory) {
  if (!std::filesystem::is_directory(directory))
    throw Error(fmt::format("there is no directory '{}'", directory), "", "give the output directory of a run");
}

}  // namespace

Follower::Follower(std::string directory) : directory_(std::move(directory)), path_(metrics_path(directory_)) {
  require_directory(directory_);
}

// Reads the first line, the lines of resumptions, then the tail.
void Follower::start() {
  reader_ = RecordReader();
  read_ = 0;
  std::ifstream file(path_, std::ios::binary);
  std::string line;
  if (!std::getline(file, line) || file.eof()) return;
  reader_.line(line);
  read_ = line.size() + 1;
  std::error_code gone;
  const std::uint64_t size = std::filesystem::file_size(path_, gone);
  if (gone || size <= read_ + kTail) return;
  while (read_ + kTail < size && std::getline(file, line) && !file.eof()) {
    if (line.starts_with("{\"run\": ")) reader_.line(line);
    read_ += line.size() + 1;
  }
}

bool Follower::read_on() {
  require_directory(directory_);  // it may be removed or renamed
  struct stat status {};
  if (stat(path_.c_str(), &status) != 0) return false;
  const auto size = static_cast<std::uint64_t>(status.st_size);
  const std::uint64_t before = read_;
  if (read_ == 0 || size < read_ || status.st_ino != inode_) start();
  inode_ = status.st_ino;
  if (read_ == 0) return false;
  std::ifstream file(path_, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(read_));
  bool any = false;
  for (std::string line; std::getline(file, line); any = true) {
    if (file.eof()) break;
    reader_.line(line);
    read_ += line.size() + 1;
  }
  reader_.keep_last(kStepsRemembered);
  listen(read_ != before, status.st_mtime);
  return any;
}

// Silence from look to look is by the steady clock: the time of writing may be another machine's, and the wall clock
// may be set.
void Follower::listen(bool heard, std::time_t written) {
  const auto now = std::chrono::steady_clock::now();
  const double passed = looked_ ? std::chrono::duration<double>(now - *looked_).count() : INFINITY;
  silent_ = heard ? std::min(passed, std::max(0.0, std::difftime(std::time(nullptr), written))) : silent_ + passed;
  looked_ = now;
}

Signs Follower::signs() const {
  Signs signs;
  signs.now = static_cast<double>(std::time(nullptr));
  signs.silent = silent_;
  if (begun() && records().beginnings.back().host == host_name()) signs.gone = is_locked(directory_) == false;
  return signs;
}

// ---- its state ------------------------------------------------------------------------------------------------------

namespace {

using Steps = std::vector<Step>;

// A run counts as silent after this many of its longest recent steps, and this many seconds.
constexpr double kSilentSteps = 10, kSilentSeconds = 20;
constexpr std::size_t kRecent = 100;

Steps recent(const RunRecords& records) {
  const std::size_t n = std::min(records.steps.size(), kRecent);
  return {records.steps.end() - static_cast<std::ptrdiff_t>(n), records.steps.end()};
}

// Mean seconds of the steps that have a line.
double mean_seconds(const Steps& steps) {
  double sum = 0;
  for (const Step& step : steps) sum += step.seconds;
  return steps.empty() ? 0 : sum / static_cast<double>(steps.size());
}

// Steps from one line to the next: as seen, or as chosen.
double steps_a_line(const Steps& steps, const RunRecords& records) {
  if (steps.size() > 1)
    return static_cast<double>(steps.back().step - steps.front().step) / static_cast<double>(steps.size() - 1);
  const std::string& chosen = records.beginnings.back().provenance.configuration;
  const std::string key = "metrics_interval = ";
  const auto at = chosen.find(key);
  return at == chosen.npos ? 1 : std::max(1.0, std::strtod(chosen.c_str() + at + key.size(), nullptr));
}

double longest(const Steps& steps) {
  double most = 0;
  for (const Step& step : steps) most = std::max(most, step.seconds);
  return most;
}

std::string clock_text(double seconds, double from_now) {
  constexpr double kHalfDay = 43200, kHalfYear = 1.6e7;
  const auto time = static_cast<std::time_t>(seconds);
  std::tm local{};
  localtime_r(&time, &local);
  return from_now < kHalfDay    ? fmt::format("{:%H:%M:%S}", local)
         : from_now < kHalfYear ? fmt::format("{:%a %d %b %H:%M}", local)
                                : fmt::format("{:%d %b %Y}", local);
}

// Each step has the number of steps left if all were as long; outputs and long steps shorten single ones, so the median
// of the last steps is used.
double steps_left(const RunRecords& records) {
  constexpr std::size_t kVotes = 21;
  std::vector<double> ends;
  for (auto step = records.steps.rbegin(); step != records.steps.rend() && ends.size() < kVotes; ++step)
    if (step->steps_left > 0) ends.push_back(static_cast<double>(step->step) + step->steps_left);
  if (ends.empty() || !(records.steps.back().steps_left > 0)) return 0;
  const auto middle = ends.begin() + static_cast<std::ptrdiff_t>(ends.size() / 2);
  std::nth_element(ends.begin(), middle, ends.end());
  return std::max(1.0, *middle - static_cast<double>(records.steps.back().step));
}

std::string left_text(const RunRecords& records, const Signs& signs) {
  const double steps = steps_left(records);
  if (steps <= 0 || life_of(records, signs) >= Life::kDead) return "";
  constexpr double kNever = 1e10;  // seconds
  const double left = steps * mean_seconds(recent(records));
  if (!(left < kNever)) return fmt::format("about {:.3g} steps", steps);
  return fmt::format("about {:.0f} steps, {}; ends about {}", std::ceil(steps), duration_text(left),
                     clock_text(signs.now - signs.silent + left, left));
}

std::string bar(const RunRecords& records) {
  constexpr int kWidth = 24;
  const double done = static_cast<double>(records.steps.back().step), whole = done + steps_left(records);
  if (!(whole > 0)) return "";
  const double part = done / whole;
  const int full = static_cast<int>(std::lround(kWidth * part));
  return fmt::format("  [{}{}] {:.0f} % of steps", std::string(static_cast<std::size_t>(full), '#'),
                     std::string(static_cast<std::size_t>(kWidth - full), '.'), 100 * part);
}

// "tree 71 % (evaluate 44, walk 8), mesh 14 %": the largest of the recent steps, as shares of their time.
std::string phases_text(const Steps& steps) {
  std::map<std::string, double> sums;
  for (const Step& step : steps)
    for (const auto& [path, seconds] : step.phases) sums[path] += seconds;
  const double whole = mean_seconds(steps) * static_cast<double>(steps.size());
  const auto parts_below = [&](const std::string& parent) {
    std::vector<std::pair<double, std::string>> parts;
    for (const auto& [path, sum] : sums) {
      const std::size_t slash = path.rfind('/');
      if ((slash == path.npos ? "" : path.substr(0, slash)) != parent || sum < 0.02 * whole) continue;
      parts.push_back({sum, slash == path.npos ? path : path.substr(slash + 1)});
    }
    std::sort(parts.rbegin(), parts.rend());
    return parts;
  };
  std::string text;
  for (const auto& [sum, name] : parts_below("")) {
    text += fmt::format("{}{} {:.0f} %", text.empty() ? "" : ", ", name, 100 * sum / whole);
    std::string inner;
    for (const auto& [part, child] : parts_below(name))
      inner += fmt::format("{}{} {:.0f}", inner.empty() ? "" : ", ", child, 100 * part / whole);
    if (!inner.empty()) text += " (" + inner + ")";
  }
  return text;
}

std::string sites_text(const Steps& steps) {
  std::map<std::string, double> waits;
  double all = 0;
  for (const Step& step : steps) {
    if (std::isfinite(step.site_waited)) all += step.site_waited;
    for (const auto& [name, traffic] : step.site_traffic) waits[name] += traffic.waited;
  }
  const auto n = static_cast<double>(steps.size());
  std::string text = fmt::format("waited {:.4f} s a step, {:.0f} % of the time", all / n,
                                 100 * all / std::max(mean_seconds(steps) * n, 1e-30));
  for (const auto& [name, seconds] : waits)
    if (seconds > 0) text += fmt::format(", {} {:.4f} s", name, seconds / n);
  return text;
}

std::string energy_text(const Steps& steps) {
  const double error = last(steps, &Step::energy_error);
  return std::isfinite(error) ? fmt::format("error {:.2e}, momentum {:.1e}", error, last(steps, &Step::momentum_drift))
                              : "";
}

std::string ranks_text(const Step& last) {
  return std::isfinite(last.interaction_imbalance)
             ? fmt::format("largest over mean: interactions {:.3f}, seconds of lists {:.3f}",
                           last.interaction_imbalance, last.evaluate_imbalance)
             : "";
}

std::string name_text(const RunRecords& records) {
  const Beginning& begin = records.beginnings.back();
  std::string problem;
  const std::optional<Config> config = configuration_of(records, problem);
  std::string text = config ? config->run.name + "  " : "";
  if (!records.steps.empty()) text += fmt::format("{:.0f} particles, ", records.steps.back().particles);
  if (begin.ranks > 1) text += fmt::format("{} ranks, ", begin.ranks);
  if (!begin.site.empty()) text += "site " + begin.site + ", ";
  return text + begin.provenance.device;
}

std::string moment_text(const RunRecords& records, const Step& last) {
  if (records.comoving())
    return fmt::format("z {:.4f}  a {:.5f}  d ln a {:.2e}", last.redshift(), last.time, last.dlna);
  const TimeUnit unit = records.time_unit();
  return fmt::format("t {}  dt {}", time_text(last.time, unit), time_text(last.dt, unit, 4));
}

}  // namespace

Life life_of(const RunRecords& records, const Signs& signs) {
  if (state_of(records) != State::kOpen) return Life::kEnded;
  if (records.beginnings.empty()) return Life::kNotBegun;
  const Steps few = recent(records);
  const double patience = std::max(kSilentSeconds, kSilentSteps * longest(few) * steps_a_line(few, records));
  if (signs.gone && signs.silent > std::min(patience, kSilentSeconds)) return Life::kDead;
  return signs.silent > patience ? Life::kSilent : Life::kUnderWay;
}

std::vector<std::string> status_lines(const RunRecords& records, const Signs& signs) {
  if (records.beginnings.empty()) return {};
  std::vector<std::string> lines = {name_text(records)};
  const auto add = [&lines](const char* name, const std::string& text) {
    if (!text.empty()) lines.push_back(fmt::format("{:<9}{}", name, text));
  };
  if (records.steps.empty()) return lines;
  const Step& last = records.steps.back();
  const Steps few = recent(records);
  add("step", fmt::format("{:<8}{}{}", last.step, moment_text(records, last), bar(records)));
  add("left", left_text(records, signs));
  add("seconds", fmt::format("{:.4f} a step of the last {}, {:.4f} the longest; {} in steps so far", mean_seconds(few),
                             few.size(), longest(few), duration_text(last.elapsed)));
  add("phases", phases_text(few));
  add("energy", energy_text(few));
  if (const double memory = memory_at_the_peak(records); std::isfinite(memory))
    add("memory", fmt::format("{:.1f} MB on the device at the peak", 1e-6 * memory));
  add("ranks", ranks_text(last));
  if (std::isfinite(last.site_waited)) add("sites", sites_text(few));
  return lines;
}

std::string status_line(const RunRecords& records, const Signs& signs) {
  if (records.steps.empty()) return "no step yet";
  const Step& last = records.steps.back();
  const Steps few = recent(records);
  std::string line = fmt::format("step {}  {}  {:.4f} s a step", last.step,
                                 records.comoving() ? fmt::format("z {:.4f}", last.redshift())
                                                    : "t " + time_text(last.time, records.time_unit()),
                                 mean_seconds(few));
  for (const std::string& text : {left_text(records, signs), energy_text(few)})
    if (!text.empty()) line += "  " + text;
  if (const double memory = memory_at_the_peak(records); std::isfinite(memory))
    line += fmt::format("  {:.1f} MB", 1e-6 * memory);
  if (std::isfinite(last.interaction_imbalance)) line += fmt::format("  imbalance {:.3f}", last.interaction_imbalance);
  if (std::isfinite(last.site_waited)) line += "  " + sites_text(few);
  return line;
}

std::string life_text(const RunRecords& records, const Signs& signs, const std::string& directory) {
  const std::string silent = fmt::format("no line for {}", duration_text(signs.silent));
  switch (life_of(records, signs)) {
    case Life::kNotBegun:
      return access(metrics_path(directory).c_str(), F_OK) == 0 && access(metrics_path(directory).c_str(), R_OK) != 0
                 ? fmt::format("'{}' may not be read: see to its permissions.", metrics_path(directory))
                 : "The run has not begun: there is no line in metrics.jsonl.";
    case Life::kUnderWay: return fmt::format("Under way; the last line came {} ago.", duration_text(signs.silent));
    case Life::kEnded: return state_text(records, directory);
    case Life::kSilent:
      return fmt::format(
          "It seems to have stopped writing: {}, and recent steps took {:.3g} s at most. A large file on a slow "
          "disk takes long too; if its job is gone: {}",
          silent, longest(recent(records)), resume_here(records, directory));
    case Life::kDead: break;
  }
  return fmt::format("The run has died: {}, and no process on this machine holds its directory. {}", silent,
                     way_on(records, directory));
}

}  // namespace maki::report
