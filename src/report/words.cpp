#include "src/report/words.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cmath>

#include "kernels/error.hpp"
#include "src/config/keys.hpp"
#include "src/config/parse.hpp"
#include "src/simulation/progress.hpp"

namespace maki::report {
namespace {

std::string cosmology_words(const Config& config) {
  const Config::Cosmology& c = config.cosmology;
  std::string text =
      fmt::format("Omega0 = {:g}, OmegaLambda = {:g}, OmegaBaryon = {:g}, h = {:g}", c.omega0.value_or(0),
                  c.omega_lambda.value_or(0), c.omega_baryon.value_or(0), c.hubble_param.value_or(0));
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
                         initial.lpt_order == 1 ? "first" : "second", initial.redshift, initial.seed);
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
    return parse_config(records.beginnings.front().provenance.configuration, "the configuration in metrics.jsonl");
  } catch (const Error& error) {
    problem = error.what();
  }
  return {};
}

std::string moment(const RunRecords& records, double time) {
  return records.comoving() ? fmt::format("z = {:.4g}", std::abs(1 / time - 1)) : fmt::format("t = {:.6g}", time);
}

std::string what_was_run(const RunRecords& records, const Config& config) {
  const double particles = records.steps.empty() ? 0 : records.steps.front().particles;
  const bool box = config.run.kind == RunKind::kCosmology;
  std::string text = box ? fmt::format("A periodic box of {}", config.box.size ? to_string(*config.box.size) : "?")
                         : "An isolated system";
  if (particles > 0) text += fmt::format(" with {:.0f} particles", particles);
  if (!records.steps.empty()) text += ", from " + moment(records, records.steps.front().time);
  text += box ? fmt::format(" to z = {:g}", config.time.end_redshift)
              : fmt::format(" to t = {}", to_string(config.time.end_time));
  text += fmt::format(", preset \"{}\". ", name_of(config.run.preset)) + initial_words(config);
  return box ? text + " " + cosmology_words(config) : text;
}

State state_of(const RunRecords& records) {
  if (!records.end) return State::kOpen;
  if (records.end->site_lost) return State::kSiteLost;
  return records.end->stopped_by.empty() ? State::kEnded : State::kStopped;
}

std::string state_text(const RunRecords& records, const std::string& directory) {
  if (records.steps.empty()) return "Not one step has been recorded yet.";
  const std::string where = fmt::format("{}, step {}", moment(records, records.reached()), records.last_step());
  switch (state_of(records)) {
    case State::kEnded:
      return fmt::format("Came to its end at {}, in {}{}.", where, duration_text(records.end->elapsed),
                         records.beginnings.size() > 1 ? " since it was last resumed" : "");
    case State::kStopped:
      return fmt::format("Stopped at {} by {}, before its end; maki resume {} goes on.", where, records.end->stopped_by,
                         directory);
    case State::kSiteLost:
      return fmt::format("Stopped at {} by {}. To go on: maki resume at all sites.", where, records.end->stopped_by);
    case State::kOpen: break;
  }
  return fmt::format("Not finished: it is under way, or ended by force. The last line is of {}, written {}.", where,
                     written_at(directory));
}

}  // namespace maki::report
