#include "src/report/run_records.hpp"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "kernels/error.hpp"
#include "src/io/property_tree.hpp"
#include "src/simulation/step_log.hpp"

namespace maki::report {
namespace {

using boost::property_tree::ptree;

// The property tree keeps values as text and divides names at dots; paths of phases have no dots.
double number(const ptree& object, const char* name, double otherwise = kUnknown) {
  return object.get<double>(name, otherwise);
}

std::string text(const ptree& object, const char* name) { return object.get<std::string>(name, ""); }

// An array or object; an empty one where it is missing.
const ptree& child(const ptree& object, const char* name) {
  static const ptree kNone;
  return object.get_child(name, kNone);
}

std::vector<double> numbers(const ptree& array) {
  std::vector<double> all;
  for (const auto& [no_name, value] : array) all.push_back(value.get_value<double>(kUnknown));
  return all;
}

MinMeanMax triple(const ptree& array) {
  const std::vector<double> all = numbers(array);
  return all.size() == 3 ? MinMeanMax{all[0], all[1], all[2]} : MinMeanMax{};
}

Beginning beginning_of(const ptree& line) {
  Beginning begin;
  begin.run = text(line, "run");
  begin.site = text(line, "site");
  begin.host = text(line, "host");
  begin.began = text(line, "began");
  if (const auto at = line.get_optional<std::uint64_t>("resumed_at")) begin.resumed_at = *at;
  begin.ranks = line.get<int>("ranks", 1);
  for (const auto& [no_name, value] : child(line, "settings")) begin.settings.push_back(value.data());
  begin.provenance = {text(line, "provenance.configuration"), text(line, "provenance.version"),
                      text(line, "provenance.git_hash"), text(line, "provenance.compiler"),
                      text(line, "provenance.device")};
  begin.time_unit = {number(line, "time_unit.length", 1), text(line, "time_unit.name")};
  return begin;
}

void read_sites(const ptree& line, Step& step) {
  step.site_waited = number(line, "sites.waited");
  for (const auto& [name, value] : child(line, "sites.phases")) {
    const std::vector<double> n = numbers(value);
    if (n.size() >= 4) step.site_traffic[name] = {n[0], n[1], n[2], n[3]};
  }
  for (const auto& [name, site] : child(line, "sites.all"))
    step.sites.push_back({name, {number(site, "begin", 0), number(site, "end", 0)}});
}

void read_energy(const ptree& line, Step& step) {
  step.kinetic = number(line, "kinetic");
  step.potential = number(line, "potential");
  step.energy_error = number(line, "energy_error");
  step.momentum_drift = number(line, "momentum_drift");
  step.force_residual = number(line, "force_residual");
}

void read_work(const ptree& line, Step& step) {
  step.rebuilt = line.get<bool>("rebuilt", false);
  step.particles = number(line, "particles", 0);
  step.mean_list = number(line, "mean_list", 0);
  step.probe_error = number(line, "probe_error", 0);
  step.fresh_error = number(line, "fresh_error", 0);
  step.interaction_imbalance = number(line, "ranks.interaction_imbalance");
  step.evaluate_imbalance = number(line, "ranks.evaluate_imbalance");
  step.domain_imbalance = number(line, "ranks.domain_imbalance");
  for (const auto& [name, value] : child(line, "phases")) step.phases[name] = value.get_value<double>(0);
}

Step step_of(const ptree& line) {
  Step step;
  step.step = line.get<std::uint64_t>("step");
  step.time = line.count("a") > 0 ? number(line, "a") : number(line, "t");
  step.dt = number(line, "dt");
  step.dlna = number(line, "dlna");
  step.long_step_end = line.get<bool>("long", false);
  step.memory = number(line, "memory_high_water");
  step.seconds = number(line, "seconds", 0);
  step.elapsed = number(line, "elapsed", 0);
  step.steps_left = number(line, "steps_left");
  read_work(line, step);
  read_energy(line, step);
  read_sites(line, step);
  return step;
}

Output output_of(const ptree& line) {
  Output output{line.get<int>("output"), line.count("a") > 0 ? number(line, "a") : number(line, "t"), {}};
  if (const auto error = line.get_child_optional("force_error"))
    output.force_error = ForceError{number(*error, "rms"), number(*error, "median"), number(*error, "percentile_99"),
                                    error->get<std::uint64_t>("targets", 0)};
  return output;
}

End end_of(const ptree& line) {
  End end;
  end.stopped_by = text(line, "end");
  end.site_lost = line.get<bool>("site_lost", false);
  end.time = number(line, "time");
  end.steps = number(line, "steps", 0);
  end.rebuilds = number(line, "rebuilds", 0);
  end.long_steps = number(line, "long_steps", 0);
  end.elapsed = number(line, "elapsed", 0);
  end.memory = number(line, "memory_high_water");
  for (const auto& [name, value] : child(line, "phases")) end.phases.push_back({name, triple(value)});
  for (const auto& [name, value] : child(line, "memory")) end.arrays.push_back({name, value.get_value<double>(0)});
  return end;
}

// A new path goes behind its parent and all that is below that.
void add(PhaseSeconds& sums, const std::string& path, const MinMeanMax& seconds) {
  auto behind = sums.end();
  const std::string family = path.substr(0, path.rfind('/') + 1);  // "" at the top of the tree
  for (auto one = sums.begin(); one != sums.end(); ++one) {
    if (one->first == path) {
      one->second.min += seconds.min, one->second.mean += seconds.mean, one->second.max += seconds.max;
      return;
    }
    if (one->first + '/' == family || one->first.starts_with(family)) behind = std::next(one);
  }
  sums.insert(behind, {path, seconds});
}

// Called where another process of the run has begun: the last one then counts as an earlier one. Its end does not count
// if it lies after the restart from which the new one goes on: steps would be counted twice.
void end_process(RunRecords& records, const Beginning& next) {
  if (records.beginnings.empty()) return;
  if (records.end && next.resumed_at && records.end->steps > static_cast<double>(*next.resumed_at)) records.end.reset();
  records.earlier_by_steps = records.earlier_by_steps || (!records.end && !records.step_phases.empty());
  records.earlier_phases = records.phases();
  records.step_phases.clear();
  records.end.reset();
  records.error.clear();
}

void take(const ptree& line, RunRecords& records) {
  if (line.count("step") > 0) {
    records.steps.push_back(step_of(line));
    for (const auto& [path, seconds] : records.steps.back().phases)
      records.step_phases[path] += seconds * static_cast<double>(records.every);
  } else if (line.count("output") > 0) {
    Output output = output_of(line);  // a resumed run may write it again
    std::erase_if(records.outputs, [&](const Output& old) { return old.index >= 0 && old.index == output.index; });
    records.outputs.push_back(std::move(output));
  } else if (line.count("end") > 0) {
    records.end = end_of(line);
  } else if (line.count("error") > 0) {
    records.error = text(line, "error");
  } else if (line.count("run") > 0) {
    const Beginning next = beginning_of(line);
    end_process(records, next);
    records.beginnings.push_back(next);
  }
}

}  // namespace

// Outputs after the last step count in the line of the end.
double memory_at_the_peak(const RunRecords& records) {
  if (records.end && std::isfinite(records.end->memory)) return records.end->memory;
  return records.steps.empty() ? kUnknown : records.steps.back().memory;
}

PhaseSeconds RunRecords::phases() const {
  PhaseSeconds sums = earlier_phases;
  if (end) {
    for (const auto& [path, seconds] : end->phases) add(sums, path, seconds);
  } else {
    for (const auto& [path, seconds] : step_phases) add(sums, path, {seconds, seconds, seconds});
  }
  return sums;
}

namespace {

bool is_of_a_step(const std::string& line) { return line.starts_with("{\"step\": "); }

}  // namespace

// Leaves out all but one of each `every` lines. Its place changes from turn to turn, since lists are made anew at equal
// intervals. Lines with energies are a sample of their own.
bool RecordReader::is_left_out(const std::string& line) {
  if (records_.every == 1 || !is_of_a_step(line)) return false;
  const std::uint64_t number = steps_[line.find("\"kinetic\"") != line.npos]++, every = records_.every;
  const std::uint64_t turn = number / every, place = turn == 0 ? 0 : (turn * 0x9E3779B97F4A7C15) >> 32;
  return number % every != place % every;
}

void RecordReader::line(const std::string& text) {
  ++lines_;
  if (is_left_out(text)) {
    left_out_ = text;
    return;
  }
  if (is_of_a_step(text)) left_out_.clear();
  read(text);
}

void RecordReader::take_last() {
  if (!left_out_.empty()) read(left_out_);
}

void RecordReader::read(const std::string& text) {
  try {
    ptree tree;
    std::istringstream in(text);
    read_json(in, tree);
    take(tree, records_);
  } catch (const boost::property_tree::ptree_error& error) {
    constexpr std::size_t kMost = 20;
    if (records_.problems.size() < kMost)
      records_.problems.push_back(fmt::format("line {} of metrics.jsonl cannot be read", lines_));
  }
}

void RecordReader::keep_last(std::size_t steps) {
  std::vector<Step>& all = records_.steps;
  if (all.size() > 2 * steps) all.erase(all.begin(), all.end() - static_cast<std::ptrdiff_t>(steps));
}

RunRecords read_records(const std::string& directory, std::uint64_t most) {
  const std::string path = metrics_path(directory);
  std::ifstream file(path);
  if (!file)
    throw Error(fmt::format("cannot read '{}'", path), "there is no such file, or it may not be read",
                "give the output directory of a run");
  std::uint64_t steps = 0;
  for (std::string line; std::getline(file, line);) steps += is_of_a_step(line) ? 1 : 0;
  file.clear();
  file.seekg(0);
  RecordReader reader(std::max<std::uint64_t>(1, (steps + most - 1) / most));
  for (std::string line; std::getline(file, line);)
    if (!file.eof()) reader.line(line);  // the last line may be incomplete
  reader.take_last();
  if (reader.records().beginnings.empty())
    throw Error(fmt::format("'{}' tells of no run", path),
                "its first line, which says what was run, is missing or damaged", "give the output directory of a run");
  return reader.records();
}

}  // namespace maki::report
