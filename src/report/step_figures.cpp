#include "src/report/figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "src/report/html.hpp"

namespace maki::report {
namespace {

using Steps = std::vector<Step>;
using Number = std::function<double(const Step&)>;

// A line of a number over another; steps without the first are left out.
plot::Line over(const Number& x, const std::string& name, const Steps& steps, const Number& number) {
  plot::Line line{name, {}, {}};
  for (const Step& step : steps) {
    const double value = number(step);
    if (std::isfinite(value)) line.x.push_back(x(step)), line.y.push_back(value);
  }
  return line;
}

// Over the scale factor, or over time in the unit in which it is shown.
plot::Line over_time(const std::string& name, const RunRecords& records, const Number& number) {
  const double unit = records.time_unit().length;
  return over([unit](const Step& step) { return step.time / unit; }, name, records.steps, number);
}

plot::Line over_steps(const std::string& name, const Steps& steps, const Number& number) {
  return over([](const Step& step) { return static_cast<double>(step.step); }, name, steps, number);
}

std::string with_unit(const std::string& name, const RunRecords& records) {
  const std::string unit = records.time_unit().name;
  return unit.empty() ? name : name + ", " + unit;
}

// A plot against redshift or time.
plot::Plot plot_in_time(const RunRecords& records, const std::string& title, const std::string& y_name) {
  plot::Plot plot{title, records.comoving() ? "redshift" : with_unit("time", records), y_name};
  plot.log_x = records.comoving();
  if (plot.log_x && !records.steps.empty())
    plot.x_marks = redshift_marks(records.steps.front().time, records.steps.back().time);
  return plot;
}

std::string energies_figure(const RunRecords& records) {
  plot::Plot plot = plot_in_time(records, "Energies", "energy");
  plot.lines = {over_time("kinetic", records, &Step::kinetic), over_time("potential", records, &Step::potential),
                over_time("total", records, [](const Step& s) { return s.kinetic + s.potential; })};
  return figure(plot);
}

std::string virial_figure(const RunRecords& records) {
  plot::Plot plot = plot_in_time(records, "Virial ratio", "2 T / |W|");
  plot.lines = {over_time("", records, [](const Step& s) { return 2 * s.kinetic / std::abs(s.potential); })};
  return figure(plot);
}

// Lengths of long steps, each at its end; none where only some steps have lines.
plot::Line long_steps(const Steps& steps) {
  plot::Line line{"long steps", {}, {}};
  if (steps.empty() || steps.back().step - steps.front().step + 1 != steps.size()) return line;
  double length = 0;
  for (const Step& step : steps) {
    if (step.step == 0) continue;
    length += step.dlna;
    if (!step.long_step_end) continue;
    line.x.push_back(step.time), line.y.push_back(length);
    length = 0;
  }
  return line;
}

// Means over equal intervals, so that steps with kept and fresh lists, short and long ones average out.
plot::Line averaged(const plot::Line& line) {
  constexpr std::size_t kStretches = 80;
  const std::size_t n = line.x.size(), parts = std::min(n, kStretches);
  plot::Line means{line.name, {}, {}};
  for (std::size_t p = 0; p < parts; ++p) {
    const std::size_t begin = p * n / parts, end = (p + 1) * n / parts;
    double x = 0, y = 0;
    for (std::size_t i = begin; i < end; ++i) x += line.x[i], y += line.y[i];
    means.x.push_back(x / static_cast<double>(end - begin));
    means.y.push_back(y / static_cast<double>(end - begin));
  }
  return means;
}

// The top-level phases with the largest sums.
std::vector<std::string> main_phases(const Steps& steps) {
  std::map<std::string, double> sums;
  for (const Step& step : steps)
    for (const auto& [path, seconds] : step.phases)
      if (path.find('/') == path.npos) sums[path] += seconds;
  std::vector<std::pair<double, std::string>> order;
  for (const auto& [path, sum] : sums) order.push_back({sum, path});
  std::sort(order.rbegin(), order.rend());
  if (order.size() > 5) order.resize(5);
  std::vector<std::string> names;
  for (const auto& [sum, path] : order) names.push_back(path);
  return names;
}

std::string slabs_figure(const RunRecords& records) {
  plot::Plot plot{"Slabs of the sites", "step", "part of the box in x"};
  std::set<std::string> names;
  for (const Step& step : records.steps)
    for (const auto& [name, site] : step.sites) names.insert(name);
  for (const std::string& name : names)
    plot.lines.push_back(over_steps(name, records.steps, [&name](const Step& step) {
      for (const auto& [other, site] : step.sites)
        if (other == name) return site.end - site.begin;
      return kUnknown;
    }));
  return figure(plot);
}

std::string waits_figure(const RunRecords& records) {
  plot::Plot plot{"Waits of this site", "step", "seconds a step"};
  const auto waited_for = [](const char* phase) {
    return [phase](const Step& step) {
      const auto found = step.site_traffic.find(phase);
      return found == step.site_traffic.end() ? kUnknown : found->second.waited;
    };
  };
  plot.lines = {averaged(over_steps("all", records.steps, &Step::site_waited))};
  std::set<std::string> phases;
  for (const Step& step : records.steps)
    for (const auto& [name, traffic] : step.site_traffic)
      if (traffic.waits > 0) phases.insert(name);
  for (const std::string& phase : phases)
    plot.lines.push_back(averaged(over_steps(phase, records.steps, waited_for(phase.c_str()))));
  return figure(plot);
}

}  // namespace

std::vector<plot::Mark> redshift_marks(double first, double last) {
  const double whole = std::log(last / first);
  std::vector<plot::Mark> marks;
  for (const double z : {1000., 500., 200., 100., 50., 30., 20., 10., 5., 3., 2., 1., 0.5, 0.2, 0.}) {
    const double a = 1 / (1 + z);
    if (a < first * (1 - 1e-9) || a > last * (1 + 1e-9)) continue;
    if (!marks.empty() && std::log(a / marks.back().at) < 0.045 * whole) continue;
    marks.push_back({a, fmt::format("{:g}", z)});
  }
  if (!(last > first)) return {{first, fmt::format("{:.4g}", 1 / first - 1)}};
  if (marks.size() < 2)
    marks = {{first, fmt::format("{:.4g}", 1 / first - 1)}, {last, fmt::format("{:.4g}", 1 / last - 1)}};
  return marks;
}

std::string energy_figures(const RunRecords& records) {
  const bool box = records.comoving();
  plot::Plot error = plot_in_time(records, box ? "Energy conservation (Layzer-Irvine)" : "Energy conservation",
                                  box ? "change of a(T+W) + int T da, over |aW|" : "(E - E at the start) / |E|");
  error.lines = {over_time("", records, &Step::energy_error)};
  if (error.lines[0].x.empty()) return "";
  return figures({figure(error), box ? "" : energies_figure(records), box ? "" : virial_figure(records)});
}

std::string step_figures(const RunRecords& records) {
  plot::Plot lengths = plot_in_time(records, "Steps", records.comoving() ? "d ln a" : with_unit("dt", records));
  lengths.log_y = true;
  const double unit = records.time_unit().length;
  const auto length = [&](const Step& step) { return records.comoving() ? step.dlna : step.dt / unit; };
  lengths.lines = {over_time("steps", records, length)};
  if (records.comoving()) lengths.lines.push_back(long_steps(records.steps));
  plot::Plot work = plot_in_time(records, "Work", "interactions of a particle");
  work.lines = {over_time("", records, &Step::mean_list)};
  return figures({figure(lengths), figure(work)});
}

std::string time_figures(const RunRecords& records) {
  plot::Plot plot{"Seconds of a step", "step", "seconds"};
  plot.lines = {averaged(over_steps("whole", records.steps, &Step::seconds))};
  for (const std::string& phase : main_phases(records.steps))
    plot.lines.push_back(averaged(over_steps(phase, records.steps, [&phase](const Step& step) {
      const auto found = step.phases.find(phase);
      return found == step.phases.end() ? 0 : found->second;
    })));
  return figure(plot);
}

std::string rank_figures(const RunRecords& records) {
  plot::Plot uneven{"Imbalance of the ranks", "step", "largest over mean"};
  uneven.from_zero = false;
  uneven.lines = {over_steps("interactions", records.steps, &Step::interaction_imbalance),
                  over_steps("seconds of lists", records.steps, &Step::evaluate_imbalance),
                  over_steps("expected by domains", records.steps, &Step::domain_imbalance)};
  plot::Plot memory{"Device memory", "step", "MB at the peak so far"};
  memory.lines = {over_steps("", records.steps, [](const Step& step) { return 1e-6 * step.memory; })};
  return figures({figure(uneven), figure(memory)});
}

std::string list_figures(const RunRecords& records) {
  plot::Plot plot = plot_in_time(records, "Force errors of interaction lists", "rms, over the rms force");
  plot.log_y = true;
  const auto measured = [](double Step::*error) {
    return [error](const Step& step) { return step.*error > 0 ? step.*error : kUnknown; };
  };
  plot.lines = {over_time("lists in use", records, measured(&Step::probe_error)),
                over_time("lists made now", records, measured(&Step::fresh_error))};
  return figure(plot);
}

std::string site_figures(const RunRecords& records) {
  const bool any = std::any_of(records.steps.begin(), records.steps.end(),
                               [](const Step& step) { return std::isfinite(step.site_waited); });
  return any ? figures({waits_figure(records), slabs_figure(records)}) : "";
}

double largest(const Steps& steps, double Step::*number) {
  double most = kUnknown;
  for (const Step& step : steps)
    if (std::isfinite(step.*number) && !(std::abs(step.*number) <= most)) most = std::abs(step.*number);
  return most;
}

double last(const Steps& steps, double Step::*number) {
  const auto found =
      std::find_if(steps.rbegin(), steps.rend(), [number](const Step& step) { return std::isfinite(step.*number); });
  return found == steps.rend() ? kUnknown : (*found).*number;
}

}  // namespace maki::report
